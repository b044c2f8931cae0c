/* JSON as a tree, for files that sdc bench wrote; any other file may be given too. */
#ifndef SDC_CLI_JSON_H
#define SDC_CLI_JSON_H

#include "ir/base/str.h"

#include <stdbool.h>

typedef enum JsonKind {
    JSON_NULL,
    JSON_BOOL,
    JSON_NUMBER,
    JSON_TEXT,
    JSON_LIST,
    JSON_OBJECT
} JsonKind;

typedef struct Json {
    JsonKind kind;
    double number;    /* of a truth value: 0 or 1 */
    const char *text; /* bytes above 127 as they stand; \uXXXX as UTF-8 */
    const char *name; /* of a member of an object */
    struct Json *first, *next; /* members; the next one beside this */
} Json;

/* NULL: it is no JSON, or deeper than 32 levels. */
const Json *json_read(Arena *arena, const char *text);

/* The member, or NULL; `j` may be NULL or no object. */
const Json *json_get(const Json *j, const char *name);
/* The member's number or text, or what stands for it. */
double json_number(const Json *j, const char *name, double otherwise);
const char *json_text(const Json *j, const char *name, const char *otherwise);

/* With the quotes. */
void json_quote(Buf *to, const char *text);

#endif
