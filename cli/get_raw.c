// get --raw: one path of the daemon's API, its answer as it comes.
#include "cli/get.h"
#include "cli/printers/print.h"
#include <stdio.h>
#include <string.h>

static int refuse(const struct http_answered *answer, struct error *err)
{
    CLEANUP_JSON json_t *status = NULL;
    if (json_parse(answer->body, answer->body_len, &status, NULL) < 0)
        status = NULL;
    return rest_status_to_error(answer->status, status, err);
}

int get_raw(struct invocation *in, const char *path, struct error *err)
{
    const struct rest *rest = invocation_rest(in, err);
    CLEANUP(http_answered_clear) struct http_answered answer = {0};
    if (!rest)
        return -1;
    if (in->argument_count || path[0] != '/' || strpbrk(path, " \t\r\n"))
        return error_set(err, ERROR_USAGE, "like chat2shell get --raw=/readyz?verbose", "--raw takes a path that begins with / and has no blanks, and no further argument");
    const struct http_target target = {.socket_path = rest->socket_path};
    const struct http_ask ask = {.method = "GET", .path = path, .timeout_ms = REST_TIMEOUT_MS};
    if (http_exchange(&target, &ask, &answer, err) < 0)
        return -1;
    if (answer.status >= 400)
        return refuse(&answer, err);
    if (terminal_is_there(stdout))
        print_text(answer.body);
    else
        fwrite(answer.body, 1, answer.body_len, stdout);
    return 0;
}
