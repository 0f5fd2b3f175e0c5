#include "api/guest/file_kind.h"
#include "api/guest/file_class.h"
#include "controller/base/cleanup.h"
#include <stddef.h>
#include <string.h>
#include <strings.h>

// Between blanks: extensions beyond those of file_class.c, and names without one.
static const char documentation[] = " markdown rst adoc txt ";
static const char configuration[] =
    " json yaml yml toml ini cfg conf properties env xml plist mk cmake gradle gitignore "
    "editorconfig ";
static const char source[] =
    " m mm rb php kt scala vue svelte pl lua zig ex exs erl hs ml sql proto graphql css scss html s "
    "dart r jl clj el vim sh bash zsh ";
static const char *const documentation_names[] = {"LICENSE", "COPYING"};
static const char *const configuration_names[] = {"Makefile", "Dockerfile", "CMakeLists.txt"};
static const char *const test_marks[] = {"_test.", "_spec.", "Test.java", "Tests.cs"};

static bool has_word(const char *words, const char *word)
{
    size_t len = strlen(word);
    for (const char *at = words; len && (at = strcasestr(at, word)); at += len)
        if (at[-1] == ' ' && at[len] == ' ')
            return true;
    return false;
}

static bool starts_with_one_of(const char *name, const char *const *starts, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strncmp(name, starts[i], strlen(starts[i])) == 0)
            return true;
    return false;
}

static bool is_test(const char *path, const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(test_marks); i++)
        if (strstr(name, test_marks[i]))
            return true;
    return strncmp(name, "test_", 5) == 0 || strncmp(path, "specs/", 6) == 0 || strstr(path, "/specs/");
}

static enum file_kind kind_of_name(const char *name)
{
    const char *dot = strrchr(name, '.'), *extension = dot ? dot + 1 : "";
    if (starts_with_one_of(name, configuration_names, ARRAY_LEN(configuration_names)) ||
        has_word(configuration, extension))
        return FILE_CONFIGURATION;
    if (starts_with_one_of(name, documentation_names, ARRAY_LEN(documentation_names)) ||
        has_word(documentation, extension))
        return FILE_DOCUMENTATION;
    return has_word(source, extension) ? FILE_SOURCE : FILE_OTHER;
}

enum file_kind file_kind_of(const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    struct file_class class = file_classify(path);
    if (class.role == ROLE_TEST || is_test(path, name))
        return FILE_TEST;
    if (class.role == ROLE_DOCS)
        return FILE_DOCUMENTATION;
    if (class.role == ROLE_CONFIG)
        return FILE_CONFIGURATION;
    return language_is_code(class.language) ? FILE_SOURCE : kind_of_name(name);
}

bool file_is_generated(const char *path)
{
    static const char *const marks[] = {".min.js", ".min.css",          ".pb.",
                                        "_pb2.py", "package-lock.json", "pnpm-lock.yaml"};
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path, *dot = strrchr(name, '.');
    for (size_t i = 0; i < ARRAY_LEN(marks); i++)
        if (strstr(name, marks[i]))
            return true;
    return (dot && (strcmp(dot, ".map") == 0 || strcmp(dot, ".lock") == 0)) ||
           file_classify(path).role == ROLE_GENERATED;
}
