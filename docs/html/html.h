/* What the two files of the generator of HTML share; see page.c. */
#ifndef HTML_H
#define HTML_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

enum { MAX_PATH = 1024 };

typedef struct Site {
    const char *root, *out;
    char **files;
    int nfiles;
    char *contents; /* text of the first file */
} Site;

typedef struct Page {
    const Site *site;
    const char *path; /* below the root */
    FILE *to;
    bool copy; /* copy what links name */
} Page;

/* Files; what fails ends the program. */
char *read_file(const char *path);
FILE *create(const Site *s, const char *name, const char *ending);
bool ends_with(const char *s, const char *ending);

/* "docs/README.md" -> "docs/index.html", "runtime/sdc.h" -> "runtime/sdc.h.html". */
void html_name(const char *path, char *to, size_t size);
/* From the folder of page `from` up to the root: "../../". */
void put_up(FILE *to, const char *from);
/* `link` as it stands in `from`, as a path below the root. */
void resolve(const char *from, const char *link, char *to, size_t size);

/* Text with its special characters, and with Markdown's marks. */
void put_plain(FILE *to, const char *s, size_t n);
void put_inline(const Page *p, const char *s, size_t n);
/* The name of a heading in links: "What it does" -> what-it-does. */
void put_slug(FILE *to, const char *s, size_t n);

#endif
