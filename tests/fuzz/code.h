/* A module through all passes and LLVM for one target, chosen by the input: a status,
   never a crash. An internal error is a finding as well; in the ordinary suite, where
   inputs are few and always the same, it is only printed, unless $SDC_FUZZ_STRICT says
   otherwise, as tests/fuzz/run does. */
#ifndef SDC_FUZZ_CODE_H
#define SDC_FUZZ_CODE_H

#include "runtime/sdc.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Sizes that keep an execution short: what is slow is another test's matter. */
enum { CODE_MAX_BYTES = 6000, CODE_MAX_LINES = 90, CODE_EVERY = 400 };

static unsigned
code_hash(const uint8_t *data, size_t size)
{
    unsigned h = 2166136261u;
    for (size_t i = 0; i < size; i++)
        h = (h ^ data[i]) * 16777619u;
    return h;
}

/* Long numbers make large tiles, and those take seconds. */
static int
code_is_small(const uint8_t *data, size_t size)
{
    int lines = 0, digits = 0;
    if (size > CODE_MAX_BYTES)
        return 0;
    for (size_t i = 0; i < size; i++) {
        digits = data[i] >= '0' && data[i] <= '9' ? digits + 1 : 0;
        lines += data[i] == '\n';
        if (digits == 4 && i > 4 && (data[i - 4] == '<' || data[i - 4] == 'x'))
            return 0;
    }
    return lines <= CODE_MAX_LINES;
}

static SdcContext *
code_context(void)
{
    static SdcContext *cx;
    static int use;
    if (!cx || ++use % CODE_EVERY == 0) {
        sdc_context_destroy(cx);
        setenv("SDC_CACHE", "off", 1);
        SdcContextOptions o = {.memory_limit = (size_t)256 << 20, .threads = 1};
        if (sdc_context_create(&o, &cx) != SDC_OK)
            abort();
    }
    return cx;
}

static void
code_compile(SdcContext *cx, SdcModule *m, unsigned hash, const char *kernel,
             const char *signature)
{
    static const char *const targets[] = {"cpu", "sm_90a", "sm_80", "sm_90a"};
    const char *named = getenv("SDC_FUZZ_TARGET");
    SdcCompileOptions o = {
        .target = named ? named : targets[(hash >> 7) % 4],
        .emit = SDC_EMIT_ASM,
        .kernel = kernel,
        .signature = signature,
        .verify_each = (int)(hash >> 9) % 2,
    };
    SdcOutput *out = NULL;
    if (sdc_compile(m, &o, &out) == SDC_ERROR_INTERNAL) {
        fprintf(stderr, "\ninternal error for %s: %s", o.target, sdc_error(cx));
        if (getenv("SDC_FUZZ_STRICT"))
            abort();
    }
    sdc_output_destroy(out);
}

#endif
