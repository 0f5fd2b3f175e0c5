// What exec*.c share.
#pragma once
#include "api/guest/exec.h"

#define EXEC_ID_MAX 64
#define EXEC_HANGUP_MS 2000  // for what a terminal's end did not end
#define EXEC_SILENCE_MS 200  // on a terminal whose program has ended while others still hold it
#define EXEC_MAX_PENDING_BYTES (64 * 1024 * 1024) // written by the caller, not yet taken by the program

struct exec_write {
    struct request *request;
    char *bytes;
    size_t len, sent;
    bool is_eof;
    struct exec_write *next;
};

struct exec {
    struct guest *guest;
    char id[EXEC_ID_MAX + 1];
    struct child child;
    struct loop_source in, out[2]; // fd -1 after their end; watched only while somebody waits
    char *failure;                 // why it could not be started, for stderr
    bool has_terminal; // in and out[0] are its master, twice
    pid_t leader;      // of the terminal's session
    struct loop_timer silence, hangup;
    bool has_exited;
    int exit_code;
    struct exec_write *first_write, *last_write;
    size_t pending_bytes;
    struct request *reader; // one waiting exec_read
    struct loop_timer read_timer;
    struct exec *next;
};

// The exec named by the request, or NULL after the request was answered.
struct exec *exec_of_request(struct request *request);
void exec_start_io(struct exec *exec); // sets the handlers
void exec_program_ended(struct exec *exec); // has_exited was set
void exec_end_io(struct exec *exec); // answers all waits and closes the pipes
void exec_drop(struct exec *exec);   // unlinked by the caller; frees it
