/* What a device does, as shares of what the H200 does that the planner's rates were
   measured on: its memory, its SMs and its second-level cache, whose ports and slices go
   by the same clock. Tensor cores without wgmma have rates of an A100's. What the
   driver does not say is as there; launches and latencies are alike on all. */
#include "runtime/nn/plan.h"

/* GB/s, MHz and SMs, at most, as the driver says. */
static const double h200_memory = 4814.304, h200_clock = 1980, h200_processors = 132,
                    a100_clock = 1410;

double
device_memory(const NnDevice *d)
{
    return d->gpu && d->memory > 0 ? d->memory / h200_memory : 1;
}

double
device_clock(const NnDevice *d)
{
    double known = d->wgmma ? h200_clock : a100_clock;
    return d->gpu && d->clock > 0 ? d->clock / known : 1;
}

double
device_cache(const NnDevice *d)
{
    double clock = d->clock > 0 ? d->clock / h200_clock : 1;
    return d->gpu ? clock * d->processors / h200_processors : 1;
}
