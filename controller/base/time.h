// Wall time and boot time are different types so that they never mix (style: "different types that never
// mix"). Wall time is what records hold (epoch milliseconds); boot time (CLOCK_BOOTTIME, runs on in suspend)
// is what waits use.
#pragma once
#include <stdint.h>

struct wall_time {
    int64_t ms; // since 1970-01-01T00:00:00Z; 0 = not set
};
struct boot_time {
    int64_t ms; // since boot
};

struct wall_time wall_time_now(void);
struct boot_time boot_time_now(void);
int64_t boot_time_us(void); // the same clock, for measuring short times
// RFC 3339 in UTC with seconds, as Kubernetes writes metadata times: "2026-11-29T18:12:59Z".
#define WALL_TIME_TEXT_SIZE 32
void wall_time_format(struct wall_time time, char text[WALL_TIME_TEXT_SIZE]);
// Accepts what wall_time_format writes, with optional fraction. 0 or -1.
int wall_time_parse(const char *text, struct wall_time *ret);
