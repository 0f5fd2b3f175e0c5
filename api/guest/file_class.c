#include "api/guest/file_class.h"
#include "controller/base/cleanup.h"
#include <stddef.h>
#include <string.h>
#include <strings.h>

const char *const language_names[LANGUAGE_COUNT] = {
    "c",      "cpp",  "csharp", "go",    "java", "javascript", "json",    "markdown",
    "python", "rust", "shell",  "swift", "toml", "typescript", "unknown", "yaml",
};
const char *const file_role_names[ROLE_COUNT] = {"source",         "test",      "config", "docs",
                                                 "infrastructure", "generated", "other"};

static const struct {
    const char *extension;
    enum language language;
} extensions[] = {
    {"ts", LANGUAGE_TYPESCRIPT},
    {"tsx", LANGUAGE_TYPESCRIPT},
    {"mts", LANGUAGE_TYPESCRIPT},
    {"cts", LANGUAGE_TYPESCRIPT},
    {"js", LANGUAGE_JAVASCRIPT},
    {"jsx", LANGUAGE_JAVASCRIPT},
    {"mjs", LANGUAGE_JAVASCRIPT},
    {"cjs", LANGUAGE_JAVASCRIPT},
    {"py", LANGUAGE_PYTHON},
    {"go", LANGUAGE_GO},
    {"rs", LANGUAGE_RUST},
    {"swift", LANGUAGE_SWIFT},
    {"java", LANGUAGE_JAVA},
    {"cs", LANGUAGE_CSHARP},
    {"c", LANGUAGE_C},
    {"h", LANGUAGE_C},
    {"cc", LANGUAGE_CPP},
    {"cpp", LANGUAGE_CPP},
    {"cxx", LANGUAGE_CPP},
    {"hpp", LANGUAGE_CPP},
    {"hh", LANGUAGE_CPP},
    {"json", LANGUAGE_JSON},
    {"yaml", LANGUAGE_YAML},
    {"yml", LANGUAGE_YAML},
    {"toml", LANGUAGE_TOML},
    {"md", LANGUAGE_MARKDOWN},
    {"mdx", LANGUAGE_MARKDOWN},
    {"sh", LANGUAGE_SHELL},
    {"bash", LANGUAGE_SHELL},
    {"zsh", LANGUAGE_SHELL},
};

// The first row that has one of the path's directories decides, after the rows of names below.
static const char *const generated_dirs[] = {"generated", "vendor", "vendors", "third_party", NULL};
static const char *const test_dirs[] = {"__tests__", "test", "tests", "spec", NULL};
static const char *const config_dirs[] = {"config", "configs", NULL};
static const char *const docs_dirs[] = {"doc", "docs", NULL};
static const char *const infrastructure_dirs[] = {".github", "infra", "infrastructure", "terraform",
                                                  "deploy",  "k8s",   "helm",           NULL};
static const char *const config_names[] = {
    "package.json", "tsconfig.json", "pyproject.toml",   "Cargo.toml",    "go.mod",
    "pom.xml",      "build.gradle",  "build.gradle.kts", "Package.swift", NULL};
static const char *const entrypoint_names[] = {"index.ts",  "index.js",   "main.ts", "main.js",
                                               "main.py",   "main.go",    "main.rs", "lib.rs",
                                               "App.swift", "Program.cs", NULL};
static const char *const important_names[] = {"README.md", "AGENTS.md", NULL};
static const enum language source_languages[] = {
    LANGUAGE_TYPESCRIPT, LANGUAGE_JAVASCRIPT, LANGUAGE_PYTHON, LANGUAGE_GO, LANGUAGE_RUST,
    LANGUAGE_SWIFT,      LANGUAGE_JAVA,       LANGUAGE_CSHARP, LANGUAGE_C,  LANGUAGE_CPP,
};

static bool is_one_of(const char *const *names, const char *text, size_t len)
{
    for (; *names; names++)
        if (strlen(*names) == len && memcmp(*names, text, len) == 0)
            return true;
    return false;
}

static bool is_below(const char *path, const char *const *dirs)
{
    for (const char *slash; (slash = strchr(path, '/')); path = slash + 1)
        if (is_one_of(dirs, path, (size_t)(slash - path)))
            return true;
    return false;
}

static bool ends_with(const char *name, const char *end)
{
    size_t len = strlen(name), end_len = strlen(end);
    return len >= end_len && strcmp(name + len - end_len, end) == 0;
}

static bool starts_with(const char *name, const char *start)
{
    return strncmp(name, start, strlen(start)) == 0;
}

static enum language language_of(const char *name)
{
    const char *dot = strrchr(name, '.');
    for (size_t i = 0; dot && i < ARRAY_LEN(extensions); i++)
        if (strcasecmp(extensions[i].extension, dot + 1) == 0)
            return extensions[i].language;
    return LANGUAGE_UNKNOWN;
}

static bool is_generated_name(const char *name)
{
    return strstr(name, ".generated.") || ends_with(name, ".g.cs") || ends_with(name, ".g.dart");
}

static bool is_test_name(const char *name)
{
    return strstr(name, ".test.") || strstr(name, ".spec.") || ends_with(name, "_test.go") ||
           ends_with(name, "Tests.swift") || ends_with(name, "_test.py") ||
           (starts_with(name, "test_") && (ends_with(name, ".py") || ends_with(name, ".c")));
}

static bool is_source(enum language language)
{
    for (size_t i = 0; i < ARRAY_LEN(source_languages); i++)
        if (source_languages[i] == language)
            return true;
    return false;
}

static enum file_role role_of(const char *path, const char *name, enum language language)
{
    size_t len = strlen(name);
    if (is_below(path, generated_dirs) || is_generated_name(name))
        return ROLE_GENERATED;
    if (is_below(path, test_dirs) || is_test_name(name))
        return ROLE_TEST;
    if (is_one_of(config_names, name, len) || is_below(path, config_dirs))
        return ROLE_CONFIG;
    if (language == LANGUAGE_MARKDOWN || is_below(path, docs_dirs))
        return ROLE_DOCS;
    if (is_below(path, infrastructure_dirs) || strcmp(name, "Dockerfile") == 0)
        return ROLE_INFRASTRUCTURE;
    return is_source(language) ? ROLE_SOURCE : ROLE_OTHER;
}

bool language_is_code(enum language language)
{
    return is_source(language) || language == LANGUAGE_SHELL;
}

struct file_class file_classify(const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    struct file_class class = {.language = language_of(name)};
    class.role = role_of(path, name, class.language);
    class.is_entrypoint = is_one_of(entrypoint_names, name, strlen(name));
    class.is_important = class.role == ROLE_CONFIG || is_one_of(important_names, name, strlen(name));
    return class;
}
