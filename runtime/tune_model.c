/* What a configuration needs, from its tile IR before any pass: a millisecond, where
   compiling takes a hundred. Products say most: their accumulators lie in registers, and
   their operands in as many buffers of shared memory as there are stages. What cannot fit
   is not compiled. */
#include "runtime/tune.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Addresses, indices and fragments take this many registers of a thread at least. */
enum { MAX_REGISTERS = 255, OTHER_REGISTERS = 24 };

typedef struct Need {
    int64_t accumulators; /* bytes of the largest product's result */
    int64_t operands;     /* bytes of its operands */
    int warps, stages;
    const TargetInfo *target;
    char *why;
} Need;

static int64_t
tile_bytes(const Type *t)
{
    return type_is_tile(t) && t->scalar != SK_NONE
               ? type_numel(t) * scalar_bits(t->scalar) / 8
               : 0;
}

static void
look_at(const Region *r, Need *need)
{
    for (const Op *op = r->first; op; op = op->next) {
        if (op->kind == OP_DOT) {
            int64_t operands =
                tile_bytes(op_operand(op, 0)->type) + tile_bytes(op_operand(op, 1)->type);
            need->accumulators =
                max_i64(need->accumulators, tile_bytes(op->results[0].type));
            need->operands = max_i64(need->operands, operands);
        }
        for (int i = 0; i < op->nregion; i++)
            look_at(op->regions[i], need);
    }
}

static void
judge(const Module *m, void *user)
{
    Need *need = user;
    const Func *f = m->funcs[0];
    look_at(f->body, need);
    need->warps = f->num_warps > 0 ? f->num_warps : 4;
    need->stages = f->num_stages > 0 ? f->num_stages : 3;
    int64_t registers = need->accumulators / 4 / (32 * need->warps) + OTHER_REGISTERS;
    /* A loop of n stages holds the operands of n - 1 iterations to come. */
    int64_t shared = need->operands * max_i64(need->stages - 1, 0);
    int n = 0;
    if (need->accumulators && registers > MAX_REGISTERS)
        n = asprintf(&need->why,
                     "its accumulators alone take %lld registers of a thread, there are "
                     "%d: use more warps or smaller tiles",
                     (long long)registers, MAX_REGISTERS);
    else if (shared > need->target->shared_bytes)
        n = asprintf(&need->why,
                     "its stages take %lld bytes of shared memory, there are %d",
                     (long long)shared, need->target->shared_bytes);
    if (n < 0)
        need->why = NULL;
}

static SdcStatus
nothing(Session *s, CompileResult *r, void *arg)
{
    (void)s, (void)r, (void)arg;
    return SDC_OK;
}

char *
tune_prune(SdcTuning *t, const Candidate *c, SdcFunction *f)
{
    SdcContext *cx = t->mod->cx;
    TargetInfo target;
    if (!cx->on_gpu || !target_info(cx->gpu_target, &target))
        return NULL;
    char *signature = function_signature(f, t->o->args, t->o->nargs);
    if (!signature)
        return NULL; /* compiling will say why */
    Need need = {.target = &target};
    CompileJob job;
    module_job(t->mod, &job);
    job.look = judge;
    job.look_user = &need;
    job.opt = (SdcCompileOptions){.kernel = t->info->name,
                                  .signature = signature,
                                  .bind = (const char *const *)c->bind,
                                  .nbind = c->nbind,
                                  .target = cx->gpu_target,
                                  .emit = SDC_EMIT_TIR};
    compile_call(cx, &job, nothing, NULL);
    free(signature);
    return need.why;
}
