#include "api/guest/change_analysis.h"
#include "api/guest/blocked.h"
#include "api/guest/change_risks.h"
#include "api/guest/file_kind.h"
#include "api/guest/lines.h"
#include "api/guest/project_commands.h"
#include "api/guest/text.h"
#include "api/guest/walk.h"
#include "controller/base/memory.h"
#include <ctype.h>
#include <string.h>

#define MAX_PATHS 2000
#define MAX_SUBJECTS 60 // changed sources whose importers are looked for
#define MAX_RELATED 200 // of each kind

static const struct tool_field related_fields[] = {
    {"path", FIELD_STRING}, {"confidence", FIELD_STRING}, {"reasons", FIELD_STRINGS}, {NULL}};
static const struct tool_field coverage_fields[] = {
    {"inventoryFiles", FIELD_INTEGER},    {"analyzedFiles", FIELD_INTEGER},
    {"scannedBytes", FIELD_INTEGER},      {"symbolCount", FIELD_INTEGER},
    {"relationshipCount", FIELD_INTEGER}, {"truncated", FIELD_BOOLEAN},
    {"warnings", FIELD_STRINGS},          {NULL},
};
static const struct tool_field cache_fields[] = {{"hit", FIELD_BOOLEAN}, {"key", FIELD_STRING}, {NULL}};

const struct tool_field change_analysis_fields[] = {
    {"schema_version", FIELD_INTEGER},
    {"changed_paths", FIELD_STRINGS},
    {"affected_areas", FIELD_STRINGS},
    {"dependent_files", FIELD_OBJECTS, .fields = related_fields},
    {"related_tests", FIELD_OBJECTS, .fields = related_fields},
    {"risk_signals", FIELD_OBJECTS, .fields = change_risk_fields},
    {"recommended_commands", FIELD_OBJECTS, .fields = project_command_fields},
    {"coverage", FIELD_OBJECT, .fields = coverage_fields},
    {"warnings", FIELD_STRINGS},
    {"cache", FIELD_OBJECT, .fields = cache_fields},
    {NULL},
};

struct subject {
    const char *path; // of a changed source; borrowed
    char *name;       // how imports call it: without directory and extension
};

struct study {
    json_t *paths, *areas, *dependents, *tests, *warnings;
    json_t *is_changed; // path → true
    struct subject subjects[MAX_SUBJECTS];
    size_t subject_count, relationships;
    struct matcher *import; // a line that imports one of the subjects
    const char *path;       // of the file at work
    enum file_kind kind;
    char *found; // the line that imports, a copy
    bool is_truncated;
};

static void free_study(struct study *study)
{
    json_decref(study->paths);
    json_decref(study->areas);
    json_decref(study->dependents);
    json_decref(study->tests);
    json_decref(study->warnings);
    json_decref(study->is_changed);
    matcher_free(&study->import);
    for (size_t i = 0; i < study->subject_count; i++)
        free(study->subjects[i].name);
    free(study->found);
}

// --- the changed paths

static const char *base_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

// index.ts, __init__.py and the like are imported by the name of their directory.
static char *import_name(const char *path)
{
    static const char *const fronts[] = {"index", "__init__", "mod", "lib"};
    const char *base = base_of(path);
    char *name = mem_strndup(base, strcspn(base, "."));
    for (size_t i = 0; base > path && i < ARRAY_LEN(fronts); i++) {
        if (strcmp(name, fronts[i]) != 0)
            continue;
        const char *end = base - 1, *start = end;
        while (start > path && start[-1] != '/')
            start--;
        free(name);
        return mem_strndup(start, (size_t)(end - start));
    }
    return name;
}

static void add_subject(struct study *study, const char *path)
{
    if (file_kind_of(path) != FILE_SOURCE)
        return;
    if (study->subject_count == MAX_SUBJECTS) {
        study->is_truncated = true;
        return;
    }
    CLEANUP_FREE char *name = import_name(path);
    if (strlen(name) > 1)
        study->subjects[study->subject_count++] = (struct subject){path, TAKE_PTR(name)};
}

static bool has_text(const json_t *list, const char *text)
{
    size_t i;
    json_t *one;
    json_array_foreach(list, i, one) if (strcmp(json_string_value(one), text) == 0) return true;
    return false;
}

static void add_path(struct study *study, const char *path, size_t *blocked)
{
    if (blocked_path(path)) {
        ++*blocked;
        return;
    }
    json_t *text = json_from_text(path);
    const char *shown = json_string_value(text);
    if (json_array_size(study->paths) >= MAX_PATHS || json_object_get(study->is_changed, shown)) {
        study->is_truncated |= json_array_size(study->paths) >= MAX_PATHS;
        json_decref(text);
        return;
    }
    json_object_set_new(study->is_changed, shown, json_true());
    json_array_append_new(study->paths, text); // keeps shown alive for the subjects
    const char *slash = strchr(shown, '/');
    CLEANUP_FREE char *area = slash ? mem_strndup(shown, (size_t)(slash - shown)) : mem_strdup(".");
    if (!has_text(study->areas, area))
        json_array_append_new(study->areas, json_from_text(area));
    add_subject(study, shown);
}

static void add_warning(struct study *study, char *text) // takes text
{
    json_array_append_new(study->warnings, json_from_text(text));
    free(text);
}

static void add_paths(struct study *study, const struct git_changes *changes)
{
    size_t blocked = 0;
    for (size_t i = 0; i < changes->count; i++) {
        add_path(study, changes->list[i].path, &blocked);
        if (changes->list[i].new_path)
            add_path(study, changes->list[i].new_path, &blocked);
    }
    if (blocked)
        add_warning(study,
                    mem_format("%zu changed paths are left out: they are blocked by safety rules", blocked));
}

// --- who imports them

static void add_related(struct study *study, json_t *list, const char *path, const char *confidence,
                        char *reason) // takes reason
{
    json_t *reasons = json_array();
    json_array_append_new(reasons, json_from_text(reason));
    free(reason);
    if (json_array_size(list) >= MAX_RELATED) {
        study->is_truncated = true;
        json_decref(reasons);
        return;
    }
    json_array_append_new(list, json_pack("{s:o s:s s:o}", "path", json_from_text(path), "confidence",
                                          confidence, "reasons", reasons));
}

static bool has_word(const char *text, size_t len, const char *word)
{
    size_t word_len = strlen(word);
    const char *at = text, *end = text + len;
    for (; (at = memmem(at, (size_t)(end - at), word, word_len)); at++) {
        bool is_start = at == text || (!isalnum((unsigned char)at[-1]) && at[-1] != '_');
        const char *after = at + word_len;
        if (is_start && (after == end || (!isalnum((unsigned char)*after) && *after != '_')))
            return true;
    }
    return false;
}

static const struct subject *subject_in(const struct study *study, const char *text, size_t len)
{
    for (size_t i = 0; i < study->subject_count; i++)
        if (has_word(text, len, study->subjects[i].name))
            return &study->subjects[i];
    return NULL;
}

static int found_import(void *context, const struct line_match *match)
{
    struct study *study = context;
    free(study->found);
    study->found = mem_strndup(match->at, match->len);
    return 1; // one a file
}

// dir and target as one path without "." and ".."; the caller's.
static char *fold(const char *dir, size_t dir_len, const char *target, size_t target_len)
{
    CLEANUP_FREE char *joined = mem_format("%.*s%.*s", (int)dir_len, dir, (int)target_len, target);
    char *folded = mem_alloc(strlen(joined) + 2);
    size_t len = 0;
    for (const char *part = joined; *part;) {
        size_t part_len = strcspn(part, "/");
        if (part_len == 2 && memcmp(part, "..", 2) == 0) {
            while (len && folded[--len] != '/')
                ;
        } else if (part_len && !(part_len == 1 && *part == '.')) {
            if (len)
                folded[len++] = '/';
            memcpy(folded + len, part, part_len);
            len += part_len;
        }
        folded[len] = '\0';
        part += part_len + (part[part_len] == '/');
    }
    return folded;
}

// With or without its extension, or the directory of an index file.
static bool names_file(const char *target, const char *path)
{
    size_t len = strlen(target);
    return len && strncmp(path, target, len) == 0 &&
           (!path[len] || path[len] == '.' || strncmp(path + len, "/index.", 7) == 0);
}

// Is what the line imports in quotes that very file, from the importer's directory or from the root?
static bool leads_to(const char *importer, const char *line, const char *path)
{
    const char *open = strpbrk(line, "\"'"), *close = open ? strchr(open + 1, *open) : NULL;
    if (!close)
        return false;
    size_t len = (size_t)(close - open) - 1;
    CLEANUP_FREE char *near = fold(importer, (size_t)(base_of(importer) - importer), open + 1, len);
    CLEANUP_FREE char *far = fold("", 0, open + 1, len);
    return names_file(near, path) || names_file(far, path);
}

static void add_importer(struct study *study)
{
    const struct subject *subject = subject_in(study, study->found, strlen(study->found));
    if (!subject)
        return;
    bool is_sure = leads_to(study->path, study->found, subject->path);
    study->relationships++;
    add_related(study, study->kind == FILE_TEST ? study->tests : study->dependents, study->path,
                is_sure ? "strong" : "medium", mem_format("imports %s", subject->path));
}

static bool is_test_of(const char *path, const struct study *study, const struct subject **ret)
{
    const char *base = base_of(path);
    *ret = NULL;
    for (size_t i = 0; !*ret && i < study->subject_count; i++) {
        const char *name = study->subjects[i].name, *at = strstr(base, name);
        size_t len = strlen(name);
        bool is_whole = at && (at == base || !isalnum((unsigned char)at[-1])) &&
                        (!isalnum((unsigned char)at[len]) || strncmp(at + len, "Test", 4) == 0);
        if (is_whole && strcmp(path, study->subjects[i].path) != 0)
            *ret = &study->subjects[i];
    }
    return *ret;
}

// A file is read only if it can import something; a test that is known by its name is not read.
static bool wants(void *context, const char *path)
{
    struct study *study = context;
    const struct subject *subject;
    if (file_is_generated(path))
        return false;
    study->path = path;
    study->kind = file_kind_of(path);
    if (study->kind == FILE_TEST && json_object_get(study->is_changed, path)) {
        add_related(study, study->tests, path, "strong", mem_strdup("it is changed itself"));
        return false;
    }
    if (json_object_get(study->is_changed, path))
        return false;
    if (study->kind == FILE_TEST && is_test_of(path, study, &subject)) {
        add_related(study, study->tests, path, "medium",
                    mem_format("its name says that it tests %s", subject->path));
        return false;
    }
    return study->import && (study->kind == FILE_SOURCE || study->kind == FILE_TEST);
}

static int visit(void *context, const struct walk_file *file, struct error *err)
{
    struct study *study = context;
    if (!subject_in(study, file->text, file->len))
        return 0;
    mem_replace(&study->found, NULL);
    if (lines_match(study->import, file->text, file->len, found_import, study, err) < 0)
        return -1;
    if (study->found)
        add_importer(study);
    return 0;
}

static void append_quoted(struct buffer *pattern, const char *name) // names of files may hold anything
{
    for (const char *c = name; *c; c++) {
        if (!isalnum((unsigned char)*c) && *c != '_' && (unsigned char)*c < 0x80)
            buffer_append_char(pattern, '\\');
        buffer_append_char(pattern, *c);
    }
}

static void compile_import(struct study *study)
{
    CLEANUP(buffer_free) struct buffer pattern = BUFFER_INIT(MAX_SUBJECTS * 600);
    buffer_append_text(&pattern, "(?:^\\s{0,40}(?:#\\s*include|import|from|use|mod|require|include|export)"
                                 "\\b|require\\s?\\(|import\\s?\\().*[\\W_](?:");
    for (size_t i = 0; i < study->subject_count; i++) {
        buffer_append_text(&pattern, i ? "|" : "");
        append_quoted(&pattern, study->subjects[i].name);
    }
    buffer_append_text(&pattern, ")(?:\\W|$)");
    struct error ignored = ERROR_INIT; // a name that is no valid text: no importers
    if (study->subject_count)
        matcher_compile(MATCHER_REGEX, buffer_text(&pattern), pattern.len, &study->import, &ignored);
}

static int look(struct tool_call *call, struct study *study, struct walk_result *result, struct error *err)
{
    CLEANUP_PLACE struct place root = PLACE_INIT;
    struct walk_options options = {.workspace = call->workspace,
                                   .is_cancelled = call->is_cancelled,
                                   .visit = visit,
                                   .wants = wants,
                                   .context = study};
    compile_import(study);
    if (workspace_open_place(call->workspace, ".", 1, O_RDONLY | O_DIRECTORY, &root, err) < 0 ||
        walk_files(&options, &root, result, err) < 0)
        return -1;
    if (result->is_out_of_time)
        add_warning(study, mem_strdup("stopped at the time limit: not every file was looked at"));
    if (study->is_truncated)
        add_warning(study,
                    mem_format("limited to %d paths, the importers of %d files, and %d files of a kind",
                               MAX_PATHS, MAX_SUBJECTS, MAX_RELATED));
    return 0;
}

// --- the answer

static json_t *coverage_of(const struct study *study, const struct walk_result *result)
{
    return json_pack("{s:I s:I s:I s:i s:I s:b s:O}", "inventoryFiles", (json_int_t)result->counts.files,
                     "analyzedFiles", (json_int_t)result->counts.searched, "scannedBytes",
                     (json_int_t)result->counts.bytes, "symbolCount", 0, "relationshipCount",
                     (json_int_t)study->relationships, "truncated",
                     study->is_truncated || result->is_out_of_time, "warnings", study->warnings);
}

static json_t *cache_of(const struct tool_call *call, const struct git_changes *changes)
{
    char digest[TEXT_SHA256_SIZE];
    git_changes_fingerprint(changes, call->workspace, digest);
    CLEANUP_FREE char *key = mem_format("%s:changes:%.16s", call->workspace->id, digest);
    return json_pack("{s:b s:s}", "hit", 0, "key", key);
}

int change_analysis_make(struct tool_call *call, const struct git_changes *changes, json_t **ret,
                         struct error *err)
{
    CLEANUP(free_study)
    struct study study = {.paths = json_array(),
                          .areas = json_array(),
                          .dependents = json_array(),
                          .tests = json_array(),
                          .warnings = json_array(),
                          .is_changed = json_object()};
    struct walk_result result = {0};
    add_paths(&study, changes);
    if (look(call, &study, &result, err) < 0)
        return -1;
    *ret =
        json_pack("{s:i s:O s:O s:O s:O s:o s:o s:o s:O s:o}", "schema_version", 1, "changed_paths",
                  study.paths, "affected_areas", study.areas, "dependent_files", study.dependents,
                  "related_tests", study.tests, "risk_signals", change_risks_of(study.paths),
                  "recommended_commands", project_commands_of(call->workspace), "coverage",
                  coverage_of(&study, &result), "warnings", study.warnings, "cache", cache_of(call, changes));
    return 0;
}
