#include "controller/store/internal.h"
#include "schemas/kinds/conditions.h"
#include <assert.h>
#include <stdio.h>
#include <string.h>

static struct extracted extract_sandbox(const struct record *record)
{
    const struct sandbox_status *status = &record->status.sandbox;
    bool is_coming = !record->meta.deletion_at.ms && !status->started_at.ms && !record_is_true(record, CONDITION_FAILED);
    return (struct extracted){
        .workspace_uid = status->workspace_uid,
        .joined_by = is_coming ? text_map_get(&record->meta.annotations, ANNOTATION_REQUEST) : NULL,
        .waits_for = status->workspace_uid || record->meta.removed_at.ms ? NULL : record->spec.sandbox.workspace_ref,
    };
}

struct extracted extract_columns(const struct record *record)
{
    switch (record->kind) {
    case KIND_WORKSPACE:
        return (struct extracted){.path = record->spec.workspace.path, .mode = workspace_mode_word(record->spec.workspace.mode)};
    case KIND_APPROVAL:
        return (struct extracted){.path = record->spec.approval.path,
                                  .mode = workspace_mode_word(record->spec.approval.mode),
                                  .decision = approval_decision_word(record->spec.approval.decision)};
    case KIND_SANDBOX:
        return extract_sandbox(record);
    case KIND_SESSION:
        return (struct extracted){.sandbox_uid = record->status.session.sandbox_uid};
    case KIND_EXPOSURE:
        return (struct extracted){.sandbox_uid = record->status.exposure.sandbox_uid, .port = record->spec.exposure.port};
    case KIND_APPROVAL_RULE:
        return (struct extracted){0};
    default:
        assert(!"a kind of the closed list");
        return (struct extracted){0};
    }
}

// The first text that a query finds, into room; "" if none.
static void find_text(struct sql *sql, sqlite3_stmt *stmt, char *room, size_t size)
{
    room[0] = '\0';
    if (stmt && sql_next(sql, stmt, NULL) > 0)
        snprintf(room, size, "%s", sql_text(stmt, 0));
    sql_done(stmt);
}

static int word_name(struct sql *sql, const struct record *record, struct error *err)
{
    (void)sql;
    return error_set(err, ERROR_EXISTS, "choose another name, or delete that one first", "a %s named '%s' exists already",
                     kind_info(record->kind)->singular, record->meta.name);
}

static int word_workspace(struct sql *sql, const struct record *record, struct error *err)
{
    char holder[128];
    find_text(sql,
              sql_query(sql, SQL_HOLDER_OF_WORKSPACE, NULL, "tt", record->status.sandbox.workspace_uid, record->meta.uid), holder,
              sizeof(holder));
    return error_set(err, ERROR_CONFLICT, "use that sandbox, or destroy it first", "the workspace %s has a sandbox already: '%s'",
                     record->status.sandbox.workspace_uid, holder);
}

static int word_approval(struct sql *sql, const struct record *record, struct error *err)
{
    struct extracted columns = extract_columns(record);
    char holder[128];
    find_text(sql, sql_query(sql, SQL_PENDING_APPROVAL, NULL, "ttt", columns.path, columns.mode, record->meta.uid), holder, sizeof(holder));
    return error_set(err, ERROR_CONFLICT, "decide that one first", "the approval %s for the same path and mode is pending already", holder);
}

static int word_exposure(struct sql *sql, const struct record *record, struct error *err)
{
    struct extracted columns = extract_columns(record);
    char holder[128];
    find_text(sql, sql_query(sql, SQL_EXPOSURE_OF_PORT, NULL, "tit", columns.sandbox_uid, columns.port, record->meta.uid), holder,
              sizeof(holder));
    return error_set(err, ERROR_CONFLICT, NULL, "port %lld of the sandbox %s is exposed already, by '%s'", (long long)columns.port,
                     columns.sandbox_uid, holder);
}

static int word_uid(struct sql *sql, const struct record *record, struct error *err)
{
    (void)sql;
    return error_set(err, ERROR_EXISTS, NULL, "a record with the uid %s was there before", record->meta.uid);
}

// SQLite names a broken unique index by its columns.
int extract_word_conflict(struct sql *sql, const struct record *record, int extended_code, struct error *err)
{
    static const struct {
        const char *columns;
        int (*word)(struct sql *sql, const struct record *record, struct error *err);
    } indexes[] = {
        {"records.kind, records.name", word_name},      {"records.workspace_uid", word_workspace},
        {"records.path, records.mode", word_approval},  {"records.sandbox_uid, records.port", word_exposure},
        {"records.uid", word_uid},
    };
    const char *message = sqlite3_errmsg(sql->db);
    for (size_t i = 0; extended_code == SQLITE_CONSTRAINT_UNIQUE && i < sizeof(indexes) / sizeof(indexes[0]); i++)
        if (strstr(message, indexes[i].columns))
            return indexes[i].word(sql, record, err);
    if (extended_code == SQLITE_CONSTRAINT_FOREIGNKEY)
        return error_set(err, ERROR_CONFLICT, "read again: what it refers to was removed for good",
                         "the %s '%s' is bound to a record that does not exist", kind_info(record->kind)->singular, record->meta.name);
    return sql_error(sql, extended_code, err, "the record breaks a rule of the store");
}
