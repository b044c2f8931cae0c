/* The parameters of the source in a kernel's metadata: which are arguments of a launch,
   and what the others were bound to. With it a launcher needs neither the source nor the
   specialization, so code from the cache or from ahead of time is launched by the same
   rules. */
#include "runtime/compile.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The block of "tensordesc<fp16[64,64]>". */
static void
desc_block(SdcrtSource *to, const char *sig)
{
    const char *p = strchr(sig, '[');
    for (; p && to->rank < SDCRT_MAX_RANK; to->rank++) {
        char *end;
        to->block[to->rank] = (int32_t)strtol(p + 1, &end, 10);
        p = *end == ',' ? end : NULL;
    }
}

static void
bind(SdcrtSource *to, const SpecArg *a)
{
    to->i = a->kind == SPEC_INT || a->kind == SPEC_BOOL ? a->i : 0;
    to->f = a->kind == SPEC_FLOAT ? a->f : 0;
    switch (a->kind) {
    case SPEC_TYPE:
        to->bound = SDCRT_OPEN;
        if (a->sig && strncmp(a->sig, "tensordesc", 10) == 0)
            desc_block(to, a->sig);
        break;
    case SPEC_INT: to->bound = SDCRT_BOUND_INT; break;
    case SPEC_BOOL: to->bound = SDCRT_BOUND_BOOL; break;
    case SPEC_FLOAT: to->bound = SDCRT_BOUND_FLOAT; break;
    case SPEC_NONE: to->bound = SDCRT_BOUND_NONE; break;
    case SPEC_STR:
    case SPEC_DTYPE:
    case SPEC_NAME:
    case SPEC_TUPLE:
    case SPEC_UNSET: to->bound = SDCRT_BOUND_OTHER; break;
    }
}

/* The elements of a tuple; false: it has too many. */
static bool
bind_tuple(SdcrtMeta *meta, SdcrtSource *to, const char *name, const SpecArg *a)
{
    for (int i = 0; i < a->nitem; i++) {
        char own[SDCRT_NAME_MAX];
        snprintf(own, sizeof own, "%.*s_%d", SDCRT_NAME_MAX - 12, name, i);
        if (a->items[i].kind == SPEC_TUPLE) {
            if (!bind_tuple(meta, to, own, &a->items[i]))
                return false;
            continue;
        }
        if (to->nleaf == SDCRT_MAX_LEAVES || meta->nleaf == SDCRT_MAX_PARAMS)
            return false;
        SdcrtSource *leaf = &meta->leaves[meta->nleaf++];
        memcpy(leaf->name, own, sizeof own);
        bind(leaf, &a->items[i]);
        to->nleaf++;
    }
    return true;
}

/* Tile IR is typed already: each of its parameters is one of a source, too. */
static void
from_params(SdcrtMeta *meta)
{
    meta->nsource = meta->nparam;
    for (int i = 0; i < meta->nparam; i++) {
        memcpy(meta->sources[i].name, meta->params[i].name, SDCRT_NAME_MAX);
        meta->params[i].source = (uint16_t)i;
    }
}

bool
meta_sources(Session *s, SdcrtMeta *meta, const FrontSpec *spec, const FrontParam *params,
             int n)
{
    if (!params) {
        from_params(meta);
        return true;
    }
    if (n > SDCRT_MAX_SOURCES) {
        diag_error(&s->diag, (Loc){0}, "kernel '%s' has %d parameters, at most %d",
                   meta->name, n, SDCRT_MAX_SOURCES);
        return false;
    }
    meta->nsource = n;
    for (int i = 0; i < n; i++) {
        SdcrtSource *to = &meta->sources[i];
        if (strlen(params[i].name) >= sizeof to->name) {
            diag_error(&s->diag, (Loc){0},
                       "the name of a parameter of '%s' has %zu bytes, at most %d: "
                       "'%.20s..'", meta->name, strlen(params[i].name),
                       SDCRT_NAME_MAX - 1, params[i].name);
            return false;
        }
        snprintf(to->name, sizeof to->name, "%s", params[i].name);
        to->is_constexpr = params[i].is_constexpr;
        to->bound = SDCRT_BOUND_OTHER;
        if (i < spec->narg)
            bind(to, &spec->args[i]);
        to->is_tuple = i < spec->narg && spec->args[i].kind == SPEC_TUPLE &&
                       !to->is_constexpr;
        to->leaf = (uint16_t)meta->nleaf;
        if (to->is_tuple && !bind_tuple(meta, to, to->name, &spec->args[i])) {
            diag_error(&s->diag, (Loc){0}, "'%s' of '%s' is a tuple of more than %d "
                       "elements", params[i].name, meta->name, SDCRT_MAX_LEAVES);
            return false;
        }
    }
    return true;
}
