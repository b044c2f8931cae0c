/* Comparing launches by their times, on machines that do other things as well.

   Times that are taken one after the other compare a machine with what it was before:
   warm or cold, its clock, what else runs. Here all launches run in rounds, once in each,
   in an order that is drawn anew; whatever goes on meets all of them alike. What is found
   is not a number but an interval, and a verdict only where the interval allows one. */
#ifndef SDC_MEASURE_H
#define SDC_MEASURE_H

#include "runtime/sdc.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What the times of two launches say. */
typedef enum SdcVerdict { SDC_SAME, SDC_BETTER, SDC_WORSE } SdcVerdict;

/* One of several launches that are measured together. */
typedef struct SdcMeasured {
    SdcLaunchFn *launch;
    /* Instead of `launch`, for what runs elsewhere: leaves the seconds of one run. */
    SdcStatus (*timed)(void *user, double *seconds);
    void *user;
    double share; /* of the time, at most, for a reference; 0: it runs in each round */
    /* What is found: */
    SdcTimes times;
    double spread; /* of 8 in 10 times, as a part of the median */
    /* Seconds of this one for a second of the first, round by round: the median, and the
       interval that holds the true one 999 times in 1000. */
    double ratio, ratio_low, ratio_high;
    SdcVerdict verdict; /* of the first: BETTER is faster than this one */
} SdcMeasured;

/* As sdc_measure, for `n` launches, at most 64. Launches of the same code get the verdict
   SDC_SAME: another one is given when the whole interval of the ratio is more than 1 %
   away from 1. `options->seconds` is spent on each launch that has no share, up to four
   times that where the machine is noisy, but at least 15 rounds are run; `graph` is
   measured of all without `timed`. */
SDC_API SdcStatus sdc_measure_rounds(SdcContext *ctx, SdcMeasured *of, int n,
                                     const SdcMeasureOptions *options);

/* A number that kernels of the same machine code (on a GPU: PTX) have in common, whatever
   constants they were made of; 0 for NULL. */
SDC_API uint64_t sdc_kernel_code(const SdcKernel *k);

#ifdef __cplusplus
}
#endif

#endif
