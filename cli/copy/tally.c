#include "cli/copy/tally.h"
#include "controller/base/cleanup.h"
#include "controller/base/memory.h"
#include "controller/base/utf8.h"
#include <string.h>

void tally_warn(const struct tally *tally, const char *name, const char *format, ...)
{
    if (!tally->warn)
        return;
    va_list args;
    va_start(args, format);
    CLEANUP_FREE char *what = mem_vformat(format, args);
    va_end(args);
    CLEANUP_FREE char *shown = utf8_to_printable(name, strlen(name), false);
    CLEANUP_FREE char *text = mem_format("%s: %s", shown, what);
    tally->warn(tally->arg, text);
}

void tally_add_bytes(struct tally *tally, int64_t bytes)
{
    tally->bytes += bytes;
    if (tally->progress)
        tally->progress(tally->arg, tally);
}
