// What a hostile archive can do to the host: nothing outside the directory, nothing through a link, no half file.
#include "tests/support/support.h"
#include "cli/copy/extract.h"
#include "cli/copy/pack.h"
#include "cli/copy/tar_header.h"
#include "controller/base/buffer.h"
#include "controller/base/cleanup.h"
#include "controller/base/fs.h"
#include "controller/base/memory.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define STREAM_MAX (16 << 20)

struct rig {
    char *dir;   // holds "out" (where nothing may appear), "secret" and the root "root"
    int root_fd;
    struct buffer stream;
    size_t at, made;
    struct tally tally;
    char *warned; // the last one
};

static void on_warning(void *arg, const char *text)
{
    mem_replace(&((struct rig *)arg)->warned, text);
}

static void put_file(const char *dir, const char *name, const char *text)
{
    CLEANUP_FREE char *path = mem_format("%s/%s", dir, name);
    FILE *file = fopen(path, "we");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static char *get_file(const char *dir, const char *name)
{
    CLEANUP_FREE char *path = mem_format("%s/%s", dir, name);
    struct buffer text = BUFFER_INIT(1 << 20);
    if (fs_read_file(path, &text, NULL) < 0)
        return mem_strdup("<none>");
    return buffer_take_string(&text);
}

static int set_up(void **state)
{
    struct rig *rig = mem_alloc(sizeof(*rig));
    *rig = (struct rig){.dir = support_make_dir(), .stream = BUFFER_INIT(STREAM_MAX), .tally = {.warn = on_warning, .arg = rig}};
    CLEANUP_FREE char *root = mem_format("%s/root", rig->dir), *out = mem_format("%s/out", rig->dir);
    assert_int_equal(mkdir(root, 0755) | mkdir(out, 0755), 0);
    put_file(rig->dir, "secret", "secret");
    rig->root_fd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    *state = rig;
    return 0;
}

static int tear_down(void **state)
{
    struct rig *rig = *state;
    close(rig->root_fd);
    buffer_free(&rig->stream);
    support_remove_dir(rig->dir);
    free(rig->warned);
    free(rig);
    return 0;
}

// ---- archives --------------------------------------------------------------------------------------------------------
static int append(void *arg, const void *bytes, size_t len, struct error *err)
{
    (void)err;
    return buffer_append(&((struct rig *)arg)->stream, bytes, len);
}

static void add(struct rig *rig, enum tar_type type, const char *path, const char *what, unsigned mode)
{
    struct tar_writer writer = {.write = append, .arg = rig};
    bool is_file = type == TAR_FILE;
    const struct tar_entry entry = {.type = type, .path = path, .link = is_file ? NULL : what, .mode = mode, .mtime_s = 1600000000,
                                    .size = is_file ? (int64_t)strlen(what) : 0};
    assert_int_equal(tar_writer_begin(&writer, &entry, NULL), 0);
    if (is_file) {
        tar_writer_data(&writer, what, strlen(what), NULL);
        tar_writer_end_entry(&writer, entry.size, NULL);
    }
}

static void add_end(struct rig *rig)
{
    struct tar_writer writer = {.write = append, .arg = rig};
    tar_writer_end(&writer, NULL);
}

static ssize_t take(void *arg, void *to, size_t len, struct error *err)
{
    struct rig *rig = arg;
    (void)err;
    size_t part = rig->stream.len - rig->at < len ? rig->stream.len - rig->at : len;
    memcpy(to, rig->stream.data + rig->at, part);
    rig->at += part;
    return (ssize_t)part;
}

static int extract(struct rig *rig, const char *expected, const char *as, struct error *err)
{
    const struct extract how = {.root_fd = rig->root_fd, .expected = expected, .as = as, .max_bytes = 1 << 20, .umask = 022, .tally = &rig->tally};
    struct tar_reader *reader = tar_reader_new(take, rig);
    int r = extract_run(&how, reader, err);
    tar_reader_free(reader);
    return r;
}

// Everything of the rig's directory that is not below root/top stands as it was.
static void assert_nothing_got_out(const struct rig *rig)
{
    CLEANUP_FREE char *secret = get_file(rig->dir, "secret");
    assert_string_equal(secret, "secret");
    CLEANUP_FREE char *out = mem_format("%s/out", rig->dir);
    assert_int_equal(rmdir(out), 0); // it is empty
    assert_int_equal(mkdir(out, 0755), 0);
    for (const char *const *name = (const char *const[]){"evil", "root/evil", "passwd", NULL}; *name; name++) {
        CLEANUP_FREE char *path = mem_format("%s/%s", rig->dir, *name);
        assert_int_equal(access(path, F_OK), -1);
    }
}

// ---- every trick a row -------------------------------------------------------------------------------------------------
struct trick {
    const char *name;
    struct {
        enum tar_type type;
        const char *path, *what;
    } entries[5];
    enum error_code code; // NONE: it is skipped, with these words
    const char *words;
};
static const struct trick tricks[] = {
    {"dotdot", {{TAR_FILE, "./top/../../evil", "x"}}, ERROR_REFUSED, "leads out"},
    {"dotdot at once", {{TAR_FILE, "../evil", "x"}}, ERROR_REFUSED, "was not asked for"},
    {"dotdot at the end", {{TAR_DIRECTORY, "./top/a/..", NULL}}, ERROR_REFUSED, "leads out"},
    {"dotdot behind a real name", {{TAR_DIRECTORY, "./top", NULL}, {TAR_FILE, "./top/../evil", "x"}}, ERROR_REFUSED, "leads out"},
    {"absolute", {{TAR_FILE, "/tmp/evil", "x"}}, ERROR_REFUSED, "leads out"},
    {"another name", {{TAR_FILE, "./evil", "x"}}, ERROR_REFUSED, "was not asked for"},
    {"a name that begins alike", {{TAR_FILE, "./topevil", "x"}}, ERROR_REFUSED, "was not asked for"},
    {"no name but dots", {{TAR_FILE, "././.", "x"}}, ERROR_REFUSED, "was not asked for"},
    {"link out, absolute", {{TAR_DIRECTORY, "./top", NULL}, {TAR_SYMLINK, "./top/l", "/etc/passwd"}}, ERROR_NONE, "leads out of what is copied"},
    {"link out, climbing", {{TAR_DIRECTORY, "./top", NULL}, {TAR_SYMLINK, "./top/l", "../../secret"}}, ERROR_NONE, "leads out of what is copied"},
    {"link beside the top", {{TAR_DIRECTORY, "./top", NULL}, {TAR_SYMLINK, "./top/l", "../other"}}, ERROR_NONE, "leads out of what is copied"},
    {"link that descends and climbs", {{TAR_DIRECTORY, "./top", NULL}, {TAR_SYMLINK, "./top/l", "a/../b"}}, ERROR_NONE, "leads out of what is copied"},
    {"lone link out", {{TAR_SYMLINK, "./top", "../secret"}}, ERROR_NONE, "leads out of what is copied"},
    {"through a link made before", {{TAR_SYMLINK, "./top/l", "."}, {TAR_FILE, "./top/l/evil", "x"}}, ERROR_EXISTS, "in the place of a directory"},
    {"through a link to the outside", {{TAR_SYMLINK, "./top/l", "../../out"}, {TAR_FILE, "./top/l/evil", "x"}, {TAR_FILE, "./top/../../evil", "x"}}, ERROR_REFUSED, "leads out"},
    {"directory over a link", {{TAR_SYMLINK, "./top/l", "."}, {TAR_DIRECTORY, "./top/l", NULL}}, ERROR_EXISTS, "in the place of a directory"},
    {"the top is a link, then a directory", {{TAR_SYMLINK, "./top", "x"}, {TAR_FILE, "./top/evil", "x"}}, ERROR_EXISTS, "in the place of a directory"},
    {"hard link outside", {{TAR_DIRECTORY, "./top", NULL}, {TAR_HARD_LINK, "./top/h", "../secret"}}, ERROR_REFUSED, "was not asked for"},
    {"hard link outside, from below", {{TAR_DIRECTORY, "./top", NULL}, {TAR_HARD_LINK, "./top/h", "./top/../../secret"}}, ERROR_REFUSED, "leads out"},
    {"hard link, absolute", {{TAR_DIRECTORY, "./top", NULL}, {TAR_HARD_LINK, "./top/h", "/etc/passwd"}}, ERROR_REFUSED, "leads out"},
    {"hard link to nothing", {{TAR_DIRECTORY, "./top", NULL}, {TAR_HARD_LINK, "./top/h", "./top/none"}}, ERROR_NONE, "was not copied"},
    {"hard link to the directory itself", {{TAR_DIRECTORY, "./top", NULL}, {TAR_HARD_LINK, "./top/h", "./top"}}, ERROR_NONE, "was not copied"},
    {"hard link that moves a link up", {{TAR_SYMLINK, "./top/a/b/l", "../../x"}, {TAR_HARD_LINK, "./top/l", "./top/a/b/l"}}, ERROR_NONE, "leads out of what is copied"},
    {"a file in the place of a directory", {{TAR_DIRECTORY, "./top/d", NULL}, {TAR_FILE, "./top/d", "x"}}, ERROR_EXISTS, "a directory is in its place"},
    {"a directory in the place of a file", {{TAR_FILE, "./top/f", "x"}, {TAR_DIRECTORY, "./top/f", NULL}}, ERROR_EXISTS, "in the place of a directory"},
};

static void run_trick(const struct trick *trick)
{
    void *state;
    struct error err = ERROR_INIT;
    set_up(&state);
    struct rig *rig = state;
    for (size_t i = 0; i < ARRAY_LEN(trick->entries) && trick->entries[i].path; i++)
        add(rig, trick->entries[i].type, trick->entries[i].path, trick->entries[i].what, 0755);
    add_end(rig);
    int r = extract(rig, "top", "top", &err);
    const char *said = trick->code ? err.message : rig->warned;
    if (err.code != trick->code || (r < 0) != (trick->code != ERROR_NONE) || !said || !strstr(said, trick->words))
        fail_msg("%s: result %d, code %d, '%s', warned '%s'", trick->name, r, err.code, err.message, rig->warned ? rig->warned : "");
    assert_nothing_got_out(rig);
    tear_down(&state);
}

static void no_trick_gets_out_of_the_directory(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(tricks); i++)
        run_trick(&tricks[i]);
}

// ---- what was there before ------------------------------------------------------------------------------------------------
static void a_link_of_the_hosts_is_replaced_and_not_written_through(void **state)
{
    struct rig *rig = *state;
    struct error err = ERROR_INIT;
    assert_int_equal(symlinkat("../secret", rig->root_fd, "f"), 0);
    add(rig, TAR_FILE, "./f", "new", 0644);
    add_end(rig);
    assert_ok(extract(rig, NULL, NULL, &err));
    CLEANUP_FREE char *text = get_file(rig->dir, "root/f");
    assert_string_equal(text, "new");
    assert_nothing_got_out(rig);
}

static void a_link_of_the_hosts_is_not_gone_through(void **state)
{
    struct rig *rig = *state;
    struct error err = ERROR_INIT;
    assert_int_equal(symlinkat("../out", rig->root_fd, "d"), 0);
    add(rig, TAR_DIRECTORY, "./d", NULL, 0755);
    add(rig, TAR_FILE, "./d/f", "x", 0644);
    add_end(rig);
    assert_error(extract(rig, NULL, NULL, &err), ERROR_EXISTS);
    assert_nothing_got_out(rig);
}

static void a_file_with_a_second_name_elsewhere_is_replaced_not_changed(void **state)
{
    struct rig *rig = *state;
    struct error err = ERROR_INIT;
    CLEANUP_FREE char *secret = mem_format("%s/secret", rig->dir);
    assert_int_equal(linkat(AT_FDCWD, secret, rig->root_fd, "f", 0), 0);
    add(rig, TAR_FILE, "./f", "new", 0666);
    add_end(rig);
    assert_ok(extract(rig, NULL, NULL, &err));
    assert_nothing_got_out(rig);
}

static void a_directory_that_is_there_keeps_its_mode_and_a_new_one_gets_its_own(void **state)
{
    struct rig *rig = *state;
    struct error err = ERROR_INIT;
    struct stat info;
    assert_int_equal(mkdirat(rig->root_fd, "old", 0700), 0);
    add(rig, TAR_DIRECTORY, "./old", NULL, 0777);
    add(rig, TAR_DIRECTORY, "./new", NULL, 0500);
    add(rig, TAR_FILE, "./new/f", "x", 06777);
    add_end(rig);
    assert_ok(extract(rig, NULL, NULL, &err));
    fstatat(rig->root_fd, "old", &info, 0);
    assert_int_equal(info.st_mode & 07777, 0700);
    fstatat(rig->root_fd, "new", &info, 0);
    assert_int_equal(info.st_mode & 07777, 0500);
    assert_int_equal(info.st_mtim.tv_sec, 1600000000);
    fstatat(rig->root_fd, "new/f", &info, 0);
    assert_int_equal(info.st_mode & 07777, 0755); // no set-id bits, and the umask
    assert_int_equal(fchmodat(rig->root_fd, "new", 0700, 0), 0); // so that it can be removed
}

static void an_archive_that_ends_early_leaves_the_old_file_and_no_other(void **state)
{
    struct rig *rig = *state;
    struct error err = ERROR_INIT;
    put_file(rig->dir, "root/f", "old");
    add(rig, TAR_FILE, "./f", "this is the new content", 0644);
    rig->stream.len = TAR_BLOCK_BYTES + 5;
    assert_error(extract(rig, NULL, NULL, &err), ERROR_INVALID);
    CLEANUP_FREE char *text = get_file(rig->dir, "root/f");
    assert_string_equal(text, "old");
    CLEANUP_FREE char *path = mem_format("%s/root/f", rig->dir), *root = mem_format("%s/root", rig->dir);
    unlink(path);
    assert_int_equal(rmdir(root), 0); // nothing else was in it
    assert_int_equal(mkdir(root, 0755), 0);
}

static void more_bytes_than_allowed_are_refused_before_one_is_written(void **state)
{
    struct rig *rig = *state;
    struct error err = ERROR_INIT;
    struct tar_writer writer = {.write = append, .arg = rig};
    const struct tar_entry huge = {.type = TAR_FILE, .path = "./f", .mode = 0644, .size = INT64_C(1) << 50};
    assert_int_equal(tar_writer_begin(&writer, &huge, NULL), 0);
    assert_error(extract(rig, NULL, NULL, &err), ERROR_TOO_LARGE);
    assert_int_equal(faccessat(rig->root_fd, "f", F_OK, 0), -1);
}

static void a_path_that_lies_too_deep_is_refused(void **state)
{
    struct rig *rig = *state;
    struct error err = ERROR_INIT;
    CLEANUP(buffer_free) struct buffer path = BUFFER_INIT(4096);
    for (int i = 0; i < 300; i++)
        buffer_append_text(&path, "d/");
    buffer_append_text(&path, "f");
    add(rig, TAR_FILE, buffer_text(&path), "x", 0644);
    add_end(rig);
    assert_error(extract(rig, NULL, NULL, &err), ERROR_REFUSED);
}

// An archive without an end: directories with long names, one after the other.
static ssize_t take_directory(void *arg, void *to, size_t len, struct error *err)
{
    struct rig *rig = arg;
    if (rig->at == rig->stream.len) {
        char path[TAR_NAME_MAX_BYTES];
        memset(path, 'n', sizeof(path));
        for (size_t i = 1; i < 3800; i += 200)
            path[i] = '/';
        snprintf(path + 3800, sizeof(path) - 3800, "%zu", rig->made++);
        rig->stream.len = rig->at = 0;
        add(rig, TAR_DIRECTORY, path, NULL, 0755);
    }
    return take(arg, to, len, err);
}

static void directories_without_end_are_refused_before_their_names_fill_the_memory(void **state)
{
    struct rig *rig = *state;
    struct error err = ERROR_INIT;
    const struct extract how = {.root_fd = rig->root_fd, .max_bytes = 1 << 20, .max_directory_bytes = 1 << 20, .umask = 022, .tally = &rig->tally};
    struct tar_reader *reader = tar_reader_new(take_directory, rig);
    int r = extract_run(&how, reader, &err);
    tar_reader_free(reader);
    assert_error(r, ERROR_LIMIT);
    assert_true(rig->made * 3800 < (1 << 20) + 3 * 4096);
}

static void names_are_bytes_and_warnings_are_printable(void **state)
{
    struct rig *rig = *state;
    struct error err = ERROR_INIT;
    add(rig, TAR_FILE, "./a\nb\xff\x1b[2J", "x", 0644);
    add(rig, TAR_SYMLINK, "./l\x1b[2J", "/etc", 0777);
    add_end(rig);
    assert_ok(extract(rig, NULL, NULL, &err));
    assert_int_equal(faccessat(rig->root_fd, "a\nb\xff\x1b[2J", F_OK, 0), 0);
    assert_null(strchr(rig->warned, 0x1b));
}

// ---- the stream ---------------------------------------------------------------------------------------------------------
static void sum_up(struct rig *rig, size_t header_at)
{
    struct tar_header *header = (struct tar_header *)(rig->stream.data + header_at);
    snprintf(header->checksum, sizeof(header->checksum), "%06o", tar_header_sum(header));
    header->checksum[7] = ' ';
}

struct fault {
    const char *name;
    size_t offset;
    const char *bytes;
    size_t len;
    bool is_summed;
};
static const struct fault faults[] = {
    {"a wrong checksum", 0, "X", 1, false},
    {"a size that is no number", offsetof(struct tar_header, size), "12x", 3, true},
    {"a negative size", offsetof(struct tar_header, size), "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", 12, true},
    {"a size beyond 64 bits", offsetof(struct tar_header, size), "\x80\x01\x00\x00\xff\xff\xff\xff\xff\xff\xff\xff", 12, true},
    {"an unknown type", offsetof(struct tar_header, type), "Z", 1, true},
    {"a sparse file", offsetof(struct tar_header, type), "S", 1, true},
    {"a directory with content", offsetof(struct tar_header, type), "5", 1, true},
    {"a link without a target", offsetof(struct tar_header, type), "2", 1, true},
    {"a mode that is no number", offsetof(struct tar_header, mode), "rwx", 3, true},
    {"an extended header that is too large", offsetof(struct tar_header, type), "L", 1, true},
};

static void a_stream_that_is_not_what_it_should_be_is_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(faults); i++) {
        void *own;
        struct error err = ERROR_INIT;
        set_up(&own);
        struct rig *rig = own;
        CLEANUP_FREE char *content = mem_alloc(6001);
        memset(content, 'x', 6000);
        add(rig, TAR_FILE, "./f", content, 0644);
        add_end(rig);
        memcpy(rig->stream.data + faults[i].offset, faults[i].bytes, faults[i].len);
        if (faults[i].is_summed)
            sum_up(rig, 0);
        if (extract(rig, NULL, NULL, &err) == 0 || err.code != ERROR_INVALID)
            fail_msg("%s: code %d, '%s'", faults[i].name, err.code, err.message);
        tear_down(&own);
    }
}

static void extended_headers_name_what_follows_them(void **state)
{
    struct rig *rig = *state;
    struct error err = ERROR_INIT;
    const char pax[] = "18 path=./renamed\n22 mtime=1500000000.5\n";
    add(rig, TAR_FILE, "PaxHeader", pax, 0644);
    rig->stream.data[offsetof(struct tar_header, type)] = 'x';
    sum_up(rig, 0);
    add(rig, TAR_FILE, "./f", "x", 0644);
    add_end(rig);
    assert_ok(extract(rig, NULL, NULL, &err));
    struct stat info;
    assert_int_equal(fstatat(rig->root_fd, "renamed", &info, 0), 0);
    assert_int_equal(info.st_mtim.tv_sec, 1500000000);
    assert_int_equal(info.st_mtim.tv_nsec, 500000000);
}

static void bad_pax_records_are_refused(void **state)
{
    (void)state;
    static const char *const records[] = {"5 path=./x\n", "999 path=./x\n", "path=./x\n", "10 path=./x", "8 =abcd\n", "9 size=x1\n", "8 path=\n",
                                          "11 size=-12\n", "25 GNU.sparse.realsize=10\n"};
    for (size_t i = 0; i < ARRAY_LEN(records); i++) {
        void *own;
        struct error err = ERROR_INIT;
        set_up(&own);
        struct rig *rig = own;
        add(rig, TAR_FILE, "PaxHeader", records[i], 0644);
        rig->stream.data[offsetof(struct tar_header, type)] = 'x';
        sum_up(rig, 0);
        add(rig, TAR_FILE, "./f", "x", 0644);
        add_end(rig);
        if (extract(rig, NULL, NULL, &err) == 0 || err.code != ERROR_INVALID)
            fail_msg("'%s': code %d, '%s'", records[i], err.code, err.message);
        tear_down(&own);
    }
}

// ---- both ways --------------------------------------------------------------------------------------------------------------
static void what_is_packed_comes_out_again(void **state)
{
    struct rig *rig = *state;
    struct error err = ERROR_INIT;
    CLEANUP_FREE char *long_name = mem_alloc(201), *from = mem_format("%s/out", rig->dir);
    memset(long_name, 'n', 200);
    CLEANUP_CLOSE int dir_fd = open(from, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    put_file(from, long_name, "long");
    put_file(from, "-rf", "dash");
    assert_int_equal(linkat(dir_fd, "-rf", dir_fd, "twin", 0) | symlinkat(long_name, dir_fd, "link") | mkfifoat(dir_fd, "pipe", 0600), 0);
    struct tar_writer writer = {.write = append, .arg = rig};
    assert_ok(pack_run(&(struct pack){.dir_fd = dir_fd, .name = ".", .as = "top", .tally = &rig->tally}, &writer, &err));
    assert_int_equal(rig->tally.skipped, 1);
    assert_ok(extract(rig, "top", "here", &err));
    struct stat info;
    assert_int_equal(fstatat(rig->root_fd, "here/twin", &info, 0), 0);
    assert_int_equal(info.st_nlink, 2);
    CLEANUP_FREE char *text = get_file(rig->dir, "root/here/link");
    assert_string_equal(text, "long");
    assert_int_equal(faccessat(rig->root_fd, "here/pipe", F_OK, 0), -1);
    unlinkat(dir_fd, long_name, 0), unlinkat(dir_fd, "-rf", 0), unlinkat(dir_fd, "twin", 0), unlinkat(dir_fd, "link", 0), unlinkat(dir_fd, "pipe", 0);
}

struct shrinking {
    struct rig *rig;
    const char *path;
    size_t writes;
};

static int append_and_cut(void *arg, const void *bytes, size_t len, struct error *err)
{
    struct shrinking *shrinking = arg;
    if (++shrinking->writes == 3) // header of the directory, of the file, its first piece
        assert_int_equal(truncate(shrinking->path, 100), 0);
    return append(shrinking->rig, bytes, len, err);
}

static void a_file_that_shrinks_while_it_is_read_gives_a_whole_stream_and_a_warning(void **state)
{
    struct rig *rig = *state;
    struct error err = ERROR_INIT;
    CLEANUP_FREE char *from = mem_format("%s/out", rig->dir), *path = mem_format("%s/out/f", rig->dir);
    put_file(from, "f", "x");
    assert_int_equal(truncate(path, 400000), 0);
    CLEANUP_CLOSE int dir_fd = open(from, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct shrinking shrinking = {rig, path, 0};
    struct tar_writer writer = {.write = append_and_cut, .arg = &shrinking};
    assert_ok(pack_run(&(struct pack){.dir_fd = dir_fd, .name = ".", .as = "top", .tally = &rig->tally}, &writer, &err));
    assert_int_equal(rig->tally.troubles, 1);
    assert_non_null(strstr(rig->warned, "top/f: became shorter"));
    assert_ok(extract(rig, "top", "top", &err));
    struct stat info;
    assert_int_equal(fstatat(rig->root_fd, "top/f", &info, 0), 0);
    assert_int_equal(info.st_size, 400000);
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_trick_gets_out_of_the_directory),
        cmocka_unit_test_setup_teardown(a_link_of_the_hosts_is_replaced_and_not_written_through, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_link_of_the_hosts_is_not_gone_through, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_file_with_a_second_name_elsewhere_is_replaced_not_changed, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_directory_that_is_there_keeps_its_mode_and_a_new_one_gets_its_own, set_up, tear_down),
        cmocka_unit_test_setup_teardown(an_archive_that_ends_early_leaves_the_old_file_and_no_other, set_up, tear_down),
        cmocka_unit_test_setup_teardown(more_bytes_than_allowed_are_refused_before_one_is_written, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_path_that_lies_too_deep_is_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(directories_without_end_are_refused_before_their_names_fill_the_memory, set_up, tear_down),
        cmocka_unit_test_setup_teardown(names_are_bytes_and_warnings_are_printable, set_up, tear_down),
        cmocka_unit_test(a_stream_that_is_not_what_it_should_be_is_refused),
        cmocka_unit_test_setup_teardown(extended_headers_name_what_follows_them, set_up, tear_down),
        cmocka_unit_test(bad_pax_records_are_refused),
        cmocka_unit_test_setup_teardown(what_is_packed_comes_out_again, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_file_that_shrinks_while_it_is_read_gives_a_whole_stream_and_a_warning, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
