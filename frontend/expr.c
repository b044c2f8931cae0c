/* Expressions: evaluation of compile-time values and building of runtime ones. */
#include "frontend/builtin.h"
#include "frontend/class.h"
#include "frontend/hint.h"
#include "frontend/host.h"
#include "frontend/lanes.h"
#include "frontend/py.h"

#include <string.h>

static Val
unsupported(Sema *s, const Node *n, const char *hint)
{
    return sema_error(s, n->loc, "%s cannot be used in a kernel%s%s",
                      node_kind_name(n->kind), *hint ? ": " : "", hint);
}

static Val
eval_constant(Sema *s, const Node *n)
{
    switch ((ConstantKind)n->sub) {
    case CK_INT:
        if (n->big)
            return sema_error(s, n->loc, "integer does not fit in 64 bits");
        return val_int(s, (Wide)n->v.u);
    case CK_FLOAT: return val_float(s, n->v.f);
    case CK_STR: return val_str(s, n->v.str.s);
    case CK_TRUE: return val_bool(s, true);
    case CK_FALSE: return val_bool(s, false);
    case CK_NONE: return val_none();
    case CK_IMAGINARY:
    case CK_BYTES: break;
    case CK_ELLIPSIS:
        return sema_error(s, n->loc, "'...' cannot be used in a kernel; write ':' for "
                          "each dimension");
    }
    return sema_error(s, n->loc, "this literal has no meaning in a kernel");
}

static Val
eval_name(Sema *s, const Node *n)
{
    Binding *b = scope_find(&s->frame->scope, n->name);
    if (b)
        return b->val;
    Val v = module_lookup(s, s->frame->module, n->name, n->loc, s->host > 0);
    if (v)
        return v;
    const Builtin *bi = builtin_find(s, n->name, IN_PY);
    if (bi)
        return val_builtin(s, bi);
    intptr_t slot = (intptr_t)map_get(&s->frame->scope.index, n->name);
    if (slot && s->frame->scope.slots[slot - 1].loc.line) {
        sema_error(s, n->loc, "'%s' is not defined on every path to here", n->name);
        diag_note(&s->s->diag, s->frame->scope.slots[slot - 1].loc,
                  "it is set here, inside a branch or loop: give it a value before");
        return val_error();
    }
    const Node *fn = s->frame->fn;
    if (s->s->diag.errors > s->errors && (!fn || function_binds(s->a, fn, n->name)))
        return val_error(); /* its definition may be what went wrong before */
    const char *use = hint_python(n->name), *near = hint_name(s, n->name);
    if (use)
        return sema_error(s, n->loc, "'%s' of Python cannot be used in a kernel: use %s",
                          n->name, use);
    if (near)
        return sema_error(s, n->loc, "'%s' is not defined; did you mean '%s'?", n->name,
                          near);
    return sema_error(s, n->loc, "'%s' is not defined", n->name);
}

static BinOp
binop_of(OpSign sign)
{
    switch (sign) {
    case OS_ADD: return BIN_ADD;
    case OS_SUB: return BIN_SUB;
    case OS_MUL: return BIN_MUL;
    case OS_DIV: return BIN_DIV;
    case OS_FLOORDIV: return BIN_FLOORDIV;
    case OS_MOD: return BIN_MOD;
    case OS_POW: return BIN_POW;
    case OS_SHL: return BIN_SHL;
    case OS_SHR: return BIN_SHR;
    case OS_AND: return BIN_AND;
    case OS_OR: return BIN_OR;
    case OS_XOR: return BIN_XOR;
    case OS_EQ: return BIN_EQ;
    case OS_NE: return BIN_NE;
    case OS_LT: return BIN_LT;
    case OS_LE: return BIN_LE;
    case OS_GT: return BIN_GT;
    case OS_GE: return BIN_GE;
    default: return BIN_MATMUL;
    }
}

static Val
eval_unary(Sema *s, const Node *n)
{
    Val x = eval(s, n->a);
    s->b.loc = n->loc;
    if (val_is_error(x))
        return x;
    if (val_is_aggregate(x)) {
        const char *name = n->sub == OS_NEG      ? "__neg__"
                           : n->sub == OS_POS    ? "__pos__"
                           : n->sub == OS_INVERT ? "__invert__"
                                                 : "__not__";
        return object_unary(s, sign_text((OpSign)n->sub), name, x, n->loc);
    }
    switch ((OpSign)n->sub) {
    case OS_NEG:
        return val_is_tensor(x) ? tensor_minus(s, x, n->loc) : const_minus(s, x, n->loc);
    case OS_POS: return x;
    case OS_INVERT:
        return val_is_tensor(x) ? tensor_invert(s, x, n->loc)
                                : const_invert(s, x, n->loc);
    default:
        if (val_is_tensor(x))
            return tensor_not(s, x, n->loc);
        if (!val_is_const(x))
            return sema_error(s, n->loc, "'not' cannot take %s", val_describe(s->a, x));
        return val_bool(s, !val_truth(x));
    }
}

static Val
logical(Sema *s, bool is_and, Val x, Val y, Loc loc)
{
    static const char *const names[2][2] = {{"logical_or", "logical_or"},
                                            {"logical_and", "logical_and"}};
    if (val_is_aggregate(x) || val_is_aggregate(y))
        return object_binary(s, is_and ? "and" : "or", names[is_and], x, y, loc);
    return tensor_logical(s, is_and, x, y, loc);
}

/* Compile-time operands decide or drop out; runtime ones are all evaluated and joined
   from the right. */
static Val
eval_boolop(Sema *s, const Node *n)
{
    bool is_and = n->sub == OS_LAND;
    Vec(Val) runtime = { 0 };
    Val v = val_error();
    for (int i = 0; i < n->list.n; i++) {
        v = eval(s, n->list.at[i]);
        if (val_is_error(v))
            return v;
        if (val_is_tensor(v) || val_is_aggregate(v))
            vec_push(s->a, &runtime, v);
        else if (val_truth(v) != is_and)
            return v;
    }
    if (!runtime.n)
        return v;
    s->b.loc = n->loc;
    for (int i = 0; i < runtime.n && !s->lanes; i++)
        if (runtime.at[i]->rank) {
            diag_warning(&s->s->diag, n->loc, "'%s' of tensors that are no scalars is "
                         "deprecated in Triton: write '%s', with brackets around "
                         "comparisons", is_and ? "and" : "or", is_and ? "&" : "|");
            break;
        }
    v = runtime.at[runtime.n - 1];
    for (int i = runtime.n - 2; i >= 0 && !val_is_error(v); i--)
        v = logical(s, is_and, runtime.at[i], v, n->loc);
    return v;
}

static Val
eval_in(Sema *s, const Node *n, Val x, Val y)
{
    if (!s->host || y->kind != FE_TUPLE)
        return sema_error(s, n->loc, "'%s' cannot be used in a kernel; compare with each "
                          "element", sign_text(n->signs[0]));
    bool found = (y->is_dict || x->kind == FE_STR) && host_value(y, x);
    for (int i = 0; i < y->n && !y->is_dict; i++)
        found = found || val_equal(x, y->u.items[i]);
    return val_bool(s, found == (n->signs[0] == OS_IN));
}

/* a < b < c, from left to right: an 'and' of the comparisons, each operand once. */
static Val
eval_chain(Sema *s, const Node *n)
{
    Val x = eval(s, n->a), so_far = val_bool(s, true);
    for (int i = 0; i < n->list.n; i++) {
        if (val_is_error(so_far) || (val_is_const(so_far) && !val_truth(so_far)))
            break;
        Val y = eval(s, n->list.at[i]);
        BinOp op = binop_of(n->signs[i]);
        if (op < BIN_EQ || op > BIN_GE)
            return sema_error(s, n->loc, "'%s' cannot stand in a chained comparison",
                              sign_text(n->signs[i]));
        Val now = val_is_error(x) || val_is_error(y) ? val_error()
                                                     : binary(s, op, x, y, n->loc);
        if (val_is_tensor(so_far) && val_is_tensor(now))
            so_far = tensor_logical(s, true, so_far, now, n->loc);
        else if (!val_is_tensor(so_far) || val_is_error(now) ||
                 (val_is_const(now) && !val_truth(now)))
            so_far = now;
        x = y;
    }
    return so_far;
}

static bool
is_loose_and(const Node *n)
{
    return n->kind == ND_BINOP && (n->sub == OS_AND || n->sub == OS_OR) && !n->paren;
}

static void
warn_of_and(Sema *s, const Node *n)
{
    const char *sign = sign_text((OpSign)n->sub);
    diag_warning(&s->s->diag, n->loc, "'%s' binds its operands before they are "
                 "compared: write (..) %s (..)", sign, sign);
}

/* `i > 3 & i < 7` is `i > (3 & i) < 7` to Python, which nobody means. */
static void
warn_of_chain(Sema *s, const Node *n)
{
    for (int i = 0; i + 1 < n->list.n; i++)
        if (is_loose_and(n->list.at[i]))
            warn_of_and(s, n->list.at[i]);
}

static bool
is_truth(Val v)
{
    return v->kind == FE_BOOL || (v->kind == FE_TENSOR && v->dt == DT_INT1);
}

static bool
is_integer(Val v)
{
    return val_is_int(v) || (v->kind == FE_TENSOR && dtype_is_int(v->dt));
}

/* Nor `i < n & mask`, of an integer and a truth value: it is `i < (n & mask)`. */
static Val
eval_compared(Sema *s, const Node *n)
{
    if (!is_loose_and(n))
        return eval(s, n);
    Val x = eval(s, n->a), y = eval(s, n->b);
    if (is_truth(x) != is_truth(y) && is_integer(x) && is_integer(y))
        warn_of_and(s, n);
    s->b.loc = n->loc;
    return binary(s, binop_of((OpSign)n->sub), x, y, n->loc);
}

static Val
eval_compare(Sema *s, const Node *n)
{
    if (n->list.n != 1) {
        warn_of_chain(s, n);
        return eval_chain(s, n);
    }
    Val x = eval_compared(s, n->a), y = eval_compared(s, n->list.at[0]);
    s->b.loc = n->loc;
    if (val_is_error(x) || val_is_error(y))
        return val_error();
    switch (n->signs[0]) {
    case OS_IS:
    case OS_IS_NOT: {
        bool same = val_is_const(x) && val_is_const(y) ? val_equal(x, y) : x == y;
        return val_bool(s, same == (n->signs[0] == OS_IS));
    }
    case OS_IN:
    case OS_NOT_IN: return eval_in(s, n, x, y);
    default: return binary(s, binop_of(n->signs[0]), x, y, n->loc);
    }
}

Val
eval_condition(Sema *s, const Node *n, bool *known, bool *truth)
{
    Val c = eval(s, n);
    s->b.loc = n->loc;
    *known = false;
    if (val_is_error(c))
        return c;
    if (val_is_tensor(c)) {
        if (s->lanes && c->rank)
            return cast_i1(s, c, n->loc);
        if (shape_numel(val_shape(c)) != 1)
            return sema_error(s, n->loc, "a condition must be a scalar, found %s; use "
                              "tl.where or a mask for elements", val_describe(s->a, c));
        return cast_i1(s, unsplat(s, c, n->loc), n->loc);
    }
    if (c->kind != FE_BOOL && c->kind != FE_INT && c->kind != FE_NONE && !s->host)
        return sema_error(s, n->loc,
                          "a condition must be a bool, an int, None or a scalar "
                          "tensor, found %s",
                          val_describe(s->a, c));
    *known = true;
    *truth = val_truth(c);
    return c;
}

/* Both arms, each for its elements. */
static Val
lanes_ifexp(Sema *s, const Node *n, Val cond)
{
    Val arm[2];
    for (int i = 0; i < 2; i++) {
        Val outer = lanes_enter(s, cond, !i, n->loc);
        arm[i] = eval(s, i ? n->c : n->b);
        lanes_leave(s, outer);
    }
    return lanes_select(s, cond, arm[0], arm[1], n->loc);
}

static Val
eval_ifexp(Sema *s, const Node *n)
{
    bool known, truth;
    Val c = eval_condition(s, n->a, &known, &truth);
    if (val_is_error(c))
        return c;
    if (known)
        return eval(s, truth ? n->b : n->c);
    return c->rank ? lanes_ifexp(s, n, c) : runtime_ifexp(s, n, c);
}

static Val
eval_slice(Sema *s, const Node *n)
{
    Val *items = arena_array(s->a, Val, 3);
    const Node *parts[] = { n->a, n->b, n->c };
    for (int i = 0; i < 3; i++) {
        items[i] = parts[i] ? eval(s, parts[i]) : val_none();
        if (val_is_error(items[i]))
            return items[i];
    }
    FeVal *v = val_new(s, FE_SLICE);
    v->n = 3;
    v->u.items = items;
    return v;
}

static Val
eval_tuple(Sema *s, const Node *n)
{
    Vec(Val) items = { 0 };
    for (int i = 0; i < n->list.n; i++) {
        const Node *e = n->list.at[i];
        Val v = eval(s, e->kind == ND_STARRED ? e->a : e);
        if (e->kind == ND_STARRED && v->kind == FE_TUPLE) {
            for (int k = 0; k < v->n; k++)
                vec_push(s->a, &items, v->u.items[k]);
            continue;
        }
        if (e->kind == ND_STARRED && !val_is_error(v))
            return sema_error(s, e->loc, "'*' needs a tuple, found %s",
                              val_describe(s->a, v));
        vec_push(s->a, &items, v);
    }
    return val_tuple(s, items.at, items.n);
}

static Val
eval_comprehension(Sema *s, const Node *n)
{
    if (n->sub != COMP_LIST && !s->host)
        return unsupported(s, n, "a list comprehension over a tuple can");
    if (n->list.n != 1)
        return sema_error(s, n->loc, "a comprehension may have one 'for' only");
    const Node *g = n->list.at[0];
    Val it = eval(s, g->b);
    if (val_is_error(it))
        return it;
    if (it->kind != FE_TUPLE)
        return sema_error(s, g->b->loc, "a comprehension needs a tuple, found %s",
                          val_describe(s->a, it));
    Vec(Val) items = { 0 };
    for (int i = 0; i < it->n; i++) {
        if (!sema_step(s, n->loc, 1))
            return val_error();
        assign_target(s, g->a, it->u.items[i], true);
        bool pass = true;
        for (int k = 0; k < g->list.n && pass; k++) {
            Val cond = eval(s, g->list.at[k]);
            if (val_is_error(cond))
                return cond;
            if (!val_is_const(cond))
                return sema_error(s, g->list.at[k]->loc, "the 'if' of a comprehension is "
                                  "decided at compile time, found %s",
                                  val_describe(s->a, cond));
            pass = val_truth(cond);
        }
        if (pass)
            vec_push(s->a, &items, eval(s, n->a));
    }
    return val_tuple(s, items.at, items.n);
}

static bool
format_value(Sema *s, Buf *b, Val v, bool repr, Val spec)
{
    Interp *in = module_interp(s->m);
    Py p = py_from_val(in, v);
    Buf text;
    buf_init(&text, s->a);
    if (p && repr)
        p = py_text(in, &text, p, true, 0) ? py_strn(in, text.s, text.n) : NULL;
    return p && spec->kind == FE_STR && py_format(in, b, p, spec->u.s);
}

static Val
eval_joined(Sema *s, const Node *n)
{
    Buf b;
    buf_init(&b, s->a);
    buf_str(&b, "");
    for (int i = 0; i < n->list.n; i++) {
        const Node *e = n->list.at[i];
        const char *text = node_str(e);
        if (text) {
            buf_str(&b, text);
            continue;
        }
        Val v = eval(s, e->a);
        if (val_is_error(v))
            return v;
        if (!val_is_const(v))
            return sema_error(s, e->loc, "an f-string holds compile-time values only, "
                              "found %s; use tl.device_print", val_describe(s->a, v));
        bool repr = e->name && e->name[0] != 's';
        Val spec = e->b ? eval(s, e->b) : NULL;
        if (spec && val_is_error(spec))
            return spec;
        if (spec && !format_value(s, &b, v, repr, spec))
            return sema_error(s, e->loc, "what the format '%s' makes of %s is known to "
                              "Python alone", spec->u.s, val_describe(s->a, v));
        if (spec)
            continue;
        if (repr && v->kind == FE_STR)
            buf_printf(&b, "'%s'", v->u.s);
        else
            val_print(&b, v);
    }
    return val_str(s, b.s);
}

static Val
eval_call(Sema *s, const Node *n)
{
    Val made = s->host ? host_method(s, n) : NULL;
    if (made)
        return made;
    Val fn = eval(s, n->a);
    if (val_is_error(fn))
        return fn;
    Vec(CallArg) args = { 0 };
    for (int i = 0; i < n->list.n; i++) {
        const Node *e = n->list.at[i];
        Val v = eval(s, e->kind == ND_STARRED ? e->a : e);
        if (e->kind != ND_STARRED) {
            vec_push(s->a, &args, ((CallArg){v, NULL, e->loc, e->loc}));
            continue;
        }
        if (v->kind != FE_TUPLE)
            return val_is_error(v) ? v
                                   : sema_error(s, e->loc, "'*' needs a tuple, found %s",
                                                val_describe(s->a, v));
        for (int k = 0; k < v->n; k++)
            vec_push(s->a, &args, ((CallArg){v->u.items[k], NULL, e->loc, e->loc}));
    }
    for (int i = 0; i < n->more.n; i++) {
        const Node *k = n->more.at[i];
        if (!k->name)
            return sema_error(s, k->loc, "'**' arguments cannot be used in a kernel");
        vec_push(s->a, &args, ((CallArg){eval(s, k->a), k->name, k->a->loc, k->loc}));
    }
    return call_value(s, fn, args.at, args.n, n->loc);
}

static Val
eval_binop(Sema *s, const Node *n)
{
    Val x = eval(s, n->a), y = eval(s, n->b);
    s->b.loc = n->loc;
    return binary(s, binop_of((OpSign)n->sub), x, y, n->loc);
}

static Val
eval_named(Sema *s, const Node *n)
{
    Node target = {.kind = ND_NAME, .name = n->name, .loc = n->loc};
    Val v = eval(s, n->a);
    if (val_is_error(v))
        return v;
    assign_value(s, &target, v, n->loc);
    return scope_find(&s->frame->scope, n->name)->val;
}

static Val
eval_kind(Sema *s, const Node *n)
{
    switch (n->kind) {
    case ND_NAME: return eval_name(s, n);
    case ND_CONSTANT: return eval_constant(s, n);
    case ND_ATTRIBUTE: return get_attribute(s, eval(s, n->a), n->name, n->loc, false);
    case ND_BINOP: return eval_binop(s, n);
    case ND_UNARYOP: return eval_unary(s, n);
    case ND_BOOLOP: return eval_boolop(s, n);
    case ND_COMPARE: return eval_compare(s, n);
    case ND_IFEXP: return eval_ifexp(s, n);
    case ND_CALL: return eval_call(s, n);
    case ND_SUBSCRIPT: {
        Val x = eval(s, n->a), i = eval(s, n->b);
        s->b.loc = n->loc;
        return get_item(s, x, i, n->loc);
    }
    case ND_SLICE: return eval_slice(s, n);
    case ND_TUPLE: return eval_tuple(s, n);
    case ND_LIST: return eval_tuple(s, n);
    case ND_COMPREHENSION: return eval_comprehension(s, n);
    case ND_NAMED_EXPR: return eval_named(s, n);
    case ND_JOINED_STR: return eval_joined(s, n);
    case ND_LAMBDA: return unsupported(s, n, "write a @triton.jit function");
    case ND_DICT: return s->host ? host_dict(s, n) : unsupported(s, n, "use a tuple");
    case ND_SET: return unsupported(s, n, "use a tuple");
    case ND_STARRED: return unsupported(s, n, "only the arguments of a call are starred");
    default: return unsupported(s, n, "");
    }
}

Val
eval(Sema *s, const Node *n)
{
    if (!sema_step(s, n->loc, 1))
        return val_error();
    if (s->depth >= MAX_WALK_DEPTH)
        return sema_stop(s, n->loc, "code is nested too deeply");
    Loc outer = s->b.loc;
    s->depth++;
    s->b.loc = n->loc;
    Val v = eval_kind(s, n);
    if (val_is_error(v) && s->s->diag.errors <= s->errors && !s->s->diag.muted)
        bug(&s->s->fail, "an error of which nobody tells");
    s->depth--;
    s->b.loc = outer;
    return v;
}

Val
eval_quiet(Sema *s, const Node *n)
{
    Diag *d = &s->s->diag;
    Diag before = *d;
    Val v = eval(s, n);
    if (d->errors > before.errors || d->warnings > before.warnings) {
        *d = before;
        if (d->last)
            d->last->next = NULL;
        return val_error();
    }
    return v;
}
