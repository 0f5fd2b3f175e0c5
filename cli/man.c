// chat2shell(1), as source for man, from the same tables as the help.
#include "api/tools/tools.h"
#include "cli/command.h"
#include "controller/base/buffer.h"
#include "controller/base/cleanup.h"
#include <stdio.h>
#include <string.h>

// Text with what the formatter would take for a request or a hyphen escaped.
static void put(const char *text)
{
    if (*text == '.' || *text == '\'')
        fputs("\\&", stdout);
    for (; *text; text++) {
        if (*text == '\\')
            fputs("\\e", stdout);
        else if (*text == '-')
            fputs("\\-", stdout);
        else
            putchar(*text);
    }
}

static void put_line(const char *request, const char *text)
{
    fputs(request, stdout);
    put(text);
    putchar('\n');
}

static void put_option(const struct option_row *row)
{
    puts(".TP");
    fputs("\\fB", stdout);
    if (row->letter)
        printf("\\-%c\\fR, \\fB", row->letter);
    fputs("\\-\\-", stdout);
    put(row->name);
    fputs("\\fR", stdout);
    if (row->value)
        printf(row->bare ? "[=\\fI%s\\fR]" : "=\\fI%s\\fR", row->value);
    putchar('\n');
    put(row->doc);
    for (size_t i = 0; row->value && row->choices && row->choices[i]; i++) {
        fputs(i ? ", " : "; one of ", stdout);
        put(row->choices[i]);
    }
    putchar('\n');
}

static void put_examples(const struct command *command)
{
    for (size_t i = 0; i < command->example_count; i++) {
        puts(".PP\n.nf");
        put_line("", command->examples[i].line);
        puts(".fi\n.RS");
        put_line("", command->examples[i].doc);
        puts(".RE");
    }
}

static void put_command(const struct command *parent, const struct command *command)
{
    fputs(".SS \"chat2shell ", stdout);
    if (parent)
        printf("%s ", parent->name);
    printf("%s%s%s\"\n", command->name, command->synopsis[0] ? " " : "", command->synopsis);
    put_line("", command->summary);
    if (command->details) {
        puts(".PP");
        put_line("", command->details);
    }
    put_examples(command);
    for (size_t i = 0; i < command->option_count; i++)
        put_option(&command->options[i]);
    for (size_t i = 0; i < command->child_count; i++)
        put_command(command, &command->children[i]);
}

// From the catalogue that clients see: title and arguments, those in brackets may be left out.
static void put_tool(const json_t *entry)
{
    const json_t *schema = json_object_get(entry, "inputSchema"), *required = json_object_get(schema, "required");
    const char *name;
    json_t *ignored;
    printf(".TP\n.B %s\n", json_get_text(entry, "name"));
    put(json_get_text(entry, "title"));
    putchar(json_object_size(json_object_get(schema, "properties")) ? ':' : '.');
    json_object_foreach(json_object_get(schema, "properties"), name, ignored)
    {
        bool is_required = false;
        for (size_t i = 0; i < json_array_size(required); i++)
            is_required |= strcmp(json_string_value(json_array_get(required, i)), name) == 0;
        printf(is_required ? " \\fI%s\\fR" : " [\\fI%s\\fR]", name);
    }
    putchar('\n');
}

static void put_tools(void)
{
    struct catalogue catalogue = {0};
    if (catalogue_load(&catalogue, NULL) < 0)
        return; // tests see to it that the embedded files are whole
    puts(".SH TOOLS\nWhat MCP clients can call; \\fBchat2shell mcp tools \\-o json\\fR shows everything about them.");
    for (size_t i = 0; i < tool_count; i++)
        put_tool(json_object_get(catalogue.entries, tools[i].name));
    catalogue_free(&catalogue);
}

static void put_terms(void)
{
    puts(".SH EXIT STATUS");
    for (size_t i = 0; i < exit_code_count; i++) {
        printf(".TP\n.B %s\n", exit_codes[i].code);
        put_line("", exit_codes[i].doc);
    }
    puts(".SH ENVIRONMENT");
    const struct config_variable *variable;
    for (size_t i = 0; (variable = config_variable(i)) != NULL; i++) {
        printf(".TP\n.B %s\n", variable->name);
        put(variable->doc);
        fputs(" Default: ", stdout);
        put(variable->fallback[0] ? variable->fallback : "empty");
        putchar('\n');
    }
}

void man_print(void)
{
    puts(".TH CHAT2SHELL 1 \"\" \"chat2shell " CHAT2SHELL_VERSION "\"\n"
         ".SH NAME\nchat2shell \\- a full shell for a chat assistant, in disposable sandboxes\n"
         ".SH SYNOPSIS\n.B chat2shell\n.I COMMAND\n[\\fIARGUMENTS\\fR] [\\fIOPTIONS\\fR]\n"
         ".SH DESCRIPTION\n"
         "The daemon (\\fBserve\\fR) and the operator's commands. The commands speak to the daemon over a Unix socket in its state directory.\n"
         ".SH COMMANDS");
    for (size_t i = 0; i < command_count; i++)
        put_command(NULL, commands[i]);
    put_tools();
    put_terms();
}
