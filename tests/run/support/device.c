/* The run tests on a GPU: what a launch points at goes there and comes back.

   SDC_TEST_TARGET=cuda    run on the GPU instead of the CPU, sm_80: with code for that
                           target; cuda-dry: with the fake driver, where results are not
                           looked at
   interp and passes       without a GPU: see oracle.c
   SDC_TEST_CPU=NAME       on the CPU, code for that one instead of this machine's
   SDC_TEST_WARPS=N        num_warps and
   SDC_TEST_STAGES=N       num_stages of launches that do not bind them
   SDC_TEST_GUARD=BYTES    guard zone on either side of a block, 4096; 0 makes allocations
                           end where the data ends, for compute-sanitizer
   SDC_TEST_DEBUG=1        asserts and source lines are compiled in */
#include "tests/run/support/device.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/rt/cuda.h"
#include "tests/run/support/oracle.h"

enum { POISON = 0xff, ALIGN = 256, MAX_ARGS = 128 };

const char *
device_target(void)
{
    const char *target = getenv("SDC_TEST_TARGET");
    bool cpu = !target || !*target || oracle_wanted();
    return cpu ? "cpu" : device_dry() ? "cuda" : target;
}

bool
device_wanted(void)
{
    return strcmp(device_target(), "cpu") != 0;
}

bool
device_dry(void)
{
    const char *target = getenv("SDC_TEST_TARGET");
    return target && strcmp(target, "cuda-dry") == 0;
}

static size_t
guard_bytes(void)
{
    const char *text = getenv("SDC_TEST_GUARD");
    return text && *text ? (size_t)strtoul(text, NULL, 10) / ALIGN * ALIGN : 4096;
}

Block *
block_of(Env *env, const void *p)
{
    const unsigned char *at = p;
    for (Block *b = env->blocks; b; b = b->next)
        if (b->mem && at >= b->mem && at < b->mem + b->size)
            return b;
    return NULL;
}

/* Bytes before the block's own on the device: the guard zone, and what keeps the
   address's last bits, for they decide how a kernel is specialized. */
static size_t
lead_bytes(const Block *b)
{
    return guard_bytes() + (uintptr_t)b->mem % ALIGN;
}

static void
copy_in(Env *env, Block *b)
{
    SdcrtError e;
    size_t lead = lead_bytes(b), bytes = lead + b->size + guard_bytes();
    if (b->allocated)
        return;
    ck_assert_msg(
        sdcrt_cuda_alloc(env->cuda, bytes, &b->allocated, &e) == SDCRT_OK &&
            sdcrt_cuda_fill(env->cuda, b->allocated, POISON, bytes, &e) == SDCRT_OK &&
            sdcrt_cuda_write(env->cuda, b->allocated + lead, b->mem, b->size, &e) ==
                SDCRT_OK,
        "%s", e.text);
    b->device = b->allocated + lead;
}

static void
copy_out(Env *env, Block *b)
{
    SdcrtError e;
    size_t lead = lead_bytes(b), guard = guard_bytes();
    unsigned char *zones = malloc(lead + guard + 1);
    ck_assert_ptr_nonnull(zones);
    ck_assert_msg(
        sdcrt_cuda_read(env->cuda, b->mem, b->device, b->size, &e) == SDCRT_OK &&
            sdcrt_cuda_read(env->cuda, zones, b->allocated, lead, &e) == SDCRT_OK &&
            sdcrt_cuda_read(env->cuda, zones + lead, b->device + b->size, guard, &e) ==
                SDCRT_OK &&
            sdcrt_cuda_free(env->cuda, b->allocated, &e) == SDCRT_OK,
        "%s", e.text);
    b->allocated = 0;
    for (size_t i = 0; i < lead + guard; i++)
        if (zones[i] != POISON)
            ck_abort_msg("a kernel wrote %zu bytes %s an array",
                         i < lead ? lead - i : i - lead + 1,
                         i < lead ? "before" : "behind");
    free(zones);
}

static void *
translate(Env *env, void *host)
{
    if (!host)
        return NULL;
    Block *b = block_of(env, host);
    if (!b)
        ck_abort_msg("a pointer into memory that env does not know: use env_lend");
    copy_in(env, b);
    return (void *)(uintptr_t)(b->device + (uint64_t)((unsigned char *)host - b->mem));
}

static void
collect(Env *env)
{
    for (Block *b = env->blocks; b; b = b->next)
        if (b->allocated) {
            copy_out(env, b);
            b->unknown = device_dry();
        }
}

void *
env_place(Env *env, void *host)
{
    return env->cuda ? translate(env, host) : host;
}

void
env_collect(Env *env)
{
    SdcrtError e;
    if (!env->cuda)
        return;
    ck_assert_msg(sdcrt_cuda_wait(env->cuda, &e) == SDCRT_OK, "%s", e.text);
    collect(env);
}

SdcStatus
device_launch(Env *env, SdcFunction *fn, SdcGrid grid, const SdcArg *args, int nargs)
{
    SdcArg there[MAX_ARGS];
    SdcDesc desc[MAX_ARGS];
    SdcrtError e;
    ck_assert_int_le(nargs, MAX_ARGS);
    for (int i = 0; i < nargs; i++) {
        there[i] = args[i];
        if (args[i].kind == SDC_ARG_PTR)
            there[i].v.ptr = translate(env, args[i].v.ptr);
        if (args[i].kind == SDC_ARG_DESC) {
            desc[i] = *(const SdcDesc *)args[i].v.ptr;
            desc[i].base = translate(env, desc[i].base);
            there[i].v.ptr = &desc[i];
        }
    }
    SdcStatus s = sdc_launch(fn, grid, there, nargs, NULL);
    if (s == SDC_OK)
        ck_assert_msg(sdcrt_cuda_wait(env->cuda, &e) == SDCRT_OK, "%s", e.text);
    collect(env);
    return s;
}
