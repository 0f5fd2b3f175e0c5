// Which files -f means, and reading them.
#include "cli/manifest_files.h"
#include "controller/base/fs.h"
#include "controller/base/memory.h"
#include <dirent.h>
#include <errno.h>
#include <string.h>

#define DEPTH_MAX 32 // of directories within directories

struct reading {
    const struct manifest_files *files;
    bool is_recursive;
    bool is_full; // there are MANIFEST_FILES_MAX, and it was said: nothing more is read
};

static void read_stream(struct reading *reading, const char *path)
{
    const struct manifest_files *files = reading->files;
    struct manifest manifest = {0};
    struct error err = ERROR_INIT;
    if (manifest_read(path, &manifest, &err) < 0) {
        files->failed(files->arg, &err);
    } else if (files->take(files->arg, &manifest) < 0) {
        reading->is_full = true;
        error_set(&err, ERROR_TOO_LARGE, "apply them in several commands", "more than %d files", MANIFEST_FILES_MAX);
        files->failed(files->arg, &err);
    }
}

// ---- directories ------------------------------------------------------------------------------------------------------------
static bool is_manifest_name(const char *name)
{
    static const char *const endings[] = {".yaml", ".yml", ".json"};
    const char *dot = strrchr(name, '.');
    for (size_t i = 0; dot && i < ARRAY_LEN(endings); i++)
        if (strcmp(dot, endings[i]) == 0)
            return true;
    return false;
}

static int is_visible(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

static bool is_directory(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

static void read_directory(struct reading *reading, const char *path, int depth, size_t *found);

static void read_entry(struct reading *reading, const char *path, const char *name, int depth, size_t *found)
{
    struct stat info;
    if (lstat(path, &info) == 0 && S_ISDIR(info.st_mode)) { // a link to a directory may lead back
        if (reading->is_recursive)
            read_directory(reading, path, depth + 1, found);
    } else if (is_manifest_name(name) && !is_directory(path)) {
        ++*found;
        read_stream(reading, path);
    }
}

static int read_entries(struct reading *reading, const char *path, int depth, size_t *found, struct error *err)
{
    struct dirent **entries = NULL;
    if (depth > DEPTH_MAX)
        return error_set(err, ERROR_TOO_LARGE, "name the directories below it by themselves", "%s: directories deeper than %d", path, DEPTH_MAX);
    int count = scandir(path, &entries, is_visible, alphasort);
    if (count < 0)
        return error_errno(err, errno, NULL, "cannot read the directory %s", path);
    for (int i = 0; i < count; i++) {
        CLEANUP_FREE char *file = mem_format("%s/%s", path, entries[i]->d_name);
        if (!reading->is_full)
            read_entry(reading, file, entries[i]->d_name, depth, found);
        free(entries[i]);
    }
    free(entries);
    return 0;
}

static void read_directory(struct reading *reading, const char *path, int depth, size_t *found)
{
    struct error err = ERROR_INIT;
    if (read_entries(reading, path, depth, found, &err) < 0)
        reading->files->failed(reading->files->arg, &err);
}

void manifest_files_read(const struct invocation *in, const struct manifest_files *files)
{
    struct reading reading = {files, invocation_switch(in, "recursive", false), false};
    const char *paths[ARGUMENTS_MAX_VALUES];
    size_t count = invocation_values(in, "filename", paths);
    for (size_t i = 0; i < count && !reading.is_full; i++) {
        struct error err = ERROR_INIT;
        size_t found = 0;
        if (strcmp(paths[i], "-") == 0 || !is_directory(paths[i])) {
            read_stream(&reading, paths[i]);
            continue;
        }
        read_directory(&reading, paths[i], 0, &found);
        if (found)
            continue;
        error_set(&err, ERROR_NOT_FOUND, reading.is_recursive ? "name them *.yaml, *.yml or *.json" : "name them *.yaml, *.yml or *.json; -R looks below it too",
                  "the directory %s holds no manifests", paths[i]);
        files->failed(files->arg, &err);
    }
}
