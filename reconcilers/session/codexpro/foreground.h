// The foreground process of a CodexPro session, as far as we hold it: its stdin is kept open, what it prints on stdout or
// stderr is kept as the last lines (CodexPro prints on stderr; the program that starts it may complain on stdout), and
// the end of its stdout is the end of the session. Loop thread only.
#pragma once
#include "controller/loop.h"
#include "reconcilers/drivers/driver.h"

struct foreground;
struct foreground_events {
    void (*ended)(void *arg, const char *reason); // once, from the loop; must not free
    void (*printed)(void *arg, const char *line); // each line of stderr, the token masked
};
// Takes the descriptors. events: static.
struct foreground *foreground_new(struct loop *loop, struct driver_session *session, const struct foreground_events *events, void *arg);
void foreground_close(struct foreground *foreground); // reads what is there still; no event afterwards; again is fine
void foreground_free(struct foreground *foreground);  // NULL allowed
const struct text_list *foreground_last_lines(const struct foreground *foreground);
