#include "cli/command.h"
#include "cli/printers/print.h"
#include "cli/terminal.h"
#include "controller/base/memory.h"
#include "controller/record.h"
#include "tests/support/support.h"
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#define OUTPUT_MAX_BYTES (64 * 1024)

static void colours_are_wanted_on_a_terminal_unless_somebody_says_no(void **state)
{
    static const struct {
        enum colour_choice choice;
        bool is_terminal;
        const char *no_color, *term;
        bool wanted;
    } rows[] = {
        {COLOUR_AUTO, true, NULL, "xterm", true},    {COLOUR_AUTO, false, NULL, "xterm", false},  {COLOUR_AUTO, true, "1", "xterm", false},
        {COLOUR_AUTO, true, "", "xterm", true},      {COLOUR_AUTO, true, "0", "xterm", false},    {COLOUR_AUTO, true, NULL, "dumb", false},
        {COLOUR_AUTO, true, NULL, NULL, false},      {COLOUR_AUTO, true, NULL, "", false},        {COLOUR_ALWAYS, false, "1", "dumb", true},
        {COLOUR_ALWAYS, true, NULL, "xterm", true},  {COLOUR_NEVER, true, NULL, "xterm", false},  {COLOUR_NEVER, false, NULL, NULL, false},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (terminal_wants_colour(rows[i].choice, rows[i].is_terminal, rows[i].no_color, rows[i].term) != rows[i].wanted)
            fail_msg("row %zu", i);
}

static void a_style_prints_nothing_where_there_are_no_colours(void **state)
{
    (void)state;
    terminal_choose("never", false);
    for (int style = 0; style < STYLE_COUNT; style++) {
        assert_string_equal(style_on(stdout, (enum style)style), "");
        assert_string_equal(style_off(stdout, (enum style)style), "");
    }
    terminal_choose("always", false);
    for (int style = STYLE_PLAIN + 1; style < STYLE_COUNT; style++) {
        assert_int_equal(style_on(stdout, (enum style)style)[0], '\033');
        assert_string_equal(style_off(stdout, (enum style)style), STYLE_END);
    }
    assert_string_equal(style_on(stdout, STYLE_PLAIN), "");
    assert_string_equal(style_off(stdout, STYLE_PLAIN), "");
    terminal_choose(NULL, false);
}

// What `function` writes to a stream. The caller owns it.
static char *captured(FILE *stream, void (*function)(void *), void *arg)
{
    CLEANUP(buffer_free) struct buffer out = BUFFER_INIT(OUTPUT_MAX_BYTES);
    int ends[2], kept = dup(fileno(stream));
    assert_return_code(pipe(ends), 0);
    fflush(stream);
    assert_return_code(dup2(ends[1], fileno(stream)), 0);
    function(arg);
    fflush(stream);
    assert_return_code(dup2(kept, fileno(stream)), 0);
    close(kept);
    close(ends[1]);
    ssize_t n = read(ends[0], buffer_reserve(&out, OUTPUT_MAX_BYTES - 1), OUTPUT_MAX_BYTES - 1);
    assert_return_code(n, 0);
    out.len = (size_t)n;
    close(ends[0]);
    return buffer_take_string(&out);
}

static void print_table(void *arg)
{
    text_table_print(arg, true);
}

static void a_table_has_the_same_words_with_colours_and_without(void **state)
{
    CLEANUP(text_table_free) struct text_table table = {0};
    (void)state;
    text_table_add_row(&table, (const char *[]){"NAME", "PHASE", "PATH"}, 3);
    text_table_add_row(&table, (const char *[]){"a", "running", "/x"}, 3);
    text_table_add_row(&table, (const char *[]){"running", "failed", "\033[2J"}, 3);
    terminal_choose("never", false);
    CLEANUP_FREE char *plain = captured(stdout, print_table, &table);
    terminal_choose("always", false);
    CLEANUP_FREE char *coloured = captured(stdout, print_table, &table);
    terminal_choose(NULL, false);
    CLEANUP_FREE char *in_a_pipe = captured(stdout, print_table, &table);
    assert_string_equal(plain, "NAME      PHASE     PATH\na         running   /x\nrunning   failed    \\u001b[2J\n");
    assert_string_equal(in_a_pipe, plain);
    assert_string_equal(coloured, "\033[1mNAME\033[0m      \033[1mPHASE\033[0m     \033[1mPATH\033[0m\n"
                                  "a         \033[32mrunning\033[0m   /x\nrunning   \033[31mfailed\033[0m    \\u001b[2J\n");
}

static void say(void *arg)
{
    (void)arg;
    terminal_note("waiting for %s", "a\033b");
    terminal_confirm("%s deleted", "a\033b");
}

static void notes_and_confirmations_are_not_said_when_it_is_to_be_quiet(void **state)
{
    (void)state;
    terminal_choose(NULL, false);
    CLEANUP_FREE char *note = captured(stderr, say, NULL), *confirmation = captured(stdout, say, NULL);
    assert_string_equal(note, "waiting for a\\u001bb\n");
    assert_string_equal(confirmation, "a\\u001bb deleted\n");
    terminal_choose(NULL, true);
    CLEANUP_FREE char *no_note = captured(stderr, say, NULL), *no_confirmation = captured(stdout, say, NULL);
    assert_string_equal(no_note, "");
    assert_string_equal(no_confirmation, "");
    terminal_choose(NULL, false);
}

static void warn_twice(void *arg)
{
    terminal_warn(arg);
    terminal_warn(arg);
}

static void a_warning_is_told_once_in_a_row_and_not_when_it_is_to_be_quiet(void **state)
{
    (void)state;
    terminal_choose(NULL, true);
    CLEANUP_FREE char *quiet = captured(stderr, warn_twice, "a\033b");
    assert_string_equal(quiet, "");
    terminal_choose("always", false);
    CLEANUP_FREE char *coloured = captured(stderr, warn_twice, "a\033b");
    assert_string_equal(coloured, "\033[33mwarning:\033[0m a\\u001bb\n");
    terminal_choose(NULL, false);
    CLEANUP_FREE char *plain = captured(stderr, warn_twice, "another");
    assert_string_equal(plain, "warning: another\n");
}

static void *warn_often(void *arg)
{
    for (int i = 0; i < 100; i++)
        terminal_warn(arg);
    return NULL;
}

static void warn_from_two_threads(void *arg)
{
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, warn_often, arg), 0);
    warn_often(arg);
    pthread_join(thread, NULL);
}

static void threads_that_warn_of_the_same_say_it_once(void **state)
{
    (void)state;
    terminal_choose(NULL, false);
    CLEANUP_FREE char *said = captured(stderr, warn_from_two_threads, "of both");
    assert_string_equal(said, "warning: of both\n");
}

static void every_phase_that_is_no_plain_word_has_its_style(void **state)
{
    static const struct {
        const char *word;
        enum style style;
    } rows[] = {{"running", STYLE_GOOD},  {"active", STYLE_GOOD},     {"outside", STYLE_WARN}, {"pending", STYLE_WARN},   {"failed", STYLE_BAD},
                {"ended", STYLE_FAINT},   {"removed", STYLE_FAINT},   {"expired", STYLE_FAINT}, {"exhausted", STYLE_FAINT}, {"no phase", STYLE_PLAIN}};
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (style_of_word(rows[i].word) != rows[i].style)
            fail_msg("%s", rows[i].word);
    assert_int_equal(style_of_word(NULL), STYLE_PLAIN);
}

static void ask(void *arg)
{
    *(bool *)arg = terminal_agrees("Delete %d\033[2J?", 2);
}

static void only_a_yes_is_one(void **state)
{
    static const struct {
        const char *answer;
        bool is_yes;
    } rows[] = {{"y\n", true}, {"Yes\n", true}, {"n\n", false}, {"\n", false}, {"", false}, {" y\n", false}};
    FILE *before = stdin;
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        bool is_yes = !rows[i].is_yes;
        stdin = tmpfile();
        assert_non_null(stdin);
        fputs(rows[i].answer, stdin);
        rewind(stdin);
        CLEANUP_FREE char *asked = captured(stderr, ask, &is_yes);
        assert_string_equal(asked, "Delete 2\\u001b[2J? [y/N] ");
        assert_int_equal(is_yes, rows[i].is_yes);
        fclose(stdin);
    }
    stdin = before;
}

static void the_width_of_what_is_no_terminal_is_not_known(void **state)
{
    FILE *file = tmpfile();
    (void)state;
    assert_non_null(file);
    assert_false(terminal_is_there(file));
    assert_int_equal(terminal_width(file), 0);
    fclose(file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(colours_are_wanted_on_a_terminal_unless_somebody_says_no),
        cmocka_unit_test(a_style_prints_nothing_where_there_are_no_colours),
        cmocka_unit_test(a_table_has_the_same_words_with_colours_and_without),
        cmocka_unit_test(notes_and_confirmations_are_not_said_when_it_is_to_be_quiet),
        cmocka_unit_test(a_warning_is_told_once_in_a_row_and_not_when_it_is_to_be_quiet),
        cmocka_unit_test(threads_that_warn_of_the_same_say_it_once),
        cmocka_unit_test(every_phase_that_is_no_plain_word_has_its_style),
        cmocka_unit_test(only_a_yes_is_one),
        cmocka_unit_test(the_width_of_what_is_no_terminal_is_not_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
