// Whether the daemon lives and can serve: /livez, /readyz and /healthz, whole or check by check.
#include "api/operator/internal.h"
#include "controller/base/buffer.h"
#include "controller/base/memory.h"
#include <string.h>

#define TEXT_MAX 4096

static int check_ping(struct call *call, struct error *err)
{
    (void)call, (void)err;
    return 0;
}

static int check_store(struct call *call, struct error *err)
{
    struct store_stats stats;
    return store_stats(call->world->store, &stats, err);
}

static int check_disk(struct call *call, struct error *err)
{
    if (!store_is_low_on_disk(call->world->store))
        return 0;
    return error_set(err, ERROR_DISK, "free some space", "creates are refused: the disk is nearly full");
}

static int check_watches(struct call *call, struct error *err)
{
    return call->server->watches ? 0 : error_set(err, ERROR_UNAVAILABLE, NULL, "watches are not served");
}

static const struct health_check {
    const char *name;
    int (*check)(struct call *call, struct error *err);
    bool is_of_life; // /livez asks it too
} checks[] = {
    {"ping", check_ping, true},
    {"store", check_store, true},
    {"disk", check_disk, false},
    {"watches", check_watches, false},
};

static bool is_excluded(const struct call *call, const char *name)
{
    return call->query[QUERY_EXCLUDE] && strcmp(call->query[QUERY_EXCLUDE], name) == 0;
}

// True: it is well, or not asked about.
static bool run_check(struct call *call, const struct health_check *check, struct buffer *text)
{
    struct error err = ERROR_INIT;
    if (is_excluded(call, check->name)) {
        buffer_format(text, "[+]%s excluded: ok\n", check->name);
        return true;
    }
    if (check->check(call, &err) == 0) {
        buffer_format(text, "[+]%s ok\n", check->name);
        return true;
    }
    buffer_format(text, "[-]%s failed: %s\n", check->name, err.message);
    return false;
}

static void answer(struct call *call, const char *path, bool is_well, struct buffer *text)
{
    const char *verbose = call->query[QUERY_VERBOSE];
    bool is_whole = !is_well || (verbose && strcmp(verbose, "false") != 0 && strcmp(verbose, "0") != 0);
    buffer_format(text, "%s check %s\n", path + 1, is_well ? "passed" : "failed");
    operator_answer_text(call, is_well ? 200 : 503, is_whole ? buffer_text(text) : "ok");
}

void health_show(struct call *call)
{
    CLEANUP(buffer_free) struct buffer text = BUFFER_INIT(TEXT_MAX);
    CLEANUP_FREE char *path = mem_strdup(http_request_path(call->http));
    bool is_life = strcmp(path, "/livez") == 0, is_well = true;
    for (size_t i = 0; i < ARRAY_LEN(checks); i++)
        if (!is_life || checks[i].is_of_life)
            is_well &= run_check(call, &checks[i], &text);
    answer(call, path, is_well, &text);
}

void health_check_show(struct call *call)
{
    CLEANUP(buffer_free) struct buffer text = BUFFER_INIT(TEXT_MAX);
    for (size_t i = 0; i < ARRAY_LEN(checks); i++) {
        if (strcmp(checks[i].name, call->match.name) != 0)
            continue;
        bool is_well = run_check(call, &checks[i], &text);
        operator_answer_text(call, is_well ? 200 : 503, is_well ? "ok" : buffer_text(&text));
        return;
    }
    operator_fail_as(call, 404, ERROR_NOT_FOUND, "see /readyz?verbose", "there is no check '%.64s'",
                     call->match.name);
}
