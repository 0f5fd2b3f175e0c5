// status: one screen about the daemon.
#include "cli/objects.h"
#include "cli/printers/print.h"
#include "controller/base/memory.h"
#include "controller/base/time.h"
#include "controller/base/utf8.h"
#include <stdio.h>
#include <string.h>

#define ERRORS_SHOWN 5

static void add(struct text_table *table, const char *label, char *text)
{
    text_table_add_row(table, (const char *[]){label, text}, 2);
    text_table_style(table, 0, STYLE_HEADING);
    free(text);
}

// {"running": 2, "failed": 1} → "2 running, 1 failed"; zeros are left out
static char *word_counts(const json_t *counts)
{
    CLEANUP(buffer_free) struct buffer out = BUFFER_INIT(1024);
    const char *word;
    json_t *count;
    json_object_foreach((json_t *)counts, word, count)
        if (json_integer_value(count) > 0)
            buffer_format(&out, "%s%lld %s", out.len ? ", " : "", (long long)json_integer_value(count), word);
    if (!out.len)
        buffer_append_text(&out, "none");
    return buffer_take_string(&out);
}

static char *word_bytes(json_int_t bytes)
{
    static const char *const units[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
    double value = (double)bytes;
    size_t unit = 0;
    for (; value >= 1024 && unit + 1 < ARRAY_LEN(units); unit++)
        value /= 1024;
    return mem_format(unit ? "%.1f %s" : "%.0f %s", value, units[unit]);
}

static char *word_since(const char *started_at)
{
    struct wall_time at;
    if (!started_at || wall_time_parse(started_at, &at) < 0)
        return mem_strdup("");
    int64_t s = (wall_time_now().ms - at.ms) / 1000;
    if (s < 120)
        return mem_format(", up %lld s", (long long)s);
    if (s < 2 * 3600)
        return mem_format(", up %lld min", (long long)(s / 60));
    return s < 48 * 3600 ? mem_format(", up %lld h", (long long)(s / 3600)) : mem_format(", up %lld days", (long long)(s / 86400));
}

static char *word_store(const json_t *store)
{
    CLEANUP_FREE char *size = word_bytes(json_get_int(store, "databaseBytes", 0));
    CLEANUP_FREE char *available = word_bytes(json_get_int(store, "freeBytes", 0));
    bool is_low = json_get_bool(store, "isLowOnDisk", false);
    return mem_format("%s, %s free on its disk%s", size, available, is_low ? " (too little: nothing new is created)" : "");
}

static char *word_approvals(json_int_t count)
{
    return count ? mem_format("%lld waiting for you: chat2shell approval list", (long long)count) : mem_strdup("none waiting");
}

static char *word_callers(const char *auth)
{
    bool is_open = !auth || strcmp(auth, "none") == 0;
    return mem_format("%s (CHAT2SHELL_AUTH=%s)", is_open ? "whoever reaches it" : "with a token", is_open ? "none" : auth);
}

static char *word_listener(const json_t *listener)
{
    const char *trouble = json_get_text(listener, "message");
    json_int_t port = json_get_int(listener, "port", 0);
    if (!json_get_bool(listener, "isOn", false))
        return mem_strdup("off (chat2shell kubeconfig opens it)");
    return port ? mem_format("https://%s:%lld", json_get_text(listener, "host"), (long long)port) : mem_format("not listening: %s", trouble ? trouble : "");
}

// Newest first.
static void print_errors(const json_t *errors)
{
    if (json_array_size(errors))
        printf("\n%sLast errors:%s\n", style_on(stdout, STYLE_HEADING), style_off(stdout, STYLE_HEADING));
    for (size_t i = 0; i < json_array_size(errors) && i < ERRORS_SHOWN; i++) {
        const json_t *error = json_array_get(errors, i);
        const char *const parts[] = {json_get_text(error, "at"), json_get_text(error, "kind"), json_get_text(error, "name"), json_get_text(error, "message")};
        CLEANUP(buffer_free) struct buffer line = BUFFER_INIT(64 * 1024);
        for (size_t part = 0; part < ARRAY_LEN(parts); part++)
            buffer_format(&line, "  %s", parts[part] ? parts[part] : "");
        CLEANUP_FREE char *printable = utf8_to_printable(buffer_text(&line), line.len, false);
        puts(printable);
    }
}

static void print_screen(const json_t *status)
{
    CLEANUP(text_table_free) struct text_table table = {0};
    const json_t *mcp = json_object_get(status, "mcp");
    const char *version = json_get_text(status, "version"), *host = json_get_text(mcp, "host"), *driver = json_get_text(status, "driver");
    CLEANUP_FREE char *since = word_since(json_get_text(status, "startedAt"));
    text_table_add_row(&table, (const char *[]){"", ""}, 2); // no heading
    add(&table, "Daemon:", mem_format("chat2shell %s, process %lld%s", version ? version : "", (long long)json_get_int(status, "pid", 0), since));
    add(&table, "MCP:", mem_format("http://%s:%lld/mcp", host ? host : "?", (long long)json_get_int(mcp, "port", 0)));
    add(&table, "Callers:", word_callers(json_get_text(mcp, "auth")));
    add(&table, "Kubernetes:", word_listener(json_object_get(status, "kubernetes")));
    const char *tunnel = json_get_text(json_object_get(status, "tunnel"), "message");
    add(&table, "Tunnel:", utf8_to_printable(tunnel ? tunnel : "", tunnel ? strlen(tunnel) : 0, false));
    add(&table, "Driver:", mem_strdup(driver ? driver : ""));
    add(&table, "Sandboxes:", word_counts(json_object_get(status, "sandboxes")));
    add(&table, "Workspaces:", word_counts(json_object_get(status, "workspaces")));
    add(&table, "Approvals:", word_approvals(json_get_int(status, "approvalsPending", 0)));
    text_table_style(&table, 1, json_get_int(status, "approvalsPending", 0) ? STYLE_WARN : STYLE_PLAIN);
    add(&table, "Exposures:", mem_format("%lld", (long long)json_get_int(status, "exposures", 0)));
    add(&table, "Store:", word_store(json_object_get(status, "store")));
    text_table_style(&table, 1, json_get_bool(json_object_get(status, "store"), "isLowOnDisk", false) ? STYLE_BAD : STYLE_PLAIN);
    text_table_print(&table, false);
    print_errors(json_object_get(status, "lastErrors"));
}

static int run(struct invocation *in, struct error *err)
{
    const struct rest *rest = invocation_rest(in, err);
    CLEANUP_JSON json_t *status = NULL;
    if (!rest || rest_get(rest, REST_OWN "/status", &status, err) < 0)
        return -1;
    if (!object_print(in, status))
        print_screen(status);
    return 0;
}

static const struct option_row options[] = {OPTION_OUTPUT(output_documents, "how to print it")};
const struct command command_status = {.name = "status", .synopsis = "", .summary = "Show on one screen how the daemon is", .run = run, COMMAND_OPTIONS(options)};
