// What shell_exec.c and shell_exec_io.c share: the control plane's side of one program of the operator's.
#pragma once
#include "reconcilers/session/codexpro/shell_state.h"

#define EXEC_MAX_PENDING_BYTES (64 * 1024 * 1024) // written by the caller, not yet taken by the program

struct shell_exec_write {
    TAILQ_ENTRY(shell_exec_write) link;
    struct shell_request *request;
    char *bytes;
    size_t len, sent;
    bool is_eof;
};

struct shell_exec {
    TAILQ_ENTRY(shell_exec) link;
    struct shell *shell;
    char id[SHELL_ID_MAX + 1];
    struct shell_program program;
    struct shell_request *starting; // NULL once it runs
    uint64_t pos[2];                // of stdout and stderr: the first byte that nobody was given
    struct shell_request *reader;   // one waiting exec_read
    struct shell_ask *reading, *writing;
    TAILQ_HEAD(, shell_exec_write) writes;
    size_t pending_bytes;
    int64_t piece;     // number of the next one
    size_t piece_bytes; // on its way
    const char *closed; // why nothing can be written any more
};

struct shell_exec *exec_of_request(struct shell_request *request); // NULL after the request was answered
void exec_end_io(struct shell_exec *exec);                         // answers all waits
