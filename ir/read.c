/* Reading tile IR text. Table-driven recursive descent over the generic form of
   ir/print.c: no code of an op's own but for's header. Whatever is wrong is the user's
   error, with its place; the rules (op_infer) then say what does not fit. Grammar:
   docs/ir.md. */
#include "ir/read.h"

#include "ir/base/util.h"
#include "ir/base/vec.h"
#include "ir/build.h"
#include "ir/edit.h"
#include "ir/layout.h"
#include "ir/text.h"
#include "ir/verify.h"

#include <string.h>

static bool read_region(Reader *r, Region *region, int depth);

/* %name of a value defined before. */
static Value *
value_ref(Reader *r)
{
    Loc loc = r->t.loc;
    if (r->t.kind != T_VALUE) {
        read_error(r, "expected a value like %%x");
        return NULL;
    }
    Value *v = map_get(&r->values, r->t.name);
    if (!v)
        diag_error(&r->s->diag, loc, "'%%%s' is not defined here", r->t.name);
    read_next(r);
    return v;
}

static bool
define(Reader *r, Name name, Loc loc, Value *v)
{
    if (map_has(&r->values, name)) {
        diag_error(&r->s->diag, loc, "'%%%s' is defined twice", name);
        return false;
    }
    map_set(&r->values, name, v);
    /* Numbers are the printer's own invention; names are the author's. */
    v->name = name[0] >= '0' && name[0] <= '9' ? NULL : name;
    return true;
}

static bool
read_ints(Reader *r, AttrList *l, AttrKey key)
{
    int64_t v[64];
    int n = 0;
    if (!read_expect(r, "["))
        return false;
    while (!read_is(r, "]")) {
        if (n == COUNT_OF(v) || r->t.kind != T_INT)
            return read_error(r, "expected at most 64 integers");
        v[n++] = r->t.i;
        read_next(r);
        if (!read_is(r, "]") && !read_expect(r, ","))
            return false;
    }
    read_next(r);
    attr_set_ints(&r->s->mod, l, key, v, n);
    return true;
}

static bool
read_attr_value(Reader *r, AttrList *l, AttrKey key)
{
    Arena *a = &r->s->mod;
    if (attr_info[key].kind == AK_INTS)
        return read_ints(r, l, key);
    switch (attr_info[key].kind) {
    case AK_INT:
        if (r->t.kind != T_INT)
            return read_error(r, "'%s' needs an integer", attr_info[key].name);
        attr_set_int(a, l, key, r->t.i);
        break;
    case AK_FLOAT:
        if (r->t.kind != T_FLOAT && r->t.kind != T_INT)
            return read_error(r, "'%s' needs a number", attr_info[key].name);
        attr_set_float(a, l, key, r->t.kind == T_INT ? (double)r->t.i : r->t.f);
        break;
    case AK_STR:
        if (r->t.kind != T_STRING)
            return read_error(r, "'%s' needs a string", attr_info[key].name);
        attr_set_str(a, l, key, r->t.name);
        break;
    case AK_INTS:
    case AK_FLAG: break;
    }
    read_next(r);
    return true;
}

static AttrKey
attr_key(const Token *t)
{
    for (int i = 0; t->kind == T_WORD && i < ATTR_COUNT; i++)
        if (strcmp(attr_info[i].name, t->name) == 0)
            return (AttrKey)i;
    return ATTR_COUNT;
}

/* {key=value, flag}. A brace that opens a region is told apart by what follows it. */
static bool
read_attrs(Reader *r, AttrList *l)
{
    if (!read_is(r, "{") || !read_brace_is_attrs(r))
        return true;
    read_next(r);
    while (!read_is(r, "}")) {
        AttrKey key = attr_key(&r->t);
        if (key == ATTR_COUNT)
            return read_error(r, "unknown attribute");
        if (attr_has(l, key))
            return read_error(r, "attribute '%s' is given twice", r->t.name);
        read_next(r);
        if (attr_info[key].kind == AK_FLAG)
            attr_set_flag(&r->s->mod, l, key);
        else if (!read_expect(r, "=") || !read_attr_value(r, l, key))
            return false;
        if (!read_is(r, "}") && !read_expect(r, ","))
            return false;
    }
    read_next(r);
    return true;
}

typedef struct OpText {
    Loc loc;
    OpKind kind;
    Vec(Name) results;
    Vec(Loc) result_locs;
    Vec(Value *) operands;
    Vec(const Type *) types;
    Vec(Name) args; /* of for: iv and carried */
    Vec(Loc) arg_locs;
    AttrList attrs;
} OpText;

static bool
read_result_names(Reader *r, OpText *x)
{
    Arena *a = &r->s->mod;
    while (r->t.kind == T_VALUE) {
        vec_push(a, &x->results, r->t.name);
        vec_push(a, &x->result_locs, r->t.loc);
        read_next(r);
        if (!read_is(r, ","))
            return read_expect(r, "=");
        read_next(r);
    }
    return x->results.n == 0 || read_error(r, "expected another result like %%x");
}

static bool
read_operand(Reader *r, OpText *x)
{
    Value *v = value_ref(r);
    if (!v)
        return false;
    vec_push(&r->s->mod, &x->operands, v);
    return true;
}

static bool
read_arg_name(Reader *r, OpText *x)
{
    if (r->t.kind != T_VALUE)
        return read_error(r, "expected a name like %%i");
    vec_push(&r->s->mod, &x->args, r->t.name);
    vec_push(&r->s->mod, &x->arg_locs, r->t.loc);
    read_next(r);
    return true;
}

/* for %i = %lo, %hi, %step (%x = %init, ..) */
static bool
read_for_header(Reader *r, OpText *x)
{
    if (!read_arg_name(r, x) || !read_expect(r, "="))
        return false;
    for (int i = 0; i < 3; i++)
        if ((i && !read_expect(r, ",")) || !read_operand(r, x))
            return false;
    if (!read_is(r, "("))
        return true;
    read_next(r);
    for (;;) {
        if (!read_arg_name(r, x) || !read_expect(r, "=") || !read_operand(r, x))
            return false;
        if (!read_is(r, ","))
            return read_expect(r, ")");
        read_next(r);
    }
}

/* Operands begin on the op's own line: a name on the next one is the next op's result. */
static bool
read_operands(Reader *r, OpText *x)
{
    if (r->t.kind != T_VALUE || r->t.loc.line != x->loc.line)
        return true;
    if (!read_operand(r, x))
        return false;
    while (read_is(r, ",")) {
        read_next(r);
        if (!read_operand(r, x))
            return false;
    }
    return true;
}

static bool
read_types(Reader *r, OpText *x)
{
    if (!read_is(r, ":"))
        return true;
    do {
        read_next(r);
        const Type *t = read_type(r, 0);
        if (!t)
            return false;
        vec_push(&r->s->mod, &x->types, t);
    } while (read_is(r, ","));
    return true;
}

/* (%a: type, ..) before a region */
static bool
read_region_args(Reader *r, Region *region)
{
    if (!read_is(r, "("))
        return true;
    do {
        read_next(r);
        Name name = r->t.name;
        Loc loc = r->t.loc;
        if (r->t.kind != T_VALUE)
            return read_error(r, "expected a name like %%x");
        read_next(r);
        if (!read_expect(r, ":"))
            return false;
        const Type *t = read_type(r, 0);
        if (!t || !define(r, name, loc, region_arg(region, t, NULL)))
            return false;
    } while (read_is(r, ","));
    return read_expect(r, ")");
}

static bool
read_for_args(Reader *r, const OpText *x, Op *op, Region *region)
{
    for (int i = 0; i < x->args.n; i++) {
        const Type *t = i ? op_operand(op, 2 + i)->type : op_operand(op, 0)->type;
        if (!define(r, x->args.at[i], x->arg_locs.at[i], region_arg(region, t, NULL)))
            return false;
    }
    return true;
}

static bool
read_op_regions(Reader *r, const OpText *x, Op *op, int depth)
{
    for (int n = 0;; n++) {
        if (!read_is(r, "{") && !read_is(r, "("))
            return n == 0 || read_error(r, "expected a region");
        if (depth >= MAX_REGION_DEPTH)
            return read_error(r, "regions nested deeper than %d", MAX_REGION_DEPTH);
        Region *region = region_new(r->func, op);
        bool ok = op->kind == OP_FOR ? read_for_args(r, x, op, region)
                                     : read_region_args(r, region);
        if (!ok || !read_expect(r, "{") || !read_region(r, region, depth + 1))
            return false;
        bool more = op->kind == OP_IF ? r->t.kind == T_WORD && !strcmp(r->t.name, "else")
                                      : read_is(r, ",");
        if (!more)
            return true;
        read_next(r);
    }
}

static bool
infer_op(Reader *r, Op *op)
{
    const Type **types = arena_array(&r->s->mod, const Type *, op->nresult + 1);
    Buf why;
    buf_init(&why, &r->s->mod);
    if (!op_infer(r->s, op, types, &why)) {
        diag_error(&r->s->diag, op->loc, "'%s': %s", op_info[op->kind].name, why.s);
        return false;
    }
    for (int i = 0; i < op->nresult; i++) {
        if (!op->results[i].type)
            op->results[i].type = types[i];
        if (op->results[i].type)
            continue;
        diag_error(&r->s->diag, op->loc, "'%s' needs the type of result %d",
                   op_info[op->kind].name, i);
        return false;
    }
    return true;
}

static bool
read_op(Reader *r, Region *region, int depth)
{
    OpText x = {0};
    if (!read_result_names(r, &x))
        return false;
    x.loc = r->t.loc;
    x.kind = r->t.kind == T_WORD ? op_by_name(r->t.name, strlen(r->t.name)) : OP_COUNT;
    if (x.kind == OP_COUNT)
        return read_error(r, "expected an operation");
    read_next(r);
    bool ok = x.kind == OP_FOR ? read_for_header(r, &x) : read_operands(r, &x);
    if (!ok || !read_attrs(r, &x.attrs) || !read_types(r, &x))
        return false;
    int nres = x.results.n ? x.results.n : x.types.n;
    if (x.types.n && x.types.n != nres) {
        diag_error(&r->s->diag, x.loc, "%d results but %d types", nres, x.types.n);
        return false;
    }
    Builder b = builder_at_end(r->func, region);
    b.loc = x.loc;
    Op *op = build_unchecked(&b, x.kind, x.operands.at, x.operands.n, &x.attrs,
                             x.types.n ? x.types.at : NULL, nres);
    if (!read_op_regions(r, &x, op, depth) || !infer_op(r, op))
        return false;
    for (int i = 0; i < x.results.n; i++)
        if (!define(r, x.results.at[i], x.result_locs.at[i], &op->results[i]))
            return false;
    return true;
}

/* Ops up to the closing brace, which is eaten. */
static bool
read_region(Reader *r, Region *region, int depth)
{
    while (!read_is(r, "}")) {
        if (r->t.kind == T_END)
            return read_error(r, "expected '}'");
        if (!read_op(r, region, depth))
            return false;
    }
    read_next(r);
    return true;
}

/* Braced settings of kernels and parameters: key=integer or key="text". */
static bool
read_settings(Reader *r, ReadSetting *list, int n)
{
    if (!read_is(r, "{") || !read_brace_is_attrs(r))
        return true;
    read_next(r);
    while (!read_is(r, "}")) {
        ReadSetting *hit = NULL;
        for (int i = 0; i < n; i++)
            if (r->t.kind == T_WORD && strcmp(list[i].name, r->t.name) == 0)
                hit = &list[i];
        if (!hit)
            return read_error(r, "unknown setting");
        read_next(r);
        if (!read_expect(r, "="))
            return false;
        if (r->t.kind != (hit->is_text ? T_STRING : T_INT))
            return read_error(r, "'%s' needs %s", hit->name,
                              hit->is_text ? "a string" : "an integer");
        if (hit->is_text)
            hit->text = r->t.name;
        else if (r->t.i < hit->least || r->t.i > hit->most)
            return read_error(r, "'%s' must be from %lld to %lld", hit->name,
                              (long long)hit->least, (long long)hit->most);
        else
            hit->i = r->t.i;
        read_next(r);
        if (!read_is(r, "}") && !read_expect(r, ","))
            return false;
    }
    read_next(r);
    return true;
}

static bool
read_param(Reader *r)
{
    Name name = r->t.name;
    Loc loc = r->t.loc;
    if (r->t.kind != T_VALUE)
        return read_error(r, "expected a parameter like %%x");
    read_next(r);
    if (!read_expect(r, ":"))
        return false;
    const Type *t = read_type(r, 0);
    int n = r->func->body->narg;
    ReadSetting set[] = {
        {.name = "sig", .is_text = true, .text = ""},
        {.name = "div", .i = 1, .least = 1, .most = 1 << 20},
        {.name = "source", .i = n, .least = 0, .most = 1 << 16},
        {.name = "part", .i = 0, .least = 0, .most = 1 << 16},
        {.name = "multiple", .i = 1, .least = 1, .most = 1 << 15},
    };
    if (!t || !read_settings(r, set, COUNT_OF(set)))
        return false;
    Value *v = func_param(r->func, name, set[0].text, t, set[1].i);
    r->func->params[n].source = (int)set[2].i;
    r->func->params[n].part = (int)set[3].i;
    r->func->params[n].multiple = set[4].i;
    return define(r, name, loc, v);
}

static bool
read_kernel(Reader *r, Module *m)
{
    Loc loc = r->t.loc;
    read_next(r);
    if (r->t.kind != T_SYMBOL)
        return read_error(r, "expected a kernel name like @f");
    r->func = func_new(m, r->t.name, loc);
    map_init(&r->values, &r->s->mod);
    read_next(r);
    if (!read_expect(r, "("))
        return false;
    while (!read_is(r, ")")) {
        if (!read_param(r) || (!read_is(r, ")") && !read_expect(r, ",")))
            return false;
    }
    read_next(r);
    ReadSetting set[] = {
        {.name = "warps", .i = 4, .least = 1, .most = 64},
        {.name = "stages", .i = 3, .least = 1, .most = 64},
        {.name = "ctas", .i = 1, .least = 1, .most = 16},
        {.name = "form", .i = 0, .least = 0, .most = FUNC_FORM},
        {.name = "shared", .i = 0, .least = 0, .most = INT32_MAX},
        {.name = "overlap", .i = 0, .least = 0, .most = 1},
        {.name = "check", .i = 0, .least = 0, .most = CHECK_ACCESS | CHECK_NAN},
        {.name = "fixed_warps", .i = 0, .least = 0, .most = 1},
        {.name = "exact", .i = 0, .least = 0, .most = 1},
    };
    if (!read_settings(r, set, COUNT_OF(set)) || !read_expect(r, "{"))
        return false;
    r->func->num_warps = (int)set[0].i;
    r->func->num_stages = (int)set[1].i;
    r->func->num_ctas = (int)set[2].i;
    r->func->props = r->func->given = (uint32_t)set[3].i;
    r->func->shared_bytes = set[4].i;
    r->func->overlap = set[5].i;
    r->func->check = (int)set[6].i;
    r->func->fixed_warps = set[7].i;
    r->func->exact = set[8].i;
    return read_region(r, r->func->body, 0);
}

Module *
module_read(Session *s, const Source *src)
{
    Reader r = {.s = s, .src = src, .p = src->text, .line = 1, .line_start = src->text};
    int before = s->diag.errors;
    Module *m = module_new(s);
    map_init(&r.aliases, &s->mod);
    read_next(&r);
    bool ok = true;
    while (ok && r.t.kind != T_END) {
        if (r.t.kind == T_ALIAS)
            ok = read_alias(&r);
        else if (r.t.kind == T_WORD && strcmp(r.t.name, "kernel") == 0)
            ok = read_kernel(&r, m);
        else
            ok = read_error(&r, "expected 'kernel' or a layout alias like #a = ..");
    }
    if (!ok || s->diag.errors != before)
        return NULL;
    return module_verify(m) ? m : NULL;
}
