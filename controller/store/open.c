#include "controller/store/internal.h"
#include "controller/base/memory.h"
#include "controller/fault.h"

#define RESERVE_BYTES (4u << 20)
#define DISK_FLOOR_BYTES (64u << 20)

static struct store *make(const struct store_options *options)
{
    struct store *store = mem_alloc(sizeof(*store));
    store->clock = options->clock;
    store->path = mem_format("%s/" STORE_DATABASE_NAME, options->state_dir);
    store->dir_fd = store->lock_fd = -1;
    store->feed_keep_ms = options->feed_keep_ms ? options->feed_keep_ms : FEED_KEEP_MS;
    store->feed_keep_rows = options->feed_keep_rows ? options->feed_keep_rows : FEED_KEEP_ROWS;
    activity_init(&store->activity);
    subscriptions_init(&store->subscriptions);
    pthread_mutex_init(&store->event_listener.lock, NULL);
    readers_init(&store->readers, store->path);
    return store;
}

static void destroy(struct store *store)
{
    readers_close(&store->readers);
    disk_vfs_use(&store->disk); // the last connection writes the log back into the database
    sql_close(&store->writer.sql);
    disk_vfs_use(NULL);
    subscriptions_free(&store->subscriptions);
    pthread_mutex_destroy(&store->event_listener.lock);
    activity_free(&store->activity);
    if (store->dir_fd >= 0)
        close(store->dir_fd);
    if (store->lock_fd >= 0)
        close(store->lock_fd); // last: nobody else may open before the database is closed
    free(store->path);
    free(store);
}

static int migrate(struct store *store, const struct store_options *options, const struct store_migrations *migrations, int version,
                   struct error *err)
{
    struct sql *sql = &store->writer.sql;
    struct wall_time now = clock_wall(store->clock);
    if (version >= store_schema_newest(migrations))
        return 0;
    if (version > 0 && store_backup(sql, options->state_dir, version, now, err) < 0)
        return error_context(err, "the database was not migrated, because it could not be copied first");
    if (store_schema_migrate(sql, migrations, version, now, err) < 0)
        return error_context(err, "the database is as it was: its migration from schema %d failed", version);
    return 0;
}

static int load(struct store *store, struct error *err)
{
    int64_t newest;
    if (sql_number(&store->writer.sql, SQL_REVISION, &newest, err, "") < 0)
        return -1;
    CLEANUP_QUERY sqlite3_stmt *stmt = sql_query(&store->writer.sql, SQL_INSTANCE, err, "");
    if (!stmt || sql_next(&store->writer.sql, stmt, err) <= 0)
        return stmt ? error_set(err, ERROR_CORRUPT, "restore a backup", "the database has no identity") : -1;
    snprintf(store->instance, sizeof(store->instance), "%s", sql_text(stmt, 0));
    if (wall_time_parse(sql_text(stmt, 1), &store->created_at) < 0)
        store->created_at = clock_wall(store->clock);
    atomic_init(&store->revision, newest ? newest : 1); // "0" means "any" to Kubernetes clients
    return image_form_open(store, &store->writer.sql, err) < 0 ? -1 : activity_load(store, err);
}

static int open_inside(struct store *store, const struct store_options *options, const struct store_migrations *migrations,
                       struct error *err)
{
    int version = 0;
    if (store_directory_open(options->state_dir, &store->dir_fd, &store->lock_fd, err) < 0 ||
        store_schema_inspect(store->dir_fd, store->path, migrations, &version, err) < 0 ||
        store_directory_make_database(store->dir_fd, err) < 0)
        return -1;
    disk_init(&store->disk, store->dir_fd, options->reserve_bytes ? options->reserve_bytes : RESERVE_BYTES,
              options->disk_floor_bytes ? options->disk_floor_bytes : DISK_FLOOR_BYTES);
    disk_vfs_use(&store->disk);
    int r = sql_open(&store->writer.sql, store->path, SQL_WRITER, disk_vfs(), err);
    if (r == 0)
        r = migrate(store, options, migrations, version, err);
    if (r == 0)
        r = load(store, err);
    disk_vfs_use(NULL);
    return r == 0 ? writer_start(store, err) : -1;
}

int store_open_with(const struct store_options *options, const struct store_migrations *migrations, struct store **ret, struct error *err)
{
    struct store *store = make(options);
    if (open_inside(store, options, migrations, err) < 0)
        return destroy(store), -1;
    *ret = store;
    return 0;
}

int store_open(const struct store_options *options, struct store **ret, struct error *err)
{
    return store_open_with(options, &(struct store_migrations){embedded_files, embedded_file_count}, ret, err);
}

void store_close(struct store *store)
{
    if (!store)
        return;
    writer_stop(store);
    destroy(store);
}

struct wall_time store_created_at(const struct store *store)
{
    return store->created_at;
}

const char *store_instance(const struct store *store)
{
    return store->instance;
}
