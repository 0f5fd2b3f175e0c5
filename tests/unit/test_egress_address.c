#include "tests/support/support.h"
#include "controller/base/cleanup.h"
#include "reconcilers/egress/address.h"
#include "reconcilers/egress/hosts.h"
#include "reconcilers/egress/name.h"
#include "reconcilers/egress/route.h"
#include <string.h>
#include <unistd.h>

static const struct {
    const char *text;
    const char *word; // NULL: permitted
} addresses[] = {
    {"0.0.0.0", "unspecified"},       {"0.1.2.3", "unspecified"},
    {"10.0.0.1", "private"},          {"10.255.255.255", "private"},
    {"9.255.255.255", NULL},          {"11.0.0.0", NULL},
    {"100.63.255.255", NULL},         {"100.64.0.0", "private"},
    {"100.100.100.200", "private"},   {"100.127.255.255", "private"},
    {"100.128.0.0", NULL},            {"127.0.0.1", "loopback"},
    {"127.255.255.254", "loopback"},  {"168.63.129.16", "metadata"},
    {"169.254.169.254", "link-local"}, {"169.253.255.255", NULL},
    {"172.15.255.255", NULL},         {"172.16.0.1", "private"},
    {"172.31.255.255", "private"},    {"172.32.0.0", NULL},
    {"192.0.0.192", "reserved"},      {"192.0.1.1", NULL},
    {"192.0.2.1", NULL},              {"198.51.100.7", NULL},
    {"203.0.113.80", NULL},           {"192.167.255.255", NULL},
    {"192.168.0.1", "private"},       {"192.169.0.0", NULL},
    {"223.255.255.255", NULL},        {"224.0.0.1", "multicast"},
    {"239.255.255.255", "multicast"}, {"240.0.0.1", "reserved"},
    {"255.255.255.255", "broadcast"}, {"8.8.8.8", NULL},
    {"::", "unspecified"},            {"::1", "loopback"},
    {"::7f00:1", "loopback"},         {"::ffff:127.0.0.1", "loopback"},
    {"::ffff:10.1.2.3", "private"},   {"::ffff:8.8.8.8", NULL},
    {"::ffff:0:192.168.1.1", "private"}, {"64:ff9b::a9fe:a9fe", "link-local"},
    {"64:ff9b::8.8.8.8", NULL},       {"64:ff9b:1::8.8.8.8", "private"},
    {"2002:7f00:1::", "loopback"},    {"2002:c0a8:101::1", "private"},
    {"2002:808:808::1", NULL},        {"2001:0:1::1", "reserved"},
    {"2001:db8::1", NULL},            {"2606:4700::1111", NULL},
    {"fc00::1", "private"},           {"fd00:ec2::254", "private"},
    {"fe80::1", "link-local"},        {"febf::1", "link-local"},
    {"fec0::1", "private"},           {"ff02::1", "multicast"},
};

static void only_public_addresses_are_permitted(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(addresses); i++) {
        struct address address;
        assert_true(address_parse(addresses[i].text, &address));
        const struct address_refusal *refusal = address_refusal(&address);
        if (!addresses[i].word != !refusal || (refusal && strcmp(refusal->word, addresses[i].word) != 0))
            fail_msg("%s is judged %s", addresses[i].text, refusal ? refusal->word : "permitted");
    }
}

static void half_written_addresses_are_neither_addresses_nor_names(void **state)
{
    (void)state;
    static const char *const texts[] = {"127.1", "2130706433", "0x7f000001", "0x7f.0.0.1", "017700000001",
                                        "127.0.0.01.", "1.2.3.4.5", "1.2.3", "foo.0x7f", "1.2.3.256"};
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        struct address address;
        char name[NAME_SIZE];
        assert_false(address_parse(texts[i], &address));
        if (name_normalize(texts[i], strlen(texts[i]), name))
            fail_msg("%s is taken for the name %s", texts[i], name);
    }
}

static void mapped_addresses_become_what_they_map(void **state)
{
    (void)state;
    struct address address;
    char text[ADDRESS_TEXT_SIZE];
    assert_true(address_parse("::ffff:192.0.2.7", &address));
    address = address_normalize(&address);
    address_format(&address, text);
    assert_string_equal(text, "192.0.2.7");
    assert_true(address_parse("2001:db8::1", &address));
    address = address_normalize(&address);
    assert_int_equal(address.family, AF_INET6);
}

static const struct {
    const char *text, *canonical; // NULL: refused
} names[] = {
    {"Example.COM", "example.com"}, {"example.com.", "example.com"},     {"a", "a"},
    {"_dmarc.a-b.c", "_dmarc.a-b.c"}, {"xn--bcher-kva.de", "xn--bcher-kva.de"}, {"xn--openrouter-.ai", "openrouter.ai"},
    {"XN--OPENROUTER-.AI.", "openrouter.ai"}, {"1.2.3.4.in-addr.arpa", "1.2.3.4.in-addr.arpa"},
    {"", NULL}, {".", NULL}, {"..", NULL}, {"a..b", NULL}, {".a", NULL}, {"a..", NULL}, {"a b", NULL},
    {"a%2eb", NULL}, {"b\xC3\xBC" "cher.de", NULL}, {"a/b", NULL}, {"a\\b", NULL}, {"user@host", NULL},
    {"0123456789012345678901234567890123456789012345678901234567890123.de", NULL},
};

static void one_name_has_one_spelling(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        char name[NAME_SIZE] = "";
        bool is_name = name_normalize(names[i].text, strlen(names[i].text), name);
        if (is_name != (names[i].canonical != NULL) || (is_name && strcmp(name, names[i].canonical) != 0))
            fail_msg("'%s' became '%s'", names[i].text, name);
    }
}

static void names_longer_than_dns_permits_are_refused(void **state)
{
    (void)state;
    char text[300], name[NAME_SIZE];
    for (size_t i = 0; i < sizeof(text); i++)
        text[i] = i % 50 == 49 ? '.' : 'a';
    assert_true(name_normalize(text, 253, name));
    assert_int_equal(strlen(name), 253);
    assert_false(name_normalize(text, 254, name));
    assert_false(name_normalize("a\0b", 3, name));
}

static void a_denied_name_denies_itself_and_all_below_and_nothing_else(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    struct name_list list = {0};
    assert_ok(name_list_add(&list, "OpenRouter.ai.", &err));
    assert_ok(name_list_add(&list, "example.com", &err));
    assert_string_equal(name_list_match(&list, "openrouter.ai"), "openrouter.ai");
    assert_non_null(name_list_match(&list, "api.openrouter.ai"));
    assert_non_null(name_list_match(&list, "a.b.c.openrouter.ai"));
    assert_null(name_list_match(&list, "notopenrouter.ai"));
    assert_null(name_list_match(&list, "openrouter.ai.evil.org"));
    assert_null(name_list_match(&list, "ai"));
    assert_null(name_list_match(&list, ""));
    assert_error(name_list_add(&list, "b\xC3\xBC" "cher.de", &err), ERROR_USAGE);
    name_list_free(&list);
}

static const struct {
    const char *text;
    uint16_t default_port;
    const char *formatted; // NULL: refused
} endpoints[] = {
    {"example.com:443", 0, "example.com:443"}, {"example.com", 80, "example.com:80"},
    {"EXAMPLE.com.:8080", 80, "example.com:8080"}, {"1.2.3.4:65535", 0, "1.2.3.4:65535"},
    {"[2001:DB8::1]:22", 0, "[2001:db8::1]:22"}, {"[2001:db8::1]", 80, "[2001:db8::1]:80"},
    {"[::ffff:1.2.3.4]:80", 0, "1.2.3.4:80"},
    {"example.com", 0, NULL}, {"example.com:", 80, NULL}, {"example.com:0", 80, NULL}, {"example.com:65536", 80, NULL},
    {"example.com:00080", 80, "example.com:80"}, {"example.com:000080", 80, NULL}, {"example.com:+80", 80, NULL},
    {"example.com: 80", 80, NULL}, {"2001:db8::1", 80, NULL}, {"[1.2.3.4]:80", 0, NULL}, {"[example.com]:80", 0, NULL},
    {"[::1", 80, NULL}, {"[]:80", 80, NULL}, {"[fe80::1%eth0]:80", 80, NULL}, {"user@example.com:80", 80, NULL},
    {"user:pw@example.com:80", 80, NULL}, {":80", 80, NULL}, {"", 80, NULL}, {"a:80:80", 80, NULL}, {"[::1]x:80", 80, NULL},
};

static void endpoints_are_read_in_one_way_only(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(endpoints); i++) {
        struct endpoint endpoint;
        const char *problem = NULL;
        char text[ENDPOINT_TEXT_SIZE] = "";
        int result = endpoint_parse(endpoints[i].text, strlen(endpoints[i].text), endpoints[i].default_port, &endpoint,
                                    &problem);
        if (result == 0)
            endpoint_format(&endpoint, text);
        if ((result == 0) != (endpoints[i].formatted != NULL) || (result == 0 && strcmp(text, endpoints[i].formatted)))
            fail_msg("'%s' became '%s'", endpoints[i].text, text);
        assert_true((result < 0) == (problem != NULL));
    }
}

static void hosts_lines_give_names_and_nonsense_is_skipped(void **state)
{
    (void)state;
    struct hosts hosts;
    hosts_parse("# comment\n127.0.0.1 localhost\n\n192.0.2.1\tOne one.example # tail\nnonsense here\n"
                "fe80::1%lo0 zone\n2001:db8::1 six\n192.0.2.9",
                &hosts);
    assert_int_equal(hosts.count, 4);
    assert_string_equal(hosts.entries[1].name, "one");
    assert_string_equal(hosts.entries[2].name, "one.example");
    assert_int_equal(hosts.entries[3].address.family, AF_INET6);
    hosts_free(&hosts);
}

static void the_kernel_knows_its_own_addresses(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    struct address address;
    int fd = route_open(&err);
    assert_ok(fd);
    assert_true(address_parse("127.0.0.1", &address));
    assert_int_equal(route_ask(fd, &address), ROUTE_OWN);
    assert_true(address_parse("127.99.1.2", &address));
    assert_int_equal(route_ask(fd, &address), ROUTE_OWN);
    assert_true(address_parse("198.51.100.77", &address));
    assert_int_not_equal(route_ask(fd, &address), ROUTE_OWN);
    close(fd);
    assert_int_equal(route_ask(fd, &address), ROUTE_UNKNOWN);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_public_addresses_are_permitted),
        cmocka_unit_test(half_written_addresses_are_neither_addresses_nor_names),
        cmocka_unit_test(mapped_addresses_become_what_they_map),
        cmocka_unit_test(one_name_has_one_spelling),
        cmocka_unit_test(names_longer_than_dns_permits_are_refused),
        cmocka_unit_test(a_denied_name_denies_itself_and_all_below_and_nothing_else),
        cmocka_unit_test(endpoints_are_read_in_one_way_only),
        cmocka_unit_test(hosts_lines_give_names_and_nonsense_is_skipped),
        cmocka_unit_test(the_kernel_knows_its_own_addresses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
