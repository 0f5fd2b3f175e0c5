// Makes several written files durable at once. One after the other each would wait for the disk alone;
// flushed from a few threads, their waits fall together and the disk is asked less often. Nothing but these
// files is flushed.
#pragma once
#include <stddef.h>

// fds of less than 0 are passed over. Returns count, or the place of the first that failed, with errno.
size_t flush_files(const int *fds, size_t count);
