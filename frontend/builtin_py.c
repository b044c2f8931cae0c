/* Python's own functions that a kernel may call, mostly on compile-time values. */
#include "frontend/builtin.h"
#include "frontend/class.h"
#include "frontend/hint.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

Val
bi_self(Sema *s, Args *a)
{
    (void)s;
    return a->v[0];
}

Val
bi_len(Sema *s, Args *a)
{
    Val x = a->v[0];
    if (x->kind == FE_TUPLE)
        return val_int(s, x->n);
    if (x->kind == FE_STR)
        return val_int(s, (Wide)strlen(x->u.s));
    return sema_error(s, a->at[0], "%s has no length", val_describe(s->a, x));
}

Val
bi_int(Sema *s, Args *a)
{
    Val x = a->v[0];
    if (val_is_int(x))
        return val_int(s, x->u.i);
    if (x->kind == FE_FLOAT && fabs(x->u.f) < 0x1p63)
        return val_int(s, (Wide)x->u.f);
    return sema_error(s, a->at[0], "'int' takes a compile-time number, found %s; use "
                      "x.to(tl.int32)", val_describe(s->a, x));
}

static bool
read_float(const char *text, double *out)
{
    char *end;
    while (*text == ' ')
        text++;
    *out = strtod(text, &end);
    while (*end == ' ')
        end++;
    return end != text && !*end && !strchr(text, 'x') && !strchr(text, 'X');
}

Val
bi_float(Sema *s, Args *a)
{
    Val x = a->v[0];
    double f;
    if (val_is_number(x))
        return val_float(s, val_double(x));
    if (x->kind == FE_STR && read_float(x->u.s, &f))
        return val_float(s, f);
    return sema_error(s, a->at[0],
                      "'float' takes a compile-time number or its text, found "
                      "%s; use x.to(tl.float32)",
                      val_describe(s->a, x));
}

Val
bi_bool(Sema *s, Args *a)
{
    if (!val_is_const(a->v[0]))
        return sema_error(s, a->at[0], "'bool' takes a compile-time value, found %s; "
                          "compare with 0", val_describe(s->a, a->v[0]));
    return val_bool(s, val_truth(a->v[0]));
}

Val
bi_str(Sema *s, Args *a)
{
    Buf b;
    buf_init(&b, s->a);
    buf_str(&b, "");
    if (!val_is_const(a->v[0]))
        return sema_error(s, a->at[0], "'str' takes a compile-time value, found %s",
                          val_describe(s->a, a->v[0]));
    val_print(&b, a->v[0]);
    return val_str(s, b.s);
}

static Val
minmax(Sema *s, Args *a, bool is_max)
{
    Val args = a->v[0];
    if (args->n == 1 && args->u.items[0]->kind == FE_TUPLE)
        args = args->u.items[0];
    if (args->n < 1 || (args->n == 1 && a->v[0] == args))
        return sema_error(s, a->loc,
                          "'%s' needs at least 2 values; tl.%s reduces a tensor",
                          a->b->name, a->b->name);
    for (int i = 0; i < args->n; i++) {
        Val x = args->u.items[i];
        if (x->kind == FE_FLOAT && (isnan(x->u.f) || (x->u.f == 0 && signbit(x->u.f))))
            return sema_error(s, a->loc, "'%s' of a compile-time %s depends on the order "
                              "of the arguments: use tl.%simum", a->b->name,
                              isnan(x->u.f) ? "NaN" : "-0.0", a->b->name);
    }
    Val best = args->u.items[0];
    for (int i = 1; i < args->n; i++) {
        Val x = args->u.items[i];
        if (val_is_error(x) || val_is_error(best))
            return val_error();
        if (!val_is_number(x) || !val_is_number(best)) {
            best = tensor_minmax(s, is_max, best, x, false, a->loc);
            continue;
        }
        Val less = const_binary(s, is_max ? BIN_GT : BIN_LT, x, best, a->loc);
        if (less->kind == FE_BOOL && less->u.i)
            best = x;
    }
    return best;
}

Val
bi_min(Sema *s, Args *a)
{
    return minmax(s, a, false);
}

Val
bi_max(Sema *s, Args *a)
{
    return minmax(s, a, true);
}

static bool
is_block_type(Val x)
{
    return x->kind == FE_TYPE && x->n == CLASS_BLOCK;
}

/* Some classes are builtins, since they are called as well: tl.pointer_type. */
static bool
is_class(Val class)
{
    static const char *const names[] = { "int", "float", "bool", "str", "tuple", "list",
                                         "constexpr", "pointer_type", "block_type",
                                         "constexpr_type", "tuple_type" };
    if (class->kind != FE_BUILTIN)
        return class->kind == FE_TYPE;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(class->u.builtin->name, names[i]) == 0)
            return true;
    return false;
}

static bool
is_instance(Sema *s, Val x, Val class)
{
    if (val_is_class(class))
        return object_is(s, x, class);
    if (class->kind == FE_BUILTIN) {
        const char *name = class->u.builtin->name;
        if (strcmp(name, "pointer_type") == 0)
            return x->kind == FE_DTYPE && dtype_is_ptr(x->dt);
        if (strcmp(name, "block_type") == 0)
            return is_block_type(x);
        if (strcmp(name, "constexpr_type") == 0)
            return x->kind == FE_TYPE && x->n == CLASS_TYPE_CONST;
        if (strcmp(name, "tuple_type") == 0)
            return x->kind == FE_TYPE && x->n == CLASS_TYPE_TUPLE;
        if (strcmp(name, "int") == 0)
            return x->kind == FE_INT || x->kind == FE_BOOL;
        if (strcmp(name, "float") == 0)
            return x->kind == FE_FLOAT;
        if (strcmp(name, "bool") == 0)
            return x->kind == FE_BOOL;
        if (strcmp(name, "str") == 0)
            return x->kind == FE_STR;
        if (strcmp(name, "tuple") == 0 || strcmp(name, "list") == 0)
            return x->kind == FE_TUPLE;
        /* Triton hands over what is inside of a constexpr, so that none is one */
        return strcmp(name, "constexpr") == 0 && s->host && val_is_const(x);
    }
    switch (class->n) {
    case CLASS_TENSOR: return x->kind == FE_TENSOR;
    case CLASS_DTYPE: return x->kind == FE_DTYPE || is_block_type(x);
    case CLASS_DESC: return x->kind == FE_DESC;
    case CLASS_TYPE_DESC: return x->kind == FE_TYPE && x->n == CLASS_TYPE_DESC;
    default: return false;
    }
}

Val
bi_isinstance(Sema *s, Args *a)
{
    Val classes = a->v[1];
    int n = classes->kind == FE_TUPLE ? classes->n : 1;
    for (int i = 0; i < n; i++) {
        Val c = classes->kind == FE_TUPLE ? classes->u.items[i] : classes;
        if (!is_class(c))
            return sema_error(s, a->at[1], "'isinstance' needs a class, found %s",
                              val_describe(s->a, c));
        if (is_instance(s, a->v[0], c))
            return val_bool(s, true);
    }
    return val_bool(s, false);
}

Val
bi_getattr(Sema *s, Args *a)
{
    const char *name;
    if (!arg_str(s, a, 1, &name))
        return val_error();
    Val v = get_attribute(s, a->v[0], name_of(&s->s->names, name), a->loc, a->given[2]);
    return v ? v : a->v[2];
}

Val
bi_hasattr(Sema *s, Args *a)
{
    const char *name;
    if (!arg_str(s, a, 1, &name))
        return val_error();
    Val v = get_attribute(s, a->v[0], name_of(&s->s->names, name), a->loc, true);
    return v && val_is_error(v) ? v : val_bool(s, v != NULL);
}

Val
bi_list(Sema *s, Args *a)
{
    if (a->v[0]->kind == FE_TUPLE)
        return a->v[0];
    return sema_error(s, a->at[0], "'%s' takes a tuple, found %s", a->b->name,
                      val_describe(s->a, a->v[0]));
}

Val
bi_getenv(Sema *s, Args *a)
{
    (void)s;
    return a->v[1];
}

/* Python's math of numbers. The errors are Python's too. */
Val
bi_pymath(Sema *s, Args *a)
{
    static const struct {
        const char *name;
        double (*f)(double);
    } functions[] = {
        { "math.sqrt", sqrt }, { "math.exp", exp },   { "math.exp2", exp2 },
        { "math.log", log },   { "math.log2", log2 }, { "math.log10", log10 },
        { "math.sin", sin },   { "math.cos", cos },   { "math.tanh", tanh },
        { "math.erf", erf },   { "math.ceil", ceil }, { "math.floor", floor },
    };
    const char *name = a->b->name;
    const char *use = hint_host(s, strchr(name, '.') + 1);
    if (a->v[0]->kind == FE_TENSOR && use)
        return sema_error(s, a->loc, "'%s' is host code, which works on constants, found "
                          "%s: use %s", name, val_describe(s->a, a->v[0]), use);
    if (!val_is_number(a->v[0]))
        return sema_error(s, a->at[0], "'%s' takes a compile-time number, found %s", name,
                          val_describe(s->a, a->v[0]));
    double x = val_double(a->v[0]), y = NAN;
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        if (strcmp(functions[i].name, name) == 0)
            y = functions[i].f(x);
    if (!isfinite(y) && isfinite(x))
        return sema_error(s, a->at[0], "'%s' has no value at %g", name, x);
    bool integer = strcmp(name, "math.ceil") == 0 || strcmp(name, "math.floor") == 0;
    if (integer && !(fabs(y) < 0x1p63))
        return sema_error(s, a->at[0], "'%s' of %g is no integer", name, x);
    return integer ? val_int(s, (Wide)y) : val_float(s, y);
}
