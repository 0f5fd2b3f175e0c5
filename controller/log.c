#include "controller/log.h"
#include "controller/base/time.h"
#include "controller/base/utf8.h"
#include <pthread.h>
#include <stdatomic.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LINE_MAX_BYTES 2048
#define WINDOW_MS 10000
#define WINDOW_LINES 200

static _Atomic int threshold = LOG_LEVEL_INFO;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; // guards all below, and keeps lines whole
static int64_t window_start_ms;
static int window_lines, left_out;

void log_set_level(enum log_level level)
{
    threshold = level;
}

static const char *level_word(enum log_level level)
{
    switch (level) {
    case LOG_LEVEL_ERROR:
        return "error: ";
    case LOG_LEVEL_WARNING:
        return "warning: ";
    case LOG_LEVEL_DEBUG:
        return "debug: ";
    default:
        return "";
    }
}

// One write for a line, so that lines of several processes do not mix on one stderr.
static void put_line(enum log_level level, const char *text)
{
    char line[LINE_MAX_BYTES + 1], when[WALL_TIME_TEXT_SIZE];
    wall_time_format(wall_time_now(), when);
    int head = getenv("JOURNAL_STREAM") ? snprintf(line, sizeof(line), "<%d>%s ", (int)level, when)
                                        : snprintf(line, sizeof(line), "%s %s", when, level_word(level));
    size_t room = LINE_MAX_BYTES - 1 - (size_t)head, len = strlen(text);
    if (len > room)
        len = utf8_cut(text, room);
    memcpy(line + head, text, len);
    line[(size_t)head + len] = '\n';
    ssize_t ignored = write(STDERR_FILENO, line, (size_t)head + len + 1);
    (void)ignored; // a log that cannot be written has nobody to tell
}

// Is there room for one more line in the current window? Opens a new one when it is over, saying what was
// left out.
static bool admit(void)
{
    int64_t now_ms = boot_time_now().ms;
    if (now_ms - window_start_ms >= WINDOW_MS) {
        char text[96];
        snprintf(text, sizeof(text), "%d log lines were left out (at most %d in %d s)", left_out,
                 WINDOW_LINES, WINDOW_MS / 1000);
        if (left_out)
            put_line(LOG_LEVEL_WARNING, text);
        window_start_ms = now_ms;
        window_lines = left_out = 0;
    }
    if (window_lines >= WINDOW_LINES) {
        left_out++;
        return false;
    }
    window_lines++;
    return true;
}

void log_write(enum log_level level, const char *format, ...)
{
    if ((int)level > threshold)
        return;
    char raw[LINE_MAX_BYTES];
    va_list args;
    va_start(args, format);
    vsnprintf(raw, sizeof(raw), format, args);
    va_end(args);
    char *text = utf8_to_printable(raw, utf8_cut(raw, strlen(raw)), false);
    pthread_mutex_lock(&lock);
    if (admit())
        put_line(level, text);
    pthread_mutex_unlock(&lock);
    free(text);
}
