// Starting a program in the sandbox: what it is to run is written to a file there, piece by piece if it is long (the last
// piece travels with the start), so that no command gets longer than a shell takes and nothing in it is read by another one.
#include "reconcilers/session/codexpro/shell_state.h"
#include "controller/base/memory.h"
#include <stdlib.h>
#include <string.h>

static void next(struct shell_program *program);

static void end(struct shell_program *program, const struct shell_reply *reply, const struct error *err)
{
    free(TAKE_PTR(program->spec));
    program->started(program->arg, reply, err);
}

static void answered(void *arg, const struct shell_reply *reply, const struct error *err)
{
    struct shell_program *program = arg;
    program->ask = NULL;
    if (err || program->sent == SIZE_MAX || !shell_reply_is(reply, "ok"))
        end(program, reply, err);
    else
        next(program);
}

static void send_piece(struct shell_program *program)
{
    size_t offset = program->sent;
    CLEANUP_JSON json_t *piece = json_encode_base64(program->spec + offset, SHELL_PIECE_BYTES);
    CLEANUP_FREE char *arguments = mem_format("%s %zu %s", program->id, offset, json_string_value(piece));
    program->sent += SHELL_PIECE_BYTES;
    program->ask = shell_ask(program->shell, &(struct shell_order){.operation = "upload", .arguments = arguments, .makes_directory = offset == 0},
                             answered, program);
}

static void send_last(struct shell_program *program)
{
    CLEANUP_JSON json_t *piece = json_encode_base64(program->spec + program->sent, program->spec_len - program->sent);
    const char *text = json_string_length(piece) ? json_string_value(piece) : "-";
    CLEANUP_FREE char *arguments = mem_format("%s %s %lld %zu %s", program->id, program->kind, (long long)program->timeout_ms, program->sent, text);
    bool is_whole = program->sent == 0;
    program->sent = SIZE_MAX;
    program->ask = shell_ask(
        program->shell,
        &(struct shell_order){.operation = "start", .arguments = arguments, .cwd = program->cwd, .makes_directory = is_whole}, answered, program);
}

static void next(struct shell_program *program)
{
    if (program->spec_len - program->sent > SHELL_PIECE_BYTES)
        send_piece(program);
    else
        send_last(program);
}

void shell_program_start(struct shell_program *program)
{
    program->sent = 0;
    next(program);
}

void shell_program_clear(struct shell_program *program)
{
    shell_ask_drop(TAKE_PTR(program->ask));
    free(program->cwd);
    free(program->spec);
}

static void ignore(void *arg, const struct shell_reply *reply, const struct error *err)
{
    (void)arg, (void)reply, (void)err;
}

void shell_forget(struct shell *shell, const char *operation, const char *id)
{
    if (shell->dir)
        shell_ask(shell, &(struct shell_order){.operation = operation, .arguments = id}, ignore, NULL);
}
