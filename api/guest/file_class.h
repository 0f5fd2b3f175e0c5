// What a file is by its path alone: its language, its role in the repository, and whether work starts there.
#pragma once
#include <stdbool.h>

enum language { // in the order of their names
    LANGUAGE_C,
    LANGUAGE_CPP,
    LANGUAGE_CSHARP,
    LANGUAGE_GO,
    LANGUAGE_JAVA,
    LANGUAGE_JAVASCRIPT,
    LANGUAGE_JSON,
    LANGUAGE_MARKDOWN,
    LANGUAGE_PYTHON,
    LANGUAGE_RUST,
    LANGUAGE_SHELL,
    LANGUAGE_SWIFT,
    LANGUAGE_TOML,
    LANGUAGE_TYPESCRIPT,
    LANGUAGE_UNKNOWN,
    LANGUAGE_YAML,
    LANGUAGE_COUNT
};
enum file_role {
    ROLE_SOURCE,
    ROLE_TEST,
    ROLE_CONFIG,
    ROLE_DOCS,
    ROLE_INFRASTRUCTURE,
    ROLE_GENERATED,
    ROLE_OTHER,
    ROLE_COUNT
};
extern const char *const language_names[LANGUAGE_COUNT], *const file_role_names[ROLE_COUNT];

struct file_class {
    enum language language;
    enum file_role role;
    bool is_entrypoint, is_important;
};
struct file_class file_classify(const char *path);
bool language_is_code(enum language language); // the scanner knows symbols of it
