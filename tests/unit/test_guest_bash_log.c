#include "api/guest/bash_log.h"
#include "controller/base/memory.h"
#include "tests/support/support.h"
#include <stdlib.h>
#include <string.h>

static char byte_at(uint64_t position)
{
    return (char)(position * 131 >> 7 ^ position);
}

static void append(struct bash_log *log, uint64_t from, size_t len)
{
    char *bytes = mem_alloc(len);
    for (size_t i = 0; i < len; i++)
        bytes[i] = byte_at(from + i);
    bash_log_append(log, bytes, len);
    free(bytes);
}

static void assert_next(struct bash_log *log, uint64_t from, size_t len)
{
    char *bytes = mem_alloc(len);
    assert_int_equal(bash_log_peek(log, bytes, len), len);
    for (size_t i = 0; i < len; i++)
        if (bytes[i] != byte_at(from + i))
            fail_msg("byte %zu of the piece at %llu is wrong", i, (unsigned long long)from);
    free(bytes);
    bash_log_consume(log, len);
}

static void bytes_come_out_as_they_went_in_across_memory_and_file(void **state)
{
    (void)state;
    struct bash_log log;
    bash_log_init(&log);
    append(&log, 0, 30000);
    assert_int_equal(log.fd, -1);
    append(&log, 30000, 30000);
    assert_true(log.fd >= 0);
    assert_next(&log, 0, 45000);
    append(&log, 60000, 1000);
    assert_next(&log, 45000, 16000);
    assert_int_equal(bash_log_unread(&log), 0);
    assert_int_equal(log.fd, -1); // given back
    append(&log, 61000, 10);
    assert_next(&log, 61000, 10);
    bash_log_free(&log);
}

static void the_oldest_bytes_go_and_are_counted(void **state)
{
    (void)state;
    struct bash_log log;
    bash_log_init(&log);
    uint64_t written = 0;
    for (size_t piece = 65000; written < BASH_LOG_MAX_BYTES + 5000000; written += piece)
        append(&log, written, piece);
    assert_int_equal(bash_log_unread(&log), BASH_LOG_MAX_BYTES);
    assert_int_equal(bash_log_take_dropped(&log), written - BASH_LOG_MAX_BYTES);
    assert_int_equal(bash_log_take_dropped(&log), 0);
    uint64_t at = written - BASH_LOG_MAX_BYTES;
    for (size_t piece = 1 << 20; at < written; at += piece)
        assert_next(&log, at, piece);
    bash_log_free(&log);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_come_out_as_they_went_in_across_memory_and_file),
        cmocka_unit_test(the_oldest_bytes_go_and_are_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
