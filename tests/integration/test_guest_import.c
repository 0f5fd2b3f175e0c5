// import_file of the real chat2shell-guest: with the real curl against a server on loopback, and with
// programs in the place of curl and getent that show what they were asked.
#include "controller/base/buffer.h"
#include "controller/base/fs.h"
#include "controller/base/memory.h"
#include "tests/support/guest_rig.h"
#include "tests/support/plain_http.h"
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PNG "\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\1\0\0\0\1\x08\2\0\0\0"
#define PNG_LEN (sizeof(PNG) - 1)
#define OK_HEAD "HTTP/1.1 200 OK\r\nConnection: close"
#define REDIRECT(to) "HTTP/1.1 302 Found\r\nConnection: close\r\nContent-Length: 0\r\nLocation: " to

static const struct plain_http_answer answers[] = {
    {"/png", OK_HEAD "\r\nContent-Type: image/png; charset=binary", PNG, PNG_LEN, 0},
    {"/lie", OK_HEAD "\r\nContent-Type: image/jpeg", PNG, PNG_LEN, 0},
    {"/docx", OK_HEAD "\r\nContent-Type: application/octet-stream", "PK\3\4....", 8, 0},
    {"/empty", OK_HEAD "\r\nContent-Length: 0", "", 0, 0},
    {"/exact", OK_HEAD "\r\nContent-Length: 5000000", "0123456789", 10, 5000000},
    {"/large", OK_HEAD "\r\nContent-Length: 5000001", "0123456789", 10, 5000001},
    {"/endless", OK_HEAD, "0123456789", 10, SIZE_MAX},
    {"/short", OK_HEAD "\r\nContent-Length: 100", "0123456789", 10, 0},
    {"/hop5", REDIRECT("/hop4"), "", 0, 0},
    {"/hop4", REDIRECT("hop3"), "", 0, 0},
    {"/hop3", REDIRECT("/hop2"), "", 0, 0},
    {"/hop2", REDIRECT("/hop1"), "", 0, 0},
    {"/hop1", REDIRECT("/png"), "", 0, 0},
    {"/hop6", REDIRECT("/hop5"), "", 0, 0},
    {"/inward", REDIRECT("https://169.254.169.254/latest"), "", 0, 0},
    {"/file", REDIRECT("file:///etc/passwd"), "", 0, 0},
    {"/elsewhere", REDIRECT("https://example.com/x"), "", 0, 0},
    {"/login", REDIRECT("https://me:secret@chatgpt.com/x"), "", 0, 0},
    {"/nowhere", "HTTP/1.1 302 Found\r\nConnection: close\r\nContent-Length: 0", "", 0, 0},
    {"/gone", "HTTP/1.1 410 Gone\r\nConnection: close\r\nContent-Length: 0", "", 0, 0},
    {"/nonsense", "what is this", "", 0, 0},
    {NULL},
};

struct import_rig {
    struct guest_rig rig;
    struct plain_http server;
    char *tools; // in front of PATH; NULL: the machine's own
    char *old_path;
};

static void put_program(const char *dir, const char *name, const char *script)
{
    struct error err = ERROR_INIT;
    CLEANUP_FREE char *path = mem_format("%s/%s", dir, name);
    CLEANUP_CLOSE int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0755);
    assert_true(fd >= 0);
    assert_ok(fs_write_all(fd, script, strlen(script), &err));
}

static int start_loopback(void **state)
{
    struct import_rig *all = mem_alloc(sizeof(*all));
    setenv("CODEXPRO_IMPORT_ALLOW_LOOPBACK", "1", 1);
    setenv("no_proxy", "127.0.0.1,localhost", 1);
    plain_http_start(&all->server, answers);
    guest_rig_start(&all->rig);
    *state = all;
    return 0;
}

// Its curl gives its arguments as the file; its getent gives the addresses of the file "addresses".
static int start_with_programs(void **state)
{
    struct import_rig *all = mem_alloc(sizeof(*all));
    all->tools = support_make_dir();
    all->old_path = mem_strdup(getenv("PATH"));
    CLEANUP_FREE char *getent =
        mem_format("#!/bin/sh\necho \"$@\" >> %s/asked\ntest -s %s/addresses && cat %s/addresses || exit 2\n",
                   all->tools, all->tools, all->tools);
    put_program(all->tools, "getent", getent);
    put_program(
        all->tools, "curl",
        "#!/bin/sh\nprintf '%s\\n' \"$@\"\nprintf '\\n@http 200\\n@type text/plain\\n@next \\n' >&2\n");
    CLEANUP_FREE char *path = mem_format("%s:/usr/bin:/bin", all->tools);
    setenv("PATH", path, 1);
    guest_rig_start(&all->rig);
    *state = all;
    return 0;
}

static int start_direct(void **state)
{
    setenv("no_proxy", "*", 1);
    return start_with_programs(state);
}

static int stop(void **state)
{
    struct import_rig *all = *state;
    int status = guest_rig_stop(&all->rig);
    unsetenv("CODEXPRO_IMPORT_ALLOW_LOOPBACK");
    unsetenv("CODEXPRO_IMPORT_ALLOWED_HOSTS");
    unsetenv("no_proxy");
    if (all->server.pid)
        plain_http_stop(&all->server);
    if (all->old_path)
        setenv("PATH", all->old_path, 1);
    if (all->tools)
        support_remove_dir(all->tools);
    free(all->old_path);
    free(all);
    return status;
}

static json_t *import_args(const char *url, const char *destination)
{
    return json_pack("{s:{s:s s:s} s:s}", "file", "download_url", url, "file_id", "file_1", "destination",
                     destination);
}

static char *url_of(struct import_rig *all, const char *path)
{
    return mem_format("http://127.0.0.1:%d%s", all->server.port, path);
}

static json_t *import(struct import_rig *all, const char *path, const char *destination)
{
    CLEANUP_FREE char *url = url_of(all, path);
    return guest_rig_tool(&all->rig, "import_file", import_args(url, destination));
}

static void refuse(struct import_rig *all, json_t *args, const char *words)
{
    CLEANUP_FREE char *text = guest_rig_tool_error(&all->rig, "import_file", args);
    if (!strstr(text, words))
        fail_msg("expected \"%s\" in \"%s\"", words, text);
}

static void refuse_path(struct import_rig *all, const char *path, const char *words)
{
    CLEANUP_FREE char *url = url_of(all, path);
    refuse(all, import_args(url, "x"), words);
}

static char *get(struct import_rig *all, const char *path, size_t *ret_len)
{
    struct error err = ERROR_INIT;
    CLEANUP_FREE char *full = mem_format("%s/%s", all->rig.dir, path);
    struct buffer bytes = BUFFER_INIT(8 * 1024 * 1024);
    assert_ok(fs_read_file(full, &bytes, &err));
    buffer_text(&bytes);
    if (ret_len)
        *ret_len = bytes.len;
    return buffer_take_string(&bytes);
}

static void assert_absent(struct import_rig *all, const char *path)
{
    CLEANUP_FREE char *full = mem_format("%s/%s", all->rig.dir, path);
    assert_int_equal(access(full, F_OK), -1);
}

// --- what is fetched

static void an_attachment_becomes_a_file(void **state)
{
    struct import_rig *all = *state;
    CLEANUP_JSON json_t *answer = import(all, "/png", "new/dir/a.png");
    size_t len;
    CLEANUP_FREE char *bytes = get(all, "new/dir/a.png", &len);
    assert_int_equal(len, PNG_LEN);
    assert_memory_equal(bytes, PNG, len);
    assert_string_equal(json_get_text(answer, "path"), "new/dir/a.png");
    assert_int_equal(json_get_int(answer, "bytes", -1), PNG_LEN);
    assert_string_equal(json_get_text(answer, "declared_mime_type"), "image/png");
    assert_string_equal(json_get_text(answer, "detected_mime_type"), "image/png");
    assert_string_equal(json_get_text(answer, "mime_type_status"), "matched");
    assert_string_equal(json_get_text(answer, "file_id"), "file_1");
    assert_true(json_is_null(json_object_get(answer, "file_name")));
    assert_false(json_get_bool(answer, "verified", true));
    assert_false(json_get_bool(answer, "overwritten", true));
    CLEANUP_JSON json_t *empty = import(all, "/empty", "empty");
    assert_int_equal(json_get_int(empty, "bytes", -1), 0);
    assert_true(json_is_null(json_object_get(empty, "declared_mime_type")));
    assert_true(json_is_null(json_object_get(empty, "detected_mime_type")));
    assert_string_equal(json_get_text(empty, "mime_type_status"), "unknown");
}

static void declared_types_are_compared_with_the_bytes(void **state)
{
    struct import_rig *all = *state;
    static const char docx[] = "application/vnd.openxmlformats-officedocument.wordprocessingml.document";
    CLEANUP_JSON json_t *lie = import(all, "/lie", "lie");
    assert_string_equal(json_get_text(lie, "mime_type_status"), "mismatched");
    CLEANUP_JSON json_t *stream = import(all, "/docx", "a.docx");
    assert_string_equal(json_get_text(stream, "mime_type_status"), "unknown");
    CLEANUP_FREE char *url = url_of(all, "/docx");
    json_t *args = import_args(url, "b.docx"), *file = json_object_get(args, "file");
    json_set_text(file, "mime_type", docx);
    json_set_text(file, "file_name", "Brief.docx");
    CLEANUP_JSON json_t *answer = guest_rig_tool(&all->rig, "import_file", args);
    assert_string_equal(json_get_text(answer, "declared_mime_type"), docx);
    assert_string_equal(json_get_text(answer, "detected_mime_type"), "application/zip");
    assert_string_equal(json_get_text(answer, "mime_type_status"), "matched");
    assert_string_equal(json_get_text(answer, "file_name"), "Brief.docx");
}

static void a_hash_is_verified_before_anything_is_stored(void **state)
{
    struct import_rig *all = *state;
    CLEANUP_FREE char *url = url_of(all, "/png");
    CLEANUP_JSON json_t *first = import(all, "/png", "a");
    json_t *args = import_args(url, "b");
    json_set_text(args, "expected_sha256", json_get_text(first, "sha256"));
    CLEANUP_JSON json_t *second = guest_rig_tool(&all->rig, "import_file", args);
    assert_true(json_get_bool(second, "verified", false));
    args = import_args(url, "sub/c");
    json_set_text(args, "expected_sha256",
                  "0000000000000000000000000000000000000000000000000000000000000000");
    refuse(all, args, "SHA-256 mismatch");
    assert_absent(all, "sub");
    args = import_args(url, "c");
    json_set_text(args, "expected_sha256", "00");
    refuse(all, args, "at expected_sha256");
}

static void an_existing_file_is_replaced_only_on_request(void **state)
{
    struct import_rig *all = *state;
    guest_rig_put(&all->rig, "a", "old", 3);
    CLEANUP_FREE char *path = mem_format("%s/a", all->rig.dir), *url = url_of(all, "/png"),
                      *gone = url_of(all, "/gone");
    struct stat meta;
    assert_int_equal(chmod(path, 0640), 0);
    refuse(all, import_args(url, "a"), "Destination already exists and overwrite=false: a");
    json_t *args = import_args(gone, "a");
    json_object_set_new(args, "overwrite", json_true());
    refuse(all, args, "failed with HTTP 410");
    CLEANUP_FREE char *kept = get(all, "a", NULL);
    assert_string_equal(kept, "old");
    args = import_args(url, "a");
    json_object_set_new(args, "overwrite", json_true());
    CLEANUP_JSON json_t *answer = guest_rig_tool(&all->rig, "import_file", args);
    assert_true(json_get_bool(answer, "overwritten", false));
    assert_int_equal(stat(path, &meta), 0);
    assert_int_equal(meta.st_mode & 07777, 0640);
    assert_int_equal(meta.st_size, PNG_LEN);
}

static void five_redirects_are_followed_and_each_is_checked(void **state)
{
    struct import_rig *all = *state;
    json_decref(import(all, "/hop5", "a"));
    refuse_path(all, "/hop6", "redirect limit");
    refuse_path(all, "/inward", "blocked address");
    refuse_path(all, "/file", "must use HTTPS");
    refuse_path(all, "/elsewhere", "not an approved");
    refuse_path(all, "/login", "must not include credentials");
    refuse_path(all, "/nowhere", "failed with HTTP 302");
    assert_absent(all, "x");
}

static void size_and_honesty_of_the_server_are_checked(void **state)
{
    struct import_rig *all = *state;
    CLEANUP_JSON json_t *exact = import(all, "/exact", "exact");
    assert_int_equal(json_get_int(exact, "bytes", -1), 5000000);
    refuse_path(all, "/large", "exceeded import size limit");
    refuse_path(all, "/endless", "exceeded import size limit");
    refuse_path(all, "/short", "Attachment download failed: curl: (18)");
    refuse_path(all, "/none", "failed with HTTP 404");
    refuse_path(all, "/nonsense", "Attachment download failed: curl: ");
    refuse(all, import_args("http://127.0.0.1:1/x", "x"), "Attachment download failed: curl: (7)");
    assert_absent(all, "x");
}

static void destinations_keep_to_the_rules_of_writers(void **state)
{
    struct import_rig *all = *state;
    CLEANUP_FREE char *url = url_of(all, "/png"), *link = mem_format("%s/link", all->rig.dir),
                      *out = mem_format("%s/out", all->rig.dir), *fifo = mem_format("%s/fifo", all->rig.dir);
    assert_int_equal(symlink("nowhere", link), 0);
    assert_int_equal(symlink("/tmp", out), 0);
    assert_int_equal(mkfifo(fifo, 0600), 0);
    guest_rig_put(&all->rig, "dir/f", "x", 1);
    static const char *const cases[][2] = {
        {"../x", "Path escapes workspace root"},
        {"/etc/x", "Path escapes workspace root"},
        {".env", "Path is blocked by safety rules"},
        {".git/hooks/x", "Path is blocked by safety rules"},
        {"link", "Refusing to write through a symlink"},
        {"out/x", "parent outside the workspace"},
        {".", "parent outside the workspace"},
        {"dir", "Not a file"},
        {"fifo", "Not a file"},
        {"dir/f/x", "EEXIST"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        json_t *args = import_args(url, cases[i][0]);
        json_object_set_new(args, "overwrite", json_true());
        refuse(all, args, cases[i][1]);
    }
}

// --- where it may be fetched from

static void urls_outside_the_rules_are_refused_unfetched(void **state)
{
    struct import_rig *all = *state;
    static const char *const cases[][2] = {
        {"http://chatgpt.com/x", "must use HTTPS"},
        {"ftp://chatgpt.com/x", "must use HTTPS"},
        {"file:///etc/passwd", "must use HTTPS"},
        {"sediment://file_0001", "Unsupported attachment reference"},
        {"file-service://file-0001", "Unsupported attachment reference"},
        {"file-abc123", "Unsupported attachment reference"},
        {"", "TypeError: Invalid URL"},
        {"chatgpt.com/x", "TypeError: Invalid URL"},
        {"https://", "TypeError: Invalid URL"},
        {"https:///chatgpt.com", "TypeError: Invalid URL"},
        {"https://chatgpt.com:0/", "TypeError: Invalid URL"},
        {"https://chatgpt.com:65536/", "TypeError: Invalid URL"},
        {"https://chatgpt.com:443x/", "TypeError: Invalid URL"},
        {"https://chatgpt.com/a b", "TypeError: Invalid URL"},
        {"https://chatgpt.com/\n", "TypeError: Invalid URL"},
        {"https://chatgpt.com\\.evil.com/", "TypeError: Invalid URL"},
        {"https://ch\xc3\xa4tgpt.com/", "TypeError: Invalid URL"},
        {"https://user@chatgpt.com/", "must not include credentials"},
        {"https://user:pw@chatgpt.com/", "must not include credentials"},
        {"https://evil.com#@chatgpt.com/", "must not include credentials"},
        {"https://chatgpt.com?@evil.com/", "must not include credentials"},
        {"https://example.com/", "not an approved"},
        {"https://chatgpt.com.evil.com/", "not an approved"},
        {"https://notchatgpt.com/", "not an approved"},
        {"https://chatgpt.com./", "not an approved"},
        {"https://8.8.8.8/", "not an approved"},
        {"https://[2606:4700::1111]/", "not an approved"},
        {"https://2130706433/", "not an approved"},
        {"https://0x7f.1/", "not an approved"},
        {"https://127.0.0.1/", "blocked address"},
        {"https://10.1.2.3/", "blocked address"},
        {"https://169.254.169.254/", "blocked address"},
        {"https://[::1]/", "blocked address"},
        {"https://[::ffff:10.0.0.1]/", "blocked address"},
        {"https://[fe80::1]/", "blocked address"},
        {"https://[fd00::1]:8443/", "blocked address"},
        {"https://[64:ff9b::7f00:1]/", "blocked address"},
        {"https://localhost/", "blocked host"},
        {"https://x.localhost/", "blocked host"},
        {"https://metadata.google.internal/", "blocked host"},
        {"https://printer.local/", "blocked host"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        refuse(all, import_args(cases[i][0], "x"), cases[i][1]);
    refuse(all, json_pack("{s:{s:s} s:s}", "file", "file_id", "f", "destination", "x"),
           "at file.download_url");
    refuse(all, json_pack("{s:s s:s}", "file", "f", "destination", "x"), "at file");
    refuse(all, json_pack("{s:{s:s s:s}}", "file", "download_url", "u", "file_id", "f"), "at destination");
    assert_absent(all, "x");
}

static void set_addresses(struct import_rig *all, const char *text)
{
    struct error err = ERROR_INIT;
    CLEANUP_FREE char *path = mem_format("%s/addresses", all->tools);
    CLEANUP_CLOSE int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    assert_true(fd >= 0);
    assert_ok(fs_write_all(fd, text, strlen(text), &err));
}

#define FILES_URL "https://files.oaiusercontent.com/file-1?sig=a%2Fb"

static void curl_may_connect_to_the_checked_addresses_only(void **state)
{
    struct import_rig *all = *state;
    set_addresses(
        all, "23.1.2.3        STREAM files.oaiusercontent.com\n23.1.2.3        DGRAM\n23.1.2.3        RAW\n"
             "2606:4700::6810 STREAM\n2606:4700::6810 DGRAM\n");
    json_decref(guest_rig_tool(&all->rig, "import_file", import_args(FILES_URL, "a")));
    CLEANUP_FREE char *arguments = get(all, "a", NULL);
    assert_non_null(
        strstr(arguments, "\n--resolve\nfiles.oaiusercontent.com:443:23.1.2.3,[2606:4700::6810]\n"));
    assert_non_null(strstr(arguments, "\n--proto\n=https\n"));
    assert_non_null(strstr(arguments, "\n--max-redirs\n0\n"));
    assert_non_null(strstr(arguments, "\n--noproxy\n*\n"));
    assert_non_null(strstr(arguments, "\n--url\n" FILES_URL "\n"));
    assert_true(strncmp(arguments, "-q\n", 3) == 0);
}

static void one_bad_address_refuses_the_host(void **state)
{
    struct import_rig *all = *state;
    static const char *const bad[] = {"10.0.0.1",
                                      "127.0.0.1",
                                      "0.0.0.0",
                                      "100.64.0.1",
                                      "172.31.255.255",
                                      "192.168.1.1",
                                      "::1",
                                      "fe80::1",
                                      "::ffff:10.0.0.1",
                                      "::ffff:127.0.0.1",
                                      "fc00::1",
                                      "64:ff9b::a00:1",
                                      "2002:a00:1::",
                                      "169.254.169.254",
                                      "224.0.0.1",
                                      "255.255.255.255",
                                      "::",
                                      "ff02::1",
                                      "2001:db8::1",
                                      "198.18.0.1"};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        CLEANUP_FREE char *text = mem_format("23.1.2.3 STREAM x\n%s STREAM\n", bad[i]);
        set_addresses(all, text);
        refuse(all, import_args(FILES_URL, "x"), "resolves to a blocked address");
    }
    set_addresses(all, "");
    refuse(all, import_args(FILES_URL, "x"), "could not be resolved");
    set_addresses(all, "nonsense STREAM\n");
    refuse(all, import_args(FILES_URL, "x"), "could not be resolved");
    assert_absent(all, "x");
}

static void with_a_proxy_the_name_is_the_proxys_to_resolve(void **state)
{
    struct import_rig *all = *state;
    json_decref(guest_rig_tool(&all->rig, "import_file", import_args(FILES_URL, "a")));
    CLEANUP_FREE char *arguments = get(all, "a", NULL);
    assert_non_null(strstr(arguments, "\n--proxy\nhttp://127.0.0.1:3128\n"));
    assert_non_null(strstr(arguments, "\n--noproxy\n\n"));
    assert_null(strstr(arguments, "--resolve"));
    CLEANUP_FREE char *asked = mem_format("%s/asked", all->tools);
    assert_int_equal(access(asked, F_OK), -1);
}

static void a_missing_curl_is_a_sentence(void **state)
{
    struct import_rig *all = *state;
    (void)state;
    guest_rig_stop(&all->rig);
    setenv("PATH", "/nonexistent", 1);
    guest_rig_start(&all->rig);
    refuse(all, import_args(FILES_URL, "x"), "curl is not installed in this sandbox");
}

static void more_hosts_come_from_the_environment(void **state)
{
    struct import_rig *all = *state;
    guest_rig_stop(&all->rig);
    setenv("CODEXPRO_IMPORT_ALLOWED_HOSTS", "example.com, files.example.org", 1);
    guest_rig_start(&all->rig);
    json_decref(guest_rig_tool(&all->rig, "import_file", import_args("https://a.example.com/x", "a")));
    json_decref(guest_rig_tool(&all->rig, "import_file", import_args("https://files.example.org/x", "b")));
    refuse(all, import_args("https://example.org/x", "x"), "not an approved");
}

#define WITH_SERVER(test) cmocka_unit_test_setup_teardown(test, start_loopback, stop)
#define DIRECTLY(test) cmocka_unit_test_setup_teardown(test, start_direct, stop)
#define WITH_PROXY(test) cmocka_unit_test_setup_teardown(test, start_with_programs, stop)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_SERVER(an_attachment_becomes_a_file),
        WITH_SERVER(declared_types_are_compared_with_the_bytes),
        WITH_SERVER(a_hash_is_verified_before_anything_is_stored),
        WITH_SERVER(an_existing_file_is_replaced_only_on_request),
        WITH_SERVER(five_redirects_are_followed_and_each_is_checked),
        WITH_SERVER(size_and_honesty_of_the_server_are_checked),
        WITH_SERVER(destinations_keep_to_the_rules_of_writers),
        DIRECTLY(urls_outside_the_rules_are_refused_unfetched),
        DIRECTLY(curl_may_connect_to_the_checked_addresses_only),
        DIRECTLY(one_bad_address_refuses_the_host),
        WITH_PROXY(with_a_proxy_the_name_is_the_proxys_to_resolve),
        WITH_PROXY(a_missing_curl_is_a_sentence),
        WITH_PROXY(more_hosts_come_from_the_environment),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
