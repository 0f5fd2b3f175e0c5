#include "controller/store/internal.h"
#include "controller/base/cleanup.h"
#include "controller/base/memory.h"
#include "controller/base/random.h"
#include "controller/fault.h"
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

static int number_of(const char *name)
{
    return strncmp(name, "sql/", 4) == 0 && isdigit((unsigned char)name[4]) ? (int)strtol(name + 4, NULL, 10) : 0;
}

static const struct embedded_file *migration(const struct store_migrations *migrations, int number)
{
    for (size_t i = 0; i < migrations->count; i++)
        if (number_of(migrations->files[i].name) == number)
            return &migrations->files[i];
    return NULL;
}

int store_schema_newest(const struct store_migrations *migrations)
{
    int newest = 0;
    while (migration(migrations, newest + 1))
        newest++;
    return newest;
}

static int apply_all(struct sql *sql, const struct store_migrations *migrations, int version, struct error *err)
{
    const struct embedded_file *file;
    while ((file = migration(migrations, ++version))) {
        if (FAULT("store.migrate.step"))
            return error_set(err, ERROR_IO, NULL, "fault point");
        if (sql_exec(sql, file->data, err) < 0)
            return error_context(err, "migration %s", file->name);
    }
    char text[128];
    snprintf(text, sizeof(text), "PRAGMA application_id=%d; PRAGMA user_version=%d;", STORE_APPLICATION_ID, version - 1);
    return sql_exec(sql, text, err);
}

static int count_row(void *arg, int columns, char **values, char **names)
{
    (void)columns, (void)values, (void)names;
    return ++*(int *)arg, 0;
}

static int check_references(struct sql *sql, struct error *err)
{
    int dangling = 0;
    int code = sqlite3_exec(sql->db, "PRAGMA foreign_key_check", count_row, &dangling, NULL);
    if (code != SQLITE_OK)
        return sql_error(sql, code, err, "cannot check references");
    if (dangling)
        return error_set(err, ERROR_CORRUPT, "the database is as it was before; keep the older version and report this",
                         "%d references would dangle after the migration", dangling);
    return 0;
}

static int put_identity(struct sql *sql, struct wall_time now, struct error *err)
{
    char instance[33], created_at[WALL_TIME_TEXT_SIZE];
    random_hex(instance, sizeof(instance) - 1);
    wall_time_format(now, created_at);
    if (sql_run(sql, SQL_META_PUT, err, "tt", "instance", instance) < 0)
        return -1;
    return sql_run(sql, SQL_META_PUT, err, "tt", "created_at", created_at);
}

static int migrate_inside(struct sql *sql, const struct store_migrations *migrations, int version, struct wall_time now, struct error *err)
{
    if (apply_all(sql, migrations, version, err) < 0 || (version == 0 && put_identity(sql, now, err) < 0) ||
        check_references(sql, err) < 0)
        return -1;
    if (FAULT("store.migrate.commit"))
        return error_set(err, ERROR_IO, NULL, "fault point");
    return sql_exec(sql, "COMMIT", err);
}

int store_schema_migrate(struct sql *sql, const struct store_migrations *migrations, int version, struct wall_time now, struct error *err)
{
    // A table is rebuilt under its references: they are off here and checked as a whole before the commit.
    if (sql_exec(sql, "PRAGMA foreign_keys=OFF; BEGIN IMMEDIATE;", err) < 0)
        return -1;
    int r = migrate_inside(sql, migrations, version, now, err);
    if (r < 0 && !sqlite3_get_autocommit(sql->db))
        sqlite3_exec(sql->db, "ROLLBACK", NULL, NULL, NULL);
    int on = sql_exec(sql, "PRAGMA foreign_keys=ON", r < 0 ? NULL : err);
    return r < 0 ? -1 : on;
}
