/* Text to learn from: files that any Debian machine has. */
#ifndef TESTS_TRAIN_TEXT_H
#define TESTS_TRAIN_TEXT_H

#include <stdbool.h>
#include <stdint.h>

/* Characters as numbers below `words`; every tenth piece is kept for validation. */
typedef struct Text {
    uint8_t *learn, *check;
    int64_t nlearn, ncheck;
    int words;
} Text;

/* `path`: a file, or a folder whose regular files are read in the order of their names.
   False: nothing there. */
bool text_open(Text *t, const char *path);
void text_close(Text *t);

#endif
