/* The documents as HTML: page ROOT OUT FILE...

   Reads Markdown as these documents write it (headings, paragraphs, lists, tables, blocks
   of code, links, emphasis) and headers of C (a comment, then what it is about), writes a
   page for each with the contents beside it, and copies what pages link to. FILEs are
   relative to ROOT; the first is the contents, whose links are the ones beside every
   page. No search, no scripts: a page is a file that any browser shows. */
#include "docs/html/html.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* ---------------------------------------------------------------- lines */

static size_t
line_length(const char *s)
{
    return strcspn(s, "\n");
}

static const char *
next_line(const char *s)
{
    s += line_length(s);
    return *s ? s + 1 : s;
}

static size_t
indent_of(const char *s)
{
    return strspn(s, " ");
}

static bool
is_blank(const char *s)
{
    return s[indent_of(s)] == '\n' || s[indent_of(s)] == 0;
}

/* "- " or "1. " behind the indent: where its text begins, 0: it is no item. */
static size_t
item_text(const char *s)
{
    size_t i = indent_of(s);
    if (s[i] == '-' && s[i + 1] == ' ')
        return i + 2;
    size_t d = strspn(s + i, "0123456789");
    return d && s[i + d] == '.' && s[i + d + 1] == ' ' ? i + d + 2 : 0;
}

/* Does something else than more of a paragraph begin here? */
static bool
begins_block(const char *s)
{
    const char *t = s + indent_of(s);
    return is_blank(s) || item_text(s) || *t == '#' || *t == '|' ||
           strncmp(t, "```", 3) == 0;
}

/* ---------------------------------------------------------------- blocks */

static const char *
put_code(const Page *p, const char *s)
{
    size_t indent = indent_of(s), n = line_length(s);
    char info[200], name[100] = "";
    snprintf(info, sizeof info, "%.*s", (int)(n - indent - 3), s + indent + 3);
    char lang[100] = "";
    sscanf(info, "%99s %99s", lang, name);
    bool is_file = name[0] && strcmp(lang, "sh") != 0;
    if (is_file)
        fprintf(p->to, "<figure><figcaption>%s</figcaption>", name);
    fprintf(p->to, "<pre%s><code>", strcmp(lang, "text") == 0 ? " class=\"output\"" : "");
    for (s = next_line(s); *s; s = next_line(s)) {
        size_t in = indent_of(s);
        if (strncmp(s + in, "```", 3) == 0)
            break;
        size_t skip = in < indent ? in : indent;
        put_plain(p->to, s + skip, line_length(s) - skip);
        fputc('\n', p->to);
    }
    fprintf(p->to, "</code></pre>%s\n", is_file ? "</figure>" : "");
    return next_line(s);
}

static void
put_row(const Page *p, const char *s, const char *cell)
{
    const char *end = s + line_length(s);
    fputs("<tr>", p->to);
    for (s = strchr(s, '|') + 1; s < end;) {
        const char *bar = s;
        bool code = false;
        while (bar < end && (*bar != '|' || bar[-1] == '\\')) {
            code ^= *bar == '`';
            bar++;
        }
        if (bar == end)
            break;
        const char *last = bar;
        while (s < last && *s == ' ')
            s++;
        while (last > s && last[-1] == ' ')
            last--;
        /* "760 TFLOP/s" stays in one line. */
        bool number = isdigit((unsigned char)*s) && last - s < 18;
        fprintf(p->to, "<%s%s>", cell, number ? " class=\"n\"" : "");
        put_inline(p, s, (size_t)(last - s));
        fprintf(p->to, "</%s>", cell);
        s = bar + 1;
    }
    fputs("</tr>\n", p->to);
}

static bool
is_row(const char *s)
{
    return s[indent_of(s)] == '|';
}

static const char *
put_table(const Page *p, const char *s)
{
    fputs("<table>\n", p->to);
    const char *below = next_line(s);
    if (is_row(below) && strspn(below, "|-: ") == line_length(below)) {
        if (strspn(s, "| ") != line_length(s)) /* a head with nothing in it is none */
            put_row(p, s, "th");
        s = next_line(below);
    }
    for (; *s && is_row(s); s = next_line(s))
        put_row(p, s, "td");
    fputs("</table>\n", p->to);
    return s;
}

static const char *
put_heading(const Page *p, const char *s)
{
    size_t level = strspn(s, "#"), n = line_length(s);
    const char *text = s + level + strspn(s + level, " ");
    size_t size = (size_t)(s + n - text);
    fprintf(p->to, "<h%zu id=\"", level);
    put_slug(p->to, text, size);
    fputs("\"><a href=\"#", p->to);
    put_slug(p->to, text, size);
    fputs("\">", p->to);
    put_inline(p, text, size);
    fprintf(p->to, "</a></h%zu>\n", level);
    return next_line(s);
}

/* Lines up to where something else begins, as one text. */
static const char *
put_paragraph(const Page *p, const char *s)
{
    char *text = malloc(strlen(s) + 1);
    size_t n = 0;
    if (!text)
        exit(1);
    do {
        size_t in = indent_of(s), k = line_length(s) - in;
        if (n)
            text[n++] = '\n';
        memcpy(text + n, s + in, k);
        n += k;
        s = next_line(s);
    } while (*s && !begins_block(s));
    text[n] = 0;
    put_inline(p, text, n);
    free(text);
    return s;
}

static const char *put_blocks(const Page *p, const char *s, size_t indent);

static const char *
put_list(const Page *p, const char *s)
{
    size_t at = indent_of(s);
    const char *tag = s[at] == '-' ? "ul" : "ol";
    fprintf(p->to, "<%s>\n", tag);
    while (*s && item_text(s) && indent_of(s) == at) {
        size_t inner = item_text(s);
        fputs("<li>", p->to);
        s = put_paragraph(p, s + inner);
        s = put_blocks(p, s, at + 1);
        fputs("</li>\n", p->to);
    }
    fprintf(p->to, "</%s>\n", tag);
    return s;
}

/* Blocks that are indented so far at least. Blank lines in front of one that is not are
   the caller's. */
static const char *
put_blocks(const Page *p, const char *s, size_t indent)
{
    while (*s) {
        const char *t = s;
        while (*t && is_blank(t))
            t = next_line(t);
        if (!*t || indent_of(t) < indent)
            return t;
        s = t;
        const char *c = s + indent_of(s);
        if (strncmp(c, "```", 3) == 0) {
            s = put_code(p, s);
        } else if (*c == '#') {
            s = put_heading(p, c);
        } else if (*c == '|') {
            s = put_table(p, s);
        } else if (item_text(s)) {
            s = put_list(p, s);
        } else {
            fputs("<p>", p->to);
            s = put_paragraph(p, s);
            fputs("</p>\n", p->to);
        }
    }
    return s;
}

/* ---------------------------------------------------------------- headers of C */

/* Text of a comment at the left margin; its paragraphs are divided by blank lines, and
   what is indented further is code. */
static void
put_comment(const Page *p, const char *s, const char *end)
{
    while (s < end) {
        while (s < end && is_blank(s))
            s = next_line(s);
        if (s >= end)
            break;
        bool code = indent_of(s) >= 7;
        fputs(code ? "<pre><code>" : "<p>", p->to);
        for (; s < end && (!is_blank(s) || (code && indent_of(next_line(s)) >= 7));
             s = next_line(s)) {
            size_t n = line_length(s), in = indent_of(s);
            if (!code && in >= 7)
                break;
            size_t skip = in < 7 ? in : 7;
            n = s + n > end ? (size_t)(end - s) : n;
            put_plain(p->to, s + skip, n > skip ? n - skip : 0);
            fputc('\n', p->to);
        }
        fputs(code ? "</code></pre>\n" : "</p>\n", p->to);
    }
}

static void
put_header(const Page *p, const char *s)
{
    fprintf(p->to, "<h1>%s</h1>\n", p->path);
    while (*s) {
        if (strncmp(s, "/* -----", 8) == 0) { /* a heading of sections */
            const char *name = s + 3 + strspn(s + 3, "- "), *end = strstr(name, " */");
            fputs("<h2 id=\"", p->to);
            put_slug(p->to, name, (size_t)(end - name));
            fprintf(p->to, "\">%.*s</h2>\n", (int)(end - name), name);
            s = next_line(end);
        } else if (strncmp(s, "/*", 2) == 0) {
            const char *end = strstr(s, "*/");
            put_comment(p, s + 3, end);
            s = next_line(end);
        } else if (is_blank(s)) {
            s = next_line(s);
        } else {
            fputs("<pre><code>", p->to);
            for (; *s && strncmp(s, "/*", 2) != 0; s = next_line(s)) {
                put_plain(p->to, s, line_length(s));
                fputc('\n', p->to);
            }
            fputs("</code></pre>\n", p->to);
        }
    }
}

/* ---------------------------------------------------------------- pages */

/* The links of the contents, under the bold words that they stand behind. */
static void
put_contents(const Page *p)
{
    const Site *site = p->site;
    for (const char *s = site->contents; *s; s++) {
        if (strncmp(s, "**", 2) == 0 && strstr(s + 2, "**")) {
            size_t n = (size_t)(strstr(s + 2, "**") - s - 2);
            fputs("<b>", p->to);
            put_plain(p->to, s + 2, n && s[1 + n] == '.' ? n - 1 : n);
            fputs("</b>\n", p->to);
            s += n + 3;
        } else if (*s == '[') {
            size_t n = strcspn(s + 1, "]"), k = strcspn(s + n + 3, ")");
            char link[MAX_PATH], path[MAX_PATH], name[MAX_PATH];
            snprintf(link, sizeof link, "%.*s", (int)k, s + n + 3);
            size_t file = strcspn(link, "#");
            char rest[MAX_PATH];
            snprintf(rest, sizeof rest, "%s", link + file);
            link[file] = 0;
            resolve(site->files[0], link, path, sizeof path);
            html_name(path, name, sizeof name);
            fprintf(p->to, "<a%s href=\"",
                    strcmp(path, p->path) == 0 && !rest[0] ? " class=\"here\"" : "");
            put_up(p->to, p->path);
            fprintf(p->to, "%s%s\">", name, rest);
            /* One is an entry of a list here, in a sentence there. */
            bool file_name = memchr(s + 1, '.', n) != NULL;
            fputc(file_name ? s[1] : toupper((unsigned char)s[1]), p->to);
            put_plain(p->to, s + 2, n - 1);
            fputs("</a>\n", p->to);
            s += n + 2 + k;
        }
    }
}

static void
make_page(const Site *site, const char *path)
{
    char from[2 * MAX_PATH], name[MAX_PATH];
    snprintf(from, sizeof from, "%s/%s", site->root, path);
    char *text = read_file(from);
    html_name(path, name, sizeof name);
    Page p = {.site = site, .path = path, .to = create(site, name, ""), .copy = true};
    bool markdown = ends_with(path, ".md");
    const char *title = markdown && text[0] == '#' ? text + 2 : path;
    fputs("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
          "<meta name=\"viewport\" content=\"width=device-width\">\n<title>",
          p.to);
    put_plain(p.to, title, line_length(title));
    fputs(" - sdc</title>\n<link rel=\"stylesheet\" href=\"", p.to);
    put_up(p.to, path);
    fputs("style.css\">\n</head>\n<body>\n<nav>\n<a href=\"", p.to);
    put_up(p.to, path);
    fputs("index.html\">sdc</a>\n", p.to);
    put_contents(&p);
    fputs("</nav>\n<main>\n", p.to);
    if (markdown)
        put_blocks(&p, text, 0);
    else
        put_header(&p, text);
    fputs("</main>\n</body>\n</html>\n", p.to);
    if (fclose(p.to))
        exit(1);
    free(text);
}

int
main(int argc, char **argv)
{
    if (argc < 4)
        return fprintf(stderr, "usage: page ROOT OUT CONTENTS FILE...\n"), 2;
    Site site = {.root = argv[1], .out = argv[2], .files = argv + 3, .nfiles = argc - 3};
    char path[2 * MAX_PATH];
    snprintf(path, sizeof path, "%s/%s", site.root, site.files[0]);
    site.contents = read_file(path);
    for (int i = 0; i < site.nfiles; i++)
        make_page(&site, site.files[i]);
    snprintf(path, sizeof path, "%s/docs/html/style.css", site.root);
    char *style = read_file(path);
    FILE *to = create(&site, "style.css", "");
    fputs(style, to);
    fclose(to);
    free(style);
    free(site.contents);
    return 0;
}
