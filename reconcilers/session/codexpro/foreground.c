#include "reconcilers/session/codexpro/foreground.h"
#include "controller/base/cleanup.h"
#include "controller/base/memory.h"
#include "reconcilers/session/printed.h"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TOKEN_BEGINNING 16

struct foreground {
    int input_fd;
    struct printed output, errors;
    struct last_lines last, from_stdout; // two, so that their unfinished lines do not mix
    char *token; // must not get into the lines; secret
    const struct foreground_events *events; // static
    void *arg;
    bool is_closed;
};

// The lines go into a record and a log. A server that prints its environment or an address with its token must not put it there; a
// line that was cut may hold its beginning only.
static void mask_line(const struct foreground *foreground, char *line)
{
    const char *token = foreground->token ? foreground->token : "";
    CLEANUP_FREE char *beginning = mem_strndup(token, strnlen(token, TOKEN_BEGINNING));
    for (char *at = line; *beginning && (at = strstr(at, beginning));)
        for (const char *same = token; *same && *at == *same; same++)
            *at++ = '*';
    explicit_bzero(beginning, strlen(beginning));
}

static void on_line(void *arg, const char *line)
{
    struct foreground *foreground = arg;
    CLEANUP_FREE char *masked = mem_strdup(line);
    mask_line(foreground, masked);
    foreground->events->printed(foreground->arg, masked);
}

static void on_ended(void *arg)
{
    struct foreground *foreground = arg;
    foreground_close(foreground);
    foreground->events->ended(foreground->arg, "its process ended");
}

struct foreground *foreground_new(struct loop *loop, struct driver_session *session, const struct foreground_events *events, void *arg)
{
    struct foreground *foreground = mem_alloc(sizeof(*foreground));
    *foreground = (struct foreground){.input_fd = TAKE_FD(session->input_fd),
                          .last = LAST_LINES_INIT,
                          .from_stdout = LAST_LINES_INIT,
                          .token = mem_strdup_or_null(session->token),
                          .events = events,
                          .arg = arg};
    foreground->last.told = on_line;
    foreground->last.arg = foreground;
    printed_start(&foreground->output, loop, TAKE_FD(session->output_fd), &foreground->from_stdout, on_ended, foreground);
    printed_start(&foreground->errors, loop, TAKE_FD(session->error_fd), &foreground->last, NULL, NULL);
    return foreground;
}

// stdout speaks last: it is silent, unless the program that holds the session says why it ends.
static void join_lines(struct foreground *foreground)
{
    for (size_t i = 0; i < foreground->from_stdout.lines.count; i++) {
        const char *line = foreground->from_stdout.lines.items[i];
        last_lines_add(&foreground->last, line, strlen(line));
        last_lines_end(&foreground->last);
    }
}

static void mask_token(const struct foreground *foreground)
{
    const struct text_list *lines = &foreground->last.lines;
    for (size_t i = 0; i < lines->count; i++)
        mask_line(foreground, lines->items[i]);
}

static void wipe_token(struct foreground *foreground)
{
    if (foreground->token)
        explicit_bzero(foreground->token, strlen(foreground->token));
    free(TAKE_PTR(foreground->token));
}

void foreground_close(struct foreground *foreground)
{
    if (foreground->is_closed)
        return;
    foreground->is_closed = true;
    printed_stop(&foreground->output);
    printed_stop(&foreground->errors);
    join_lines(foreground);
    mask_token(foreground);
    wipe_token(foreground);
    if (foreground->input_fd >= 0)
        close(TAKE_FD(foreground->input_fd));
}

void foreground_free(struct foreground *foreground)
{
    if (!foreground)
        return;
    foreground_close(foreground);
    last_lines_free(&foreground->last);
    last_lines_free(&foreground->from_stdout);
    free(foreground);
}

const struct text_list *foreground_last_lines(const struct foreground *foreground)
{
    return &foreground->last.lines;
}
