#include "controller/base/time.h"
#include <stdio.h>
#include <string.h>
#include <time.h>

static int64_t clock_ms(clockid_t id)
{
    struct timespec now;
    clock_gettime(id, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

struct wall_time wall_time_now(void)
{
    return (struct wall_time){clock_ms(CLOCK_REALTIME)};
}

struct boot_time boot_time_now(void)
{
    return (struct boot_time){clock_ms(CLOCK_BOOTTIME)};
}

int64_t boot_time_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_BOOTTIME, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

void wall_time_format(struct wall_time time, char text[WALL_TIME_TEXT_SIZE])
{
    time_t seconds = time.ms / 1000;
    struct tm parts;
    gmtime_r(&seconds, &parts);
    strftime(text, WALL_TIME_TEXT_SIZE, "%Y-%m-%dT%H:%M:%SZ", &parts);
}

int wall_time_parse(const char *text, struct wall_time *ret)
{
    struct tm parts = {0};
    const char *rest = strptime(text, "%Y-%m-%dT%H:%M:%S", &parts);
    if (!rest)
        return -1;
    int64_t fraction_ms = 0;
    if (*rest == '.') {
        int scale = 100;
        for (rest++; *rest >= '0' && *rest <= '9'; rest++, scale /= 10)
            fraction_ms += (*rest - '0') * scale;
    }
    if (strcmp(rest, "Z") != 0)
        return -1;
    *ret = (struct wall_time){(int64_t)timegm(&parts) * 1000 + fraction_ms};
    return 0;
}
