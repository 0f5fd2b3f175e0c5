// What every C test shares: a temporary directory that is removed again, and cmocka with its includes in order.
#pragma once
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdbool.h>
#include "controller/base/error.h"

// How long a test waits for what must come, in milliseconds. Only a guard against hanging: a busy machine is slow.
#define SUPPORT_PATIENCE_MS 120000
// Waits until the condition holds, and whether it came; it is looked at every pause_ms. What must come is asserted:
// assert_true(support_await(5, count == 3)).
#define support_await(pause_ms, condition)                                                                                     \
    ({                                                                                                       \
        bool await_has_come = false;                                                                         \
        int64_t await_end_ms = support_now_ms() + SUPPORT_PATIENCE_MS;                                       \
        while (!(await_has_come = (condition)) && support_now_ms() < await_end_ms)                           \
            support_pause(pause_ms);                                                                         \
        await_has_come;                                                                                      \
    })
int64_t support_now_ms(void);
void support_pause(int ms);

// A fresh private directory under $TMPDIR; the path is owned by the caller.
char *support_make_dir(void);
// Removes it with everything below and frees the path.
void support_remove_dir(char *path);
// Where the programs beside the daemon are (shim, guest, egress): $CHAT2SHELL_BUILD_DIR, else the directory above this test
// program's. The caller's.
char *support_program_dir(void);
// Fails the running test with the error's text unless result is >= 0.
#define assert_ok(expression)                                                                                \
    do {                                                                                                     \
        if ((expression) < 0)                                                                                \
            fail_msg("%s failed: %s (%s)", #expression, err.message, err.hint);                              \
    } while (0)
// The expression must fail with this code, in a sentence.
#define assert_error(expression, expected_code)                                                              \
    do {                                                                                                     \
        assert_true((expression) < 0);                                                                       \
        assert_int_equal(err.code, expected_code);                                                           \
        assert_true(err.message[0] != '\0');                                                                 \
    } while (0)
