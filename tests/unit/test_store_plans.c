// How SQLite finds what the store's statements ask for: by an index. A statement that reads a whole table that grows, or all records
// of a kind, is named here with the reason, or the test fails.
#include "controller/base/memory.h"
#include "controller/store/internal.h"
#include "tests/support/store_fixture.h"
#include <string.h>

static const struct allowed {
    enum sql_statement statement;
    const char *table;
    const char *reason;
} allowed[] = {
    {SQL_COUNT_PENDING_APPROVALS, "records", "a partial index that holds the pending ones only, 100 at most, and all of them are asked for"},
    {SQL_LIST, "records", "all of a kind is what is asked for"},
    {SQL_LIST_FOREMOST, "records", "which are foremost is of all; only those that are told are parsed"},
    {SQL_COUNT_PHASES, "records", "all of a kind is what is asked for"},
    {SQL_COUNT_OF_KIND, "records", "all of a kind is what is asked for, and no row is read"},
    {SQL_ACTIVITY_ALL, "r", "at the start, all sandboxes"},
    {SQL_EVENTS_ALL, "events", "by the index of versions, newest first, to the limit"},
    {SQL_EVENTS_OVER_ALL, "events", "by the index of versions to the limit; the table is bounded, and upkeep is once a minute"},
    {SQL_EVENT_HORIZON_ENDED, "events", "by the index of versions; the table is bounded, and upkeep is once a minute"},
    {SQL_EVENTS_DROP_ENDED, "events", "by the index of versions; the table is bounded, and upkeep is once a minute"},
};

static const char *const growing[] = {"records", "r", "c", "feed", "events", "activity", "secrets"}; // and their aliases
static bool was_used[ARRAY_LEN(allowed)];

static bool is_allowed(enum sql_statement which, const char *table)
{
    for (size_t i = 0; i < ARRAY_LEN(allowed); i++)
        if (allowed[i].statement == which && strcmp(allowed[i].table, table) == 0)
            return was_used[i] = true;
    return false;
}

// "SCAN feed" and "SCAN feed USING INDEX …" read every row; "SEARCH feed USING …" does not.
static bool is_scan_of(const char *step, const char *table)
{
    size_t len = strlen(table);
    return strncmp(step, "SCAN ", 5) == 0 && strncmp(step + 5, table, len) == 0 && (step[5 + len] == '\0' || step[5 + len] == ' ');
}

// All of a kind, from the first on.
static bool is_whole_kind(const char *step, const char *table)
{
    size_t len = strlen(table);
    return strncmp(step, "SEARCH ", 7) == 0 && strncmp(step + 7, table, len) == 0 && strcmp(step + 7 + len, " USING INDEX records_live (kind=?)") == 0;
}

static int report_scans(enum sql_statement which, const char *step)
{
    for (size_t i = 0; i < ARRAY_LEN(growing); i++)
        if ((is_scan_of(step, growing[i]) || is_whole_kind(step, growing[i])) && !is_allowed(which, growing[i])) {
            print_message("%s\n  of statement %d: %s\n", step, (int)which, sql_texts[which]);
            return 1;
        }
    return 0;
}

static int scans_of(sqlite3 *db, enum sql_statement which)
{
    CLEANUP_FREE char *text = mem_format("EXPLAIN QUERY PLAN %s", sql_texts[which]);
    sqlite3_stmt *stmt = NULL;
    int scans = 0;
    assert_int_equal(sqlite3_prepare_v2(db, text, -1, &stmt, NULL), SQLITE_OK);
    while (sqlite3_step(stmt) == SQLITE_ROW)
        scans += report_scans(which, (const char *)sqlite3_column_text(stmt, 3));
    sqlite3_finalize(stmt);
    return scans;
}

static void no_statement_reads_a_whole_table_or_kind_unless_it_must(void **state)
{
    struct store_fixture *fixture = *state;
    struct error err = ERROR_INIT;
    struct sql *sql = readers_take(&fixture->store->readers, &err);
    int scans = 0;
    assert_non_null(sql);
    for (int which = 0; which < SQL_COUNT; which++)
        scans += scans_of(sql->db, (enum sql_statement)which);
    readers_release(&fixture->store->readers, sql);
    assert_int_equal(scans, 0);
    for (size_t i = 0; i < ARRAY_LEN(allowed); i++)
        if (!was_used[i])
            fail_msg("statement %d reads not all of %s any more: take it from the list", (int)allowed[i].statement, allowed[i].table);
}

// Since it was asked last.
static int reprepared(const struct sql *sql)
{
    int count = 0;
    for (int which = 0; which < SQL_COUNT; which++)
        if (sql->prepared[which])
            count += sqlite3_stmt_status(sql->prepared[which], SQLITE_STMTSTATUS_REPREPARE, 1);
    return count;
}

static int reprepared_anywhere(struct store *store)
{
    int count = reprepared(&store->writer.sql);
    for (size_t i = 0; i < STORE_READERS; i++)
        if (store->readers.slots[i].is_open)
            count += reprepared(&store->readers.slots[i].sql);
    return count;
}

static void ask_all_kinds(struct store *store, const char *name, const char *uid)
{
    for (int kind = 0; kind < KIND_COUNT; kind++) {
        struct error err = ERROR_INIT;
        struct record *found = NULL;
        struct record_list list = {0};
        store_get(store, (enum kind)kind, name, &found, &err);
        record_free(found);
        assert_ok(store_list(store, (enum kind)kind, &list, NULL, &err));
        record_list_free(&list);
        assert_ok(store_list_bound(store, KIND_SANDBOX, uid, &list, &err));
        record_list_free(&list);
    }
}

// Of a plan that depends on values SQLite makes a new one for each.
static void statements_are_prepared_once_whatever_is_asked_for(void **state)
{
    struct store_fixture *fixture = *state;
    CLEANUP_RECORD struct record *workspace = store_fixture_create(fixture, store_fixture_workspace("dev"));
    CLEANUP_RECORD struct record *box = store_fixture_create(fixture, store_fixture_sandbox("box", workspace));
    ask_all_kinds(fixture->store, "dev", workspace->meta.uid);
    reprepared_anywhere(fixture->store); // when the store was made, its schema changed
    static const char *const paths[] = {"/srv/a", "/srv/b", "/srv/c"};
    for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
        record_free(store_fixture_create(fixture, store_fixture_approval(paths[i])));
        ask_all_kinds(fixture->store, paths[i], box->meta.uid);
    }
    assert_int_equal(reprepared_anywhere(fixture->store), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(statements_are_prepared_once_whatever_is_asked_for, store_fixture_setup, store_fixture_teardown),
        cmocka_unit_test_setup_teardown(no_statement_reads_a_whole_table_or_kind_unless_it_must, store_fixture_setup, store_fixture_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
