/* A reader of JSON files for the tests: numbers stay text, so that nothing is lost. */
#ifndef TESTS_RUN_SUPPORT_JSON_H
#define TESTS_RUN_SUPPORT_JSON_H

#include <stddef.h>
#include <stdint.h>

typedef enum JsonKind { JSON_TEXT, JSON_NUMBER, JSON_LIST, JSON_OBJECT } JsonKind;

typedef struct Json Json;
struct Json {
    JsonKind kind;
    char *key;  /* within an object */
    char *text; /* of a text (escapes kept as they are) or number */
    Json *first, *next;
    int count;  /* members */
};

/* Reads a file; NULL when it cannot be read or is no JSON. */
Json *json_read(const char *path);
void json_free(Json *j);

const Json *json_get(const Json *object, const char *key); /* NULL: no such member */
const Json *json_at(const Json *list, int i);
int64_t json_int(const Json *j);
uint64_t json_uint(const Json *j);
double json_double(const Json *j);

#endif
