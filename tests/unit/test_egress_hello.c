#include "tests/support/support.h"
#include "controller/base/buffer.h"
#include "controller/base/cleanup.h"
#include "controller/base/random.h"
#include "controller/base/time.h"
#include "reconcilers/egress/hello.h"
#include <stdlib.h>
#include <string.h>

// What goes into a ClientHello that a test builds.
struct recipe {
    const char *name;       // NULL: no server_name extension
    const char *second;     // a second entry in its list
    bool with_encrypted;    // an ECH extension
    bool with_duplicate;    // server_name twice
    bool with_trailing;     // a byte behind the extensions
    size_t record_bytes;    // 0: one record; else fragments of this size
};

static void put_number(struct buffer *to, size_t value, int width)
{
    while (width-- > 0)
        buffer_append_char(to, (char)(value >> (8 * width)));
}

static void put_vector(struct buffer *to, struct buffer *body, int width)
{
    put_number(to, body->len, width);
    buffer_append(to, buffer_text(body), body->len);
    buffer_free(body);
}

static void put_server_name(struct buffer *to, const struct recipe *recipe)
{
    struct buffer list = BUFFER_INIT(65536), extension = BUFFER_INIT(65536);
    const char *const names[] = {recipe->name, recipe->second};
    for (size_t i = 0; i < 2; i++) {
        if (!names[i])
            continue;
        put_number(&list, 0, 1);
        put_number(&list, strlen(names[i]), 2);
        buffer_append_text(&list, names[i]);
    }
    put_vector(&extension, &list, 2);
    put_number(to, 0, 2);
    put_vector(to, &extension, 2);
}

static void put_body(struct buffer *to, const struct recipe *recipe)
{
    struct buffer extensions = BUFFER_INIT(65536);
    put_number(to, 0x0303, 2);
    for (int i = 0; i < 32; i++)
        buffer_append_char(to, (char)i);
    put_number(to, 0, 1);                           // no session
    put_number(to, 2, 2), put_number(to, 0x1301, 2); // one cipher
    put_number(to, 1, 1), put_number(to, 0, 1);      // no compression
    put_number(&extensions, 0x002b, 2), put_number(&extensions, 3, 2), put_number(&extensions, 0x020304, 3);
    for (int i = 0; recipe->name && i <= recipe->with_duplicate; i++)
        put_server_name(&extensions, recipe);
    if (recipe->with_encrypted)
        put_number(&extensions, 0xfe0d, 2), put_number(&extensions, 1, 2), put_number(&extensions, 1, 1);
    put_vector(to, &extensions, 2);
    if (recipe->with_trailing)
        put_number(to, 0, 1);
}

static struct buffer make_hello(const struct recipe *recipe)
{
    struct buffer body = BUFFER_INIT(65536), message = BUFFER_INIT(65536), stream = BUFFER_INIT(1 << 20);
    put_body(&body, recipe);
    put_number(&message, 1, 1);
    put_vector(&message, &body, 3);
    size_t step = recipe->record_bytes ? recipe->record_bytes : message.len;
    for (size_t at = 0; at < message.len; at += step) {
        size_t len = message.len - at < step ? message.len - at : step;
        put_number(&stream, 0x160301, 3);
        put_number(&stream, len, 2);
        buffer_append(&stream, message.data + at, len);
    }
    buffer_free(&message);
    return stream;
}

static struct hello parse(const struct buffer *stream)
{
    return hello_parse((const unsigned char *)stream->data, stream->len);
}

static const struct {
    struct recipe recipe;
    enum hello_kind kind;
    const char *name;
    bool is_encrypted;
} hellos[] = {
    {{.name = "Example.COM"}, HELLO_TLS, "example.com", false},
    {{.name = "example.com."}, HELLO_TLS, "example.com", false},
    {{.name = NULL}, HELLO_TLS, "", false},
    {{.name = "example.com", .record_bytes = 1}, HELLO_TLS, "example.com", false},
    {{.name = "example.com", .record_bytes = 37}, HELLO_TLS, "example.com", false},
    {{.name = "example.com", .with_encrypted = true}, HELLO_TLS, "example.com", true},
    {{.name = ""}, HELLO_BROKEN, "", false},
    {{.name = "a b"}, HELLO_BROKEN, "", false},
    {{.name = "1.2.3.4"}, HELLO_BROKEN, "", false},
    {{.name = "b\xC3\xBC" "cher.de"}, HELLO_BROKEN, "", false},
    {{.name = "example.com", .second = "openrouter.ai"}, HELLO_BROKEN, "example.com", false},
    {{.name = "example.com", .with_duplicate = true}, HELLO_BROKEN, "example.com", false},
    {{.name = "example.com", .with_trailing = true}, HELLO_BROKEN, "", false},
};

static void the_server_name_is_read_from_a_well_formed_hello_only(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(hellos); i++) {
        CLEANUP(buffer_free) struct buffer stream = make_hello(&hellos[i].recipe);
        struct hello hello = parse(&stream);
        if (hello.kind != hellos[i].kind)
            fail_msg("hello %zu is of kind %d", i, hello.kind);
        if (hello.kind != HELLO_TLS)
            continue;
        assert_string_equal(hello.name, hellos[i].name);
        assert_int_equal(hello.has_encrypted_hello, hellos[i].is_encrypted);
    }
}

static void every_proper_beginning_of_a_hello_is_incomplete(void **state)
{
    (void)state;
    for (size_t record = 0; record < 60; record += 13) {
        CLEANUP(buffer_free) struct buffer stream = make_hello(&(struct recipe){.name = "example.com", .record_bytes = record});
        for (size_t len = 0; len < stream.len; len++) {
            unsigned char *exact = malloc(len ? len : 1);
            memcpy(exact, stream.data, len);
            if (hello_parse(exact, len).kind != HELLO_INCOMPLETE)
                fail_msg("%zu of %zu bytes decide", len, stream.len);
            free(exact);
        }
    }
}

static void bytes_behind_the_hello_in_its_records_are_refused(void **state)
{
    (void)state;
    CLEANUP(buffer_free) struct buffer stream = make_hello(&(struct recipe){.name = "example.com"});
    buffer_append(&stream, "\x16\x03\x03\x00\x01\x01", 6); // a second record while the first is complete is not looked at
    assert_int_equal(parse(&stream).kind, HELLO_TLS);
    stream.len -= 6;
    stream.data[4]++; // the record is longer than the message
    buffer_append(&stream, "\x01", 1);
    assert_int_equal(parse(&stream).kind, HELLO_BROKEN);
}

static const struct {
    const char *bytes;
    size_t len;
    enum hello_kind kind;
} beginnings[] = {
    {"", 0, HELLO_INCOMPLETE},
    {"S", 1, HELLO_NOT_TLS},                                // SSH-2.0-…
    {"GET / HTTP/1.1\r\n", 16, HELLO_NOT_TLS},
    {"\x16", 1, HELLO_INCOMPLETE},
    {"\x16\x44", 2, HELLO_NOT_TLS},
    {"\x16\x02\x01\x00\x05", 5, HELLO_BROKEN},              // a version some servers overlook
    {"\x16\x03\x01\x00\x00", 5, HELLO_BROKEN},              // an empty record
    {"\x16\x03\x01\x40\x01", 5, HELLO_BROKEN},              // a record above 2^14
    {"\x16\x03\x01\x00\x04\x02\x00\x00\x00", 9, HELLO_BROKEN}, // a ServerHello
    {"\x16\x03\x01\x00\x04\x01\xff\xff\xff", 9, HELLO_BROKEN}, // 16 MiB announced
    {"\x15\x03\x01\x00\x02\x01\x5a", 7, HELLO_BROKEN},      // an alert first
    {"\x14\x03\x03\x00\x01\x01", 6, HELLO_BROKEN},
    {"\x17\x03\x03\x00\x01\x01", 6, HELLO_BROKEN},
    {"\x80", 1, HELLO_INCOMPLETE},
    {"\x80\x2e\x01\x03\x01", 5, HELLO_BROKEN},              // SSL 2.0 framing
    {"\x80\x2e\x07\x03\x01", 5, HELLO_NOT_TLS},
};

static void what_only_looks_like_another_protocol_is_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(beginnings); i++) {
        struct hello hello = hello_parse((const unsigned char *)beginnings[i].bytes, beginnings[i].len);
        if (hello.kind != beginnings[i].kind)
            fail_msg("beginning %zu is of kind %d", i, hello.kind);
    }
}

static void no_mutation_of_a_hello_crashes(void **state)
{
    (void)state;
    int64_t end = boot_time_now().ms + 700;
    while (boot_time_now().ms < end) {
        struct recipe recipe = hellos[random_below(ARRAY_LEN(hellos))].recipe;
        recipe.record_bytes = random_below(3) ? 0 : 1 + random_below(64);
        struct buffer stream = make_hello(&recipe);
        size_t len = random_below(4) ? stream.len : random_below((uint32_t)stream.len);
        unsigned char *exact = malloc(len ? len : 1);
        memcpy(exact, stream.data, len);
        for (unsigned i = random_below(5); len && i > 0; i--)
            exact[random_below((uint32_t)len)] = (unsigned char)random_below(256);
        struct hello hello = hello_parse(exact, len);
        assert_true(strlen(hello.name) < NAME_SIZE);
        free(exact);
        buffer_free(&stream);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_server_name_is_read_from_a_well_formed_hello_only),
        cmocka_unit_test(every_proper_beginning_of_a_hello_is_incomplete),
        cmocka_unit_test(bytes_behind_the_hello_in_its_records_are_refused),
        cmocka_unit_test(what_only_looks_like_another_protocol_is_refused),
        cmocka_unit_test(no_mutation_of_a_hello_crashes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
