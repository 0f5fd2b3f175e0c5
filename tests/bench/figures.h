// What the programs here share: the clock and percentiles.
#pragma once
#include <stdlib.h>
#include <time.h>

static inline double now_ms(void)
{
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return (double)at.tv_sec * 1e3 + (double)at.tv_nsec / 1e6;
}

static inline int figures_compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

struct percentiles {
    double p50, p99;
};

// Sorts what it is given; at least one.
static inline struct percentiles figures_sum_up(double *each, int count)
{
    qsort(each, (size_t)count, sizeof(each[0]), figures_compare);
    return (struct percentiles){each[count / 2], each[count - 1 - count / 100]};
}
