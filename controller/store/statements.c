#include "controller/store/sql.h"

#define RECORD_COLUMNS                                                                                       \
    "kind, uid, name, resource_version, generation, created_at, created_by, deletion_at, removed_at, meta, " \
    "spec, status"

#define EVENT_COLUMNS "id, uid, kind, name, type, reason, message, first_at, last_at, count, version"
// An event that ended stays for watchers as the mark of its end, with its count negative. When such marks go, the newest version among
// them is the horizon: who knows only what was before it has to list again.
#define IS_EVENT "count > 0"
#define OLD_ENDS "count < 0 AND id IN (SELECT id FROM events WHERE count < 0 ORDER BY version DESC LIMIT -1 OFFSET ?1)"
#define RAISE_HORIZON(which)                                                                                  \
    "INSERT INTO meta (key, value) SELECT 'event_horizon', CAST(max(version) AS TEXT) FROM events WHERE " which \
    " HAVING max(version) IS NOT NULL ON CONFLICT (key) DO UPDATE SET "                                       \
    "value = CAST(max(CAST(value AS INTEGER), CAST(excluded.value AS INTEGER)) AS TEXT)"

// The first image before each change of a kind after a revision: what these records were then (NULL: not there yet).
#define CHANGED_SINCE                                                                                        \
    "WITH changed AS MATERIALIZED (SELECT uid, min(revision) AS first, before FROM feed WHERE revision > ?3 "  \
    "AND kind = ?1 GROUP BY uid) "
#define WERE_LIVE                                                                                            \
    "FROM records r LEFT JOIN changed c ON c.uid = r.uid WHERE r.kind = ?1 AND r.id > ?2 "                   \
    "AND (r.removed_at IS NULL OR c.uid IS NOT NULL) AND (c.uid IS NULL OR c.before IS NOT NULL) "

const char *const sql_texts[SQL_COUNT] = {
    [SQL_GET_NAME] = "SELECT " RECORD_COLUMNS " FROM records WHERE kind = ?1 AND name = ?2 AND removed_at IS NULL",
    [SQL_GET_UID] = "SELECT " RECORD_COLUMNS " FROM records WHERE uid = ?2 AND kind = ?1",
    [SQL_LIST] = "SELECT " RECORD_COLUMNS " FROM records INDEXED BY records_live WHERE kind = ?1 AND removed_at IS NULL ORDER BY id",
    [SQL_LIST_FOREMOST] = "SELECT * FROM (SELECT " RECORD_COLUMNS ", id FROM records INDEXED BY records_live WHERE kind = ?1 AND removed_at IS NULL "
                          "ORDER BY deletion_at IS NOT NULL OR coalesce(json_extract(status, '$.phase'), '') IN ('retained', 'failed'), id DESC LIMIT ?2) "
                          "ORDER BY id",
    [SQL_LIST_UIDS] = "SELECT uid, id FROM records INDEXED BY records_live WHERE kind = ?1 AND removed_at IS NULL AND id > ?2 "
                      "ORDER BY id LIMIT ?3",
    // Phases are of the status text that was written last: nothing is made a record for it.
    [SQL_COUNT_PHASES] = "SELECT coalesce(json_extract(status, '$.phase'), 'unknown') AS phase, count(*) FROM records "
                         "INDEXED BY records_live WHERE kind = ?1 AND removed_at IS NULL GROUP BY phase ORDER BY phase",
    [SQL_LIST_OF_WORKSPACE] = "SELECT " RECORD_COLUMNS " FROM records INDEXED BY records_of_workspace "
                              "WHERE workspace_uid = ?2 AND kind = ?1 AND removed_at IS NULL ORDER BY id",
    [SQL_LIST_OF_NO_WORKSPACE] = "SELECT " RECORD_COLUMNS " FROM records INDEXED BY records_waiting "
                                 "WHERE waits_for IS NOT NULL AND kind = ?1 ORDER BY id",
    [SQL_UIDS_WAITING] = "SELECT uid, id FROM records INDEXED BY records_waiting WHERE waits_for IS NOT NULL ORDER BY id",
    [SQL_UIDS_WAITING_FOR] = "SELECT uid, id FROM records INDEXED BY records_waiting WHERE waits_for = ?1 ORDER BY id",
    [SQL_LIST_OF_SANDBOX] = "SELECT " RECORD_COLUMNS " FROM records INDEXED BY records_of_sandbox "
                            "WHERE sandbox_uid = ?2 AND kind = ?1 AND removed_at IS NULL ORDER BY id",
    [SQL_LIST_OF_NO_SANDBOX] = "SELECT " RECORD_COLUMNS " FROM records INDEXED BY records_unbound_dependents "
                               "WHERE kind IN ('Session', 'Exposure') AND kind = ?1 AND removed_at IS NULL AND sandbox_uid IS NULL "
                               "ORDER BY id",
    [SQL_LIST_OF_PATH] = "SELECT " RECORD_COLUMNS " FROM records INDEXED BY records_of_path "
                         "WHERE kind = ?1 AND mode = ?2 AND path = ?3 AND removed_at IS NULL ORDER BY id",
    [SQL_LIST_OF_MODE] = "SELECT " RECORD_COLUMNS " FROM records INDEXED BY records_of_path "
                         "WHERE kind = ?1 AND mode = ?2 AND path IS NOT NULL AND removed_at IS NULL ORDER BY id",
    [SQL_LIST_STARTING] = "SELECT " RECORD_COLUMNS " FROM records INDEXED BY records_joined_by WHERE joined_by = ?1 ORDER BY id",
    [SQL_COUNT_OF_KIND] = "SELECT count(*) FROM records INDEXED BY records_live WHERE kind = ?1 AND removed_at IS NULL",
    [SQL_COUNT_BORN_SINCE] = "SELECT count(*) FROM records INDEXED BY records_sandboxes_by_birth WHERE kind = 'Sandbox' "
                             "AND removed_at IS NULL AND created_at > ?1 "
                             "AND (created_by = ?2 OR substr(created_by, 1, length(?2) + 1) = ?2 || ':')",
    [SQL_COUNT_PENDING_APPROVALS] = "SELECT count(*) FROM records INDEXED BY records_one_pending_approval WHERE kind = 'Approval' "
                                    "AND removed_at IS NULL AND decision = 'pending'",
    [SQL_COUNT_APPROVALS_SINCE] = "SELECT count(*) FROM records INDEXED BY records_approvals WHERE kind = 'Approval' "
                                  "AND removed_at IS NULL AND decision IN ('pending', 'approved', 'rejected') AND created_at > ?1 "
                                  "AND (created_by = ?2 OR substr(created_by, 1, length(?2) + 1) = ?2 || ':')",
    [SQL_REJECTED_APPROVAL_AT] = "SELECT uid FROM records INDEXED BY records_approvals WHERE kind = 'Approval' "
                                 "AND removed_at IS NULL AND decision = 'rejected' ORDER BY created_at DESC LIMIT 1 OFFSET ?1",
    // By the index of uids, not by that of kinds, which would read all of the kind.
    [SQL_LIST_PREFIX] = "SELECT " RECORD_COLUMNS " FROM records WHERE +kind = ?1 AND uid >= ?2 AND uid < ?3 AND removed_at IS NULL "
                        "ORDER BY uid LIMIT 6",
    [SQL_VERSION_OF] = "SELECT resource_version FROM records WHERE uid = ?1",
    [SQL_REVISION] = "SELECT max(revision) FROM feed",
    [SQL_FEED_OLDEST] = "SELECT min(revision) FROM feed",
    [SQL_FEED_READ] = "SELECT revision, type, kind, before, after FROM feed WHERE revision > ?1 ORDER BY revision LIMIT ?2",
    [SQL_FEED_TIME_OF] = "SELECT at FROM feed WHERE revision = ?1",
    [SQL_SECRET_GET] = "SELECT value FROM secrets WHERE uid = ?1 AND name = ?2",
    [SQL_EVENTS_ALL] = "SELECT * FROM (SELECT " EVENT_COLUMNS " FROM events WHERE " IS_EVENT " ORDER BY version DESC LIMIT ?2) ORDER BY version",
    [SQL_EVENTS_OF] = "SELECT * FROM (SELECT " EVENT_COLUMNS " FROM events WHERE uid = ?1 AND " IS_EVENT " ORDER BY version DESC LIMIT ?2) "
                      "ORDER BY version",
    [SQL_EVENTS_PAGE] = "SELECT " EVENT_COLUMNS " FROM events WHERE id > ?1 AND " IS_EVENT " ORDER BY id LIMIT ?2",
    [SQL_EVENTS_PAGE_OF] = "SELECT " EVENT_COLUMNS " FROM events WHERE uid = ?3 AND id > ?1 AND " IS_EVENT " ORDER BY id LIMIT ?2",
    [SQL_EVENTS_AFTER] = "SELECT " EVENT_COLUMNS " FROM events WHERE version > ?1 ORDER BY version LIMIT ?2",
    [SQL_EVENT_BY_ID] = "SELECT " EVENT_COLUMNS " FROM events WHERE id = ?1 AND " IS_EVENT,
    [SQL_EVENT_HORIZON] = "SELECT coalesce((SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'event_horizon'), 0)",
    [SQL_EVENT_NEWEST] = "SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'event_version'",
    [SQL_PAGE] = "SELECT " RECORD_COLUMNS ", id, NULL FROM records INDEXED BY records_live WHERE kind = ?1 AND removed_at IS NULL "
                 "AND id > ?2 ORDER BY id LIMIT ?3",
    [SQL_PAGE_NAMED] = "SELECT " RECORD_COLUMNS ", id, NULL FROM records WHERE kind = ?1 AND name = ?4 AND removed_at IS NULL "
                       "AND id > ?2 ORDER BY id LIMIT ?3",
    [SQL_PAGE_AT] = CHANGED_SINCE "SELECT r.kind, r.uid, name, resource_version, generation, created_at, created_by, deletion_at, "
                                  "removed_at, meta, spec, status, id, c.before " WERE_LIVE
                                  "AND (?5 IS NULL OR r.name = ?5) ORDER BY id LIMIT ?4",
    [SQL_PAGE_REST] = "SELECT count(*) FROM records INDEXED BY records_live WHERE kind = ?1 AND removed_at IS NULL AND id > ?2",
    [SQL_PAGE_REST_AT] = CHANGED_SINCE "SELECT count(*) " WERE_LIVE,
    [SQL_ACTIVITY_ALL] = "SELECT r.uid, coalesce(a.at, r.created_at) FROM records r LEFT JOIN activity a ON a.uid = r.uid "
                         "WHERE r.kind = 'Sandbox' AND r.removed_at IS NULL",
    [SQL_HOLDER_OF_WORKSPACE] = "SELECT name FROM records WHERE workspace_uid = ?1 AND kind = 'Sandbox' AND removed_at IS NULL "
                                "AND uid <> ?2",
    [SQL_PENDING_APPROVAL] = "SELECT uid FROM records WHERE path = ?1 AND mode = ?2 AND kind = 'Approval' AND decision = 'pending' "
                             "AND removed_at IS NULL AND uid <> ?3",
    [SQL_EXPOSURE_OF_PORT] = "SELECT name FROM records WHERE sandbox_uid = ?1 AND port = ?2 AND kind = 'Exposure' "
                             "AND removed_at IS NULL AND uid <> ?3",
    [SQL_IS_LIVE] = "SELECT count(*) FROM records WHERE uid = ?1 AND removed_at IS NULL",
    [SQL_INSTANCE] = "SELECT value, (SELECT value FROM meta WHERE key = 'created_at') FROM meta WHERE key = 'instance'",
    [SQL_META_GET] = "SELECT value FROM meta WHERE key = ?1",
    [SQL_TOKENS_ALL] = "SELECT t.id, t.name, t.sha256, t.scopes, t.created_by, t.created_at, t.expires_at, u.at FROM tokens t "
                       "LEFT JOIN token_uses u ON u.token_id = t.id ORDER BY t.id LIMIT ?1",
    [SQL_TOKENS_COUNT] = "SELECT count(*) FROM tokens",
    [SQL_TOKEN_ID] = "SELECT id FROM tokens WHERE name = ?1",
    [SQL_BEGIN_READ] = "BEGIN",
    [SQL_BEGIN] = "BEGIN IMMEDIATE",
    [SQL_COMMIT] = "COMMIT",
    [SQL_ROLLBACK] = "ROLLBACK",
    [SQL_SAVEPOINT] = "SAVEPOINT request",
    [SQL_RELEASE] = "RELEASE request",
    [SQL_ROLLBACK_TO] = "ROLLBACK TO request",
    [SQL_INSERT] = "INSERT INTO records (kind, uid, name, resource_version, generation, created_at, created_by, deletion_at, "
                   "removed_at, meta, spec, status, workspace_uid, sandbox_uid, port, path, mode, decision, joined_by, waits_for) "
                   "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20)",
    [SQL_UPDATE] = "UPDATE records SET resource_version = ?4, generation = ?5, deletion_at = ?8, removed_at = ?9, meta = ?10, "
                   "spec = ?11, status = ?12, workspace_uid = ?13, sandbox_uid = ?14, port = ?15, path = ?16, mode = ?17, "
                   "decision = ?18, joined_by = ?19, waits_for = ?20 WHERE uid = ?2 AND kind = ?1 AND name = ?3 AND created_at = ?6 AND created_by = ?7",
    [SQL_FEED_APPEND] = "INSERT INTO feed (revision, at, type, kind, uid, name, before, after) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
    [SQL_FEED_TRIM] = "DELETE FROM feed WHERE revision < ?1",
    // A tombstone that another record still refers to stays until that one goes.
    [SQL_TOMBSTONES_DROP] = "DELETE FROM records WHERE id IN (SELECT id FROM records r WHERE removed_at < ?1 "
                            "AND NOT EXISTS (SELECT 1 FROM records c WHERE c.workspace_uid = r.uid) "
                            "AND NOT EXISTS (SELECT 1 FROM records c WHERE c.sandbox_uid = r.uid) LIMIT ?2)",
    [SQL_ACTIVITY_PUT] = "INSERT INTO activity (uid, at) VALUES (?1, ?2) ON CONFLICT (uid) DO UPDATE SET at = excluded.at "
                         "WHERE at < excluded.at",
    [SQL_ACTIVITY_DROP] = "DELETE FROM activity WHERE uid = ?1",
    [SQL_SECRET_PUT] = "INSERT INTO secrets (uid, name, value) VALUES (?1, ?2, ?3) ON CONFLICT (uid, name) DO UPDATE SET "
                       "value = excluded.value",
    [SQL_SECRETS_DROP] = "DELETE FROM secrets WHERE uid = ?1",
    [SQL_EVENT_VERSION] = "INSERT INTO meta (key, value) VALUES ('event_version', '1') ON CONFLICT (key) DO UPDATE SET "
                          "value = CAST(value AS INTEGER) + 1 RETURNING CAST(value AS INTEGER)",
    [SQL_EVENT_COUNT] = "UPDATE events SET count = count + 1, last_at = ?5, version = ?6, name = ?7 "
                        "WHERE uid = ?1 AND type = ?2 AND reason = ?3 AND message = ?4 AND " IS_EVENT " RETURNING id",
    [SQL_EVENT_ADD] = "INSERT INTO events (uid, type, reason, message, first_at, last_at, version, name, kind, count) "
                      "VALUES (?1, ?2, ?3, ?4, ?5, ?5, ?6, ?7, ?8, 1)",
    [SQL_EVENTS_OVER_OBJECT] = "SELECT id FROM events WHERE uid = ?1 AND " IS_EVENT " ORDER BY version DESC LIMIT -1 OFFSET ?2",
    [SQL_EVENTS_OVER_ALL] = "SELECT id FROM events WHERE " IS_EVENT " ORDER BY version DESC LIMIT ?2 OFFSET ?1",
    [SQL_EVENTS_OVER_AGE] = "SELECT id FROM events WHERE last_at < ?1 AND " IS_EVENT " LIMIT ?2",
    [SQL_EVENT_END] = "UPDATE events SET count = -count, version = ?2 WHERE id = ?1",
    [SQL_EVENT_HORIZON_SAME] = RAISE_HORIZON("uid = ?1 AND type = ?2 AND reason = ?3 AND message = ?4 AND count < 0"),
    [SQL_EVENT_DROP_SAME] = "DELETE FROM events WHERE uid = ?1 AND type = ?2 AND reason = ?3 AND message = ?4 AND count < 0",
    [SQL_EVENT_HORIZON_ENDED] = RAISE_HORIZON(OLD_ENDS),
    [SQL_EVENTS_DROP_ENDED] = "DELETE FROM events WHERE " OLD_ENDS,
    [SQL_META_PUT] = "INSERT OR REPLACE INTO meta (key, value) VALUES (?1, ?2)",
    [SQL_TOKEN_ADD] = "INSERT INTO tokens (name, sha256, scopes, created_at, created_by, expires_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
    [SQL_TOKEN_DROP] = "DELETE FROM tokens WHERE name = ?1",
    [SQL_TOKEN_USE] = "INSERT INTO token_uses (token_id, at) SELECT id, ?2 FROM tokens WHERE id = ?1 "
                      "ON CONFLICT (token_id) DO UPDATE SET at = excluded.at WHERE at < excluded.at",
};
