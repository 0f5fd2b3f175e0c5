// The order is the order of `chat2shell help`.
#include "cli/command.h"
#include "controller/base/cleanup.h"
#include <string.h>

const struct command *const commands[] = {
    // clang-format off: one a line, so that a new command is one new line
    &command_serve,
    &command_stop,
    &command_setup,
    &command_status,
    &command_doctor,
    &command_get,
    &command_describe,
    &command_apply,
    &command_diff,
    &command_edit,
    &command_delete,
    &command_label,
    &command_annotate,
    &command_wait,
    &command_events,
    &command_explain,
    &command_recreate,
    &command_export,
    &command_exec,
    &command_port_forward,
    &command_cp,
    &command_logs,
    &command_top,
    &command_approval,
    &command_workspace,
    &command_token,
    &command_mcp,
    &command_kubeconfig,
    &command_completion,
    &command_version,
    &command_help,
    // clang-format on
};
const size_t command_count = ARRAY_LEN(commands);

#define NAMES(...) (const char *const[]){__VA_ARGS__, NULL}
const struct command_group command_groups[] = {
    {"Objects", NAMES("get", "describe", "apply", "diff", "edit", "delete", "label", "annotate", "wait", "events", "explain")},
    {"Working in a sandbox", NAMES("exec", "cp", "logs", "port-forward", "top", "export", "recreate")},
    {"Host paths", NAMES("approval", "workspace")},
    {"Clients", NAMES("mcp", "token", "kubeconfig")},
    {"The daemon and this machine", NAMES("serve", "stop", "status", "setup", "doctor")},
    {"Other", NAMES("completion", "version", "help")},
    {NULL, NULL},
};

const struct command_group *command_group_of(const struct command *command)
{
    const struct command_group *group = command_groups;
    for (; group[1].title; group++)
        for (size_t i = 0; group->names[i]; i++)
            if (strcmp(group->names[i], command->name) == 0)
                return group;
    return group;
}

const char *const output_kinds[] = {"table", "wide", "json", "yaml", "name", NULL};
const char *const output_documents[] = {"table", "json", "yaml", NULL};

const struct command *command_find(const char *name)
{
    for (size_t i = 0; i < command_count; i++)
        if (strcmp(commands[i]->name, name) == 0)
            return commands[i];
    return NULL;
}

const struct command *command_find_child(const struct command *command, const char *name)
{
    for (size_t i = 0; i < command->child_count; i++)
        if (strcmp(command->children[i].name, name) == 0)
            return &command->children[i];
    return NULL;
}
