/* The two networks of the training proof: both guess the next character of a text. */
#ifndef TESTS_TRAIN_MODELS_H
#define TESTS_TRAIN_MODELS_H

#include "tests/train/layers.h"

enum { MAX_LAYERS = 4 };

/* A perceptron over the embeddings of the last `length` characters: one guess a text; or
   a transformer: a guess at each place. */
typedef struct Shape {
    bool transformer;
    int64_t texts, length, words;
    int64_t dim, hidden, heads; /* hidden: of the perceptrons */
    int layers;                 /* of the transformer */
} Shape;

typedef struct Layer {
    int64_t norm1, qkv, qkv_b, out, out_b, norm2, up, up_b, down; /* parameters */
    float *n1, *stats1, *mix, *o, *lse, *mid, *n2, *stats2, *h, *a, *kept, *end;
} Layer;

typedef struct Model {
    Shape s;
    Net net;
    int64_t tokens, guesses; /* of a batch */
    int64_t table, place, last, last_b, norm;
    int64_t one, one_b, two; /* the perceptron's */
    Layer layer[MAX_LAYERS];
    int32_t *token, *target;
    float *x, *logits, *loss;
    float *n, *stats, *h1, *a1, *kept, *h2, *a2;
    float *d0, *d1, *wide; /* gradients on their way back */
} Model;

/* `net` has machine, mode, p, tile, block and random; false: not enough memory. */
bool model_open(Model *md, const Net *net, const Shape *s);

/* Losses of the batch that md->token and md->target have, and the gradients of all
   parameters when net.learning. */
void model_run(Model *md);

#endif
