/* Lines over an axis of numbers, as an SVG that stands alone: legend, points with their
   intervals, light and dark as the reader's screen is. */
#ifndef SDC_CLI_PLOT_H
#define SDC_CLI_PLOT_H

#include "ir/base/str.h"

typedef struct PlotPoint {
    double x, y;
    double low, high; /* of y; low > high: no interval */
} PlotPoint;

typedef struct PlotSeries {
    const char *name;
    const PlotPoint *at;
    int n;
    bool limit; /* what cannot be passed: dashed, without points */
} PlotSeries;

typedef struct Plot {
    const char *title, *subtitle; /* "" for none */
    const char *x, *y;            /* what the axes show */
    bool log_x, log_y;
    const PlotSeries *series;
    int n;
} Plot;

/* At most PLOT_MOST series are drawn. */
enum { PLOT_MOST = 8 };
void plot_svg(Buf *to, const Plot *p);

#endif
