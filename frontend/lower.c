/* One specialization of a kernel to tile IR: parameters become values, constants are
   bound, the body is walked. */
#include "frontend/builtin.h"
#include "frontend/class.h"
#include "frontend/module.h"
#include "frontend/py.h"
#include "frontend/spec.h"

#include <string.h>

void
sema_init(Sema *s, FrontModule *m, Frame *host)
{
    Session *session = module_session(m);
    memset(s, 0, sizeof *s);
    memset(host, 0, sizeof *host);
    s->s = session;
    s->a = &session->tmp;
    s->errors = session->diag.errors;
    s->m = m;
    s->b.s = session;
    s->frame = host;
    s->host = 1;
    host->module = m;
    scope_init(&host->scope, s->a);
    map_init(&s->loop_names, s->a);
}

static void
add_param(Sema *s, const char *name, DType dt, int64_t div, int source, int part,
          Value **out)
{
    const char *sig = dtype_is_ptr(dt)
                          ? arena_printf(s->a, "*%s%s", dtype_is_const(dt) ? "k" : "",
                                         dtype_info[dtype_pointee(dt)].sig)
                          : dtype_info[dt].sig;
    *out = func_param(s->f, name, sig, dtype_ir(s->s, dt), div > 0 ? div : 1);
    Param *p = &s->f->params[s->f->body->narg - 1];
    p->source = source;
    p->part = part;
}

/* A descriptor arrives as its base, shape and strides; the last stride is 1. What divides
   the length of a row is of the signature: accesses that are not TMA's are as wide as it
   allows. */
static Val
desc_param(Sema *s, const Node *p, const char *name, const SpecArg *a, DType dt,
           Shape block, int source, int *part)
{
    bool nan = strstr(a->sig, "],nan") != NULL, tf32 = strstr(a->sig, ",tf32>") != NULL;
    int rank = block.rank, n = 0;
    Value *in[1 + 2 * MAX_RANK];
    if (dt == DT_INT1)
        dt = DT_INT8; /* stored as bytes */
    int64_t unit = 16 * 8 / dtype_bits(dt); /* TMA: bases and strides on 16 bytes */
    if (!sema_check_shape(s, block, p->loc) || !sema_check_dtype(s, dt, p->loc))
        return val_error();
    if (nan && !dtype_is_float(dt))
        return sema_error(s, p->loc, "'%s' is padded with NaN, which %s does not have",
                          p->name, dtype_str(s->a, dt));
    if (tf32 && dt != DT_FP32)
        return sema_error(s, p->loc, "'%s' rounds to tf32, which is for fp32 alone: it "
                          "has %s", p->name, dtype_str(s->a, dt));
    add_param(s, name, dt + DT_PTR, 16, source, (*part)++, &in[n]);
    n++;
    for (int i = 0; i < rank; i++, n++)
        add_param(s, arena_printf(s->a, "%s_shape%d", name, i), DT_INT32,
                  i == rank - 1 ? a->div : 1, source, (*part)++, &in[n]);
    for (int i = 0; i < rank; i++, n++)
        add_param(s, arena_printf(s->a, "%s_stride%d", name, i), DT_INT64,
                  i < rank - 1 ? unit : 1, source, (*part)++, &in[n]);
    s->b.loc = p->loc;
    in[n - 1] = build_int(&s->b, type_scalar(s->s->types, SK_I64), 1);
    AttrList attrs = { 0 };
    attr_set_str(&s->s->mod, &attrs, ATTR_PADDING,
                 name_of(&s->s->names, nan ? "nan" : "zero"));
    if (tf32)
        attr_set_str(&s->s->mod, &attrs, ATTR_ROUND, name_of(&s->s->names, "tf32"));
    const Type *t = type_desc(s->s->types, dtype_ir(s->s, dt), rank, block.dim);
    Op *op = build_op(&s->b, OP_MAKE_DESC, in, n, &attrs, &t, 1);
    FeVal *v = val_shaped(s, FE_DESC, dt, block);
    v->v = op_result(op, 0);
    Val *items = arena_array(s->a, Val, 2 * rank);
    for (int i = 0; i < 2 * rank; i++)
        items[i] = val_tensor(s, in[1 + i], i < rank ? DT_INT32 : DT_INT64);
    v->u.items = items;
    return v;
}

/* `x: tl.const`: a pointer that the kernel must not store through. */
static bool
is_const_annotated(const Node *p)
{
    return p->a && p->a->kind == ND_ATTRIBUTE && strcmp(p->a->name, "const") == 0;
}

/* A number, a pointer or a descriptor: the parameter itself, or an element of a tuple. */
static Val
leaf_param(Sema *s, const Node *p, const char *name, const SpecArg *a, int source,
           int *part)
{
    DType dt;
    Shape block;
    Value *v;
    if (parse_desc_sig(a->sig, &dt, &block))
        return desc_param(s, p, name, a, dt, block, source, part);
    dt = dtype_by_sig(a->sig, strlen(a->sig));
    if (dt == DT_NONE)
        return sema_error(s, p->loc, "unknown type '%s' for '%s'", a->sig, p->name);
    if (!sema_check_dtype(s, dt, p->loc))
        return val_error();
    add_param(s, name, dt, a->div, source, (*part)++, &v);
    if (dtype_is_ptr(dt) && is_const_annotated(p))
        dt = DT_CONST_PTR + dtype_pointee(dt);
    return val_tensor(s, v, dt);
}

static Val
typed_param(Sema *s, const Node *p, const SpecArg *a, int source)
{
    int part = 0;
    if (param_is_constexpr(p))
        return sema_error(s, p->loc,
                          "'%s' is a constexpr parameter: give a value, not the "
                          "type %s",
                          p->name, a->sig);
    return leaf_param(s, p, p->name, a, source, &part);
}

/* A tuple arrives as its elements, in order, each with the parameters that it has alone;
   what its type says is a constant has none. `*part` counts those, too. */
static Val
tuple_param(Sema *s, const Node *p, const SpecArg *a, const char *name, int source,
            int *part)
{
    Val *items = arena_array(s->a, Val, a->nitem + 1);
    for (int i = 0; i < a->nitem; i++) {
        const SpecArg *item = &a->items[i];
        const char *own = arena_printf(s->a, "%s_%d", name, i);
        if (item->kind == SPEC_TUPLE) {
            items[i] = tuple_param(s, p, item, own, source, part);
        } else if (item->kind != SPEC_TYPE) {
            items[i] = spec_value(s, item, p->loc);
            ++*part;
        } else {
            items[i] = leaf_param(s, p, own, item, source, part);
        }
        if (val_is_error(items[i]))
            return items[i];
    }
    return a->str ? spec_object(s, a->str, items, a->nitem, p->loc)
                  : val_tuple(s, items, a->nitem);
}

/* `p: Point`, where Point is a NamedTuple: its name; NULL. */
static const char *
annotated_class(Sema *s, const Node *p)
{
    Diag before = s->s->diag;
    const char *name = p->a && p->a->kind == ND_NAME ? p->a->name : NULL;
    Val k = name ? module_lookup(s, s->m, name, p->loc, true) : NULL;
    diag_rewind(&s->s->diag, &before);
    return k && val_is_class(k) && k->u.class_->is_tuple ? name : NULL;
}

static Val
tuple_argument(Sema *s, const Node *p, const SpecArg *a, int source)
{
    SpecArg whole = *a;
    int part = 0;
    whole.str = a->str ? a->str : annotated_class(s, p);
    return tuple_param(s, p, &whole, p->name, source, &part);
}

/* Rows such as x: "constexpr" default come from the module's globals. */
static Val
default_param(Sema *s, const Node *p)
{
    if (!p->b)
        return sema_error(s, p->loc, "no value for parameter '%s'", p->name);
    s->host++;
    Val v = eval(s, p->b);
    s->host--;
    return v;
}

static bool
bind_kernel_params(Sema *s, const Node *fn, const FrontSpec *spec)
{
    bool ok = true;
    if (spec->narg != fn->list.n) {
        sema_error(s, fn->loc, "kernel '%s' has %d parameters, the specialization %d",
                   fn->name, fn->list.n, spec->narg);
        return false;
    }
    for (int i = 0; i < fn->list.n; i++) {
        const Node *p = fn->list.at[i];
        const SpecArg *a = &spec->args[i];
        Val v;
        if (p->sub != PK_PLAIN)
            v = sema_error(s, p->loc,
                           "a kernel cannot have '*' or '**' parameters");
        else if (a->kind == SPEC_TYPE)
            v = typed_param(s, p, a, i);
        else if (a->kind == SPEC_UNSET)
            v = default_param(s, p);
        else if (a->kind == SPEC_TUPLE && !param_is_constexpr(p))
            v = tuple_argument(s, p, a, i);
        else
            v = spec_value(s, a, p->loc);
        ok = ok && !val_is_error(v);
        scope_set(&s->frame->scope, p->name, v, p->loc, param_is_constexpr(p));
    }
    return ok;
}

/* @triton.jit(debug=True) on the kernel that is launched; helpers have no say. */
static bool
wants_debug(const Node *fn)
{
    const Node *jit = find_decorator(fn, "jit");
    const Node *on =
        jit && jit->kind == ND_CALL ? call_argument(jit, "debug", -1) : NULL;
    return on && on->kind == ND_CONSTANT && on->sub == CK_TRUE;
}

static Func *
lower_kernel(Sema *s, const Node *fn, const FrontSpec *spec, Module *out)
{
    Val ret = NULL;
    int errors = s->s->diag.errors;
    s->f = func_new(out, fn->name, fn->loc);
    s->b = builder_at_end(s->f, s->f->body);
    s->b.loc = fn->loc;
    s->frame->fn = fn;
    s->frame->module = module_home(s->m, fn);
    s->host = 0;
    s->debug = spec->debug || wants_debug(fn);
    s->f->num_warps = spec->num_warps ? spec->num_warps : 4;
    s->f->num_stages = spec->num_stages ? spec->num_stages : 3;
    s->f->num_ctas = 1;
    if (spec->num_ctas > 1)
        diag_warning(&s->s->diag, fn->loc, "num_ctas=%d is a hint that is not followed: "
                     "one block does the work of each program", spec->num_ctas);
    s->f->overlap = spec->launch_pdl;
    s->f->exact = spec->exact;
    if (bind_kernel_params(s, fn, spec))
        exec_list(s, &fn->body, 0, NULL, &ret);
    if (s->s->diag.errors > errors) {
        out->nfunc--;
        return NULL;
    }
    s->b.loc = fn->loc;
    build_op(&s->b, OP_RETURN, NULL, 0, NULL, NULL, 0);
    return s->f;
}

Func *
front_lower(FrontModule *m, const char *kernel, const FrontSpec *spec, Module *out)
{
    const Node *fn = module_kernel(m, kernel);
    if (!fn)
        return NULL;
    Session *session = module_session(m);
    ArenaMark mark = arena_mark(&session->tmp);
    Sema s;
    Frame frame;
    session->diag.stage = "type";
    sema_init(&s, m, &frame);
    /* What one kernel computes of the file's steps is not missing to the next. */
    int64_t steps = module_interp(m)->all_steps;
    Func *f = lower_kernel(&s, fn, spec, out);
    module_interp(m)->all_steps = steps;
    arena_reset(&session->tmp, mark);
    return f;
}
