#include "cli/manifests.h"
#include "controller/base/fs.h"
#include "controller/base/json.h"
#include "controller/base/memory.h"
#include "controller/base/utf8.h"
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

struct walk {
    struct invocation *in;
    bool is_reverse;
    manifests_fn *fn;
    void *arg;
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

// ---- one stream -----------------------------------------------------------------------------------------------------------
static void try_document(struct walk *walk, const struct manifest *manifest, size_t document)
{
    struct error err = ERROR_INIT;
    const struct kind_info *info = NULL;
    CLEANUP_JSON json_t *causes = json_array();
    walk->tried++;
    if (manifest_check(manifest, document, &info, causes, &err) < 0) {
        if (manifests_complain(manifest, document, causes))
            err.message[0] = '\0';
        count_failure(walk, &err);
    } else if (walk->fn(walk->arg, manifest, document, info, &err) < 0) {
        count_failure(walk, &err);
    }
}

static void try_stream(struct walk *walk, const char *path)
{
    CLEANUP(manifest_free) struct manifest manifest = {0};
    struct error err = ERROR_INIT;
    if (manifest_read(path, &manifest, &err) < 0) {
        walk->tried++;
        count_failure(walk, &err);
        return;
    }
    for (size_t i = 0; i < manifest.count; i++)
        try_document(walk, &manifest, walk->is_reverse ? manifest.count - 1 - i : i);
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

static void try_directory(struct walk *walk, const char *path)
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
        try_stream(walk, file);
    }
    for (int i = 0; i < count; i++)
        free(entries[i]);
    free(entries);
}

int manifests_each(struct invocation *in, bool is_reverse, manifests_fn *fn, void *arg, struct error *err)
{
    const char *paths[ARGUMENTS_MAX_VALUES];
    size_t count = invocation_values(in, "filename", paths);
    struct walk walk = {.in = in, .is_reverse = is_reverse, .fn = fn, .arg = arg};
    for (size_t i = 0; i < count; i++) {
        const char *path = paths[is_reverse ? count - 1 - i : i];
        struct stat info;
        if (strcmp(path, "-") != 0 && stat(path, &info) == 0 && S_ISDIR(info.st_mode))
            try_directory(&walk, path);
        else
            try_stream(&walk, path);
    }
    if (!walk.failed)
        return 0;
    if (walk.tried == 1) {
        error_set(err, walk.first_code, NULL, "%s", ""); // all is said
        return -1;
    }
    return error_set(err, walk.first_code, walk.failed == walk.tried ? NULL : "mend what is named above, then run it again: what is done stays",
                     "%zu of %zu could not be done", walk.failed, walk.tried);
}
