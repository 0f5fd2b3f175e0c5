// `cp`'s program in the sandbox: started over exec, with one of its streams here, its words kept, and Ctrl-C heard meanwhile.
#pragma once
#include "api/client/rest.h"
#include "controller/base/buffer.h"
#include <pthread.h>
#include <stdbool.h>
#include <sys/types.h>

#define INSIDE_WORDS_MAX_BYTES 4096 // of what it says on standard error; the rest is dropped
#define INSIDE_IDLE_MS (5 * 60 * 1000) // without a byte sent or taken

enum inside_stream { INSIDE_OUTPUT, INSIDE_INPUT }; // what of it is joined to us
struct inside {
    const struct rest *rest;
    const char *sandbox;
    const char *label; // what `logs` calls it
    const char *const *argv;
    enum inside_stream stream;
    int fd;            // our end: its output, or its input
    int its_fd;        // the other end
    int signal_fd;     // INT, TERM, HUP
    int words_fds[2];
    int idle_ms;
    bool has_thread, has_words_thread;
    bool is_left; // interrupted, or nothing moved for too long
    pthread_t thread, words_thread;
    int result, exit_code;
    struct error error;
    struct buffer words;
};
#define INSIDE_INIT {.fd = -1, .its_fd = -1, .signal_fd = -1, .words_fds = {-1, -1}}
// label, argv and the rest are borrowed until inside_end. INT, TERM and HUP do not end the process from here on: they make the next
// inside_read or inside_write fail with ERROR_CANCELLED. Both fail with ERROR_TIMEOUT when nothing moves for INSIDE_IDLE_MS.
int inside_start(struct inside *inside, const struct rest *rest, const char *sandbox, const char *label, const char *const *argv,
                 enum inside_stream stream, struct error *err);
ssize_t inside_read(void *inside, void *to, size_t len, struct error *err);
// Reads away what is left of its output until it ends. ERROR_TIMEOUT: it goes on for more than ten seconds, or prints much.
int inside_drain(struct inside *inside, struct error *err);
int inside_write(void *inside, const void *bytes, size_t len, struct error *err); // ERROR_STATE: it takes no more
// Tells it the end of its input, or that nobody reads its output, and waits for its end: as above, and only for two seconds once it
// is left. -1 if it could not be run, or not to its end; else its exit code is in *ret. Its words are in inside->words, but for
// one that goes on (has_words_thread).
int inside_wait(struct inside *inside, int *ret_exit_code, struct error *err);
bool inside_was_interrupted(void); // by INT, TERM or HUP, since the first inside_start
void inside_clear(struct inside *inside);
