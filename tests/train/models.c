/* The networks of the training proof, forward and backward; see models.h. */
#include "tests/train/models.h"

#include <math.h>

/* ---- parameters */

static int64_t
weights(Net *net, int64_t in, int64_t out)
{
    return net_param(net, in * out, 0, 1 / sqrt((double)in));
}

static int64_t
norm_param(Net *net, int64_t cols)
{
    int64_t w = net_param(net, 2 * cols, 0, 0);
    for (int64_t i = 0; i < cols && !net->m->failed; i++)
        net->host[w + i] = 1;
    return w;
}

static void
layer_params(Model *md, Layer *l)
{
    Net *net = &md->net;
    int64_t d = md->s.dim, hidden = md->s.hidden;
    l->norm1 = norm_param(net, d);
    l->qkv = weights(net, d, 3 * d);
    l->qkv_b = net_param(net, 3 * d, 0, 0);
    l->out = weights(net, d, d);
    l->out_b = net_param(net, d, 0, 0);
    l->norm2 = norm_param(net, d);
    l->up = weights(net, d, hidden);
    l->up_b = net_param(net, hidden, 0, 0);
    l->down = weights(net, hidden, d);
}

static void
params(Model *md)
{
    Net *net = &md->net;
    const Shape *s = &md->s;
    int64_t wide = s->transformer ? s->dim : s->hidden;
    md->table = net_param(net, s->words * s->dim, 0, 0.5);
    md->place = s->transformer ? net_param(net, s->length * s->dim, 0, 0.1) : -1;
    if (s->transformer) {
        for (int i = 0; i < s->layers; i++)
            layer_params(md, &md->layer[i]);
        md->norm = norm_param(net, s->dim);
    } else {
        md->one = weights(net, s->length * s->dim, s->hidden);
        md->one_b = net_param(net, s->hidden, 0, 0);
        md->two = weights(net, s->hidden, s->hidden);
    }
    md->last = weights(net, wide, s->words);
    md->last_b = net_param(net, s->words, 0, 0);
}

/* ---- memory */

static void
layer_memory(Model *md, Layer *l)
{
    Machine *m = md->net.m;
    int64_t t = md->tokens, d = md->s.dim, hidden = md->s.hidden;
    l->n1 = machine_floats(m, t * d);
    l->stats1 = machine_floats(m, 2 * t);
    l->mix = machine_floats(m, t * 3 * d);
    l->o = machine_floats(m, t * d);
    l->lse = machine_floats(m, t * md->s.heads);
    l->mid = machine_floats(m, t * d);
    l->n2 = machine_floats(m, t * d);
    l->stats2 = machine_floats(m, 2 * t);
    l->h = machine_floats(m, t * hidden);
    l->a = machine_floats(m, t * hidden);
    l->kept = machine_floats(m, t * hidden);
    l->end = machine_floats(m, t * d);
}

static void
memory(Model *md)
{
    Machine *m = md->net.m;
    const Shape *s = &md->s;
    int64_t t = md->tokens, hidden = md->guesses * s->hidden;
    int64_t wide = t * (s->transformer ? 3 * s->dim : s->dim);
    md->token = machine_alloc(m, t * (int64_t)sizeof(int32_t));
    md->target = machine_alloc(m, md->guesses * (int64_t)sizeof(int32_t));
    md->x = machine_floats(m, t * s->dim);
    md->logits = machine_floats(m, md->guesses * s->words);
    md->loss = machine_floats(m, md->guesses);
    md->wide = machine_floats(m, wide > hidden ? wide : hidden);
    md->d0 = machine_floats(m, wide > hidden ? wide : hidden);
    md->d1 = machine_floats(m, wide > hidden ? wide : hidden);
    if (s->transformer) {
        md->n = machine_floats(m, t * s->dim);
        md->stats = machine_floats(m, 2 * t);
        for (int i = 0; i < s->layers; i++)
            layer_memory(md, &md->layer[i]);
        return;
    }
    float **kept[] = {&md->h1, &md->a1, &md->kept, &md->h2, &md->a2};
    for (int i = 0; i < 5; i++)
        *kept[i] = machine_floats(m, hidden);
}

bool
model_open(Model *md, const Net *net, const Shape *s)
{
    *md = (Model){.s = *s, .net = *net};
    md->tokens = s->texts * s->length;
    md->guesses = s->transformer ? md->tokens : s->texts;
    md->net.part_size = 2 * (net->tile > 64 ? 256 : 16) * s->dim; /* of norm_back */
    md->net.rows_size = 2 * s->texts * s->heads * ceil_div(s->length, 64) * 64 + 1;
    params(md);
    memory(md);
    return net_ready(&md->net);
}

/* ---- the perceptron */

static Dropping
hidden_layer(const Model *md)
{
    const Shape *s = &md->s;
    return (Dropping){0, md->a1, md->kept, md->two, s->texts, s->hidden, s->hidden};
}

static void
perceptron(Model *md)
{
    Net *net = &md->net;
    const Shape *s = &md->s;
    int64_t rows = s->texts, in = s->length * s->dim, n = rows * s->hidden;
    Dropping drop = hidden_layer(md);
    embed(net, md->token, md->table, -1, md->x, md->tokens, s->length, s->dim);
    linear(net, md->x, md->one, md->one_b, md->h1, rows, in, s->hidden);
    gelu(net, md->h1, md->a1, n);
    drop_linear(net, &drop, md->h2);
    gelu(net, md->h2, md->a2, n);
    linear(net, md->a2, md->last, md->last_b, md->logits, rows, s->hidden, s->words);
    entropy(net, md->logits, md->target, md->loss, rows, s->words);
    if (!net->learning)
        return;
    linear_back(net, md->a2, md->logits, md->last, md->last_b, md->d0, rows, s->hidden,
                s->words);
    gelu_back(net, md->d0, md->h2, md->d0, n);
    drop_linear_back(net, &drop, md->d0, md->d1);
    gelu_back(net, md->d1, md->h1, md->d1, n);
    linear_back(net, md->x, md->d1, md->one, md->one_b, md->wide, rows, in, s->hidden);
    embed_back(net, md->token, md->wide, md->table, s->words, -1, md->tokens, s->length,
               s->dim);
}

/* ---- the transformer */

static Dropping
down_layer(const Model *md, const Layer *l)
{
    int number = (int)(l - md->layer);
    return (Dropping){number,     l->a,         l->kept,  l->down,
                      md->tokens, md->s.hidden, md->s.dim};
}

static Heads
heads_of(const Model *md, const Layer *l)
{
    const Shape *s = &md->s;
    return (Heads){s->texts, s->length, s->heads, s->dim / s->heads,
                   (int)(l - md->layer)};
}

static void
layer_forward(Model *md, Layer *l, const float *x)
{
    Net *net = &md->net;
    int64_t t = md->tokens, d = md->s.dim, hidden = md->s.hidden;
    Heads h = heads_of(md, l);
    Dropping down = down_layer(md, l);
    norm(net, x, l->norm1, l->n1, l->stats1, t, d);
    linear(net, l->n1, l->qkv, l->qkv_b, l->mix, t, d, 3 * d);
    attention(net, &h, l->mix, l->o, l->lse);
    linear(net, l->o, l->out, l->out_b, l->mid, t, d, d);
    add(net, x, l->mid, l->mid, t * d);
    norm(net, l->mid, l->norm2, l->n2, l->stats2, t, d);
    linear(net, l->n2, l->up, l->up_b, l->h, t, d, hidden);
    gelu(net, l->h, l->a, t * hidden);
    drop_linear(net, &down, l->end);
    add(net, l->mid, l->end, l->end, t * d);
}

/* md->d0: the gradient of what the layer gave, then of what it took, x. */
static void
layer_back(Model *md, Layer *l, const float *x)
{
    Net *net = &md->net;
    int64_t t = md->tokens, d = md->s.dim, hidden = md->s.hidden;
    Heads h = heads_of(md, l);
    Dropping down = down_layer(md, l);
    drop_linear_back(net, &down, md->d0, md->wide);
    gelu_back(net, md->wide, l->h, md->wide, t * hidden);
    linear_back(net, l->n2, md->wide, l->up, l->up_b, md->d1, t, d, hidden);
    norm_back(net, md->d1, l->mid, l->norm2, l->stats2, md->d1, t, d);
    add(net, md->d0, md->d1, md->d0, t * d);
    linear_back(net, l->o, md->d0, l->out, l->out_b, md->d1, t, d, d);
    attention_back(net, &h, l->mix, l->o, l->lse, md->d1, md->wide);
    linear_back(net, l->n1, md->wide, l->qkv, l->qkv_b, md->d1, t, d, 3 * d);
    norm_back(net, md->d1, x, l->norm1, l->stats1, md->d1, t, d);
    add(net, md->d0, md->d1, md->d0, t * d);
}

static void
transformer(Model *md)
{
    Net *net = &md->net;
    const Shape *s = &md->s;
    int64_t t = md->tokens, d = s->dim;
    const float *x = md->x;
    embed(net, md->token, md->table, md->place, md->x, t, s->length, d);
    for (int i = 0; i < s->layers; i++) {
        layer_forward(md, &md->layer[i], x);
        x = md->layer[i].end;
    }
    norm(net, x, md->norm, md->n, md->stats, t, d);
    linear(net, md->n, md->last, md->last_b, md->logits, t, d, s->words);
    entropy(net, md->logits, md->target, md->loss, t, s->words);
    if (!net->learning)
        return;
    linear_back(net, md->n, md->logits, md->last, md->last_b, md->d1, t, d, s->words);
    norm_back(net, md->d1, x, md->norm, md->stats, md->d0, t, d);
    for (int i = s->layers - 1; i >= 0; i--)
        layer_back(md, &md->layer[i], i ? md->layer[i - 1].end : md->x);
    embed_back(net, md->token, md->d0, md->table, s->words, md->place, t, s->length, d);
}

void
model_run(Model *md)
{
    if (md->s.transformer)
        transformer(md);
    else
        perceptron(md);
}
