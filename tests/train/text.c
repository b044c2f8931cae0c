/* Reads and divides the text of the training proof, see text.h. */
#include "tests/train/text.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { PIECE = 2048, TENTH = 10 };

typedef struct All {
    uint8_t *at;
    int64_t n;
} All;

static void
read_file(All *all, const char *path)
{
    struct stat s;
    if (lstat(path, &s) || !S_ISREG(s.st_mode))
        return;
    FILE *f = fopen(path, "rb");
    uint8_t *more = f ? realloc(all->at, (size_t)(all->n + s.st_size + 1)) : NULL;
    if (more) {
        all->at = more;
        all->n += (int64_t)fread(more + all->n, 1, (size_t)s.st_size, f);
    }
    if (f)
        fclose(f);
}

static void
read_folder(All *all, const char *path)
{
    struct dirent **names = NULL;
    int n = scandir(path, &names, NULL, alphasort);
    for (int i = 0; i < n; i++) {
        char file[1024];
        snprintf(file, sizeof(file), "%s/%s", path, names[i]->d_name);
        read_file(all, file);
        free(names[i]);
    }
    free(names);
}

/* Numbers in the order of the characters' codes. */
static void
number(Text *t, All *all)
{
    uint8_t code[256] = {0};
    for (int64_t i = 0; i < all->n; i++)
        code[all->at[i]] = 1;
    for (int c = 0; c < 256; c++)
        if (code[c])
            code[c] = (uint8_t)t->words++;
    for (int64_t i = 0; i < all->n; i++)
        all->at[i] = code[all->at[i]];
}

bool
text_open(Text *t, const char *path)
{
    struct stat s;
    All all = {0};
    *t = (Text){0};
    if (stat(path, &s))
        return false;
    if (S_ISDIR(s.st_mode))
        read_folder(&all, path);
    else
        read_file(&all, path);
    t->learn = malloc((size_t)all.n + 1);
    t->check = malloc((size_t)all.n + 1);
    if (all.n < TENTH * PIECE || !t->learn || !t->check) {
        text_close(t);
        free(all.at);
        return false;
    }
    number(t, &all);
    for (int64_t i = 0; i < all.n; i += PIECE) {
        int64_t n = all.n - i < PIECE ? all.n - i : PIECE;
        bool check = i / PIECE % TENTH == TENTH - 1;
        memcpy(check ? t->check + t->ncheck : t->learn + t->nlearn, all.at + i,
               (size_t)n);
        *(check ? &t->ncheck : &t->nlearn) += n;
    }
    free(all.at);
    return true;
}

void
text_close(Text *t)
{
    free(t->learn);
    free(t->check);
    *t = (Text){0};
}
