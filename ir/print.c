/* Tile IR as text. One generic form serves every op:

       %r = op %a, %b {attrs} : type

   Only kernels, for, while, if and regions have a shape of their own. Names come from the
   source where there are any and are made unique with a number. Layouts get aliases (#l0,
   #l1, ..) listed first. What is printed here is what ir/read.c reads. */
#include "ir/text.h"

#include "ir/base/map.h"
#include "ir/base/util.h"
#include "ir/base/vec.h"
#include "ir/layout.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

typedef struct Printer {
    Buf *out;
    Arena *tmp;
    Map names; /* Value -> printed name */
    Map taken; /* interned name -> count of uses so far */
    Map layouts; /* Layout -> number of its alias + 1 */
    int unnamed; /* values without a name so far; the same on every print */
    NameTable *table;
} Printer;

static void print_region(Printer *p, const Region *r, int depth);

static bool
plain_name(const char *s)
{
    if (!isalpha((unsigned char)*s) && *s != '_')
        return false;
    for (; *s; s++)
        if (!isalnum((unsigned char)*s) && *s != '_')
            return false;
    return true;
}

/* The name under which a value is printed; the first to want a name gets it, the next
   ones get a number appended that is free as well. */
static const char *
name_value(Printer *p, const Value *v)
{
    const char *known = map_get(&p->names, v);
    if (known)
        return known;
    const char *base = v->name && plain_name(v->name) ? v->name : NULL;
    const char *text = base;
    Name key = base ? name_of(p->table, base) : NULL;
    if (!base || map_has(&p->taken, key)) {
        uintptr_t n = base ? (uintptr_t)map_get(&p->taken, key) : (uintptr_t)p->unnamed;
        for (;; n++) {
            text = base ? arena_printf(p->tmp, "%s_%d", base, (int)n)
                        : arena_printf(p->tmp, "%d", (int)n);
            if (!map_has(&p->taken, name_of(p->table, text)))
                break;
        }
        if (base)
            map_set(&p->taken, key, (void *)(n + 1));
        else
            p->unnamed = (int)n + 1;
    }
    Name mine = name_of(p->table, text);
    map_set(&p->taken, mine, (void *)(uintptr_t)1);
    map_set(&p->names, v, (void *)(uintptr_t)mine);
    return mine;
}

static void
print_value(Printer *p, const Value *v)
{
    buf_printf(p->out, "%%%s", name_value(p, v));
}

static void
print_string(Buf *out, const char *s)
{
    buf_char(out, '"');
    for (; *s; s++) {
        unsigned char c = (unsigned char)*s;
        if (c == '"' || c == '\\')
            buf_printf(out, "\\%c", c);
        else if (c < 0x20 || c == 0x7f)
            buf_printf(out, "\\x%02x", c);
        else
            buf_char(out, (char)c);
    }
    buf_char(out, '"');
}

static void
print_float(Buf *out, double f)
{
    if (isnan(f))
        buf_str(out, signbit(f) ? "-nan" : "nan");
    else if (isinf(f))
        buf_str(out, f < 0 ? "-inf" : "inf");
    else
        buf_printf(out, "%a", f);
}

/* As type_print, with layouts by alias. */
static void
print_type(Printer *p, const Type *t)
{
    if (t->kind == TY_ASYNC) {
        buf_str(p->out, "async<");
        print_type(p, t->elem);
        buf_char(p->out, '>');
        return;
    }
    if (!t->layout) {
        type_print(p->out, t);
        return;
    }
    bool mem = t->kind == TY_MEM;
    buf_str(p->out, mem ? "mem<" : "tile<");
    if (mem) {
        type_print(p->out, t->elem);
        buf_str(p->out, ", [");
    }
    for (int i = 0; i < t->rank; i++)
        buf_printf(p->out, "%s%lld", !i ? "" : mem ? "," : "x", (long long)t->shape[i]);
    if (mem) {
        buf_char(p->out, ']');
    } else {
        buf_char(p->out, 'x');
        type_print(p->out, t->elem);
    }
    buf_printf(p->out, ", #l%d", (int)(intptr_t)map_get(&p->layouts, t->layout) - 1);
    if (t->stages)
        buf_printf(p->out, ", stages=%d", t->stages);
    buf_char(p->out, '>');
}

static void
print_ints(Buf *out, const int64_t *v, int n)
{
    buf_char(out, '[');
    for (int i = 0; i < n; i++)
        buf_printf(out, "%s%lld", i ? "," : "", (long long)v[i]);
    buf_char(out, ']');
}

static void
print_attrs(Buf *out, const AttrList *l)
{
    if (!l->n)
        return;
    buf_str(out, " {");
    for (int i = 0; i < l->n; i++) {
        const Attr *a = &l->at[i];
        const AttrInfo *info = &attr_info[a->key];
        buf_printf(out, "%s%s", i ? ", " : "", info->name);
        if (info->kind != AK_FLAG)
            buf_char(out, '=');
        switch (info->kind) {
        case AK_INT: buf_printf(out, "%lld", (long long)a->v.i); break;
        case AK_INTS: print_ints(out, a->v.ints, a->n); break;
        case AK_FLOAT: print_float(out, a->v.f); break;
        case AK_STR: print_string(out, a->v.s); break;
        case AK_FLAG: break;
        }
    }
    buf_char(out, '}');
}

static void
indent(Printer *p, int depth)
{
    for (int i = 0; i < depth; i++)
        buf_str(p->out, "  ");
}

static void
print_operands(Printer *p, const Op *op, int from, int to)
{
    for (int i = from; i < to; i++) {
        buf_str(p->out, i > from ? ", " : " ");
        print_value(p, op_operand(op, i));
    }
}

static void
print_result_types(Printer *p, const Op *op)
{
    for (int i = 0; i < op->nresult; i++) {
        buf_str(p->out, i ? ", " : " : ");
        print_type(p, op->results[i].type);
    }
}

/* (%a = %init, ..): region arguments from `first` on, each with its operand. */
static void
print_carried(Printer *p, const Op *op, const Region *r, int first_arg, int first_operand)
{
    if (r->narg <= first_arg)
        return;
    buf_str(p->out, " (");
    for (int i = first_arg; i < r->narg; i++) {
        buf_str(p->out, i > first_arg ? ", " : "");
        print_value(p, r->args[i]);
        buf_str(p->out, " = ");
        print_value(p, op_operand(op, first_operand + i - first_arg));
    }
    buf_char(p->out, ')');
}

/* (%a: type, ..) */
static void
print_args(Printer *p, const Region *r, int from, int to)
{
    buf_char(p->out, '(');
    for (int i = from; i < to; i++) {
        buf_str(p->out, i > from ? ", " : "");
        print_value(p, r->args[i]);
        buf_str(p->out, ": ");
        print_type(p, r->args[i]->type);
    }
    buf_char(p->out, ')');
}

static void
print_block(Printer *p, const Region *r, int depth)
{
    buf_str(p->out, " {\n");
    print_region(p, r, depth + 1);
    indent(p, depth);
    buf_char(p->out, '}');
}

static void
print_op(Printer *p, const Op *op, int depth)
{
    for (int i = 0; i < op->nresult; i++) {
        buf_str(p->out, i ? ", " : "");
        print_value(p, &op->results[i]);
    }
    buf_printf(p->out, "%s%s", op->nresult ? " = " : "", op_info[op->kind].name);
    if (op->kind == OP_FOR) {
        buf_char(p->out, ' ');
        print_value(p, op->regions[0]->args[0]);
        buf_str(p->out, " =");
        print_operands(p, op, 0, 3);
        print_carried(p, op, op->regions[0], 1, 3);
    } else {
        print_operands(p, op, 0, op->noperand);
    }
    print_attrs(p->out, &op->attrs);
    print_result_types(p, op);
    for (int i = 0; i < op->nregion; i++) {
        const Region *r = op->regions[i];
        if (i)
            buf_str(p->out, op->kind == OP_IF ? " else" : ",");
        if (r->narg && op->kind != OP_FOR) {
            buf_char(p->out, ' ');
            print_args(p, r, 0, r->narg);
        }
        print_block(p, r, depth);
    }
}

static void
print_region(Printer *p, const Region *r, int depth)
{
    if (depth > MAX_REGION_DEPTH + 1)
        return;
    for (const Op *op = r->first; op; op = op->next) {
        indent(p, depth);
        print_op(p, op, depth);
        buf_char(p->out, '\n');
    }
}

static void
print_func(Printer *p, const Func *f)
{
    buf_printf(p->out, "kernel @%s(", f->name);
    for (int i = 0; i < f->body->narg; i++) {
        const Param *q = &f->params[i];
        buf_str(p->out, i ? ", " : "");
        print_value(p, f->body->args[i]);
        buf_str(p->out, ": ");
        print_type(p, f->body->args[i]->type);
        buf_str(p->out, " {sig=");
        print_string(p->out, q->sig);
        if (q->div > 1)
            buf_printf(p->out, ", div=%lld", (long long)q->div);
        if (q->multiple > 1)
            buf_printf(p->out, ", multiple=%lld", (long long)q->multiple);
        if (q->source != i)
            buf_printf(p->out, ", source=%d", q->source);
        if (q->part)
            buf_printf(p->out, ", part=%d", q->part);
        buf_char(p->out, '}');
    }
    buf_printf(p->out, ") {warps=%d, stages=%d", f->num_warps, f->num_stages);
    if (f->num_ctas != 1)
        buf_printf(p->out, ", ctas=%d", f->num_ctas);
    if (f->fixed_warps)
        buf_str(p->out, ", fixed_warps=1");
    if (f->overlap)
        buf_str(p->out, ", overlap=1");
    if (f->exact)
        buf_str(p->out, ", exact=1");
    if (f->check)
        buf_printf(p->out, ", check=%d", f->check);
    if (f->shared_bytes)
        buf_printf(p->out, ", shared=%lld", (long long)f->shared_bytes);
    if (f->props & FUNC_FORM)
        buf_printf(p->out, ", form=%u", f->props & FUNC_FORM);
    buf_char(p->out, '}');
    print_block(p, f->body, 0);
    buf_char(p->out, '\n');
}

static void
alias_type(Printer *p, const Type *t)
{
    if (t->kind == TY_ASYNC)
        t = t->elem;
    if (!t->layout || map_has(&p->layouts, t->layout))
        return;
    buf_printf(p->out, "#l%d = ", p->layouts.n);
    layout_print(p->out, t->layout);
    buf_char(p->out, '\n');
    map_set(&p->layouts, t->layout, (void *)(intptr_t)(p->layouts.n + 1));
}

/* Aliases of all layouts in a region, in order of appearance. */
static void
alias_region(Printer *p, const Region *r, int depth)
{
    if (depth > MAX_REGION_DEPTH + 1)
        return;
    for (int i = 0; i < r->narg; i++)
        alias_type(p, r->args[i]->type);
    for (const Op *op = r->first; op; op = op->next) {
        for (int i = 0; i < op->nresult; i++)
            alias_type(p, op->results[i].type);
        for (int i = 0; i < op->nregion; i++)
            alias_region(p, op->regions[i], depth + 1);
    }
}

static Printer
printer(Session *s, Buf *out)
{
    Printer p = {.out = out, .tmp = out->arena, .table = &s->names};
    map_init(&p.names, p.tmp);
    map_init(&p.taken, p.tmp);
    map_init(&p.layouts, p.tmp);
    return p;
}

void
module_print(Buf *out, const Module *m)
{
    Printer p = printer(m->s, out);
    for (int i = 0; i < m->nfunc; i++)
        alias_region(&p, m->funcs[i]->body, 0);
    for (int i = 0; i < m->nfunc; i++) {
        map_init(&p.names, p.tmp);
        map_init(&p.taken, p.tmp);
        p.unnamed = 0;
        if (i || p.layouts.n)
            buf_char(out, '\n');
        print_func(&p, m->funcs[i]);
    }
}
