/* Errors with the chain of calls, the work budget, and making values. */
#include "frontend/sema.h"

#include "frontend/prelude.h"

#include <stdarg.h>
#include <string.h>

static const FeVal error_value = { .kind = FE_ERROR };
static const FeVal none_value = { .kind = FE_NONE };

Val
val_error(void)
{
    return &error_value;
}

Val
val_none(void)
{
    return &none_value;
}

Val
sema_error(Sema *s, Loc loc, const char *fmt, ...)
{
    enum { MAX_NOTES = 6 };
    va_list ap;
    Buf b;
    buf_init(&b, s->a);
    va_start(ap, fmt);
    buf_vprintf(&b, fmt, ap);
    va_end(ap);
    /* The library is not the user's: blame the call into it. */
    const Frame *from = s->frame;
    for (; from && from->caller && prelude_owns(from->module); from = from->caller)
        loc = from->call_loc;
    diag_error(&s->s->diag, loc, "%s", b.s);
    int n = 0;
    for (const Frame *f = from; f && f->caller && n < MAX_NOTES; f = f->caller, n++)
        if (f->fn)
            diag_note(&s->s->diag, f->call_loc, "'%s' is called from here",
                      f->fn->name);
    return &error_value;
}

Val
sema_stop(Sema *s, Loc loc, const char *text)
{
    if (s->steps <= MAX_CONST_STEPS)
        sema_error(s, loc, "%s", text);
    s->steps = MAX_CONST_STEPS + 1;
    return &error_value;
}

bool
sema_enter(Sema *s, Loc loc)
{
    if (s->nest >= MAX_NEST) {
        const char *fmt = "run-time control flow is nested deeper than %d levels";
        sema_stop(s, loc, arena_printf(s->a, fmt, MAX_NEST));
        return false;
    }
    s->nest++;
    return true;
}

bool
sema_step(Sema *s, Loc loc, int64_t n)
{
    if (s->steps > MAX_CONST_STEPS)
        return false;
    s->steps += n;
    if (s->steps <= MAX_CONST_STEPS)
        return true;
    sema_error(s, loc, "compile-time evaluation takes more than %d steps",
               MAX_CONST_STEPS);
    return false;
}

FeVal *
val_new(Sema *s, FeKind kind)
{
    FeVal *v = arena_new(s->a, FeVal);
    v->kind = kind;
    return v;
}

FeVal *
val_shaped(Sema *s, FeKind kind, DType dt, Shape sh)
{
    FeVal *v = val_new(s, kind);
    int64_t *dim = arena_array(s->a, int64_t, sh.rank + 1);
    memcpy(dim, sh.dim, sizeof *dim * (size_t)sh.rank);
    v->dt = dt;
    v->rank = sh.rank;
    v->shape = dim;
    return v;
}

Val
val_bool(Sema *s, bool b)
{
    FeVal *v = val_new(s, FE_BOOL);
    v->u.i = b;
    return v;
}

Val
val_int(Sema *s, Wide i)
{
    FeVal *v = val_new(s, FE_INT);
    v->u.i = i;
    return v;
}

Val
val_float(Sema *s, double f)
{
    FeVal *v = val_new(s, FE_FLOAT);
    v->u.f = f;
    return v;
}

Val
val_str(Sema *s, const char *text)
{
    FeVal *v = val_new(s, FE_STR);
    v->u.s = text;
    return v;
}

Val
val_dtype(Sema *s, DType t)
{
    FeVal *v = val_new(s, FE_DTYPE);
    v->dt = t;
    return v;
}

Val
val_tuple(Sema *s, const Val *items, int n)
{
    FeVal *v = val_new(s, FE_TUPLE);
    v->n = n;
    v->u.items = items;
    return v;
}

Val
val_tuple_like(Sema *s, Val like, const Val *items)
{
    FeVal *v = val_new(s, FE_TUPLE);
    v->n = like->n;
    v->self = like->self;
    v->u.items = items;
    return v;
}

Val
val_tensor(Sema *s, Value *value, DType dt)
{
    FeVal *v = val_new(s, FE_TENSOR);
    v->dt = dt;
    v->v = value;
    if (value->type->kind == TY_TILE) {
        v->rank = value->type->rank;
        v->shape = value->type->shape;
    }
    return v;
}
