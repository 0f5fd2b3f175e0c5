// The terminal that this program was started on, while a program in a sandbox has it: every key is passed on as it is. It is
// given back as it was whatever ends us, but SIGKILL. One at a time; main thread.
#pragma once
#include "controller/base/error.h"
#include <stdbool.h>
#include <stdint.h>

// Notes the modes of fd and makes it raw.
int raw_terminal_enter(int fd, struct error *err);
void raw_terminal_leave(void); // modes as they were; again is fine
void raw_terminal_again(void); // raw again, after it was left (stopped and continued)
bool raw_terminal_size(int fd, uint16_t *ret_columns, uint16_t *ret_rows); // false: it has none
