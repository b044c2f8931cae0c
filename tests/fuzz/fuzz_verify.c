/* Tile IR that was damaged in memory, in ways that no text can be: the verifier must find
   what is wrong and survive it. What it still accepts must print, read back, and go
   through every pass that works on any form, and be accepted after each.

   The damage is drawn from a generator seeded with a hash of the input; each input is
   damaged in several ways. */
#include <stdio.h>
#include <string.h>

#include "ir/attr.h"
#include "ir/base/vec.h"
#include "ir/edit.h"
#include "ir/text.h"
#include "ir/verify.h"
#include "passes/forms.h"
#include "passes/pass.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { ROUNDS = 40, MAX_EDITS = 6 };

typedef struct Damage {
    Session *s;
    uint64_t rng;
    Vec(Op *) ops;
    Vec(Value *) values;
} Damage;

static size_t
pick(Damage *d, size_t limit)
{
    d->rng = d->rng * 6364136223846793005u + 1442695040888963407u;
    return limit ? (size_t)(d->rng >> 33) % limit : 0;
}

static void
collect(Damage *d, Region *r, int depth)
{
    if (depth > MAX_REGION_DEPTH)
        return;
    for (int i = 0; i < r->narg; i++)
        vec_push(&d->s->perm, &d->values, r->args[i]);
    for (Op *op = r->first; op; op = op->next) {
        vec_push(&d->s->perm, &d->ops, op);
        for (int i = 0; i < op->nresult; i++)
            vec_push(&d->s->perm, &d->values, &op->results[i]);
        for (int i = 0; i < op->nregion; i++)
            collect(d, op->regions[i], depth + 1);
    }
}

static Value *
any_value(Damage *d)
{
    return d->values.at[pick(d, (size_t)d->values.n)];
}

static void
edit(Damage *d)
{
    Op *op = d->ops.at[pick(d, (size_t)d->ops.n)];
    Op *other = d->ops.at[pick(d, (size_t)d->ops.n)];
    switch (pick(d, 7)) {
    case 0:
        if (op->noperand)
            op_set_operand(op, (int)pick(d, (size_t)op->noperand), any_value(d));
        break;
    case 1:
        if (op->noperand)
            op_drop_operand(op, (int)pick(d, (size_t)op->noperand));
        break;
    case 2: op_add_operand(op, any_value(d)); break;
    case 3: value_set_type(any_value(d), any_value(d)->type); break;
    case 4: attr_drop(&op->attrs, (AttrKey)pick(d, ATTR_COUNT)); break;
    case 5: op->kind = other->kind; break;
    default: {
        AttrKey key = (AttrKey)pick(d, ATTR_COUNT);
        if (attr_info[key].kind == AK_INT)
            attr_set_int(&d->s->mod, &op->attrs, key, (int64_t)pick(d, 70) - 3);
        break;
    }
    }
}

static void
run_passes(Session *s, Module *m)
{
    static const char list[] = "canon,cse,dce,licm,canon,cse,dce";
    PassId *ids;
    PassCx cx = {.s = s, .verify_each = true, .roundtrip = true, .opt_limit = -1};
    if (!target_info("cpu", &cx.target))
        return;
    int n = passes_parse(s, list, &ids);
    if (n >= 0 && passes_run(m, &cx, ids, n))
        return;
    Buf why;
    buf_init(&why, &s->perm);
    diag_render(&s->diag, &why, false);
    fputs(why.s ? why.s : "no message\n", stderr);
    __builtin_trap();
}

/* False when the text does not even read. */
static bool
damage_and_check(Session *s, const char *text, size_t size, uint64_t round)
{
    Source src = {.path = "fuzz.tir", .text = text, .size = size};
    Module *m = module_read(s, &src);
    if (!m || m->nfunc == 0)
        return false;
    Damage d = {.s = s, .rng = 1469598103934665603u + round};
    for (size_t i = 0; i < size; i++)
        d.rng = (d.rng ^ (uint8_t)text[i]) * 1099511628211u;
    for (int i = 0; i < m->nfunc; i++)
        collect(&d, m->funcs[i]->body, 0);
    size_t edits = pick(&d, MAX_EDITS + 1);
    for (size_t i = 0; i < edits && d.ops.n && d.values.n; i++)
        edit(&d);
    TargetInfo cpu;
    if (module_verify(m) && target_info("cpu", &cpu) && forms_verify(m, &cpu))
        run_passes(s, m);
    return true;
}

static bool
try_round(const uint8_t *data, size_t size, uint64_t round)
{
    volatile bool readable = false;
    Session *s = session_new((size_t)256 << 20);
    if (!s)
        return false;
    if (setjmp(s->fail.env) == 0) {
        s->fail.set = 1;
        const char *text = arena_strndup(&s->perm, (const char *)data, size);
        readable = damage_and_check(s, text, size, round);
    } else if (s->fail.reason == FAIL_BUG) {
        __builtin_trap();
    }
    session_free(s);
    return readable;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    for (uint64_t round = 0; round < ROUNDS && try_round(data, size, round); round++)
        continue;
    return 0;
}
