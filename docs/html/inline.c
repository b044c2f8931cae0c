/* Text of the documents: files, paths, links, emphasis, code within a line. */
#include "docs/html/html.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static void
die(const char *what, const char *name)
{
    fprintf(stderr, "page: %s '%s': %s\n", what, name, strerror(errno));
    exit(1);
}

char *
read_file(const char *path)
{
    FILE *f = fopen(path, "rb");
    if (!f || fseek(f, 0, SEEK_END))
        die("cannot read", path);
    long n = ftell(f);
    rewind(f);
    char *text = malloc((size_t)n + 1);
    if (!text || fread(text, 1, (size_t)n, f) != (size_t)n)
        die("cannot read", path);
    text[n] = 0;
    fclose(f);
    return text;
}

/* Makes the folders that a file lies in. */
static void
make_folders(char *path)
{
    for (char *p = path + 1; (p = strchr(p, '/')); p++) {
        *p = 0;
        if (mkdir(path, 0777) && errno != EEXIST)
            die("cannot make", path);
        *p = '/';
    }
}

FILE *
create(const Site *s, const char *name, const char *ending)
{
    char path[2 * MAX_PATH];
    snprintf(path, sizeof path, "%s/%s%s", s->out, name, ending);
    make_folders(path);
    FILE *f = fopen(path, "wb");
    if (!f)
        die("cannot write", path);
    return f;
}

bool
ends_with(const char *s, const char *ending)
{
    size_t n = strlen(s), k = strlen(ending);
    return n >= k && strcmp(s + n - k, ending) == 0;
}

void
html_name(const char *path, char *to, size_t size)
{
    size_t n = strlen(path);
    if (ends_with(path, "README.md"))
        snprintf(to, size, "%.*sindex.html", (int)(n - 9), path);
    else if (ends_with(path, ".md"))
        snprintf(to, size, "%.*s.html", (int)(n - 3), path);
    else
        snprintf(to, size, "%s.html", path);
}

static bool
is_page(const Site *s, const char *path)
{
    for (int i = 0; i < s->nfiles; i++)
        if (strcmp(s->files[i], path) == 0)
            return true;
    return false;
}

void
resolve(const char *from, const char *link, char *to, size_t size)
{
    char joined[2 * MAX_PATH];
    const char *slash = strrchr(from, '/');
    snprintf(joined, sizeof joined, "%.*s%s", slash ? (int)(slash + 1 - from) : 0, from,
             link);
    char *out = to, *end = to + size - 1;
    for (char *part = joined; *part;) {
        size_t n = strcspn(part, "/");
        if (n == 2 && strncmp(part, "..", 2) == 0) {
            while (out > to && *--out != '/')
                ;
        } else if (n && !(n == 1 && *part == '.')) {
            if (out > to && out < end)
                *out++ = '/';
            for (size_t i = 0; i < n && out < end; i++)
                *out++ = part[i];
        }
        part += n + (part[n] == '/');
    }
    *out = 0;
}

void
put_up(FILE *to, const char *from)
{
    for (; (from = strchr(from, '/')); from++)
        fputs("../", to);
}

/* ---------------------------------------------------------------- text */

static void
put_char(FILE *to, char c)
{
    switch (c) {
    case '&': fputs("&amp;", to); break;
    case '<': fputs("&lt;", to); break;
    case '>': fputs("&gt;", to); break;
    case '"': fputs("&quot;", to); break;
    default: fputc(c, to); break;
    }
}

void
put_plain(FILE *to, const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++)
        put_char(to, s[i]);
}

void
put_slug(FILE *to, const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)s[i];
        if (c == ' ')
            fputc('-', to);
        else if (isalnum(c) || c == '-' || c == '_' || c >= 0x80)
            fputc(tolower(c), to);
    }
}

static void
copy_file(const Page *p, const char *path)
{
    char from[2 * MAX_PATH];
    struct stat st;
    snprintf(from, sizeof from, "%s/%s", p->site->root, path);
    if (stat(from, &st) || !S_ISREG(st.st_mode))
        return;
    char *text = read_file(from);
    FILE *to = create(p->site, path, "");
    fwrite(text, 1, (size_t)st.st_size, to);
    fclose(to);
    free(text);
}

/* Writes where a link leads; false when it leads to a folder, which is no page. */
static bool
put_target(const Page *p, const char *link, size_t n)
{
    char target[MAX_PATH], path[MAX_PATH], name[MAX_PATH];
    size_t file = 0;
    snprintf(target, sizeof target, "%.*s", (int)n, link);
    if (strncmp(target, "http", 4) == 0 || target[0] == '#') {
        fprintf(p->to, "<a href=\"%s\">", target);
        return true;
    }
    file = strcspn(target, "#");
    char anchor[MAX_PATH];
    snprintf(anchor, sizeof anchor, "%s", target + file);
    target[file] = 0;
    resolve(p->path, target, path, sizeof path);
    struct stat st;
    char on_disk[2 * MAX_PATH];
    snprintf(on_disk, sizeof on_disk, "%s/%s", p->site->root, path);
    if (!is_page(p->site, path) && (stat(on_disk, &st) || !S_ISREG(st.st_mode)))
        return false;
    if (is_page(p->site, path)) {
        html_name(path, name, sizeof name);
    } else {
        snprintf(name, sizeof name, "%s", path);
        if (p->copy)
            copy_file(p, path);
    }
    fputs("<a href=\"", p->to);
    put_up(p->to, p->path);
    fprintf(p->to, "%s%s\">", name, anchor);
    return true;
}

/* [text](target) or ![text](target) at s; how much of s it is, 0: it is no link. */
static size_t
put_link(const Page *p, const char *s, size_t n)
{
    bool image = s[0] == '!';
    size_t open = image ? 1 : 0, close = open + 1, end;
    for (int depth = 1; close < n; close++) {
        depth += (s[close] == '[') - (s[close] == ']');
        if (depth == 0)
            break;
    }
    if (close + 1 >= n || s[close + 1] != '(')
        return 0;
    for (end = close + 2; end < n && s[end] != ')'; end++)
        ;
    if (end >= n)
        return 0;
    const char *text = s + open + 1, *target = s + close + 2;
    size_t ntext = close - open - 1, ntarget = end - close - 2;
    if (image) {
        char path[MAX_PATH], link[MAX_PATH];
        snprintf(link, sizeof link, "%.*s", (int)ntarget, target);
        resolve(p->path, link, path, sizeof path);
        copy_file(p, path);
        fprintf(p->to, "<img src=\"%s\" alt=\"%.*s\">", link, (int)ntext, text);
        return end + 1;
    }
    bool is_link = put_target(p, target, ntarget);
    put_inline(p, text, ntext);
    if (is_link)
        fputs("</a>", p->to);
    return end + 1;
}

/* *text* or **text** at s; 0: it is none. */
static size_t
put_emphasis(const Page *p, const char *s, size_t n)
{
    size_t k = n > 1 && s[1] == '*' ? 2 : 1;
    if (n <= k || isspace((unsigned char)s[k]))
        return 0;
    for (size_t i = k; i + k <= n; i++) {
        if (s[i] == '`')
            for (i++; i < n && s[i] != '`';)
                i++;
        else if (s[i] == '*' && (k == 1 || s[i + 1] == '*') && s[i - 1] != ' ') {
            fputs(k == 2 ? "<b>" : "<i>", p->to);
            put_inline(p, s + k, i - k);
            fputs(k == 2 ? "</b>" : "</i>", p->to);
            return i + k;
        }
    }
    return 0;
}

void
put_inline(const Page *p, const char *s, size_t n)
{
    for (size_t i = 0; i < n;) {
        size_t used = 0;
        if (s[i] == '`') {
            size_t end = i + 1;
            while (end < n && s[end] != '`')
                end++;
            if (end < n) {
                fputs("<code>", p->to);
                for (size_t k = i + 1; k < end; k++) /* tables write \| */
                    if (s[k] != '\\' || s[k + 1] != '|')
                        put_char(p->to, s[k]);
                fputs("</code>", p->to);
                used = end + 1 - i;
            }
        } else if (s[i] == '[' || (s[i] == '!' && i + 1 < n && s[i + 1] == '[')) {
            used = put_link(p, s + i, n - i);
        } else if (s[i] == '*') {
            used = put_emphasis(p, s + i, n - i);
        } else if (s[i] == '\\' && i + 1 < n && ispunct((unsigned char)s[i + 1])) {
            put_char(p->to, s[i + 1]);
            used = 2;
        }
        if (!used) {
            put_char(p->to, s[i]);
            used = 1;
        }
        i += used;
    }
}
