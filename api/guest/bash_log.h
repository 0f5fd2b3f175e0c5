// The unread output of one Bash session: a little in memory, more in an unlinked file, at most
// BASH_LOG_MAX_BYTES; beyond that the oldest bytes go and are counted.
#pragma once
#include "controller/base/buffer.h"
#include <stdint.h>

#define BASH_LOG_MAX_BYTES (64 * 1024 * 1024)
#define BASH_LOG_MEMORY_BYTES (32 * 1024)

struct bash_log {
    struct buffer memory;   // while fd is -1
    int fd;                 // a ring of BASH_LOG_MAX_BYTES
    uint64_t start, end;    // positions of the first unread byte and behind the last
    uint64_t dropped_bytes; // since the last bash_log_take_dropped
};

void bash_log_init(struct bash_log *log);
void bash_log_free(struct bash_log *log);
void bash_log_append(struct bash_log *log, const char *bytes, size_t len);
size_t bash_log_unread(const struct bash_log *log);
size_t bash_log_peek(const struct bash_log *log, char *to,
                     size_t len); // the first unread bytes; returns how many
void bash_log_consume(struct bash_log *log, size_t len);
uint64_t bash_log_take_dropped(struct bash_log *log);
