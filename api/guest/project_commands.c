#include "api/guest/project_commands.h"
#include "controller/base/memory.h"
#include <string.h>

#define MAX_MANIFEST_BYTES (1024 * 1024)

const struct tool_field project_command_fields[] = {
    {"command", FIELD_STRING}, {"source", FIELD_STRING}, {"reasons", FIELD_STRINGS}, {NULL}};

static bool is_there(const struct workspace *workspace, const char *name)
{
    CLEANUP_CLOSE int fd = workspace_open_real(workspace, name, O_PATH | O_NOFOLLOW);
    struct stat meta;
    return fd >= 0 && fstat(fd, &meta) == 0 && S_ISREG(meta.st_mode);
}

static void add(json_t *list, char *command, const char *source, char *reason) // takes command and reason
{
    json_t *reasons = json_array();
    json_array_append_new(reasons, json_from_text(reason));
    json_array_append_new(list, json_pack("{s:o s:s s:o}", "command", json_from_text(command), "source",
                                          source, "reasons", reasons));
    free(command);
    free(reason);
}

static const char *runner_of(const struct workspace *workspace)
{
    static const struct {
        const char *lock, *runner;
    } runners[] = {
        {"pnpm-lock.yaml", "pnpm"}, {"yarn.lock", "yarn"}, {"bun.lockb", "bun"}, {"bun.lock", "bun"}};
    for (size_t i = 0; i < ARRAY_LEN(runners); i++)
        if (is_there(workspace, runners[i].lock))
            return runners[i].runner;
    return "npm";
}

static json_t *read_package(const struct workspace *workspace)
{
    struct error ignored = ERROR_INIT;
    struct stat meta;
    CLEANUP(buffer_free) struct buffer text = BUFFER_INIT(MAX_MANIFEST_BYTES);
    CLEANUP_CLOSE int fd =
        workspace_open_real(workspace, "package.json", O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
    json_t *package = NULL;
    if (fd < 0 || fstat(fd, &meta) < 0 || !S_ISREG(meta.st_mode) || fs_read_all(fd, &text, &ignored) < 0 ||
        json_parse(buffer_text(&text), text.len, &package, &ignored) < 0)
        return NULL;
    return package;
}

static void add_scripts(const struct workspace *workspace, json_t *list)
{
    static const char *const wanted[] = {"test", "test:unit", "typecheck", "lint", "build", "check"};
    CLEANUP_JSON json_t *package = read_package(workspace);
    const json_t *scripts = json_object_get(package, "scripts");
    const char *runner = runner_of(workspace);
    for (size_t i = 0; i < ARRAY_LEN(wanted); i++)
        if (json_get_text(scripts, wanted[i]))
            add(list, mem_format("%s run %s", runner, wanted[i]), "package.json",
                mem_format("package.json has the script \"%s\"", wanted[i]));
}

json_t *project_commands_of(const struct workspace *workspace)
{
    static const struct {
        const char *manifest, *command;
    } others[] = {
        {"go.mod", "go test ./..."},  {"Cargo.toml", "cargo test"}, {"Package.swift", "swift test"},
        {"pyproject.toml", "pytest"}, {"pytest.ini", "pytest"},     {"requirements.txt", "pytest"},
        {"pom.xml", "mvn test"},
    };
    json_t *list = json_array();
    const char *last = "";
    add_scripts(workspace, list);
    for (size_t i = 0; i < ARRAY_LEN(others); i++) {
        if (strcmp(last, others[i].command) == 0 || !is_there(workspace, others[i].manifest))
            continue;
        last = others[i].command;
        add(list, mem_strdup(last), others[i].manifest,
            mem_format("there is a %s in the workspace root", others[i].manifest));
    }
    return list;
}
