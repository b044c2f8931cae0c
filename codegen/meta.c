/* Launch metadata from a kernel's signature: what the host must pass, which pointers the
   kernel may store through. */
#include "codegen/gen.h"

#include "ir/base/util.h"
#include "ir/base/vec.h"

#include <stdio.h>
#include <string.h>

typedef struct Reach {
    Arena *a;
    Map seen;
    Vec(Value *) todo;
} Reach;

static void
reach(Reach *r, Value *v)
{
    if (map_has(&r->seen, v))
        return;
    map_set(&r->seen, v, v);
    vec_push(r->a, &r->todo, v);
}

/* Where an operand of a structured op or a terminator goes on. */
static void
reach_region(Reach *r, const Use *u)
{
    Op *op = u->user;
    if (op->kind == OP_FOR && u->index >= 3) {
        reach(r, op->regions[0]->args[u->index - 2]);
        reach(r, op_result(op, u->index - 3));
    } else if (op->kind == OP_WHILE) {
        for (int i = 0; i < op->nregion; i++)
            for (int k = 0; k < op->regions[i]->narg; k++)
                reach(r, op->regions[i]->args[k]);
    } else if (op->kind == OP_WARP_SPECIALIZE) { /* each role has all captures */
        for (int i = 0; i < op->nregion; i++)
            reach(r, op->regions[i]->args[u->index]);
    }
    if (!op_is(op, T_TERMINATOR) || !op->parent->parent)
        return;
    Op *up = op->parent->parent;
    for (int i = 0; i < up->nresult; i++)
        if (up->kind == OP_WHILE || i == u->index)
            reach(r, op_result(up, i));
    for (int k = 0; k < up->nregion && op_is(up, T_STRUCTURED); k++)
        for (int i = 0; i < up->regions[k]->narg; i++)
            if (up->kind == OP_WHILE || (up->kind == OP_FOR && i == u->index + 1))
                reach(r, up->regions[k]->args[i]);
}

/* Addresses that are kept in a buffer, as the tiles of pointers that a loop carries on a
   CPU: into it, and out of it. */
static void
reach_buffer(Reach *r, const Use *u)
{
    const Value *v = op_operand(u->user, u->index);
    Effect e;
    for (int i = 0; i < 2; i++) /* a copy from memory has an address, and keeps none */
        if (opkind_effect(u->user->kind, i, &e) && e.resource != RES_LOCAL &&
            e.resource != RES_SHARED)
            return;
    for (int i = 0; i < 2 && opkind_effect(u->user->kind, i, &e); i++) {
        if (e.operand == u->index)
            for (int k = 0; (e.kind & ACC_READ) && k < u->user->nresult; k++)
                reach(r, op_result(u->user, k));
        else if ((e.kind & ACC_WRITE) && type_is_ptr(v->type))
            reach(r, op_operand(u->user, e.operand));
    }
}

/* Does a store, an atomic or the like get its address from `param`? */
static bool
param_written(Arena *tmp, Value *param)
{
    Reach r = {.a = tmp};
    map_init(&r.seen, tmp);
    reach(&r, param);
    while (r.todo.n) {
        Value *v = r.todo.at[--r.todo.n];
        value_each_use(v, u) {
            Op *op = u->user;
            Effect e;
            for (int i = 0; i < 2; i++)
                if (opkind_effect(op->kind, i, &e) && e.resource == RES_GLOBAL &&
                    (e.kind & ACC_WRITE) && e.operand == u->index)
                    return true;
            reach_buffer(&r, u);
            reach_region(&r, u);
            bool address = op_is(op, T_PURE) && !op->nregion;
            for (int i = 0; address && i < op->nresult; i++)
                reach(&r, op_result(op, i));
        }
    }
    return false;
}

static void
copy_name(char *to, size_t size, const char *from)
{
    snprintf(to, size, "%s", from ? from : "");
}

/* A name that is cut short is another kernel's or parameter's name. */
static bool
name_fits(Session *s, const Func *f, const char *what, const char *name, size_t room)
{
    size_t n = name ? strlen(name) : 0;
    if (n >= room)
        diag_error(&s->diag, f->loc,
                   "the name of a %s has %zu bytes, at most %zu: '%.20s..'", what, n,
                   room - 1, name);
    return n < room;
}

static void
fill_kind(SdcrtParam *p, const Type *t)
{
    bool is_ptr = t->kind != TY_SCALAR;
    p->kind = is_ptr ? SDCRT_PTR : scalar_is_float(t->scalar) ? SDCRT_FLOAT : SDCRT_INT;
    p->bits = is_ptr ? 64 : (uint8_t)scalar_bits(t->scalar);
    p->is_unsigned = p->sig[0] == 'u' || strcmp(p->sig, "i1") == 0;
}

bool
meta_fill(Session *s, const Func *f, const char *target, SdcrtMeta *meta)
{
    int n = f->body->narg;
    if (n > SDCRT_MAX_PARAMS) {
        diag_error(&s->diag, f->loc, "kernel has %d parameters, at most %d are supported",
                   n, SDCRT_MAX_PARAMS);
        return false;
    }
    if (!name_fits(s, f, "kernel", f->name, sizeof meta->name))
        return false;
    copy_name(meta->name, sizeof meta->name, f->name);
    copy_name(meta->symbol, sizeof meta->symbol, f->name);
    copy_name(meta->target, sizeof meta->target, target);
    meta->nparam = n;
    meta->num_warps = f->num_warps;
    meta->num_stages = f->num_stages;
    meta->num_ctas = f->num_ctas;
    for (int i = 0; i < n; i++) {
        SdcrtParam *p = &meta->params[i];
        if (!name_fits(s, f, "parameter", f->params[i].name, sizeof p->name))
            return false;
        copy_name(p->name, sizeof p->name, f->params[i].name);
        copy_name(p->sig, sizeof p->sig, f->params[i].sig);
        fill_kind(p, f->body->args[i]->type);
        p->div = (uint16_t)max_i64(1, min_i64(f->params[i].div, UINT16_MAX));
        p->multiple = (uint16_t)f->params[i].multiple;
        p->source = (uint16_t)f->params[i].source;
        p->written = p->kind == SDCRT_PTR && param_written(&s->tmp, f->body->args[i]);
    }
    return true;
}
