// Opening: the directory, the lock, what is refused untouched, migrations and their copies.
#include "tests/support/store_fixture.h"
#include "controller/base/buffer.h"
#include "controller/base/fs.h"
#include "controller/base/memory.h"
#include "controller/store/internal.h"
#include "controller/store/tokens.h"
#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define TEST(name) cmocka_unit_test_setup_teardown(name, store_fixture_setup, store_fixture_teardown)

static char *path_of(const struct store_fixture *fixture, const char *name)
{
    return mem_format("%s/%s", fixture->state_dir, name);
}

static mode_t mode_of(const struct store_fixture *fixture, const char *name)
{
    CLEANUP_FREE char *path = path_of(fixture, name);
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    return st.st_mode & 07777;
}

static void close_store(struct store_fixture *fixture)
{
    store_close(fixture->store);
    fixture->store = NULL;
}

// Every name, mode, size and byte below the state directory, but not the bytes of the lock and of the log's index (whose
// first user rebuilds it).
static bool has_bytes(const char *name)
{
    return strcmp(name, "lock") != 0 && strcmp(name, STORE_DATABASE_NAME "-shm") != 0;
}

static char *fingerprint(struct store_fixture *fixture)
{
    struct error err = ERROR_INIT;
    struct buffer all = BUFFER_INIT(64 << 20);
    struct dirent **entries = NULL;
    int count = scandir(fixture->state_dir, &entries, NULL, alphasort);
    for (int i = 0; i < count; i++) {
        CLEANUP_FREE char *path = path_of(fixture, entries[i]->d_name);
        struct stat st;
        assert_int_equal(stat(path, &st), 0);
        buffer_format(&all, "%s %o\n", entries[i]->d_name, st.st_mode);
        if (S_ISREG(st.st_mode) && has_bytes(entries[i]->d_name)) {
            CLEANUP(buffer_free) struct buffer bytes = BUFFER_INIT(64 << 20);
            assert_ok(fs_read_file(path, &bytes, &err));
            uint64_t hash = 1469598103934665603u;
            for (size_t j = 0; j < bytes.len; j++)
                hash = (hash ^ (unsigned char)bytes.data[j]) * 1099511628211u;
            buffer_format(&all, "%zu %llx\n", bytes.len, (unsigned long long)hash);
        }
        free(entries[i]);
    }
    free(entries);
    return buffer_take_string(&all);
}

static void assert_refused_untouched(struct store_fixture *fixture, enum error_code code, const char *word)
{
    struct error err = ERROR_INIT;
    CLEANUP_FREE char *before = fingerprint(fixture);
    struct store *store = NULL;
    assert_error(store_open(&fixture->options, &store, &err), code);
    if (!strstr(err.message, word))
        fail_msg("'%s' is not in: %s", word, err.message);
    assert_true(err.hint[0]);
    CLEANUP_FREE char *after = fingerprint(fixture);
    assert_string_equal(before, after);
}

static void execute(struct store_fixture *fixture, const char *text)
{
    CLEANUP_FREE char *path = path_of(fixture, STORE_DATABASE_NAME);
    sqlite3 *db = NULL;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    char *message = NULL;
    if (sqlite3_exec(db, text, NULL, NULL, &message) != SQLITE_OK)
        fail_msg("%s", message);
    sqlite3_close(db);
}

static int64_t ask(struct store_fixture *fixture, const char *text)
{
    CLEANUP_FREE char *path = path_of(fixture, STORE_DATABASE_NAME);
    sqlite3 *db = NULL;
    sqlite3_stmt *stmt = NULL;
    assert_int_equal(sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(db, text, -1, &stmt, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
    int64_t number = sqlite3_column_int64(stmt, 0);
    sqlite3_finalize(stmt);
    sqlite3_close(db);
    return number;
}

// ---- directory and lock -----------------------------------------------------------------------------------------

static void wide_modes_are_tightened_even_where_all_existed(void **state)
{
    struct store_fixture *fixture = *state;
    static const char *const names[] = {STORE_DATABASE_NAME, "lock", "reserve", STORE_DATABASE_NAME "-wal", STORE_DATABASE_NAME "-shm"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        assert_int_equal(mode_of(fixture, names[i]), 0600);
    assert_int_equal(mode_of(fixture, "."), 0700);
    close_store(fixture);
    CLEANUP_FREE char *dir = path_of(fixture, ".");
    assert_int_equal(chmod(dir, 0755), 0);
    for (size_t i = 0; i < 3; i++) {
        CLEANUP_FREE char *path = path_of(fixture, names[i]);
        assert_int_equal(chmod(path, 0666), 0);
    }
    store_fixture_reopen(fixture);
    assert_int_equal(mode_of(fixture, "."), 0700);
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        assert_int_equal(mode_of(fixture, names[i]), 0600);
}

static void a_database_that_is_a_link_is_refused(void **state)
{
    struct store_fixture *fixture = *state;
    struct error err = ERROR_INIT;
    close_store(fixture);
    CLEANUP_FREE char *path = path_of(fixture, STORE_DATABASE_NAME), *elsewhere = mem_format("%s/elsewhere", fixture->dir);
    assert_int_equal(rename(path, elsewhere), 0);
    assert_int_equal(symlink(elsewhere, path), 0);
    struct store *store = NULL;
    assert_true(store_open(&fixture->options, &store, &err) < 0);
    assert_null(store);
}

static void a_second_open_names_the_process_that_holds_the_lock(void **state)
{
    struct store_fixture *fixture = *state;
    struct error err = ERROR_INIT;
    struct store *second = NULL;
    assert_error(store_open(&fixture->options, &second, &err), ERROR_STATE);
    CLEANUP_FREE char *pid = mem_format("process %ld ", (long)getpid());
    assert_non_null(strstr(err.message, pid));
    record_free(store_fixture_create(fixture, store_fixture_workspace("unharmed")));
    store_fixture_reopen(fixture); // the lock went with the first
}

static int newest_schema(void)
{
    int count = 0;
    for (size_t i = 0; i < embedded_file_count; i++)
        count += strncmp(embedded_files[i].name, "sql/", 4) == 0;
    return count;
}

static void set_schema(struct store_fixture *fixture, int schema)
{
    CLEANUP_FREE char *text = mem_format("PRAGMA user_version=%d", schema);
    execute(fixture, text);
}

// ---- refused, untouched -----------------------------------------------------------------------------------------

static void a_newer_schema_is_refused_untouched(void **state)
{
    struct store_fixture *fixture = *state;
    record_free(store_fixture_create(fixture, store_fixture_workspace("dev")));
    close_store(fixture);
    execute(fixture, "PRAGMA user_version=99");
    assert_refused_untouched(fixture, ERROR_UNSUPPORTED, "schema 99");
    set_schema(fixture, newest_schema());
    store_fixture_reopen(fixture);
}

// A process that was killed leaves its write-ahead log: the version to judge by may stand only there.
static void a_newer_schema_in_the_write_ahead_log_is_refused_untouched(void **state)
{
    struct store_fixture *fixture = *state;
    close_store(fixture);
    CLEANUP_FREE char *path = path_of(fixture, STORE_DATABASE_NAME), *kept = mem_format("%s/kept", fixture->dir);
    static const char *const suffixes[] = {"", "-wal", "-shm"};
    sqlite3 *db = NULL;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, "PRAGMA user_version=99", NULL, NULL, NULL), SQLITE_OK);
    for (size_t i = 0; i < 3; i++) { // as a kill would leave them
        CLEANUP_FREE char *from = mem_format("%s%s", path, suffixes[i]), *to = mem_format("%s%s", kept, suffixes[i]);
        CLEANUP_FREE char *command = mem_format("cp '%s' '%s'", from, to);
        assert_int_equal(system(command), 0);
    }
    sqlite3_close(db);
    for (int with_index = 1; with_index >= 0; with_index--) {
        for (size_t i = 0; i < 3; i++) {
            CLEANUP_FREE char *command = mem_format("cp '%s%s' '%s%s'; chmod 600 '%s%s'", kept, suffixes[i], path, suffixes[i], path, suffixes[i]);
            assert_int_equal(system(command), 0);
        }
        CLEANUP_FREE char *index = mem_format("%s-shm", path);
        if (!with_index)
            assert_int_equal(unlink(index), 0);
        assert_refused_untouched(fixture, ERROR_UNSUPPORTED, "schema 99");
    }
}

static void put_bytes(struct store_fixture *fixture, off_t offset, const void *bytes, size_t len)
{
    CLEANUP_FREE char *path = path_of(fixture, STORE_DATABASE_NAME);
    CLEANUP_CLOSE int fd = open(path, O_WRONLY | O_CLOEXEC);
    assert_int_equal(pwrite(fd, bytes, len, offset), len);
}

static void what_is_no_database_is_refused_untouched(void **state)
{
    struct store_fixture *fixture = *state;
    close_store(fixture);
    put_bytes(fixture, 0, "this is my diary", 16);
    assert_refused_untouched(fixture, ERROR_CORRUPT, "not an SQLite database");
}

static void a_cut_or_scrambled_database_is_refused_untouched(void **state)
{
    struct store_fixture *fixture = *state;
    for (int i = 0; i < 200; i++)
        record_free(store_fixture_create(fixture, store_fixture_workspace(NULL)));
    close_store(fixture);
    CLEANUP_FREE char *path = path_of(fixture, STORE_DATABASE_NAME), *kept = mem_format("%s/kept", fixture->dir);
    CLEANUP_FREE char *save = mem_format("cp '%s' '%s'", path, kept), *restore = mem_format("cp '%s' '%s'", kept, path);
    assert_int_equal(system(save), 0);
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(truncate(path, st.st_size / 2), 0);
    assert_refused_untouched(fixture, ERROR_CORRUPT, "damaged");
    assert_int_equal(system(restore), 0);
    char noise[512];
    memset(noise, 0xa5, sizeof(noise));
    for (off_t page = 1; page < 12; page++)
        put_bytes(fixture, page * 4096, noise, sizeof(noise));
    assert_refused_untouched(fixture, ERROR_CORRUPT, "damaged");
    put_bytes(fixture, 20, noise, 60);
    assert_refused_untouched(fixture, ERROR_CORRUPT, "damaged");
    assert_int_equal(truncate(path, 60), 0);
    assert_refused_untouched(fixture, ERROR_CORRUPT, "damaged");
    assert_int_equal(system(restore), 0);
    store_fixture_reopen(fixture);
}

static void a_database_of_another_program_is_refused_untouched(void **state)
{
    struct store_fixture *fixture = *state;
    close_store(fixture);
    execute(fixture, "PRAGMA application_id=7");
    assert_refused_untouched(fixture, ERROR_CORRUPT, "another program");
}

static void a_database_whose_first_migration_never_happened_is_filled(void **state)
{
    struct store_fixture *fixture = *state;
    close_store(fixture);
    CLEANUP_FREE char *path = path_of(fixture, STORE_DATABASE_NAME);
    assert_int_equal(truncate(path, 0), 0);
    store_fixture_reopen(fixture);
    close_store(fixture);
    assert_int_equal(unlink(path), 0);
    execute(fixture, "PRAGMA journal_mode=WAL"); // a header and no table
    store_fixture_reopen(fixture);
    record_free(store_fixture_create(fixture, store_fixture_workspace("dev")));
}

static void hostile_names_of_the_directory_are_only_names(void **state)
{
    struct store_fixture *fixture = *state;
    CLEANUP_FREE char *dir = mem_format("%s/a?mode=memory#%%20 b", fixture->dir);
    struct store_options options = fixture->options;
    options.state_dir = dir;
    struct error err = ERROR_INIT;
    for (int i = 0; i < 2; i++) {
        struct store *store = NULL;
        assert_ok(store_open(&options, &store, &err));
        CLEANUP_RECORD struct record *record = store_fixture_workspace(i ? "two" : "one");
        assert_ok(store_fixture_try_create(store, record, &err));
        store_close(store);
    }
    CLEANUP_FREE char *path = mem_format("%s/" STORE_DATABASE_NAME, dir);
    assert_int_equal(access(path, F_OK), 0);
}

// ---- migrations -------------------------------------------------------------------------------------------------

// Rebuilds the table that others refer to, as migrations of SQLite must.
static const char third[] = "CREATE TABLE records_new AS SELECT * FROM records; DROP TABLE records_new;"
                             "ALTER TABLE records ADD COLUMN colour TEXT NOT NULL DEFAULT 'blue';";
static const char dangling[] = "UPDATE records SET workspace_uid = 'ws_nobody' WHERE kind = 'Sandbox';";
static const char broken[] = "CREATE TABLE extra (a INTEGER) STRICT; THIS IS NOT SQL;";

#define MIGRATIONS_MAX 32

// With all that there are, and this one more.
static int open_with_next(struct store_fixture *fixture, const char *text, struct error *err)
{
    struct embedded_file files[MIGRATIONS_MAX];
    char name[48];
    size_t count = 0;
    for (size_t i = 0; i < embedded_file_count && count < MIGRATIONS_MAX - 1; i++)
        if (strncmp(embedded_files[i].name, "sql/", 4) == 0)
            files[count++] = embedded_files[i];
    snprintf(name, sizeof(name), "sql/%04zu_test.sql", count + 1);
    files[count++] = (struct embedded_file){name, text, strlen(text)};
    return store_open_with(&fixture->options, &(struct store_migrations){files, count}, &fixture->store, err);
}

static size_t count_backups(struct store_fixture *fixture)
{
    CLEANUP_FREE char *path = path_of(fixture, "backups");
    struct dirent **entries = NULL;
    int count = scandir(path, &entries, NULL, alphasort);
    for (int i = 0; i < count; i++)
        free(entries[i]);
    free(entries);
    return count < 2 ? 0 : (size_t)count - 2;
}

static void fill(struct store_fixture *fixture)
{
    CLEANUP_RECORD struct record *workspace = store_fixture_create(fixture, store_fixture_workspace("dev"));
    CLEANUP_RECORD struct record *sandbox = store_fixture_create(fixture, store_fixture_sandbox("box", workspace));
}

static void a_migration_keeps_every_row_and_copies_the_database_first(void **state)
{
    struct store_fixture *fixture = *state;
    struct error err = ERROR_INIT;
    fill(fixture);
    close_store(fixture);
    assert_ok(open_with_next(fixture, third, &err));
    CLEANUP_RECORD struct record *sandbox = NULL;
    assert_ok(store_get(fixture->store, KIND_SANDBOX, "box", &sandbox, &err));
    close_store(fixture);
    assert_int_equal(ask(fixture, "PRAGMA user_version"), newest_schema() + 1);
    assert_int_equal(ask(fixture, "SELECT count(*) FROM records WHERE colour = 'blue'"), 2);
    assert_int_equal(count_backups(fixture), 1);
    assert_int_equal(mode_of(fixture, "backups"), 0700);
    CLEANUP_FREE char *words = mem_format("schema %d", newest_schema() + 1);
    assert_refused_untouched(fixture, ERROR_UNSUPPORTED, words); // by the version before
    assert_ok(open_with_next(fixture, third, &err));               // nothing to do: no second copy
    assert_int_equal(count_backups(fixture), 1);
}

static void a_migration_that_fails_leaves_the_database_as_it_was(void **state)
{
    struct store_fixture *fixture = *state;
    struct error err = ERROR_INIT;
    fill(fixture);
    close_store(fixture);
    assert_error(open_with_next(fixture, broken, &err), ERROR_INTERNAL);
    assert_non_null(strstr(err.message, "_test.sql"));
    assert_error(open_with_next(fixture, dangling, &err), ERROR_CORRUPT);
    assert_non_null(strstr(err.message, "1 references"));
    assert_int_equal(ask(fixture, "PRAGMA user_version"), newest_schema());
    assert_int_equal(ask(fixture, "SELECT count(*) FROM sqlite_schema WHERE name = 'extra'"), 0);
    assert_int_equal(ask(fixture, "SELECT count(*) FROM records WHERE workspace_uid = 'ws_nobody'"), 0);
    store_fixture_reopen(fixture);
}

static void the_newest_three_copies_are_kept(void **state)
{
    struct store_fixture *fixture = *state;
    struct error err = ERROR_INIT;
    for (int i = 0; i < 5; i++) {
        close_store(fixture);
        set_schema(fixture, newest_schema());
        clock_advance(fixture->clock, 1000);
        assert_ok(open_with_next(fixture, "SELECT 1;", &err));
    }
    assert_int_equal(count_backups(fixture), 3);
}

#define NEWEST_SCHEMA 5

static void check_tokens(struct store_fixture *fixture, int schema)
{
    struct error err = ERROR_INIT;
    struct store_token *tokens = NULL;
    size_t count = 99;
    assert_ok(store_list_tokens(fixture->store, &tokens, &count, &err));
    assert_int_equal(count, schema < 2 ? 0 : 2);
    if (count) {
        assert_string_equal(tokens[0].name, "laptop");
        assert_string_equal(tokens[0].scopes, "tools:read tools:write sandboxes:manage");
        assert_int_equal(tokens[0].used_at.ms, STORE_FIXTURE_START_MS + 60000);
        assert_int_equal(tokens[1].expires_at.ms, STORE_FIXTURE_START_MS + 86400000);
    }
    free(tokens);
}

static void check_rule(struct store_fixture *fixture)
{
    struct error err = ERROR_INIT;
    CLEANUP_RECORD struct record *rule = NULL;
    assert_ok(store_get(fixture->store, KIND_APPROVAL_RULE, "team", &rule, &err));
    const struct approval_rule_spec *spec = &rule->spec.approval_rule;
    assert_int_equal(spec->paths.count, 1);
    assert_string_equal(spec->paths.items[0], "/home/user/repositories/**/ü*");
    assert_int_equal(spec->max_count, 20);
    assert_int_equal(rule->status.approval_rule.conditions.count, 1);
}

static void check_corpus(struct store_fixture *fixture, int schema)
{
    struct error err = ERROR_INIT;
    close_store(fixture);
    CLEANUP_FREE char *path = path_of(fixture, STORE_DATABASE_NAME);
    assert_int_equal(unlink(path), 0);
    CLEANUP(buffer_free) struct buffer text = BUFFER_INIT(4 << 20);
    CLEANUP_FREE char *from = mem_format(TEST_SOURCE_DIR "/tests/store/corpus/schema-%d.sql", schema);
    assert_ok(fs_read_file(from, &text, &err));
    execute(fixture, buffer_text(&text));
    store_fixture_reopen(fixture);
    const int live[KIND_COUNT] = {
        [KIND_WORKSPACE] = 3, [KIND_APPROVAL] = 2, [KIND_SANDBOX] = 1, [KIND_SESSION] = 1, [KIND_EXPOSURE] = 1,
        [KIND_APPROVAL_RULE] = schema < 4 ? 0 : 1};
    struct store_stats stats;
    assert_ok(store_stats(fixture->store, &stats, &err));
    for (int kind = 0; kind < KIND_COUNT; kind++) {
        struct record_list list;
        assert_ok(store_list(fixture->store, (enum kind)kind, &list, NULL, &err));
        assert_int_equal(list.count, live[kind]);
        assert_int_equal(stats.live[kind], live[kind]);
        record_list_free(&list);
    }
    struct store_feed_row *rows;
    size_t count;
    assert_ok(store_read_feed(fixture->store, 1, 1000, &rows, &count, &err));
    assert_int_equal(count, stats.revision - 1);
    store_feed_free(rows, count);
    CLEANUP_RECORD struct record *sandbox = NULL;
    assert_ok(store_get(fixture->store, KIND_SANDBOX, "box", &sandbox, &err));
    CLEANUP_FREE char *secret = NULL;
    assert_ok(store_get_secret(fixture->store, sandbox->meta.uid, "token", &secret, &err));
    assert_string_equal(secret, "corpus");
    assert_int_equal(sandbox->status.sandbox.last_activity_at.ms, STORE_FIXTURE_START_MS + 60000);
    check_tokens(fixture, schema);
    if (schema >= 4)
        check_rule(fixture);
}

static void a_released_database_of_each_schema_opens_with_all_its_rows(void **state)
{
    for (int schema = 1; schema <= NEWEST_SCHEMA; schema++)
        check_corpus(*state, schema);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(wide_modes_are_tightened_even_where_all_existed),
        TEST(a_database_that_is_a_link_is_refused),
        TEST(a_second_open_names_the_process_that_holds_the_lock),
        TEST(a_newer_schema_is_refused_untouched),
        TEST(a_newer_schema_in_the_write_ahead_log_is_refused_untouched),
        TEST(what_is_no_database_is_refused_untouched),
        TEST(a_cut_or_scrambled_database_is_refused_untouched),
        TEST(a_database_of_another_program_is_refused_untouched),
        TEST(a_database_whose_first_migration_never_happened_is_filled),
        TEST(hostile_names_of_the_directory_are_only_names),
        TEST(a_migration_keeps_every_row_and_copies_the_database_first),
        TEST(a_migration_that_fails_leaves_the_database_as_it_was),
        TEST(the_newest_three_copies_are_kept),
        TEST(a_released_database_of_each_schema_opens_with_all_its_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
