// Files put in place together: all or none.
#include "api/guest/install.h"
#include "controller/base/memory.h"
#include "tests/support/support.h"
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

struct site {
    char *dir;
    struct workspace workspace;
};

static int start(void **state)
{
    struct error err = ERROR_INIT;
    struct site *site = mem_alloc(sizeof(*site));
    site->dir = support_make_dir();
    assert_ok(workspace_open(&site->workspace, site->dir, "/", &err));
    *state = site;
    return 0;
}

static int stop(void **state)
{
    struct site *site = *state;
    workspace_close(&site->workspace);
    support_remove_dir(site->dir);
    free(site);
    return 0;
}

static void put(struct site *site, const char *name, const char *text, struct stat *ret)
{
    struct error err = ERROR_INIT;
    CLEANUP_FREE char *path = mem_format("%s/%s", site->dir, name);
    CLEANUP_CLOSE int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0640);
    assert_true(fd >= 0);
    assert_ok(fs_write_all(fd, text, strlen(text), &err));
    assert_int_equal(fstat(fd, ret), 0);
}

static void assert_file(struct site *site, const char *name, const char *text)
{
    struct error err = ERROR_INIT;
    CLEANUP_FREE char *path = mem_format("%s/%s", site->dir, name);
    CLEANUP(buffer_free) struct buffer bytes = BUFFER_INIT(1000);
    if (!text) {
        assert_int_equal(access(path, F_OK), -1);
        return;
    }
    assert_ok(fs_read_file(path, &bytes, &err));
    assert_string_equal(buffer_text(&bytes), text);
}

static int count_entries(struct site *site)
{
    int count = 0;
    DIR *stream = opendir(site->dir);
    assert_non_null(stream);
    while (readdir(stream))
        count++;
    closedir(stream);
    return count - 2;
}

static struct install_item item(const char *path, const struct stat *before, const char *text)
{
    struct install_item one = {.path = path, .real = path, .before = before, .mode = 0640};
    one.is_removal = !text;
    one.bytes = text;
    one.len = text ? strlen(text) : 0;
    return one;
}

static void all_are_put_in_place(void **state)
{
    struct site *site = *state;
    struct error err = ERROR_INIT;
    struct stat a, b, now;
    put(site, "a", "1", &a);
    put(site, "b", "1", &b);
    struct install_item items[] = {item("a", &a, "22"), item("b", &b, NULL), item("x/y/c", NULL, "3")};
    items[0].mode = 0604;
    assert_ok(install_all(&site->workspace, items, 3, &err));
    assert_file(site, "a", "22");
    assert_file(site, "b", NULL);
    assert_file(site, "x/y/c", "3");
    assert_int_equal(count_entries(site), 2);
    CLEANUP_FREE char *path = mem_format("%s/a", site->dir);
    assert_int_equal(stat(path, &now), 0);
    assert_int_equal(now.st_mode & 07777, 0604);
    struct install_item removal = item("x/y/c", &now, NULL);
    CLEANUP_FREE char *made = mem_format("%s/x/y/c", site->dir);
    assert_int_equal(stat(made, &now), 0);
    assert_ok(install_all(&site->workspace, &removal, 1, &err));
    assert_file(site, "x", NULL);
}

// Each kind of failure stands last, behind a change, a new file in new directories and a removal.
static void a_failure_in_the_last_undoes_the_others(void **state)
{
    struct site *site = *state;
    struct stat a, b, c, stale;
    put(site, "a", "1", &a);
    put(site, "b", "1", &b);
    put(site, "c", "1", &stale);
    put(site, "c", "changed since", &c);
    struct install_item bad[] = {
        item("c", &stale, "2"),                             // not what was looked at
        item("c", &stale, NULL),      item("c", NULL, "2"), // there, and must not be
        item("gone", &stale, "2"),                          // must be there, and is not
        item("c/d", NULL, "2"),                             // below a file
        item("new/f", NULL, "twice"),                       // made by an item before
    };
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct error err = ERROR_INIT;
        struct install_item items[] = {item("a", &a, "22"), item("new/f", NULL, "3"), item("b", &b, NULL),
                                       bad[i]};
        assert_int_equal(install_all(&site->workspace, items, 4, &err), -1);
        assert_true(strlen(err.message) > 10);
        assert_string_equal(err.hint[0] ? "hint" : "", strstr(err.message, "changed") ? "hint" : "");
        assert_file(site, "a", "1");
        assert_file(site, "b", "1");
        assert_file(site, "c", "changed since");
        assert_file(site, "new", NULL);
        assert_int_equal(count_entries(site), 3);
    }
}

static void a_parent_that_became_a_link_is_not_followed(void **state)
{
    struct site *site = *state;
    struct error err = ERROR_INIT;
    CLEANUP_FREE char *link = mem_format("%s/out", site->dir), *elsewhere = support_make_dir();
    assert_int_equal(symlink(elsewhere, link), 0);
    struct install_item one = item("out/f", NULL, "x");
    assert_int_equal(install_all(&site->workspace, &one, 1, &err), -1);
    CLEANUP_FREE char *made = mem_format("%s/f", elsewhere);
    assert_int_equal(access(made, F_OK), -1);
    support_remove_dir(TAKE_PTR(elsewhere));
}

#define WITH_SITE(test) cmocka_unit_test_setup_teardown(test, start, stop)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_SITE(all_are_put_in_place),
        WITH_SITE(a_failure_in_the_last_undoes_the_others),
        WITH_SITE(a_parent_that_became_a_link_is_not_followed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
