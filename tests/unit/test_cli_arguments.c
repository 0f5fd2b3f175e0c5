#include "cli/command.h"
#include "controller/base/memory.h"
#include "tests/support/support.h"
#include <string.h>

#define WORDS_MAX 32

struct parsed {
    struct invocation in;
    struct error err;
    char *words[WORDS_MAX];
    int result;
};

static void parse(struct parsed *parsed, const char *line)
{
    static char copy[1024];
    int count = 0;
    *parsed = (struct parsed){.err = ERROR_INIT};
    assert_true(strlen(line) < sizeof(copy));
    memcpy(copy, line, strlen(line) + 1);
    for (char *rest = copy, *word; (word = strsep(&rest, " ")) != NULL && count < WORDS_MAX - 1;)
        parsed->words[count++] = word;
    parsed->result = invocation_parse(&parsed->in, *line ? count : 0, parsed->words, &parsed->err);
}

static void assert_usage(const char *line, const char *message, const char *hint)
{
    struct parsed parsed;
    parse(&parsed, line);
    if (parsed.result == 0)
        fail_msg("accepted: %s", line);
    assert_int_equal(parsed.err.code, ERROR_USAGE);
    if (!strstr(parsed.err.message, message) || !strstr(parsed.err.hint, hint))
        fail_msg("%s: got '%s' ('%s'), wanted '%s' ('%s')", line, parsed.err.message, parsed.err.hint, message, hint);
    invocation_clear(&parsed.in);
}

static void a_wrong_command_line_is_named_and_a_likely_meaning_told(void **state)
{
    (void)state;
    assert_usage("", "a command is missing", "chat2shell help");
    assert_usage("gett", "there is no command 'gett'", "did you mean `chat2shell get`?");
    assert_usage("xyzzy", "there is no command 'xyzzy'", "chat2shell help");
    assert_usage("approval aprove x", "there is no command 'aprove'", "did you mean `chat2shell approval approve`?");
    assert_usage("approval", "needs a command", "chat2shell approval --help");
    assert_usage("explain", "needs KIND", "chat2shell explain --help");
    assert_usage("export a b c", "does not take the argument 'c'", "chat2shell export --help");
    assert_usage("get x -o jsonpath=", "--output cannot be 'jsonpath='", "");
    assert_usage("get x --ouput=json", "there is no option '--ouput'", "did you mean `--output`?");
    assert_usage("get x -z", "there is no option '-z'", "chat2shell get --help");
    assert_usage("get x -o", "--output needs a value (FORMAT)", "chat2shell get --help");
    assert_usage("get x -o jsn", "--output cannot be 'jsn'", "did you mean `--output json`?");
    assert_usage("get x -o json -o yaml", "--output is given twice", "give it once");
    assert_usage("get x --no-headers=maybe", "--no-headers cannot be 'maybe'", "");
    assert_usage("get x -- y", "takes nothing after --", "chat2shell get --help");
    assert_usage("stop now", "does not take the argument 'now'", "chat2shell stop --help");
}

static void options_of_every_command_stand_before_it_or_behind_it(void **state)
{
    static const char *const lines[] = {"--color=never -q get x", "get --color never x -q", "-q --color never get x", "get x --quiet --color=never"};
    struct parsed parsed;
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
        parse(&parsed, lines[i]);
        assert_int_equal(parsed.result, 0);
        assert_string_equal(parsed.in.command->name, "get");
        assert_string_equal(invocation_option(&parsed.in, "color"), "never");
        assert_true(invocation_switch(&parsed.in, "quiet", false));
        assert_int_equal(parsed.in.argument_count, 1);
        invocation_clear(&parsed.in);
    }
    assert_usage("--output json get x", "there is no option '--output'", "chat2shell help");
    assert_usage("--colr=never get x", "there is no option '--colr'", "did you mean `--color`?");
    assert_usage("--color=pink get x", "--color cannot be 'pink'", "chat2shell --help");
    assert_usage("get x --color", "--color needs a value (WHEN)", "chat2shell get --help");
    assert_usage("-q", "a command is missing", "chat2shell help");
}

static void help_and_version_are_commands_where_none_is_given(void **state)
{
    static const struct {
        const char *line, *command;
        bool is_help;
    } rows[] = {{"--help", "help", false}, {"-h", "help", false}, {"--version", "version", false}, {"--color=never --version", "version", false},
                {"-h get", "get", true},   {"get -h", "get", true}, {"help", "help", false},        {"approval -h", "approval", true}};
    struct parsed parsed;
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        parse(&parsed, rows[i].line);
        assert_int_equal(parsed.result, 0);
        assert_string_equal(parsed.in.command->name, rows[i].command);
        assert_int_equal(parsed.in.is_help_wanted, rows[i].is_help);
        invocation_clear(&parsed.in);
    }
}

static void options_stand_anywhere_and_in_every_usual_form(void **state)
{
    (void)state;
    static const char *const lines[] = {"get -o json x", "get x -ojson", "get x --output json", "get --output=json x", "get x -o=json"};
    for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
        struct parsed parsed;
        parse(&parsed, lines[i]);
        assert_int_equal(parsed.result, 0);
        assert_true(invocation_is_output(&parsed.in, "json"));
        assert_int_equal(parsed.in.argument_count, 1);
        assert_string_equal(parsed.in.arguments[0], "x");
        invocation_clear(&parsed.in);
    }
}

static void switches_and_repeated_options_are_read(void **state)
{
    (void)state;
    struct parsed parsed;
    const char *files[ARGUMENTS_MAX_VALUES];
    parse(&parsed, "delete -yf a --wait=false -f - --filename=b");
    assert_int_equal(parsed.result, 0);
    assert_true(invocation_switch(&parsed.in, "yes", false));
    assert_false(invocation_switch(&parsed.in, "wait", true));
    assert_int_equal(invocation_values(&parsed.in, "filename", files), 3);
    assert_string_equal(files[0], "a");
    assert_string_equal(files[1], "-");
    assert_string_equal(files[2], "b");
    invocation_clear(&parsed.in);
}

static void what_follows_two_dashes_is_left_alone(void **state)
{
    (void)state;
    struct parsed parsed;
    parse(&parsed, "exec dev --cwd /x -- ls -l --output --help");
    assert_int_equal(parsed.result, 0);
    assert_string_equal(parsed.in.arguments[0], "dev");
    assert_string_equal(parsed.in.rest[0], "ls");
    assert_string_equal(parsed.in.rest[3], "--help");
    assert_false(invocation_switch(&parsed.in, "help", false));
    invocation_clear(&parsed.in);
}

static void help_needs_no_arguments(void **state)
{
    (void)state;
    static const char *const lines[] = {"--help", "-h", "get --help", "approval --help", "approval approve -h", "exec --help"};
    for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
        struct parsed parsed;
        parse(&parsed, lines[i]);
        assert_int_equal(parsed.result, 0);
        invocation_clear(&parsed.in);
    }
}

static void check_row(const struct command *command, bool is_child)
{
    assert_true(command->name && command->summary && command->synopsis);
    assert_true(command->run || command->child_count); // both: what it does without a sub-command
    for (size_t i = 0; i < command->option_count; i++) {
        const struct option_row *row = &command->options[i];
        assert_true(row->name && row->doc && row->doc[0]);
        assert_string_not_equal(row->name, "help");
        for (size_t other = 0; other < i; other++) {
            assert_string_not_equal(row->name, command->options[other].name);
            assert_true(!row->letter || row->letter != command->options[other].letter);
        }
    }
    for (size_t i = 0; i < command->example_count; i++)
        assert_true(command->examples[i].line[0] && command->examples[i].doc[0]);
    for (size_t i = 0; !is_child && i < command->child_count; i++)
        check_row(&command->children[i], true);
}

static void every_row_of_the_command_table_is_documented_and_unambiguous(void **state)
{
    (void)state;
    for (size_t i = 0; i < command_count; i++) {
        check_row(commands[i], false);
        for (size_t other = 0; other < i; other++)
            assert_string_not_equal(commands[i]->name, commands[other]->name);
    }
}

static void every_exit_code_of_an_error_is_documented(void **state)
{
    (void)state;
    for (int code = 0; code < ERROR_CODE_COUNT; code++) {
        char text[16];
        bool is_there = false;
        snprintf(text, sizeof(text), "%d", error_meaning((enum error_code)code)->exit_code);
        for (size_t i = 0; i < exit_code_count; i++)
            is_there |= strcmp(exit_codes[i].code, text) == 0;
        assert_true(is_there);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_wrong_command_line_is_named_and_a_likely_meaning_told),
        cmocka_unit_test(options_of_every_command_stand_before_it_or_behind_it),
        cmocka_unit_test(help_and_version_are_commands_where_none_is_given),
        cmocka_unit_test(options_stand_anywhere_and_in_every_usual_form),
        cmocka_unit_test(switches_and_repeated_options_are_read),
        cmocka_unit_test(what_follows_two_dashes_is_left_alone),
        cmocka_unit_test(help_needs_no_arguments),
        cmocka_unit_test(every_row_of_the_command_table_is_documented_and_unambiguous),
        cmocka_unit_test(every_exit_code_of_an_error_is_documented),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
