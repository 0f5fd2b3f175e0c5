#include "controller/store/internal.h"
#include "controller/policy.h"
#include <fcntl.h>
#include <sys/stat.h>

// Each transaction does a bounded piece, so that writers never wait long for it.
#define FEED_ROWS_A_PIECE 5000
#define TOMBSTONES_A_PIECE 500LL
#define PIECES_MAX 200
#define VACUUM_FROM_PAGES 1024

// The feed keeps what is younger than its time and its newest rows, whichever is more; never nothing.
// Revisions are contiguous and their times rise, but for a clock that was set back: then a bit more or less is kept.
static int find_kept_from(struct store_tx *tx, int64_t oldest, int64_t newest, int64_t *ret, struct error *err)
{
    int64_t from_ms = tx->now.ms - tx->store->feed_keep_ms, low = oldest, high = newest;
    while (low < high) {
        int64_t middle = low + (high - low) / 2, at_ms;
        if (sql_number(tx->sql, SQL_FEED_TIME_OF, &at_ms, err, "i", middle) < 0)
            return -1;
        if (at_ms < from_ms)
            low = middle + 1;
        else
            high = middle;
    }
    *ret = low;
    return 0;
}

static int find_feed_cut(struct store_tx *tx, int64_t oldest, int64_t newest, int64_t *ret, struct error *err)
{
    int64_t kept_from;
    if (find_kept_from(tx, oldest, newest, &kept_from, err) < 0)
        return -1;
    int64_t by_rows = newest - tx->store->feed_keep_rows + 1, cut = kept_from < by_rows ? kept_from : by_rows;
    *ret = cut > oldest + FEED_ROWS_A_PIECE ? oldest + FEED_ROWS_A_PIECE : cut;
    return 0;
}

static int trim_feed(struct store_tx *tx, int64_t *ret_count, struct error *err)
{
    int64_t oldest, newest, cut;
    if (sql_number(tx->sql, SQL_FEED_OLDEST, &oldest, err, "") < 0 || sql_number(tx->sql, SQL_REVISION, &newest, err, "") < 0 ||
        find_feed_cut(tx, oldest, newest, &cut, err) < 0)
        return -1;
    *ret_count = cut > oldest ? cut - oldest : 0;
    return *ret_count ? sql_run(tx->sql, SQL_FEED_TRIM, err, "i", cut) : 0;
}

static int drop_tombstones(struct store_tx *tx, int64_t *ret_count, struct error *err)
{
    if (sql_run(tx->sql, SQL_TOMBSTONES_DROP, err, "ii", tx->now.ms - TOMBSTONE_KEEP_MS, TOMBSTONES_A_PIECE) < 0)
        return -1;
    *ret_count = sqlite3_changes64(tx->sql->db);
    return 0;
}

static int read_free_pages(void *arg, int columns, char **values, char **names)
{
    (void)columns, (void)names;
    *(long *)arg = values[0] ? strtol(values[0], NULL, 10) : 0;
    return 0;
}

static int give_back_pages(struct store_tx *tx, struct error *err)
{
    long free_pages = 0;
    sqlite3_exec(tx->sql->db, "PRAGMA freelist_count", read_free_pages, &free_pages, NULL);
    return free_pages > VACUUM_FROM_PAGES ? sql_exec(tx->sql, "PRAGMA incremental_vacuum(512)", err) : 0;
}

static int do_piece(struct store_tx *tx, void *arg, struct error *err)
{
    int64_t rows, tombstones;
    size_t ends;
    if (trim_feed(tx, &rows, err) < 0 || drop_tombstones(tx, &tombstones, err) < 0 || events_end_old(tx, &ends, err) < 0 ||
        give_back_pages(tx, err) < 0)
        return -1;
    *(bool *)arg = rows >= FEED_ROWS_A_PIECE || tombstones >= TOMBSTONES_A_PIECE || ends >= EVENT_ENDS_MAX;
    return 0;
}

int store_upkeep(struct store *store, struct error *err)
{
    struct disk *disk = &store->disk;
    if (disk_free_bytes(disk) > disk->floor_bytes + (int64_t)disk->reserve_bytes)
        disk_make_reserve(disk);
    bool has_more = true;
    for (int i = 0; has_more && i < PIECES_MAX; i++)
        if (store_transact(store, do_piece, &has_more, err) < 0)
            return error_context(err, "upkeep of the store");
    events_tell(store);
    return 0;
}

int64_t store_free_bytes(struct store *store)
{
    return disk_free_bytes(&store->disk);
}

bool store_is_low_on_disk(struct store *store)
{
    return disk_is_low(&store->disk);
}

static int count_live(struct sql *sql, struct store_stats *stats, struct error *err)
{
    int r = 0;
    for (int kind = 0; kind < KIND_COUNT && r == 0; kind++)
        r = sql_number(sql, SQL_COUNT_OF_KIND, &stats->live[kind], err, "t", kind_info((enum kind)kind)->name);
    return r;
}

int store_stats(struct store *store, struct store_stats *ret, struct error *err)
{
    struct store_stats stats = {.revision = store_revision(store), .writes = atomic_load(&store->writes)};
    struct stat st;
    if (fstatat(store->dir_fd, STORE_DATABASE_NAME, &st, AT_SYMLINK_NOFOLLOW) == 0)
        stats.database_bytes = (int64_t)st.st_size;
    struct sql *sql = readers_take(&store->readers, err);
    if (!sql)
        return -1;
    int64_t oldest = 0, newest = 0;
    int r = sql_number(sql, SQL_FEED_OLDEST, &oldest, err, "");
    if (r == 0)
        r = sql_number(sql, SQL_REVISION, &newest, err, "");
    if (r == 0)
        r = count_live(sql, &stats, err);
    readers_release(&store->readers, sql);
    if (r < 0)
        return -1;
    stats.feed_rows = newest ? newest - oldest + 1 : 0;
    *ret = stats;
    return 0;
}
