/* What the text of a fused chain says of its buffers (runtime/fuse.c writes it); no part
   of the language. passes/access/fuse_forward.c reads it. */
#include "frontend/builtin.h"

#include <string.h>

static AttrList
buffer_attr(Sema *s, const char *name)
{
    AttrList attrs = {0};
    attr_set_str(&s->s->mod, &attrs, ATTR_BUFFER, name_of(&s->s->names, name));
    return attrs;
}

/* A pointer to elements that exist nowhere: what is stored is handed on. */
Val
bi_fused_buffer(Sema *s, Args *a)
{
    const char *name, *type;
    if (!arg_str(s, a, 0, &name) || !arg_str(s, a, 1, &type))
        return val_error();
    DType dt = dtype_by_sig(type, strlen(type));
    if (dt == DT_NONE || !dtype_is_scalar(dt))
        return sema_error(s, a->at[1], "'%s' is no type of the elements of '%s'", type,
                          name);
    AttrList attrs = buffer_attr(s, name);
    const Type *t = dtype_ir(s->s, dt + DT_PTR);
    Op *op = build_op(&s->b, OP_UNDEF, NULL, 0, &attrs, &t, 1);
    return val_tensor(s, op_result(op, 0), dt + DT_PTR);
}

/* An argument that several kernels of the chain take; numbers are as they were. */
Val
bi_fused_shared(Sema *s, Args *a)
{
    const char *name;
    Val x = a->v[1];
    if (!arg_str(s, a, 0, &name))
        return val_error();
    if (x->kind != FE_TENSOR || !type_is_ptr(x->v->type))
        return x;
    AttrList attrs = buffer_attr(s, name);
    Op *op = build_op(&s->b, OP_HINT, (Value *[]){x->v}, 1, &attrs, NULL, 1);
    return val_tensor(s, op_result(op, 0), x->dt);
}
