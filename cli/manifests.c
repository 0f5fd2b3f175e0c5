#include "cli/manifests.h"
#include "controller/base/fs.h"
#include "controller/base/json.h"
#include "controller/base/memory.h"
#include "controller/base/utf8.h"
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#define MANIFESTS_MAX_STREAMS 1024 // files of one command

struct walk {
    struct invocation *in;
    bool is_reverse;
    struct manifest *streams;
    size_t count;
    size_t tried, failed;
    enum error_code first_code;
};

static void put_line(const char *text)
{
    CLEANUP_FREE char *printable = utf8_to_printable(text, strlen(text), false);
    fprintf(stderr, "error: %s\n", printable);
}

bool manifests_complain(const struct manifest *manifest, size_t document, const json_t *causes)
{
    size_t i;
    json_t *cause;
    json_array_foreach((json_t *)causes, i, cause)
    {
        CLEANUP_FREE char *line = manifest_word_cause(manifest, document, cause);
        put_line(line);
    }
    return json_array_size(causes) > 0;
}

static void count_failure(struct walk *walk, const struct error *err)
{
    complain(walk->in, err);
    if (!walk->failed++)
        walk->first_code = err->code;
}

// ---- reading: everything is read before anything is done --------------------------------------------------------------------
static void read_stream(struct walk *walk, const char *path)
{
    struct manifest manifest = {0};
    struct error err = ERROR_INIT;
    if (walk->count == MANIFESTS_MAX_STREAMS)
        error_set(&err, ERROR_TOO_LARGE, "split it", "more than %d files", MANIFESTS_MAX_STREAMS);
    else if (manifest_read(path, &manifest, &err) == 0) {
        walk->streams[walk->count++] = manifest;
        return;
    }
    walk->tried++;
    count_failure(walk, &err);
}

// ---- directories ------------------------------------------------------------------------------------------------------------
static int is_manifest_name(const struct dirent *entry)
{
    static const char *const endings[] = {".yaml", ".yml", ".json"};
    const char *dot = strrchr(entry->d_name, '.');
    for (size_t i = 0; dot && i < ARRAY_LEN(endings); i++)
        if (strcmp(dot, endings[i]) == 0 && entry->d_name[0] != '.')
            return 1;
    return 0;
}

static void read_directory(struct walk *walk, const char *path)
{
    struct error err = ERROR_INIT;
    struct dirent **entries = NULL;
    int count = scandir(path, &entries, is_manifest_name, alphasort);
    if (count <= 0) {
        if (count < 0)
            error_errno(&err, errno, NULL, "cannot read the directory %s", path);
        else
            error_set(&err, ERROR_NOT_FOUND, "name them *.yaml, *.yml or *.json", "the directory %s holds no manifests", path);
        walk->tried++;
        count_failure(walk, &err);
    }
    for (int i = 0; i < count; i++) {
        CLEANUP_FREE char *file = mem_format("%s/%s", path, entries[walk->is_reverse ? count - 1 - i : i]->d_name);
        read_stream(walk, file);
    }
    for (int i = 0; i < count; i++)
        free(entries[i]);
    free(entries);
}

// ---- every document -----------------------------------------------------------------------------------------------------------
typedef void document_fn(struct walk *walk, const struct manifest *manifest, size_t document, void *arg);

static void each_document(struct walk *walk, document_fn *fn, void *arg)
{
    for (size_t i = 0; i < walk->count; i++) {
        const struct manifest *manifest = &walk->streams[i];
        for (size_t n = 0; n < manifest->count; n++)
            fn(walk, manifest, walk->is_reverse ? manifest->count - 1 - n : n, arg);
    }
}

static int check_spec(const struct manifest *manifest, size_t document, const struct kind_info *info, json_t *causes, struct error *err)
{
    CLEANUP_RECORD struct record *record = record_new(info->kind);
    CLEANUP_JSON json_t *more = NULL;
    int r = record_spec_from_json(record, json_object_get(manifest->documents[document].value, "spec"), &more, err);
    json_array_extend(causes, more);
    return r;
}

static void check_document(struct walk *walk, const struct manifest *manifest, size_t document, void *arg)
{
    const bool *has_specs = arg;
    struct error err = ERROR_INIT;
    const struct kind_info *info = NULL;
    CLEANUP_JSON json_t *causes = json_array();
    walk->tried++;
    int r = manifest_check(manifest, document, &info, causes, &err);
    if (info && *has_specs)
        r |= check_spec(manifest, document, info, causes, &err);
    if (r == 0)
        return;
    if (manifests_complain(manifest, document, causes))
        err.message[0] = '\0';
    count_failure(walk, &err);
}

struct doing {
    manifests_fn *fn;
    void *arg;
};

static void do_document(struct walk *walk, const struct manifest *manifest, size_t document, void *arg)
{
    const struct doing *doing = arg;
    struct error err = ERROR_INIT;
    const struct kind_info *info = NULL;
    CLEANUP_JSON json_t *causes = json_array();
    if (manifest_check(manifest, document, &info, causes, &err) < 0 || doing->fn(doing->arg, manifest, document, info, &err) < 0)
        count_failure(walk, &err);
}

static void read_all(struct walk *walk)
{
    const char *paths[ARGUMENTS_MAX_VALUES];
    size_t count = invocation_values(walk->in, "filename", paths);
    for (size_t i = 0; i < count; i++) {
        const char *path = paths[walk->is_reverse ? count - 1 - i : i];
        struct stat info;
        if (strcmp(path, "-") != 0 && stat(path, &info) == 0 && S_ISDIR(info.st_mode))
            read_directory(walk, path);
        else
            read_stream(walk, path);
    }
}

static int conclude(const struct walk *walk, const char *hint, struct error *err)
{
    if (!walk->failed)
        return 0;
    if (walk->tried == 1) {
        error_set(err, walk->first_code, NULL, "%s", ""); // all is said
        return -1;
    }
    return error_set(err, walk->first_code, walk->failed == walk->tried ? NULL : hint, "%zu of %zu could not be done", walk->failed, walk->tried);
}

int manifests_each(struct invocation *in, bool is_reverse, bool has_specs, manifests_fn *fn, void *arg, struct error *err)
{
    struct walk walk = {.in = in, .is_reverse = is_reverse};
    walk.streams = mem_alloc(MANIFESTS_MAX_STREAMS * sizeof(*walk.streams));
    read_all(&walk);
    each_document(&walk, check_document, &has_specs);
    bool is_input_good = !walk.failed;
    if (is_input_good)
        each_document(&walk, do_document, &(struct doing){fn, arg});
    for (size_t i = 0; i < walk.count; i++)
        manifest_free(&walk.streams[i]);
    free(walk.streams);
    return conclude(&walk, is_input_good ? "mend what is named above, then run it again: what is done stays" : "nothing was changed: mend what is named above, then run it again", err);
}
