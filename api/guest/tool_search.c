// search: find text in the files of the workspace, in this process.
#include "api/guest/analysis.h"
#include "api/guest/lines.h"
#include "api/guest/tool.h"
#include "api/guest/walk.h"
#include "controller/base/memory.h"
#include <string.h>

#define MAX_RESULTS 200

static const char *const intents[] = {"auto", "text", "symbol", "references", "impact", NULL};

static const struct tool_arg args[] = {
    {"query", ARG_STRING, "Text to find, one line, case-sensitive.", .is_required = true},
    {"regex", ARG_BOOLEAN, "query is a Perl-compatible regular expression, matched within lines.",
     .has_default = true},
    {"path", ARG_STRING, "File or directory to search.", .default_text = "."},
    {"glob", ARG_STRING, "Only files of this name pattern: *.c, src/**/*.{ts,tsx}, or !*.md."},
    {"include_hidden", ARG_BOOLEAN, "Search names that start with a dot.", .has_default = true},
    {"max_results", ARG_INTEGER, "Most matches; never above 200.", .has_default = true,
     .default_number = MAX_RESULTS, .min = 1, .max = 2000},
    {"intent", ARG_STRING, "Add an analysis of who defines, uses, tests and documents the name.",
     .choices = intents},
    {"symbol", ARG_STRING, "A name to search instead of query, with analysis."},
    {"include_tests", ARG_BOOLEAN, "With analysis: look into tests too."},
    {NULL},
};

static const struct tool_field match_fields[] = {
    {"path", FIELD_STRING}, {"line", FIELD_INTEGER}, {"text", FIELD_STRING}, {NULL}};
static const struct tool_field skipped_fields[] = {
    {"hidden", FIELD_INTEGER},
    {"ignored", FIELD_INTEGER},
    {"blocked", FIELD_INTEGER},
    {"binary", FIELD_INTEGER},
    {"large", FIELD_INTEGER},
    {"unreadable", FIELD_INTEGER},
    {NULL},
};
static const struct tool_field fields[] = {
    {"matches", FIELD_OBJECTS, .fields = match_fields},
    {"truncated", FIELD_BOOLEAN},
    {"used", FIELD_STRING},
    {"skipped", FIELD_OBJECT, .is_optional = true, .fields = skipped_fields},
    {"analysis", FIELD_OBJECT, .is_optional = true, .fields = analysis_fields},
    {NULL},
};

struct search {
    struct matcher *matcher;
    json_t *matches;
    struct buffer text;
    size_t max_results;
    const char *path; // of the file at work
    bool is_truncated;
};

static void free_search(struct search *search)
{
    matcher_free(&search->matcher);
    json_decref(search->matches);
    buffer_free(&search->text);
}

static int found(void *context, const struct line_match *match)
{
    struct search *search = context;
    if (json_array_size(search->matches) == search->max_results) {
        search->is_truncated = true;
        return 1;
    }
    CLEANUP_FREE char *text = line_cut(match->at, match->len);
    json_t *entry = json_object();
    json_set_text(entry, "path", search->path);
    json_object_set_new(entry, "line", json_integer((json_int_t)match->number));
    json_set_text(entry, "text", text);
    json_array_append_new(search->matches, entry);
    buffer_format(&search->text, "%s:%zu: %s\n", search->path, match->number, text);
    return 0;
}

static int visit(void *context, const struct walk_file *file, struct error *err)
{
    struct search *search = context;
    search->path = file->path;
    if (lines_match(search->matcher, file->text, file->len, found, search, err) < 0)
        return -1;
    return search->is_truncated;
}

static void append_count(struct buffer *text, size_t count, const char *what)
{
    if (count)
        buffer_format(text, "%s%zu %s", text->len ? ", " : "Skipped: ", count, what);
}

static void set_skipped(struct tool_call *call, struct search *search, const struct walk_counts *counts)
{
    CLEANUP(buffer_free) struct buffer line = BUFFER_INIT(1024);
    append_count(&line, counts->binary, "binary");
    append_count(&line, counts->large, "larger than 16 MiB");
    append_count(&line, counts->unreadable, "unreadable");
    append_count(&line, counts->ignored, "ignored by .gitignore");
    append_count(&line, counts->hidden, "hidden");
    append_count(&line, counts->blocked, "blocked");
    if (line.len)
        buffer_format(&search->text, "\n%s.\n", buffer_text(&line));
    json_object_set_new(call->structured, "skipped",
                        json_pack("{s:I s:I s:I s:I s:I s:I}", "hidden", (json_int_t)counts->hidden,
                                  "ignored", (json_int_t)counts->ignored, "blocked",
                                  (json_int_t)counts->blocked, "binary", (json_int_t)counts->binary, "large",
                                  (json_int_t)counts->large, "unreadable", (json_int_t)counts->unreadable));
}

static void set_result(struct tool_call *call, struct search *search, const struct walk_result *result)
{
    if (!json_array_size(search->matches))
        buffer_append_text(&search->text, "No matches.\n");
    if (search->is_truncated)
        buffer_format(&search->text, "...[only the first %zu matches]\n", search->max_results);
    if (result->is_out_of_time)
        buffer_append_text(&search->text, "...[stopped at the time limit: not every file was searched]\n");
    json_object_set(call->structured, "matches", search->matches);
    json_object_set_new(call->structured, "truncated",
                        json_boolean(search->is_truncated || result->is_out_of_time));
    json_set_text(call->structured, "used", "chat2shell");
    set_skipped(call, search, &result->counts);
    while (search->text.len && search->text.data[search->text.len - 1] == '\n')
        search->text.len--;
    call->text_len = search->text.len;
    call->text = buffer_take_string(&search->text);
}

static int check_query(const json_t *query, bool is_regex, struct error *err)
{
    if (!json_string_length(query))
        return guest_tool_fail(err, "give query, or symbol", "query must not be empty.");
    if (strlen(json_string_value(query)) != json_string_length(query))
        return guest_tool_fail_type(err, "The argument 'query' must be a string without null bytes");
    if (!is_regex && strchr(json_string_value(query), '\n'))
        return guest_tool_fail(err, "search for one of its lines",
                               "query must not contain a line end: lines are searched one by one.");
    return 0;
}

static int add_analysis(struct tool_call *call, const struct place *place, const char *query,
                        struct search *search, struct error *err)
{
    const char *intent = json_get_text(call->args, "intent");
    if (!intent && !json_object_get(call->args, "symbol") && !json_object_get(call->args, "include_tests"))
        return 0;
    struct analysis_question question = {
        .query = query,
        .intent = intent,
        .include_tests = json_get_bool(call->args, "include_tests", false),
        .is_regex = json_get_bool(call->args, "regex", false),
        .max_matches = search->max_results,
    };
    json_t *analysis = NULL;
    if (analysis_make(call, place, &question, &analysis, err) < 0)
        return -1;
    json_object_set_new(call->structured, "analysis", analysis);
    return 0;
}

static int search_in(struct tool_call *call, const struct place *place, const json_t *query,
                     const struct glob *glob, struct error *err)
{
    bool is_regex = json_get_bool(call->args, "regex", false);
    CLEANUP(free_search)
    struct search search = {.matches = json_array(), .text = BUFFER_INIT(4 * 1024 * 1024)};
    search.max_results = (size_t)json_get_int(call->args, "max_results", MAX_RESULTS);
    if (search.max_results > MAX_RESULTS)
        search.max_results = MAX_RESULTS;
    struct walk_options options = {
        .workspace = call->workspace,
        .glob = glob,
        .include_hidden = json_get_bool(call->args, "include_hidden", false),
        .is_cancelled = call->is_cancelled,
        .visit = visit,
        .context = &search,
    };
    struct walk_result result;
    if (matcher_compile(is_regex ? MATCHER_REGEX : MATCHER_LITERAL, json_string_value(query),
                        json_string_length(query), &search.matcher, err) < 0 ||
        walk_files(&options, place, &result, err) < 0 ||
        add_analysis(call, place, json_string_value(query), &search, err) < 0)
        return -1;
    set_result(call, &search, &result);
    return 0;
}

static int run(struct tool_call *call, struct error *err)
{
    const json_t *path = json_object_get(call->args, "path"), *symbol = json_object_get(call->args, "symbol");
    const json_t *query =
        symbol && json_string_length(symbol) ? symbol : json_object_get(call->args, "query");
    const char *glob_text = json_get_text(call->args, "glob");
    CLEANUP_PLACE struct place place = PLACE_INIT;
    CLEANUP(glob_free) struct glob glob = {0};
    if (check_query(query, json_get_bool(call->args, "regex", false), err) < 0)
        return -1;
    if (glob_text && !glob_compile(glob_text, &glob))
        return guest_tool_fail(err, "use a simpler one", "glob has more than %d alternatives",
                               GLOB_MAX_ALTERNATIVES);
    if (workspace_open_place(call->workspace, json_string_value(path), json_string_length(path), O_RDONLY,
                             &place, err) < 0)
        return -1;
    return search_in(call, &place, query, glob_text && *glob_text ? &glob : NULL, err);
}

const struct tool guest_tool_search = {
    .name = "search",
    .title = "Search files",
    .description = "Find a text or a regular expression in the files of the workspace, with path and line of "
                   "each match. Obeys "
                   ".gitignore, skips hidden and binary files, and says what it skipped. With intent or "
                   "symbol it also tells "
                   "definitions, references, tests, configuration and documentation apart.",
    .args = args,
    .fields = fields,
    .hints = {.is_read_only = true, .is_idempotent = true},
    .run = run,
};
