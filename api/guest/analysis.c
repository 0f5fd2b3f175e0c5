#include "api/guest/analysis.h"
#include "api/guest/analysis_map.h"
#include "api/guest/repo.h"
#include "api/guest/file_kind.h"
#include "api/guest/lines.h"
#include "api/guest/text.h"
#include "api/guest/walk.h"
#include "controller/base/memory.h"
#include "controller/base/utf8.h"
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#define SCORE_DEFINITION 190
#define SCORE_TEST 160
#define SCORE_IMPORTER 165
#define SCORE_IMPORTING_TEST 170
#define SCORE_OTHER 100
#define MAX_DEFINING_FILES 20

static const struct tool_field match_fields[] = {
    {"path", FIELD_STRING},       {"line", FIELD_INTEGER},  {"text", FIELD_STRING},
    {"group", FIELD_STRING},      {"score", FIELD_INTEGER}, {"reasons", FIELD_STRINGS},
    {"confidence", FIELD_STRING}, {"source", FIELD_STRING}, {NULL},
};
static const struct tool_field group_fields[] = {
    {"definitions", FIELD_OBJECTS, .fields = match_fields},
    {"references", FIELD_OBJECTS, .fields = match_fields},
    {"tests", FIELD_OBJECTS, .fields = match_fields},
    {"configuration", FIELD_OBJECTS, .fields = match_fields},
    {"documentation", FIELD_OBJECTS, .fields = match_fields},
    {"other", FIELD_OBJECTS, .fields = match_fields},
    {NULL},
};
const struct tool_field analysis_fields[] = {
    {"schemaVersion", FIELD_INTEGER},
    {"query", FIELD_STRING},
    {"intent", FIELD_STRING},
    {"groups", FIELD_OBJECT, .fields = group_fields},
    {"matches", FIELD_OBJECTS, .fields = match_fields},
    {"coverage", FIELD_OBJECT, .fields = repo_coverage_fields},
    {"warnings", FIELD_STRINGS},
    {"cache", FIELD_OBJECT, .fields = repo_cache_fields},
    {NULL},
};

struct analysis {
    const struct analysis_question *question;
    struct matcher *query, *definition; // definition NULL: the query is no identifier
    struct matcher *import;             // in the second walk
    json_t *groups, *matches;
    const char *path; // of the file at work
    enum file_kind kind;
    char *defining[MAX_DEFINING_FILES]; // their names without directory and extension
    size_t defining_count;
    struct analysis_map map;
    size_t declared; // declarations of the map that were met
    bool is_truncated, is_out_of_time, is_done;
};

static bool is_identifier(const char *text)
{
    size_t len = strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_$");
    return len && !text[len] && !isdigit((unsigned char)*text);
}

static const char *intent_of(const struct analysis_question *question)
{
    if (question->intent && strcmp(question->intent, "auto") != 0)
        return question->intent;
    return is_identifier(question->query) ? "symbol" : "text";
}

static void add_match(struct analysis *analysis, const struct line_match *match, const char *group, int score,
                      const char *reason, const char *confidence, const char *source)
{
    const char *at = match->at;
    size_t len = match->len;
    while (len && isspace((unsigned char)*at))
        at++, len--;
    while (len && isspace((unsigned char)at[len - 1]))
        len--;
    CLEANUP_FREE char *text = line_cut(at, len);
    json_t *entry = json_object(), *reasons = json_array();
    json_array_append_new(reasons, json_string(reason));
    json_set_text(entry, "path", analysis->path);
    json_object_set_new(entry, "line", json_integer((json_int_t)match->number));
    json_set_text(entry, "text", text);
    json_set_text(entry, "group", group);
    json_object_set_new(entry, "score", json_integer(score));
    json_object_set_new(entry, "reasons", reasons);
    json_set_text(entry, "confidence", confidence);
    json_set_text(entry, "source", source);
    json_array_append(json_object_get(analysis->groups, group), entry);
    json_array_append_new(analysis->matches, entry);
}

static bool is_full(struct analysis *analysis)
{
    if (json_array_size(analysis->matches) < analysis->question->max_matches)
        return false;
    analysis->is_truncated = true;
    return true;
}

static void remove_from(json_t *list, const json_t *entry)
{
    for (size_t i = json_array_size(list); i > 0; i--) {
        if (json_array_get(list, i - 1) == entry) {
            json_array_remove(list, i - 1);
            return;
        }
    }
}

// Removes the last match of the lowest score, if that is lower: what comes is worth more. False if there is
// none.
static bool make_room(struct analysis *analysis, int score)
{
    json_t *lowest = NULL, *entry;
    size_t i;
    json_array_foreach(analysis->matches, i, entry)
    {
        json_int_t own = json_get_int(entry, "score", 0);
        if (own < score && (!lowest || own <= json_get_int(lowest, "score", 0)))
            lowest = entry;
    }
    if (!lowest)
        return false;
    remove_from(json_object_get(analysis->groups, json_get_text(lowest, "group")), lowest);
    remove_from(analysis->matches, lowest);
    return true;
}

static void note_defining_file(struct analysis *analysis)
{
    const char *slash = strrchr(analysis->path, '/'), *name = slash ? slash + 1 : analysis->path;
    CLEANUP_FREE char *stem = mem_strndup(name, strcspn(name, "."));
    for (size_t i = 0; i < analysis->defining_count; i++)
        if (strcmp(analysis->defining[i], stem) == 0)
            return;
    if (*stem && analysis->defining_count < MAX_DEFINING_FILES)
        analysis->defining[analysis->defining_count++] = TAKE_PTR(stem);
}

static void add_declaration(struct analysis *analysis, const struct line_match *match,
                            const struct declaration *declaration)
{
    note_defining_file(analysis);
    if (declaration)
        add_match(analysis, match, "definitions", SCORE_DEFINITION, "declares the name", "strong",
                  declaration->source);
    else
        add_match(analysis, match, "definitions", SCORE_DEFINITION, "looks like the declaration", "medium",
                  "text");
}

static int found(void *context, const struct line_match *match)
{
    static const char *const groups[] = {"references", "tests", "configuration", "documentation", "other"};
    struct analysis *analysis = context;
    const struct declaration *declaration = analysis_map_find(&analysis->map, analysis->path, match->number);
    bool may_define = analysis->kind == FILE_SOURCE && analysis->definition;
    bool is_definition =
        may_define && (declaration || matcher_match(analysis->definition, match->at, match->len, NULL) > 0);
    analysis->declared += declaration != NULL;
    if (is_full(analysis) && (!is_definition || !make_room(analysis, SCORE_DEFINITION)))
        return analysis->declared >=
               analysis->map.declaration_count; // others may still come to their declaration
    if (is_definition)
        add_declaration(analysis, match, declaration);
    else if (analysis->kind == FILE_TEST)
        add_match(analysis, match, "tests", SCORE_TEST, "occurs in a test", "medium", "text");
    else
        add_match(analysis, match, groups[analysis->kind], SCORE_OTHER, "contains the text", "low", "text");
    return 0;
}

static int found_import(void *context, const struct line_match *match)
{
    struct analysis *analysis = context;
    bool is_test = analysis->kind == FILE_TEST,
         is_sure = analysis_map_imports(&analysis->map, analysis->path);
    struct line_match first = {1, match->at, match->len};
    if (is_full(analysis) && !make_room(analysis, SCORE_IMPORTER)) {
        analysis->is_done = true;
        return 1;
    }
    add_match(analysis, &first, is_test ? "tests" : "references",
              is_test ? SCORE_IMPORTING_TEST : SCORE_IMPORTER, "imports the file that declares it",
              is_sure ? "strong" : "medium", is_sure ? "built-in import extraction" : "text");
    return 1; // one a file
}

// The import as the file's text has it; where it cannot be made out (one over several lines) its first line.
static int visit_importer(struct analysis *analysis, const struct walk_file *file, struct error *err)
{
    int status = lines_match(analysis->import, file->text, file->len, found_import, analysis, err);
    if (status || !analysis_map_imports(&analysis->map, file->path))
        return status;
    const char *stop = memchr(file->text, '\n', file->len);
    struct line_match first = {1, file->text, stop ? (size_t)(stop - file->text) : file->len};
    return found_import(analysis, &first);
}

static bool wants(void *context, const char *path)
{
    struct analysis *analysis = context;
    if (file_is_generated(path))
        return false;
    analysis->kind = file_kind_of(path);
    analysis->path = path;
    if (analysis->import && analysis->kind != FILE_SOURCE && analysis->kind != FILE_TEST)
        return false;
    return analysis->kind != FILE_TEST || analysis->question->include_tests;
}

static int visit(void *context, const struct walk_file *file, struct error *err)
{
    struct analysis *analysis = context;
    int status = analysis->import ? visit_importer(analysis, file, err)
                                  : lines_match(analysis->query, file->text, file->len, found, analysis, err);
    if (status < 0)
        return -1;
    return analysis->import ? analysis->is_done : status;
}

// "\Q...\E" cannot be broken out of: an identifier has no backslash.
static int compile_definition(struct analysis *analysis, const char *name, struct error *err)
{
    static const char keyword[] =
        "function\\*?|def|class|struct|enum|union|interface|type|trait|fn|func|const|let|var|static|"
        "module|namespace|package|#\\s*define|typedef|macro_rules!|CREATE\\s+TABLE";
    CLEANUP_FREE char *pattern = mem_format("(?i)(?:(?:^|[^\\w.])(?:%s)\\s+(?:\\([^)]{0,80}\\)\\s*)?(?:[\\w:]"
                                            "{1,60}[\\s*&]{1,8}){0,4}[*&]{0,3}\\Q%s\\E(?![\\w$])"
                                            "|^\\w[\\w\\s*&:<>,]{0,160}[\\s*&]\\Q%s\\E\\s?\\([^;]*$)",
                                            keyword, name, name);
    return matcher_compile(MATCHER_REGEX, pattern, strlen(pattern), &analysis->definition, err);
}

static int compile_import(struct analysis *analysis, struct error *err)
{
    CLEANUP(buffer_free) struct buffer pattern = BUFFER_INIT(MAX_DEFINING_FILES * 300 + 200);
    buffer_append_text(&pattern, "(?:^\\s{0,40}(?:#\\s*include|import|from|use|mod|require|include|export)"
                                 "\\b|require\\s?\\(|import\\s?\\().*[\\W_](?:");
    for (size_t i = 0; i < analysis->defining_count; i++) {
        buffer_append_text(&pattern, i ? "|" : "");
        for (const char *c = analysis->defining[i]; *c; c++) { // names of files may hold anything
            if (!isalnum((unsigned char)*c) && *c != '_' && (unsigned char)*c < 0x80)
                buffer_append_char(&pattern, '\\');
            buffer_append_char(&pattern, *c);
        }
    }
    buffer_append_text(&pattern, ")(?:\\W|$)");
    return matcher_compile(MATCHER_REGEX, buffer_text(&pattern), pattern.len, &analysis->import, err);
}

static int walk(struct tool_call *call, const struct place *place, struct analysis *analysis,
                struct error *err)
{
    struct walk_result result = {0};
    struct walk_options options = {.workspace = call->workspace,
                                   .is_cancelled = call->is_cancelled,
                                   .visit = visit,
                                   .wants = wants,
                                   .context = analysis};
    if (walk_files(&options, place, &result, err) < 0)
        return -1;
    analysis->is_out_of_time |= result.is_out_of_time;
    return 0;
}

static bool is_in_scope(const struct place *place, const char *path)
{
    size_t len = strlen(place->path);
    return strcmp(place->path, ".") == 0 ||
           (strncmp(path, place->path, len) == 0 && (!path[len] || path[len] == '/'));
}

static int read_importer(struct tool_call *call, struct analysis *analysis, const char *path,
                         struct error *err)
{
    CLEANUP_CLOSE int fd = workspace_open_real(call->workspace, path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
    CLEANUP(buffer_free) struct buffer bytes = BUFFER_INIT(REPO_MAX_FILE_BYTES);
    struct stat meta;
    if (fd < 0 || fstat(fd, &meta) < 0 || !S_ISREG(meta.st_mode) || fs_read_all(fd, &bytes, NULL) < 0)
        return 0; // it changed since the map was made
    struct walk_file file = {.path = path};
    CLEANUP_FREE char *text = utf8_to_valid(bytes.data, bytes.len, &file.len);
    file.text = text;
    return visit_importer(analysis, &file, err) < 0 ? -1 : 0;
}

// Those that the map knows; a guess by words is for where it knows none.
static int read_importers(struct tool_call *call, const struct place *place, struct analysis *analysis,
                          struct error *err)
{
    for (size_t i = 0; i < analysis->map.importer_count && !analysis->is_done; i++) {
        const char *path = analysis->map.importers[i].path;
        if (atomic_load(call->is_cancelled))
            return 0;
        if (is_in_scope(place, path) && wants(analysis, path) && read_importer(call, analysis, path, err) < 0)
            return -1;
    }
    return 0;
}

static int look(struct tool_call *call, const struct place *place, struct analysis *analysis,
                const char *intent, struct error *err)
{
    const char *query = analysis->question->query;
    if (matcher_compile(MATCHER_LITERAL_ANY_CASE, query, strlen(query), &analysis->query, err) < 0 ||
        (is_identifier(query) && compile_definition(analysis, query, err) < 0) ||
        analysis_map_read(call, query, &analysis->map, err) < 0 || walk(call, place, analysis, err) < 0)
        return -1;
    bool asks_importers = strcmp(intent, "references") == 0 || strcmp(intent, "impact") == 0;
    if (!asks_importers || !analysis->defining_count)
        return 0;
    if (compile_import(analysis, err) < 0)
        return 0; // a name that is no valid text: no importers
    return analysis->map.importer_count ? read_importers(call, place, analysis, err)
                                        : walk(call, place, analysis, err);
}

// All matches, best first; equal ones as they were found.
static json_t *by_score(const json_t *matches)
{
    static const int scores[] = {SCORE_DEFINITION, SCORE_IMPORTING_TEST, SCORE_IMPORTER, SCORE_TEST,
                                 SCORE_OTHER};
    json_t *sorted = json_array(), *entry;
    size_t at;
    for (size_t i = 0; i < ARRAY_LEN(scores); i++)
        json_array_foreach(matches, at, entry) if (json_get_int(entry, "score", 0) == scores[i])
            json_array_append(sorted, entry);
    return sorted;
}

static json_t *coverage_of(const struct analysis *analysis)
{
    json_t *coverage = analysis->map.coverage
                           ? json_deep_copy(analysis->map.coverage)
                           : json_pack("{s:i s:i s:i s:i s:i s:b s:[]}", "inventoryFiles", 0, "analyzedFiles",
                                       0, "scannedBytes", 0, "symbolCount", 0, "relationshipCount", 0,
                                       "truncated", 0, "warnings");
    json_t *warnings = json_object_get(coverage, "warnings");
    if (analysis->is_truncated)
        json_array_append_new(warnings,
                              json_string("there are more matches than max_results: narrow with path"));
    if (analysis->is_out_of_time)
        json_array_append_new(warnings,
                              json_string("stopped at the time limit: not every file was looked at"));
    if (analysis->is_truncated || analysis->is_out_of_time)
        json_object_set_new(coverage, "truncated", json_true());
    return coverage;
}

static char *cache_key(const struct tool_call *call, const struct analysis_question *question)
{
    char digest[TEXT_SHA256_SIZE];
    text_sha256(question->query, strlen(question->query), digest);
    return mem_format("%s:search:%.16s", call->workspace->id, digest);
}

static void free_analysis(struct analysis *analysis)
{
    matcher_free(&analysis->query);
    matcher_free(&analysis->definition);
    matcher_free(&analysis->import);
    analysis_map_free(&analysis->map);
    json_decref(analysis->groups);
    json_decref(analysis->matches);
    for (size_t i = 0; i < analysis->defining_count; i++)
        free(analysis->defining[i]);
}

int analysis_make(struct tool_call *call, const struct place *place, const struct analysis_question *question,
                  json_t **ret, struct error *err)
{
    CLEANUP(free_analysis)
    struct analysis analysis = {.question = question, .groups = json_object(), .matches = json_array()};
    for (const struct tool_field *field = group_fields; field->name; field++)
        json_object_set_new(analysis.groups, field->name, json_array());
    const char *intent = intent_of(question);
    CLEANUP_JSON json_t *warnings = json_array();
    if (question->is_regex)
        json_array_append_new(
            warnings, json_string("no analysis for a regular expression: give a plain text or a symbol"));
    else if (look(call, place, &analysis, intent, err) < 0)
        return -1;
    CLEANUP_FREE char *key = cache_key(call, question);
    json_t *coverage = coverage_of(&analysis);
    json_array_extend(warnings, json_object_get(coverage, "warnings"));
    *ret = json_pack("{s:i s:s s:s s:O s:o s:o s:O s:o}", "schemaVersion", 1, "query", question->query,
                     "intent", intent, "groups", analysis.groups, "matches", by_score(analysis.matches),
                     "coverage", coverage, "warnings", warnings, "cache",
                     analysis.map.cache ? json_incref(analysis.map.cache)
                                        : json_pack("{s:b s:s}", "hit", 0, "key", key));
    return 0;
}
