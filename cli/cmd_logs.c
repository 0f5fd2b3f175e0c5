// logs: what has been happening in a sandbox, as the daemon remembers it: tool calls, and what its tool server printed.
#include "cli/objects.h"
#include "cli/terminal.h"
#include "controller/base/memory.h"
#include "controller/base/time.h"
#include "controller/base/utf8.h"
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define FOLLOW_WAIT_MS 25000
#define SINCE_MAX_MS (INT64_C(366) * 86400000)

struct reading {
    const struct rest *rest;
    char *path;
    bool is_json, has_timestamps;
};

// ---- options --------------------------------------------------------------------------------------------------------------
static int read_tail(const struct invocation *in, json_t *body, struct error *err)
{
    const char *text = invocation_option(in, "tail");
    char *end;
    if (!text)
        return 0;
    errno = 0;
    long long number = strtoll(text, &end, 10);
    if (errno || end == text || *end || number < -1)
        return error_set(err, ERROR_USAGE, "give a number of lines; -1 is all of them", "--tail cannot be '%.40s'", text);
    json_object_set_new(body, "tail", json_integer(number));
    return 0;
}

// "90s", "10m", "1h30m"
static int64_t read_duration(const char *text)
{
    static const struct {
        char unit;
        int64_t ms;
    } units[] = {{'s', 1000}, {'m', 60000}, {'h', 3600000}, {'d', 86400000}};
    int64_t sum = 0;
    while (*text) {
        char *end;
        errno = 0;
        long long number = strtoll(text, &end, 10);
        size_t unit = 0;
        while (unit < ARRAY_LEN(units) && units[unit].unit != *end)
            unit++;
        if (errno || end == text || unit == ARRAY_LEN(units) || number < 0 || number > SINCE_MAX_MS / units[unit].ms)
            return -1;
        sum += number * units[unit].ms;
        text = end + 1;
    }
    return sum;
}

static int read_since(const struct invocation *in, json_t *body, struct error *err)
{
    const char *text = invocation_option(in, "since");
    if (!text)
        return 0;
    int64_t ms = read_duration(text);
    if (ms <= 0 || ms > SINCE_MAX_MS)
        return error_set(err, ERROR_USAGE, "give it like 30s, 10m or 2h", "--since cannot be '%.40s'", text);
    json_object_set_new(body, "sinceMs", json_integer(wall_time_now().ms - ms));
    return 0;
}

// ---- lines ----------------------------------------------------------------------------------------------------------------
// With milliseconds, because many lines fall into one second.
static char *word_time(int64_t ms)
{
    char text[WALL_TIME_TEXT_SIZE];
    wall_time_format((struct wall_time){ms}, text);
    text[strcspn(text, "Z")] = '\0';
    return mem_format("%s.%03dZ", text, (int)(ms % 1000));
}

static void put_call(const json_t *line, struct buffer *to)
{
    const char *text = json_get_text(line, "text");
    const json_t *exit_code = json_object_get(line, "exitCode");
    buffer_format(to, "%s %s", json_get_text(line, "caller"), json_get_text(line, "tool"));
    if (text && *text)
        buffer_format(to, " %s", text);
    buffer_format(to, " -> %s", json_get_text(line, "result"));
    if (exit_code)
        buffer_format(to, ", exit code %lld", (long long)json_integer_value(exit_code));
    double duration = json_real_value(json_object_get(line, "durationMs"));
    if (duration > 0)
        buffer_format(to, ", %.*f ms", duration < 100 ? 1 : 0, duration);
}

static void print_line(const struct reading *reading, const json_t *line)
{
    CLEANUP_FREE char *time = word_time(json_get_int(line, "timeMs", 0));
    CLEANUP(buffer_free) struct buffer text = BUFFER_INIT(16 * 1024);
    bool is_call = strcmp(json_get_text(line, "source"), "call") == 0;
    if (reading->has_timestamps)
        buffer_format(&text, "%s ", time);
    buffer_append_text(&text, is_call ? "call: " : "server: ");
    if (is_call)
        put_call(line, &text);
    else
        buffer_append_text(&text, json_get_text(line, "text"));
    CLEANUP_FREE char *shown = utf8_to_printable(buffer_text(&text), text.len, false);
    printf("%s\n", shown);
}

static void print_json_line(json_t *line)
{
    CLEANUP_FREE char *time = word_time(json_get_int(line, "timeMs", 0));
    json_object_del(line, "timeMs");
    CLEANUP_JSON json_t *with_time = json_pack("{s:s}", "time", time);
    json_object_update(with_time, line);
    CLEANUP_FREE char *text = json_to_text(with_time);
    printf("%s\n", text);
}

static bool is_line(const json_t *line)
{
    const char *source = json_get_text(line, "source");
    bool is_call = source && strcmp(source, "call") == 0;
    return source && (is_call ? json_get_text(line, "caller") && json_get_text(line, "tool") && json_get_text(line, "result") : json_get_text(line, "text") != NULL);
}

static void print_answer(const struct reading *reading, const json_t *answer)
{
    size_t i;
    json_t *line;
    if (json_get_bool(answer, "hasGap", false))
        terminal_note("(some lines were gone before they could be shown)");
    json_array_foreach(json_object_get(answer, "lines"), i, line) {
        if (!is_line(line))
            continue;
        if (reading->is_json)
            print_json_line(line);
        else
            print_line(reading, line);
    }
    fflush(stdout);
}

// ---- following ------------------------------------------------------------------------------------------------------------
static bool has_reader(void)
{
    struct pollfd out = {.fd = STDOUT_FILENO};
    return poll(&out, 1, 0) <= 0 || !(out.revents & (POLLERR | POLLHUP));
}

// A wait that the daemon's stop ended means what a connection that it refuses means.
static int lose(struct error *err)
{
    return err->code != ERROR_UNAVAILABLE ? -1 : error_set(err, ERROR_UNREACHABLE, "start it with: chat2shell serve", "the daemon has stopped, and its logs with it");
}

// Asks again for what comes behind the last answer; the daemon answers when there is something.
static int read_on(const struct reading *reading, json_t *body, bool follows, struct error *err)
{
    for (;;) {
        CLEANUP_JSON json_t *answer = NULL;
        if (rest_post(reading->rest, reading->path, body, &answer, err) < 0)
            return follows ? lose(err) : -1;
        print_answer(reading, answer);
        bool is_over = json_get_bool(answer, "isOver", true), has_more = json_get_bool(answer, "hasMore", false);
        if ((!has_more && (is_over || !follows)) || !has_reader())
            return 0;
        json_object_set_new(body, "after", json_integer(json_get_int(answer, "position", 0)));
        json_object_del(body, "tail");
        if (follows)
            json_object_set_new(body, "waitMs", json_integer(FOLLOW_WAIT_MS));
    }
}

static int run(struct invocation *in, struct error *err)
{
    const char *source = invocation_option(in, "source");
    const char *sandbox = object_reference(kind_info(KIND_SANDBOX), in->arguments[0], err);
    if (!sandbox)
        return -1;
    CLEANUP_FREE char *name = http_escape(sandbox);
    CLEANUP_FREE char *path = mem_format(REST_OWN "/sandboxes/%s/logs", name);
    CLEANUP_JSON json_t *body = json_pack("{s:s}", "source", source ? source : "all");
    struct reading reading = {.path = path, .is_json = invocation_is_output(in, "json"), .has_timestamps = invocation_switch(in, "timestamps", false)};
    if (read_tail(in, body, err) < 0 || read_since(in, body, err) < 0)
        return -1;
    reading.rest = invocation_rest(in, err);
    return reading.rest ? read_on(&reading, body, invocation_switch(in, "follow", false), err) : -1;
}

static const struct example examples[] = {
    {"chat2shell logs dev", "what was done in the sandbox dev, oldest first"},
    {"chat2shell logs dev -f --tail 10", "the last ten lines, then every further one"},
    {"chat2shell logs dev --source calls --since 10m -o json", "the tool calls of the last ten minutes, one object a line"},
};
static const char *const sources[] = {"all", "calls", "server", NULL};
static const char *const outputs[] = {"text", "json", NULL};
static const struct option_row options[] = {
    {.name = "follow", .letter = 'f', .doc = "go on as lines come, until the sandbox is removed"},
    {.name = "tail", .value = "N", .doc = "only the last N lines"},
    {.name = "since", .value = "DURATION", .doc = "only lines that are not older: 30s, 10m, 2h"},
    {.name = "timestamps", .doc = "the time before each line"},
    {.name = "source", .value = "SOURCE", .doc = "calls (tool calls and exec), server (what the tool server printed), or all", .choices = sources},
    OPTION_OUTPUT(outputs, "text, or json: one object a line"),
};
const struct command command_logs = {
    .name = "logs", .synopsis = "SANDBOX", .summary = "Show what has been happening in a sandbox", .min_arguments = 1, .max_arguments = 1, .run = run,
    .details = "Each tool call and each exec is a line with its caller, what it was about, how it ended and how long it took; other lines are what\n"
               "the tool server printed on its standard error. What commands print is their caller's and not here. The daemon keeps the newest\n"
               "2,000 lines a sandbox in memory only, until an hour after the sandbox was removed; a restart forgets them. Commands may hold\n"
               "secrets. Control characters are shown as escapes. Records and their changes: chat2shell events, describe.",
    COMMAND_EXAMPLES(examples), COMMAND_OPTIONS(options),
};
