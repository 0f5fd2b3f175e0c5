#include "tests/support/support.h"
#include "controller/log.h"
#include "controller/config.h"
#include "controller/base/cleanup.h"
#include "controller/base/memory.h"
#include "controller/base/utf8.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

// Runs fn in a process of its own (the limit on lines is the process's) and returns what it wrote on standard
// error.
static char *logged_by(void (*fn)(void))
{
    FILE *file = tmpfile();
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        dup2(fileno(file), STDERR_FILENO);
        fn();
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    char *text = mem_alloc(1 << 20);
    rewind(file);
    size_t len = fread(text, 1, (1 << 20) - 1, file);
    text[len] = '\0';
    fclose(file);
    return text;
}

static size_t lines_in(const char *text)
{
    size_t lines = 0;
    for (; (text = strchr(text, '\n')); text++)
        lines++;
    return lines;
}

static void log_each_level(void)
{
    unsetenv("JOURNAL_STREAM");
    log_error("sandbox %s: gone", "sbx_a");
    log_warning("careful");
    log_info("plain");
    log_debug("hidden");
    log_set_level(LOG_LEVEL_DEBUG);
    log_debug("shown");
}

static void a_line_has_its_time_and_its_level_and_debug_is_off_until_asked_for(void **state)
{
    (void)state;
    CLEANUP_FREE char *text = logged_by(log_each_level);
    assert_int_equal(lines_in(text), 4);
    assert_int_equal(text[4], '-');
    assert_non_null(strstr(text, "Z error: sandbox sbx_a: gone\n"));
    assert_non_null(strstr(text, "Z warning: careful\n"));
    assert_non_null(strstr(text, "Z plain\n"));
    assert_non_null(strstr(text, "Z debug: shown\n"));
}

static void log_to_journal(void)
{
    setenv("JOURNAL_STREAM", "9:1234", 1);
    log_error("bad");
    log_info("good");
}

static void under_the_journal_a_line_begins_with_its_level_number(void **state)
{
    (void)state;
    CLEANUP_FREE char *text = logged_by(log_to_journal);
    assert_memory_equal(text, "<3>", 3);
    assert_non_null(strstr(text, "Z bad\n<6>"));
}

static void log_hostile_text(void)
{
    log_info("%s", "one\ntwo\x1b[31m\xE2\x80\xAE\xff<3>three");
}

static void hostile_text_stays_one_printable_line(void **state)
{
    (void)state;
    CLEANUP_FREE char *text = logged_by(log_hostile_text);
    assert_int_equal(lines_in(text), 1);
    assert_null(strchr(text, 0x1b));
    assert_non_null(strstr(text, "one\\u000atwo\\u001b[31m\\u202e"));
    assert_true(utf8_is_valid(text, strlen(text)));
}

static void log_a_long_line(void)
{
    CLEANUP_FREE char *text = mem_alloc(100001);
    for (size_t i = 0; i < 99999; i += 3)
        memcpy(text + i, "\xE2\x82\xAC", 3);
    log_info("%s", text);
}

static void a_long_line_is_cut_at_2_kib_between_characters(void **state)
{
    (void)state;
    CLEANUP_FREE char *text = logged_by(log_a_long_line);
    assert_int_equal(lines_in(text), 1);
    assert_in_range(strlen(text), 2040, 2048);
    assert_true(utf8_is_valid(text, strlen(text)));
}

static void log_too_much(void)
{
    for (int i = 0; i < 1000; i++)
        log_info("line %d", i);
}

static void at_most_200_lines_are_written_in_10_seconds(void **state)
{
    (void)state;
    CLEANUP_FREE char *text = logged_by(log_too_much);
    assert_int_equal(lines_in(text), 200);
    assert_non_null(strstr(text, "line 199\n"));
}

static void warn_about_typing_errors(void)
{
    setenv("CHAT2SHELL_DATAROOT", "/secret/value", 1);
    setenv("CHAT2SHELL_PORT", "1", 1);
    setenv("CHAT2SHELL_TEST_LONG", "1", 1);
    config_warn_unknown();
}

static void an_unknown_variable_is_named_without_its_value(void **state)
{
    (void)state;
    CLEANUP_FREE char *text = logged_by(warn_about_typing_errors);
    assert_int_equal(lines_in(text), 1);
    assert_non_null(strstr(text, "warning: CHAT2SHELL_DATAROOT is set"));
    assert_null(strstr(text, "secret"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_line_has_its_time_and_its_level_and_debug_is_off_until_asked_for),
        cmocka_unit_test(under_the_journal_a_line_begins_with_its_level_number),
        cmocka_unit_test(hostile_text_stays_one_printable_line),
        cmocka_unit_test(a_long_line_is_cut_at_2_kib_between_characters),
        cmocka_unit_test(at_most_200_lines_are_written_in_10_seconds),
        cmocka_unit_test(an_unknown_variable_is_named_without_its_value),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
