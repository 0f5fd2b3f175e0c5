// The manual: chat2shell(1), a page a command, chat2shell-config(5); from the same tables as the help.
#include "api/tools/tools.h"
#include "cli/man_write.h"
#include "controller/base/fs.h"
#include "controller/base/memory.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#define PAGE "chat2shell"
#define CONFIG_PAGE "chat2shell-config"

// ---- a command ----------------------------------------------------------------------------------------------------------
static void put_synopsis(FILE *to, const struct command *parent, const struct command *command)
{
    fputs(".PP\n\\fBchat2shell ", to);
    if (parent)
        fprintf(to, "%s ", parent->name);
    man_text(to, command->name);
    fputs("\\fR ", to);
    man_text(to, command->synopsis);
    fputs(strstr(command->synopsis, "[OPTIONS]") ? "\n" : " [\\fIOPTIONS\\fR]\n", to);
}

static void put_synopses(FILE *to, const struct command *command)
{
    fputs(".SH SYNOPSIS\n", to);
    if (command->run || !command->child_count)
        put_synopsis(to, NULL, command);
    for (size_t i = 0; i < command->child_count; i++)
        put_synopsis(to, command, &command->children[i]);
}

static void put_options(FILE *to, const char *heading, const struct option_row *rows, size_t count)
{
    if (count)
        fprintf(to, "%s\n", heading);
    for (size_t i = 0; i < count; i++)
        man_option(to, &rows[i]);
}

static void put_child(FILE *to, const struct command *parent, const struct command *child)
{
    fprintf(to, ".SS \"%s ", parent->name);
    man_text(to, child->name);
    fputs("\"\n", to);
    man_line(to, "", child->summary);
    if (child->details)
        man_line(to, ".PP\n", child->details);
    put_options(to, ".PP", child->options, child->option_count);
    man_examples(to, child);
}

static void put_command_page(FILE *to, const struct command *command)
{
    CLEANUP_FREE char *page = mem_format(PAGE "-%s", command->name);
    man_head(to, page, 1, command->summary);
    put_synopses(to, command);
    man_line(to, ".SH DESCRIPTION\n", command->summary);
    if (command->details)
        man_line(to, ".PP\n", command->details);
    if (command->child_count)
        fputs(".SH COMMANDS\n", to);
    for (size_t i = 0; i < command->child_count; i++)
        put_child(to, command, &command->children[i]);
    fputs(".SH OPTIONS\n", to);
    put_options(to, ".PP", command->options, command->option_count);
    put_options(to, ".PP\nOf every command:", global_options, global_option_count);
    if (command->example_count)
        fputs(".SH EXAMPLES\n", to);
    man_examples(to, command);
    man_exit_codes(to);
    fputs(".SH ENVIRONMENT\nThe daemon and the commands read the same variables: see \\fBchat2shell\\-config\\fR(5).\n", to);
    man_see_also(to, (const char *const[]){PAGE "(1)", CONFIG_PAGE "(5)"}, 2);
}

// ---- the overview -------------------------------------------------------------------------------------------------------
// From the catalogue that clients see: title and arguments, those in brackets may be left out.
static void put_tool(FILE *to, const json_t *entry)
{
    const json_t *schema = json_object_get(entry, "inputSchema"), *required = json_object_get(schema, "required");
    const char *name;
    json_t *ignored;
    fprintf(to, ".TP\n.B %s\n", json_get_text(entry, "name"));
    man_text(to, json_get_text(entry, "title"));
    fputc(json_object_size(json_object_get(schema, "properties")) ? ':' : '.', to);
    json_object_foreach(json_object_get(schema, "properties"), name, ignored)
    {
        bool is_required = false;
        for (size_t i = 0; i < json_array_size(required); i++)
            is_required |= strcmp(json_string_value(json_array_get(required, i)), name) == 0;
        fprintf(to, is_required ? " \\fI%s\\fR" : " [\\fI%s\\fR]", name);
    }
    fputc('\n', to);
}

static void put_tools(FILE *to)
{
    struct catalogue catalogue = {0};
    if (catalogue_load(&catalogue, NULL) < 0)
        return; // tests see to it that the embedded files are whole
    fputs(".SH TOOLS\nWhat MCP clients can call; \\fBchat2shell mcp tools \\-o json\\fR shows everything about them.\n", to);
    for (size_t i = 0; i < tool_count; i++)
        put_tool(to, json_object_get(catalogue.entries, tools[i].name));
    catalogue_free(&catalogue);
}

static void put_commands(FILE *to)
{
    fputs(".SH COMMANDS\nEach has a page of its own, and \\fB\\-\\-help\\fR.\n", to);
    for (size_t group = 0; command_groups[group].title; group++) {
        man_line(to, ".SS ", command_groups[group].title);
        for (size_t i = 0; i < command_count; i++)
            if (command_group_of(commands[i]) == &command_groups[group]) {
                fprintf(to, ".TP\n.BR chat2shell\\-%s (1)\n", commands[i]->name);
                man_line(to, "", commands[i]->summary);
            }
    }
}

static void put_overview(FILE *to)
{
    static const struct config_variable terminal[] = {
        {.name = "NO_COLOR", .doc = "No colours, if it is set to anything; --color=always overrules it."},
        {.name = "TERM", .doc = "No colours where it is dumb or not set."},
        {.name = "VISUAL", .doc = "The editor that edit starts."},
        {.name = "EDITOR", .doc = "The same, where VISUAL is not set; vi where neither is."},
    };
    man_head(to, PAGE, 1, "a full shell for a chat assistant, in disposable sandboxes");
    fputs(".SH SYNOPSIS\n.B chat2shell\n.I COMMAND\n[\\fIARGUMENTS\\fR] [\\fIOPTIONS\\fR]\n"
          ".SH DESCRIPTION\n"
          "The daemon (\\fBserve\\fR) and the operator\\(aqs commands. The commands speak to the daemon over a Unix socket in its state directory.\n",
          to);
    put_commands(to);
    put_options(to, ".SH OPTIONS\nEvery command has these, before its name or behind it:", global_options, global_option_count);
    put_tools(to);
    man_exit_codes(to);
    fputs(".SH ENVIRONMENT\nWhat the daemon and the commands are configured with is in \\fBchat2shell\\-config\\fR(5). At a terminal:\n", to);
    for (size_t i = 0; i < ARRAY_LEN(terminal); i++) {
        fprintf(to, ".TP\n.B %s\n", terminal[i].name);
        man_line(to, "", terminal[i].doc);
    }
    fputs(".SH FILES\n.TP\n.I ~/.chat2shell\nThe data root, unless \\fBCHAT2SHELL_DATA_ROOT\\fR says otherwise: the store and the operator\\(aqs socket in\n"
          "\\fIstate\\fR, managed workspaces, templates.\n",
          to);
    man_see_also(to, (const char *const[]){CONFIG_PAGE "(5)", "kubectl(1)", "bwrap(1)"}, 3);
}

static void put_config(FILE *to)
{
    const struct config_variable *variable;
    man_head(to, CONFIG_PAGE, 5, "the variables that chat2shell is configured with");
    fputs(".SH DESCRIPTION\nThe environment is the only configuration. A wrong value is named and refused at start. The daemon and the commands must see the\n"
          "same values.\n.SH ENVIRONMENT\n",
          to);
    for (size_t i = 0; (variable = config_variable(i)) != NULL; i++) {
        fprintf(to, ".TP\n.B %s\n", variable->name);
        man_text(to, variable->doc);
        fputs(" Default: ", to);
        man_text(to, variable->fallback[0] ? variable->fallback : "empty");
        fputs(".\n", to);
    }
    man_see_also(to, (const char *const[]){PAGE "(1)", PAGE "-serve(1)"}, 2);
}

// ---- which page ---------------------------------------------------------------------------------------------------------
static void put_page(FILE *to, const char *name)
{
    if (!name)
        put_overview(to);
    else if (strcmp(name, "config") == 0)
        put_config(to);
    else
        put_command_page(to, command_find(name));
}

int man_print(const char *name, struct error *err)
{
    if (name && strcmp(name, "config") != 0 && !command_find(name))
        return error_set(err, ERROR_USAGE, "the pages are those of `chat2shell help`, and config", "there is no manual page about '%.100s'", name);
    put_page(stdout, name);
    return 0;
}

static int write_page(const char *directory, const char *name, int section, struct error *err)
{
    CLEANUP_FREE char *path = mem_format("%s/" PAGE "%s%s.%d", directory, name ? "-" : "", name ? name : "", section);
    FILE *file = fopen(path, "we");
    if (!file)
        return error_errno(err, errno, "give a directory that can be written", "cannot make %s", path);
    put_page(file, name);
    bool is_written = !ferror(file);
    if (fclose(file) == 0 && is_written)
        return 0;
    return error_errno(err, errno, "make room, or give another directory", "cannot write %s", path);
}

int man_write(const char *directory, struct error *err)
{
    if (mkdir(directory, 0777) < 0 && errno != EEXIST)
        return error_errno(err, errno, "give a directory whose parent is there", "cannot make %s", directory);
    int r = write_page(directory, NULL, 1, err) < 0 || write_page(directory, "config", 5, err) < 0 ? -1 : 0;
    for (size_t i = 0; i < command_count && r == 0; i++)
        r = write_page(directory, commands[i]->name, 1, err);
    return r;
}
