// top: what the sandboxes use. The daemon tells what each has used so far; the rates are made here, from two looks.
#include "cli/objects.h"
#include "cli/printers/print.h"
#include "cli/terminal.h"
#include "controller/base/memory.h"
#include "controller/base/time.h"
#include "controller/fields/fields.h"
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SAMPLE_MS 500 // between the two looks of a single answer
#define INTERVAL_DEFAULT_MS 2000
#define INTERVAL_MAX_MS 3600000
#define NOTHING "-"

// ---- options --------------------------------------------------------------------------------------------------------------
static int read_interval(const struct invocation *in, int *ret_ms, struct error *err)
{
    const char *text = invocation_option(in, "interval");
    char *end;
    *ret_ms = INTERVAL_DEFAULT_MS;
    if (!text)
        return 0;
    double seconds = strtod(text, &end);
    if (*end == 's')
        end++;
    if (end == text || *end || !(seconds * 1000 >= 100) || !(seconds * 1000 <= INTERVAL_MAX_MS))
        return error_set(err, ERROR_USAGE, "give seconds, like --interval 5", "--interval cannot be '%.40s': it is from 0.1 to 3600 seconds", text);
    *ret_ms = (int)(seconds * 1000);
    return 0;
}

// ---- looks ----------------------------------------------------------------------------------------------------------------
static json_t *find_item(const json_t *items, const char *uid)
{
    size_t i;
    json_t *item;
    json_array_foreach((json_t *)items, i, item)
        if (strcmp(json_get_text(item, "uid"), uid) == 0)
            return item;
    return NULL;
}

static bool is_item(const json_t *item)
{
    return json_get_text(item, "uid") && json_get_text(item, "name") && json_get_text(item, "phase");
}

static bool is_named(const struct invocation *in, const json_t *item)
{
    const char *uid = json_get_text(item, "uid"), *name = json_get_text(item, "name");
    for (int i = 0; i < in->argument_count; i++) {
        const char *slash = strchr(in->arguments[i], '/'), *wanted = slash ? slash + 1 : in->arguments[i]; // check_names looks at the KIND
        bool is_prefix = strlen(wanted) >= 8 && strncmp(uid, wanted, strlen(wanted)) == 0;
        if (strcmp(name, wanted) == 0 || is_prefix)
            return true;
    }
    return false;
}

// Those that were asked for; without a name those that run.
static json_t *pick(const struct invocation *in, const json_t *items)
{
    json_t *picked = json_array();
    size_t i;
    json_t *item;
    json_array_foreach((json_t *)items, i, item) {
        bool is_wanted = in->argument_count ? is_item(item) && is_named(in, item) : is_item(item) && strcmp(json_get_text(item, "phase"), "failed") != 0;
        if (is_wanted)
            json_array_append(picked, item);
    }
    return picked;
}

static int check_names(const struct invocation *in, const json_t *picked, struct error *err)
{
    for (int i = 0; i < in->argument_count; i++) {
        const char *name = object_reference(kind_info(KIND_SANDBOX), in->arguments[i], err);
        if (!name)
            return -1;
        const struct invocation one = {.arguments = in->arguments + i, .argument_count = 1};
        CLEANUP_JSON json_t *found = pick(&one, picked);
        if (!json_array_size(found))
            return error_set(err, ERROR_NOT_FOUND, "chat2shell get sandboxes", "there is no sandbox '%.100s'", name);
    }
    return 0;
}

// Millicores between two looks at the same sandbox.
static void add_rates(json_t *items, const json_t *before)
{
    size_t i;
    json_t *item;
    json_array_foreach(items, i, item) {
        const json_t *last = find_item(before, json_get_text(item, "uid"));
        int64_t used = json_get_int(item, "cpuUs", -1) - json_get_int(last, "cpuUs", 0), time = json_get_int(item, "atUs", 0) - json_get_int(last, "atUs", 0);
        if (last && json_object_get(last, "cpuUs") && json_object_get(item, "cpuUs") && time > 0)
            json_object_set_new(item, "cpuMillicores", json_integer(used > 0 ? (used * 1000 + time / 2) / time : 0));
    }
}

static int take_look(const struct rest *rest, const struct invocation *in, json_t **ret, struct error *err)
{
    CLEANUP_JSON json_t *answer = NULL;
    if (rest_get(rest, REST_OWN "/usage", &answer, err) < 0)
        return -1;
    CLEANUP_JSON json_t *picked = pick(in, json_object_get(answer, "items"));
    if (check_names(in, picked, err) < 0)
        return -1;
    *ret = TAKE_PTR(picked);
    return 0;
}

// ---- order ------------------------------------------------------------------------------------------------------------------
static const struct order {
    const char *name, *field;
    bool is_rising;
} orders[] = {{"cpu", "cpuMillicores", false}, {"memory", "memoryBytes", false}, {"processes", "processes", false}, {"calls", "calls", false}, {"idle", "idleMs", false}};

static const struct order *sorted_by; // one thread; NULL: by name

static int64_t order_value(const json_t *item)
{
    if (strcmp(sorted_by->field, "calls") == 0)
        return json_get_int(item, "callsRunning", 0) + json_get_int(item, "callsWaiting", 0);
    return json_get_int(item, sorted_by->field, -1);
}

static int compare(const void *left, const void *right)
{
    const json_t *a = *(json_t *const *)left, *b = *(json_t *const *)right;
    int64_t mine = sorted_by ? order_value(a) : 0, its = sorted_by ? order_value(b) : 0;
    return mine != its ? (mine < its) - (mine > its) : strcmp(json_get_text(a, "name"), json_get_text(b, "name"));
}

static void sort(const struct invocation *in, json_t *items)
{
    const char *by = invocation_option(in, "sort-by");
    size_t count = json_array_size(items);
    sorted_by = NULL;
    for (size_t i = 0; by && i < ARRAY_LEN(orders); i++)
        if (strcmp(orders[i].name, by) == 0)
            sorted_by = &orders[i];
    json_t **list = mem_alloc((count + 1) * sizeof(*list));
    for (size_t i = 0; i < count; i++)
        list[i] = json_incref(json_array_get(items, i));
    qsort(list, count, sizeof(*list), compare);
    json_array_clear(items);
    for (size_t i = 0; i < count; i++)
        json_array_append_new(items, list[i]);
    free(list);
}

// ---- words ------------------------------------------------------------------------------------------------------------------
#define CELL 32

static void word_age(int64_t ms, char text[CELL])
{
    int64_t s = ms / 1000;
    if (ms < 0)
        snprintf(text, CELL, NOTHING);
    else if (s < 120)
        snprintf(text, CELL, "%llds", (long long)s);
    else if (s < 7200)
        snprintf(text, CELL, "%lldm", (long long)s / 60);
    else if (s < 172800)
        snprintf(text, CELL, "%lldh", (long long)s / 3600);
    else
        snprintf(text, CELL, "%lldd", (long long)s / 86400);
}

static void word_number(const json_t *item, const char *name, const char *unit, int64_t divisor, char text[CELL])
{
    int64_t value = json_get_int(item, name, -1);
    if (value < 0)
        snprintf(text, CELL, NOTHING);
    else
        snprintf(text, CELL, "%lld%s", (long long)((value + divisor / 2) / divisor), unit);
}

static void word_calls(const json_t *item, char text[CELL])
{
    if (!json_object_get(item, "callsRunning"))
        snprintf(text, CELL, NOTHING);
    else
        snprintf(text, CELL, "%lld", (long long)(json_get_int(item, "callsRunning", 0) + json_get_int(item, "callsWaiting", 0)));
}

static void word_share(const json_t *item, char text[CELL])
{
    int64_t used = json_get_int(item, "memoryBytes", -1), limit = json_get_int(item, "memoryLimitBytes", -1);
    if (used < 0 || limit <= 0)
        snprintf(text, CELL, NOTHING);
    else
        snprintf(text, CELL, "%lld%%", (long long)((double)used * 100 / (double)limit + 0.5));
}

static void print_table(const json_t *items)
{
    static const char *const heading[] = {"NAME", "CPU(cores)", "MEMORY(bytes)", "MEMORY%", "PROCESSES", "CALLS", "IDLE", "EXPIRES"};
    CLEANUP(text_table_free) struct text_table table = {0};
    size_t i;
    json_t *item;
    int64_t now = wall_time_now().ms;
    text_table_add_row(&table, heading, ARRAY_LEN(heading));
    json_array_foreach((json_t *)items, i, item) {
        char cells[ARRAY_LEN(heading)][CELL];
        int64_t expires = json_get_int(item, "expiresAtMs", -1);
        word_number(item, "cpuMillicores", "m", 1, cells[1]);
        word_number(item, "memoryBytes", "Mi", 1 << 20, cells[2]);
        word_share(item, cells[3]);
        word_number(item, "processes", "", 1, cells[4]);
        word_calls(item, cells[5]);
        word_age(json_get_int(item, "idleMs", -1), cells[6]);
        word_age(expires < 0 ? -1 : expires > now ? expires - now : 0, cells[7]);
        const char *row[ARRAY_LEN(heading)] = {json_get_text(item, "name")};
        for (size_t k = 1; k < ARRAY_LEN(heading); k++)
            row[k] = cells[k];
        text_table_add_row(&table, row, ARRAY_LEN(heading));
    }
    text_table_print(&table, true);
}

static void note_driver(const json_t *items)
{
    const char *note = json_get_text(json_array_get(items, 0), "note");
    if (note)
        terminal_note("note: %s", note);
}

// *is_none: that none runs is told already, and stands there.
static void print_look(const struct invocation *in, json_t *items, bool is_watch, bool *is_none)
{
    bool is_cleared = is_watch && terminal_is_there(stdout);
    sort(in, items);
    if (invocation_is_output(in, "json")) {
        CLEANUP_JSON json_t *all = json_pack("{s:O}", "items", items);
        CLEANUP_FREE char *text = is_watch ? json_to_text(all) : NULL;
        if (text)
            printf("%s\n", text);
        else
            print_json(all);
    } else {
        if (is_cleared)
            fputs("\033[H\033[2J", stdout);
        if (json_array_size(items))
            print_table(items);
        else if (is_cleared || !*is_none)
            terminal_note("no sandbox runs");
        *is_none = !json_array_size(items);
    }
    fflush(stdout);
}

// ---- the command ----------------------------------------------------------------------------------------------------------------
// Until the time is over; false: nobody reads any more.
static bool rest_for(int ms)
{
    struct pollfd out = {.fd = STDOUT_FILENO};
    return poll(&out, 1, ms) <= 0 || !(out.revents & (POLLERR | POLLHUP));
}

static int run(struct invocation *in, struct error *err)
{
    bool is_watch = invocation_switch(in, "watch", false), is_none = false;
    int interval_ms;
    CLEANUP_JSON json_t *before = NULL;
    const struct rest *rest = read_interval(in, &interval_ms, err) < 0 ? NULL : invocation_rest(in, err);
    if (!rest || take_look(rest, in, &before, err) < 0)
        return -1;
    note_driver(before);
    for (int wait_ms = SAMPLE_MS; rest_for(wait_ms); wait_ms = interval_ms) {
        json_t *now = NULL;
        if (take_look(rest, in, &now, err) < 0)
            return -1;
        add_rates(now, before);
        json_decref(before);
        before = now;
        print_look(in, now, is_watch, &is_none);
        if (!is_watch)
            break;
        if (is_none || terminal_is_there(stdout) || invocation_is_output(in, "json"))
            continue;
        printf("\n");
    }
    return 0;
}

static const struct example examples[] = {
    {"chat2shell top", "what each running sandbox uses"},
    {"chat2shell top dev -w", "of the sandbox dev, every two seconds"},
    {"chat2shell top --sort-by memory -o json", "for scripts: cpuMillicores, memoryBytes and the like"},
};
static const char *const sort_words[] = {"name", "cpu", "memory", "processes", "calls", "idle", NULL};
static const char *const outputs[] = {"table", "json", NULL};
static const struct option_row options[] = {
    {.name = "watch", .letter = 'w', .doc = "look again and again, until interrupted"},
    {.name = "interval", .value = "SECONDS", .doc = "between two looks with --watch (2)"},
    {.name = "sort-by", .value = "WHAT", .doc = "name, or cpu, memory, processes, calls or idle, the most first", .choices = sort_words},
    OPTION_OUTPUT(outputs, "table or json"),
};
const struct command command_top = {
    .name = "top", .synopsis = "[SANDBOX…]", .summary = "Show what the sandboxes use", .min_arguments = 0, .max_arguments = -1, .run = run,
    .details = "CPU(cores) is in thousandths of a core, over half a second, with --watch since the line before; MEMORY(bytes) is without files that\n"
               "the kernel can forget at once, MEMORY% its share of the sandbox's limit; CALLS are the tool calls that run or wait in its lane; IDLE\n"
               "is the time since the last activity. The numbers come from the sandbox's cgroups where it has them, else from its processes, of\n"
               "which each counts what is its own. \"-\": not known; the driver sbx tells nothing of CPU, memory and processes.",
    COMMAND_EXAMPLES(examples), COMMAND_OPTIONS(options),
};
