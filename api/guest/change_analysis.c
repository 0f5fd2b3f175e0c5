#include "api/guest/change_analysis.h"
#include "api/guest/blocked.h"
#include "api/guest/change_risks.h"
#include "api/guest/project_commands.h"
#include "api/guest/repo.h"
#include "controller/base/memory.h"
#include <ctype.h>
#include <string.h>

#define MAX_PATHS 2000
#define MAX_RELATED 200   // of each kind
#define MAX_NAMESAKES 200 // changed sources whose tests are looked for by name

static const struct tool_field related_fields[] = {
    {"path", FIELD_STRING}, {"confidence", FIELD_STRING}, {"reasons", FIELD_STRINGS}, {NULL}};

const struct tool_field change_analysis_fields[] = {
    {"schema_version", FIELD_INTEGER},
    {"changed_paths", FIELD_STRINGS},
    {"affected_areas", FIELD_STRINGS},
    {"dependent_files", FIELD_OBJECTS, .fields = related_fields},
    {"related_tests", FIELD_OBJECTS, .fields = related_fields},
    {"risk_signals", FIELD_OBJECTS, .fields = change_risk_fields},
    {"recommended_commands", FIELD_OBJECTS, .fields = project_command_fields},
    {"coverage", FIELD_OBJECT, .fields = repo_coverage_fields},
    {"warnings", FIELD_STRINGS},
    {"cache", FIELD_OBJECT, .fields = repo_cache_fields},
    {NULL},
};

enum bond { BOND_NONE, BOND_HEADER, BOND_CHANGED }; // of a file to the changes

struct study {
    const struct repo *repo;
    unsigned char *bonds, *is_named; // for each file of the map
    json_t *paths, *areas, *dependents, *tests, *warnings;
    bool is_truncated;
};

static void free_study(struct study *study)
{
    free(study->bonds);
    free(study->is_named);
    json_decref(study->paths);
    json_decref(study->areas);
    json_decref(study->dependents);
    json_decref(study->tests);
    json_decref(study->warnings);
}

// --- the changed paths

static bool has_text(const json_t *list, const char *text)
{
    size_t i;
    json_t *one;
    json_array_foreach(list, i, one) if (strcmp(json_string_value(one), text) == 0) return true;
    return false;
}

static void add_path(struct study *study, const char *path, json_t *seen)
{
    if (json_array_size(study->paths) >= MAX_PATHS) {
        study->is_truncated = true;
        return;
    }
    json_t *text = json_from_text(path);
    bool is_new = !json_object_get(seen, json_string_value(text));
    json_object_set_new(seen, json_string_value(text), json_true());
    if (is_new)
        json_array_append(study->paths, text);
    json_decref(text);
    CLEANUP_FREE char *area = strchr(path, '/') ? mem_strndup(path, strcspn(path, "/")) : mem_strdup(".");
    if (is_new && !has_text(study->areas, area))
        json_array_append_new(study->areas, json_from_text(area));
}

// What a C source defines, others know by the header beside it.
static void bind_header(struct study *study, const struct repo_file *file)
{
    static const char *const endings[] = {"h", "hpp", "hh", NULL};
    const char *dot = strrchr(file->path, '.');
    if (!dot || (file->class.language != LANGUAGE_C && file->class.language != LANGUAGE_CPP))
        return;
    for (size_t i = 0; endings[i]; i++) {
        CLEANUP_FREE char *path = mem_format("%.*s%s", (int)(dot + 1 - file->path), file->path, endings[i]);
        const struct repo_file *header = repo_find(study->repo, path);
        if (header && !study->bonds[header - study->repo->files])
            study->bonds[header - study->repo->files] = BOND_HEADER;
    }
}

static void bind(struct study *study, const char *path, size_t *gone)
{
    const struct repo_file *file = repo_find(study->repo, path);
    if (!file) {
        struct file_class class = file_classify(path);
        *gone += language_is_code(class.language);
        return;
    }
    study->bonds[file - study->repo->files] = BOND_CHANGED;
    bind_header(study, file);
}

static void add_warning(struct study *study, char *text) // takes text
{
    json_array_append_new(study->warnings, json_from_text(text));
    free(text);
}

static void add_paths(struct study *study, const struct git_changes *changes)
{
    CLEANUP_JSON json_t *seen = json_object();
    size_t blocked = 0, gone = 0;
    for (size_t i = 0; i < 2 * changes->count; i++) {
        const struct git_change *change = &changes->list[i / 2];
        const char *path = i % 2 ? change->new_path : change->path;
        if (path && blocked_path(path)) {
            blocked++;
        } else if (path) {
            add_path(study, path, seen);
            bind(study, path, &gone);
        }
    }
    if (blocked)
        add_warning(study,
                    mem_format("%zu changed paths are left out: they are blocked by safety rules", blocked));
    if (gone)
        add_warning(study,
                    mem_format("%zu changed source files are not in the map of the repository (deleted, "
                               "ignored or too large): who imports them is not known",
                               gone));
}

// --- who may be affected

static void add_related(struct study *study, json_t *list, const struct repo_file *file,
                        const char *confidence, char *reason) // takes reason
{
    size_t at = (size_t)(file - study->repo->files);
    if (study->is_named[at]) {
        free(reason);
        return;
    }
    study->is_named[at] = 1;
    if (json_array_size(list) >= MAX_RELATED) {
        study->is_truncated = true;
        free(reason);
        return;
    }
    json_array_append_new(list, json_pack("{s:o s:s s:[o]}", "path", json_from_text(file->path), "confidence",
                                          confidence, "reasons", json_from_text(reason)));
    free(reason);
}

static void add_changed_tests(struct study *study)
{
    for (size_t i = 0; i < study->repo->count; i++)
        if (study->bonds[i] == BOND_CHANGED && study->repo->files[i].class.role == ROLE_TEST)
            add_related(study, study->tests, &study->repo->files[i], "strong",
                        mem_strdup("it is changed itself"));
}

static void add_importers(struct study *study)
{
    const struct repo *repo = study->repo;
    for (size_t i = 0; i < repo->relation_count; i++) {
        const struct repo_relation *relation = &repo->relations[i];
        enum bond bond = study->bonds[relation->to];
        if (!bond || study->bonds[relation->from] == BOND_CHANGED)
            continue;
        add_related(study, relation->is_test ? study->tests : study->dependents, &repo->files[relation->from],
                    bond == BOND_CHANGED ? "strong" : "medium",
                    mem_format("imports %s", repo->files[relation->to].path));
    }
}

static const char *base_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

// test_NAME.c, NAME_test.go, NAME.spec.ts, NameTest.java …
static bool is_test_of(const char *test_path, const char *path)
{
    CLEANUP_FREE char *name = mem_strndup(base_of(path), strcspn(base_of(path), "."));
    const char *base = base_of(test_path), *at = strstr(base, name);
    size_t len = strlen(name);
    return len > 1 && at && (at == base || !isalnum((unsigned char)at[-1])) &&
           (!isalnum((unsigned char)at[len]) || strncmp(at + len, "Test", 4) == 0);
}

static void add_tests_by_name(struct study *study)
{
    const struct repo *repo = study->repo;
    size_t looked = 0;
    for (size_t i = 0; i < repo->count && looked < MAX_NAMESAKES; i++) {
        if (study->bonds[i] != BOND_CHANGED || repo->files[i].class.role != ROLE_SOURCE)
            continue;
        looked++;
        for (size_t k = 0; k < repo->count; k++)
            if (repo->files[k].class.role == ROLE_TEST && !study->is_named[k] &&
                is_test_of(repo->files[k].path, repo->files[i].path))
                add_related(study, study->tests, &repo->files[k], "medium",
                            mem_format("its name says that it tests %s", repo->files[i].path));
    }
}

int change_analysis_make(struct tool_call *call, const struct git_changes *changes, json_t **ret,
                         struct error *err)
{
    CLEANUP_REPO const struct repo *repo = NULL;
    if (repo_get(call, &repo, err) < 0)
        return -1;
    CLEANUP(free_study)
    struct study study = {.repo = repo,
                          .bonds = mem_alloc(repo->count + 1),
                          .is_named = mem_alloc(repo->count + 1),
                          .paths = json_array(),
                          .areas = json_array(),
                          .dependents = json_array(),
                          .tests = json_array(),
                          .warnings = json_array()};
    add_paths(&study, changes);
    add_changed_tests(&study);
    add_importers(&study);
    add_tests_by_name(&study);
    if (study.is_truncated)
        add_warning(&study, mem_format("limited to %d paths and %d files of a kind", MAX_PATHS, MAX_RELATED));
    *ret = json_pack("{s:i s:O s:O s:O s:O s:o s:o s:o s:O s:o}", "schema_version", 1, "changed_paths",
                     study.paths, "affected_areas", study.areas, "dependent_files", study.dependents,
                     "related_tests", study.tests, "risk_signals", change_risks_of(study.paths),
                     "recommended_commands", project_commands_of(call->workspace), "coverage",
                     repo_coverage(repo), "warnings", study.warnings, "cache", repo_cache(repo));
    return 0;
}
