/* The grid of a launch: how many programs along each axis. */
#ifndef SDC_GRID_H
#define SDC_GRID_H

#include <stdint.h>

/* Functions that make arguments and grids: inline in C and C++, and symbols of libsdc for
   languages that only call. Structs of 16 and 12 bytes come back by value. */
#ifndef SDC_MAKER
#define SDC_MAKER static inline
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef struct SdcGrid { int32_t x, y, z; } SdcGrid;

/* Sizes that do not fit are refused at launch. */
SDC_MAKER SdcGrid sdc_grid(int64_t x, int64_t y, int64_t z)
{
    SdcGrid g;
    g.x = x < 0 || x > INT32_MAX ? -1 : (int32_t)x;
    g.y = y < 0 || y > INT32_MAX ? -1 : (int32_t)y;
    g.z = z < 0 || z > INT32_MAX ? -1 : (int32_t)z;
    return g;
}

#ifdef __cplusplus
}
#endif

#endif
