#include "controller/base/cleanup.h"
#include "controller/base/frames.h"
#include "controller/base/memory.h"
#include "tests/support/support.h"
#include <string.h>

static void bytes_of_any_number_come_back_from_their_frames_in_order(void **state)
{
    (void)state;
    static const size_t sizes[] = {1, FRAME_MAX_BYTES - 1, FRAME_MAX_BYTES, FRAME_MAX_BYTES + 1, 3 * FRAME_MAX_BYTES};
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
        CLEANUP(buffer_free) struct buffer out = BUFFER_INIT(1 << 20), got = BUFFER_INIT(1 << 20);
        CLEANUP_FREE char *bytes = mem_alloc(sizes[i]);
        for (size_t k = 0; k < sizes[i]; k++)
            bytes[k] = (char)(k * 7 ^ k >> 9);
        assert_int_equal(frame_append(&out, FRAME_DATA, bytes, sizes[i]), 0);
        assert_int_equal(out.len, frame_size(sizes[i]));
        struct frame frame;
        size_t at = 0, size;
        for (; frame_read(out.data + at, out.len - at, &frame, &size, NULL) > 0; at += size) {
            assert_int_equal(frame.type, FRAME_DATA);
            buffer_append(&got, frame.bytes, frame.len);
        }
        assert_int_equal(at, out.len);
        assert_int_equal(got.len, sizes[i]);
        assert_memory_equal(got.data, bytes, sizes[i]);
    }
}

static void a_piece_of_a_frame_is_waited_for_and_nothing_behind_it_is_read(void **state)
{
    (void)state;
    CLEANUP(buffer_free) struct buffer out = BUFFER_INIT(1000);
    struct frame frame;
    size_t size;
    frame_append(&out, FRAME_ERRORS, "words", 5);
    size_t whole = out.len;
    for (size_t len = 0; len < whole; len++) {
        CLEANUP_FREE char *exactly = mem_alloc(len ? len : 1); // what lies behind must not be touched
        memcpy(exactly, out.data, len);
        assert_int_equal(frame_read(exactly, len, &frame, &size, NULL), 0);
    }
    buffer_append(&out, "\xff\xff", 2);
    assert_int_equal(frame_read(out.data, out.len, &frame, &size, NULL), 1);
    assert_int_equal(size, whole);
    assert_memory_equal(frame.bytes, "words", 5);
}

static void types_that_are_not_there_and_lengths_that_no_frame_has_are_refused(void **state)
{
    (void)state;
    static const unsigned char bad[][4] = {
        {FRAME_TYPE_COUNT, 0, 0, 1}, {255, 0, 0, 0},        {FRAME_DATA, 0, 0, 0},   {FRAME_DATA, 1, 0, 1},        {FRAME_DATA, 255, 255, 255},
        {FRAME_END, 0, 0, 1},        {FRAME_RESIZE, 0, 0, 3}, {FRAME_RESIZE, 0, 0, 5}, {FRAME_SIGNAL, 0, 0, 0},      {FRAME_TAKEN, 0, 0, 8},
        {FRAME_EXIT, 0, 0, 2},       {FRAME_FAILED, 0, 0, 1}, {FRAME_FAILED, 0, 0x20, 1},
    };
    struct frame frame;
    size_t size;
    struct error err = ERROR_INIT;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        assert_error(frame_read((const char *)bad[i], 4, &frame, &size, &err), ERROR_INVALID);
    assert_error(frame_read("\x7f", 1, &frame, &size, &err), ERROR_INVALID); // the type alone tells
}

static void numbers_come_back_as_they_were(void **state)
{
    (void)state;
    CLEANUP(buffer_free) struct buffer out = BUFFER_INIT(1000);
    struct frame frame;
    size_t size;
    frame_append_size(&out, 65535, 0);
    assert_int_equal(frame_read(out.data, out.len, &frame, &size, NULL), 1);
    assert_int_equal(frame.type, FRAME_RESIZE);
    assert_int_equal(frame_number(frame.bytes, 2), 65535);
    assert_int_equal(frame_number(frame.bytes + 2, 2), 0);
    buffer_free(&out);
    frame_append_number(&out, FRAME_TAKEN, 0xfffefdfc, 4);
    assert_int_equal(frame_read(out.data, out.len, &frame, &size, NULL), 1);
    assert_int_equal(frame_number(frame.bytes, 4), 0xfffefdfc);
}

static void without_room_for_all_nothing_is_appended(void **state)
{
    (void)state;
    CLEANUP(buffer_free) struct buffer out = BUFFER_INIT(FRAME_MAX_BYTES + 2 * FRAME_HEAD_BYTES);
    CLEANUP_FREE char *bytes = mem_alloc(FRAME_MAX_BYTES + 1);
    assert_int_equal(frame_append(&out, FRAME_DATA, bytes, FRAME_MAX_BYTES + 1), -1);
    assert_int_equal(out.len, 0);
    assert_int_equal(frame_append(&out, FRAME_DATA, bytes, FRAME_MAX_BYTES), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_of_any_number_come_back_from_their_frames_in_order),
        cmocka_unit_test(a_piece_of_a_frame_is_waited_for_and_nothing_behind_it_is_read),
        cmocka_unit_test(types_that_are_not_there_and_lengths_that_no_frame_has_are_refused),
        cmocka_unit_test(numbers_come_back_as_they_were),
        cmocka_unit_test(without_room_for_all_nothing_is_appended),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
