// Durable writes a second through the store against bare SQLite with the same settings, on the same disk in one run.
//     cmake --build build/release --target bench_store && build/release/bench/bench_store [WRITES [json]]
#include "controller/base/memory.h"
#include "tests/bench/figures.h"
#include "tests/support/store_fixture.h"
#include <pthread.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct figures {
    double a_second, p50_ms, p99_ms;
};

static struct figures sum_up(double *each, int count, double total_ms)
{
    struct percentiles found = figures_sum_up(each, count);
    return (struct figures){count * 1e3 / total_ms, found.p50, found.p99};
}

static void print(const char *what, struct figures figures)
{
    printf("%-44s %8.0f/s   p50 %7.3f ms   p99 %7.3f ms\n", what, figures.a_second, figures.p50_ms, figures.p99_ms);
}

// ---- bare SQLite: one row of a record's size, one commit -------------------------------------------------------------

static void must(sqlite3 *db, int code)
{
    if (code != SQLITE_OK && code != SQLITE_DONE) {
        fprintf(stderr, "sqlite: %s\n", sqlite3_errmsg(db));
        exit(1);
    }
}

static struct figures run_bare(const char *dir, int count)
{
    CLEANUP_FREE char *path = mem_format("%s/bare.sqlite", dir);
    CLEANUP_FREE double *each = mem_alloc((size_t)count * sizeof(double));
    sqlite3 *db;
    sqlite3_stmt *stmt;
    char body[1500];
    memset(body, 'x', sizeof(body));
    must(NULL, sqlite3_open(path, &db));
    must(db, sqlite3_exec(db, "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; CREATE TABLE t (id INTEGER PRIMARY KEY, body TEXT)", NULL,
                          NULL, NULL));
    must(db, sqlite3_prepare_v2(db, "INSERT INTO t (body) VALUES (?1)", -1, &stmt, NULL));
    double start = now_ms();
    for (int i = 0; i < count; i++) {
        double since = now_ms();
        must(db, sqlite3_bind_text(stmt, 1, body, sizeof(body), SQLITE_STATIC));
        must(db, sqlite3_step(stmt));
        must(db, sqlite3_reset(stmt));
        each[i] = now_ms() - since;
    }
    struct figures figures = sum_up(each, count, now_ms() - start);
    sqlite3_finalize(stmt);
    sqlite3_close(db);
    return figures;
}

// ---- the store ------------------------------------------------------------------------------------------------------------

struct client {
    pthread_t thread;
    struct store *store;
    double *each;
    int count;
};

static void *create_in_turn(void *arg)
{
    struct client *client = arg;
    for (int i = 0; i < client->count; i++) {
        struct error err = ERROR_INIT;
        double since = now_ms();
        CLEANUP_RECORD struct record *record = store_fixture_workspace(NULL);
        if (store_fixture_try_create(client->store, record, &err) < 0) {
            fprintf(stderr, "store: %s\n", err.message);
            exit(1);
        }
        client->each[i] = now_ms() - since;
    }
    return NULL;
}

static struct figures run_store(struct store *store, int clients, int count)
{
    struct client all[64];
    CLEANUP_FREE double *each = mem_alloc((size_t)count * sizeof(double));
    int share = count / clients;
    double start = now_ms();
    for (int i = 0; i < clients; i++) {
        all[i] = (struct client){.store = store, .each = each + i * share, .count = share};
        if (pthread_create(&all[i].thread, NULL, create_in_turn, &all[i]) != 0)
            exit(1);
    }
    for (int i = 0; i < clients; i++)
        pthread_join(all[i].thread, NULL);
    return sum_up(each, share * clients, now_ms() - start);
}

static void print_text(struct figures bare, struct figures one, struct figures many)
{
    print("bare SQLite, 1 writer (row of 1.5 KB)", bare);
    print("store, 1 client (record, feed row, completion)", one);
    print("store, 64 clients (group commit)", many);
    printf("ratio to bare SQLite: %.2f with 1 client, %.2f with 64\n", one.a_second / bare.a_second, many.a_second / bare.a_second);
}

static void print_json(struct figures bare, struct figures one, struct figures many)
{
    const struct figures all[] = {bare, one, many};
    static const char *const names[] = {"bare", "one", "many"};
    for (size_t i = 0; i < 3; i++)
        printf("%s\"%s\": {\"a_second\": %.1f, \"p50_ms\": %.4f, \"p99_ms\": %.4f}", i ? ", " : "{", names[i], all[i].a_second, all[i].p50_ms,
               all[i].p99_ms);
    puts("}");
}

int main(int argc, char **argv)
{
    int count = argc > 1 ? atoi(argv[1]) : 1024;
    if (count < 64)
        count = 64;
    struct store_fixture *fixture = store_fixture_open();
    struct figures bare = run_bare(fixture->dir, count);
    struct figures one = run_store(fixture->store, 1, count);
    struct figures many = run_store(fixture->store, 64, count * 4);
    if (argc > 2 && strcmp(argv[2], "json") == 0)
        print_json(bare, one, many);
    else
        print_text(bare, one, many);
    store_fixture_close(fixture);
    return 0;
}
