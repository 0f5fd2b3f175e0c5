#include "cli/copy_report.h"
#include "cli/terminal.h"
#include "controller/base/cleanup.h"
#include "controller/base/memory.h"
#include "controller/base/time.h"
#include "controller/base/utf8.h"
#include <stdio.h>
#include <string.h>

#define SHOW_EVERY_US 200000
#define SIZE_TEXT 32

static void word_size(int64_t bytes, char text[SIZE_TEXT])
{
    static const char *const units[] = {"KiB", "MiB", "GiB", "TiB"};
    size_t unit = 0;
    double size = (double)bytes / 1024;
    if (bytes < 1024) {
        snprintf(text, SIZE_TEXT, "%lld bytes", (long long)bytes);
        return;
    }
    for (; size >= 1023.95 && unit + 1 < ARRAY_LEN(units); unit++)
        size /= 1024;
    snprintf(text, SIZE_TEXT, "%.1f %s", size, units[unit]);
}

static void clear_line(struct copy_report *report)
{
    if (report->shown_at_us)
        fputs("\r\033[K", stderr);
    report->shown_at_us = 0;
}

static void show_progress(void *arg, const struct tally *tally)
{
    struct copy_report *report = arg;
    char size[SIZE_TEXT];
    int64_t now = boot_time_us();
    if (!report->is_live || (report->shown_at_us && now - report->shown_at_us < SHOW_EVERY_US))
        return;
    report->shown_at_us = now;
    word_size(tally->bytes, size);
    fprintf(stderr, "\r\033[K%lld files, %s", (long long)tally->files, size);
    fflush(stderr);
}

static void show_warning(void *arg, const char *text)
{
    struct copy_report *report = arg;
    if (++report->warnings > COPY_WARNINGS_MAX)
        return;
    clear_line(report);
    fprintf(stderr, "warning: %s\n", text);
}

void copy_report_init(struct copy_report *report)
{
    *report = (struct copy_report){.is_live = terminal_is_there(stderr) && !terminal_is_quiet()};
    report->tally = (struct tally){.warn = show_warning, .progress = show_progress, .arg = report};
}

void copy_report_words(struct copy_report *report, const char *sandbox, struct buffer *words)
{
    const char *at = buffer_text(words), *end = at + words->len;
    clear_line(report);
    while (at < end) {
        const char *newline = memchr(at, '\n', (size_t)(end - at)), *stop = newline ? newline : end;
        CLEANUP_FREE char *line = utf8_to_printable(at, (size_t)(stop - at), false);
        fprintf(stderr, "%s: %s\n", sandbox, line);
        at = newline ? newline + 1 : end;
    }
}

static void put_count(struct buffer *text, int64_t count, const char *one, const char *many)
{
    if (count)
        buffer_format(text, "%s%lld %s", text->len ? ", " : "", (long long)count, count == 1 ? one : many);
}

void copy_report_end(struct copy_report *report, const char *from, const char *to, bool is_whole)
{
    const struct tally *tally = &report->tally;
    CLEANUP(buffer_free) struct buffer text = BUFFER_INIT(512);
    char size[SIZE_TEXT];
    clear_line(report);
    if (report->warnings > COPY_WARNINGS_MAX)
        fprintf(stderr, "warning: %lld more of them are not shown\n", (long long)report->warnings - COPY_WARNINGS_MAX);
    if (terminal_is_quiet())
        return;
    put_count(&text, tally->files, "file", "files");
    put_count(&text, tally->directories, "directory", "directories");
    put_count(&text, tally->links, "link", "links");
    word_size(tally->bytes, size);
    fprintf(stderr, "%s %s%s%s from %s to %s", is_whole ? "copied" : "copied before it ended:", text.len ? buffer_text(&text) : "nothing",
            tally->files ? ", " : "", tally->files ? size : "", from, to);
    if (tally->skipped)
        fprintf(stderr, "; skipped %lld", (long long)tally->skipped);
    fputc('\n', stderr);
}
