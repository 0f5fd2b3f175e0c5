-- Schema 1. Applied inside one transaction; the runner sets user_version and application_id.
-- A row of `records` is identity columns, a few columns extracted from spec and status for invariants, and
-- validated JSON. Adding a field to a kind needs no migration; adding a kind neither.
CREATE TABLE meta (
    key TEXT NOT NULL PRIMARY KEY, -- 'instance': this store's random identity; 'created_at'
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE records (
    id INTEGER PRIMARY KEY, -- order of birth
    uid TEXT NOT NULL UNIQUE,
    kind TEXT NOT NULL,
    name TEXT NOT NULL,
    resource_version INTEGER NOT NULL CHECK (resource_version > 0),
    generation INTEGER NOT NULL CHECK (generation > 0),
    created_at INTEGER NOT NULL, -- all times: milliseconds since 1970
    created_by TEXT NOT NULL,
    deletion_at INTEGER,
    removed_at INTEGER, -- a tombstone since; NULL while live
    workspace_uid TEXT REFERENCES records (uid), -- Sandbox: the workspace it is bound to
    sandbox_uid TEXT REFERENCES records (uid),   -- Session, Exposure: the sandbox they are bound to
    port INTEGER,                                -- Exposure
    path TEXT,                                   -- Approval, Workspace
    mode TEXT,                                   -- Approval, Workspace
    decision TEXT,                               -- Approval: 'pending', 'approved', 'rejected'
    meta TEXT NOT NULL CHECK (json_valid(meta)),
    spec TEXT NOT NULL CHECK (json_valid(spec)),
    status TEXT NOT NULL CHECK (json_valid(status)),
    CHECK (removed_at IS NULL OR deletion_at IS NOT NULL)
) STRICT;

CREATE UNIQUE INDEX records_live_name ON records (kind, name) WHERE removed_at IS NULL;
CREATE UNIQUE INDEX records_one_sandbox_a_workspace ON records (workspace_uid)
    WHERE removed_at IS NULL AND kind = 'Sandbox' AND workspace_uid IS NOT NULL;
CREATE UNIQUE INDEX records_one_pending_approval ON records (path, mode)
    WHERE removed_at IS NULL AND kind = 'Approval' AND decision = 'pending';
CREATE UNIQUE INDEX records_one_exposure_a_port ON records (sandbox_uid, port)
    WHERE removed_at IS NULL AND kind = 'Exposure' AND sandbox_uid IS NOT NULL;
CREATE INDEX records_live ON records (kind) WHERE removed_at IS NULL;
CREATE INDEX records_removed ON records (removed_at) WHERE removed_at IS NOT NULL;
CREATE INDEX records_of_workspace ON records (workspace_uid) WHERE workspace_uid IS NOT NULL;
CREATE INDEX records_of_sandbox ON records (sandbox_uid) WHERE sandbox_uid IS NOT NULL;

-- One row a write, in the same transaction. Revisions are contiguous; the newest row is never trimmed, so the
-- store's revision is the largest one here.
CREATE TABLE feed (
    revision INTEGER PRIMARY KEY,
    at INTEGER NOT NULL,
    type TEXT NOT NULL CHECK (type IN ('ADDED', 'MODIFIED', 'DELETED')),
    kind TEXT NOT NULL,
    uid TEXT NOT NULL,
    name TEXT NOT NULL,
    before TEXT, -- the record as an API object before this write; NULL for ADDED
    after TEXT NOT NULL -- and after it; for DELETED the last image
) STRICT;

-- Last tool call of a live sandbox. Merged into its status on read; not in the feed.
CREATE TABLE activity (
    uid TEXT NOT NULL PRIMARY KEY REFERENCES records (uid) ON DELETE CASCADE,
    at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- No serializer reads this table.
CREATE TABLE secrets (
    uid TEXT NOT NULL REFERENCES records (uid) ON DELETE CASCADE,
    name TEXT NOT NULL,
    value TEXT NOT NULL,
    PRIMARY KEY (uid, name)
) STRICT, WITHOUT ROWID;

-- Events have their own sequence (`version` grows with each occurrence), counts and lifetime.
CREATE TABLE events (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    version INTEGER NOT NULL UNIQUE,
    uid TEXT NOT NULL,
    kind TEXT NOT NULL,
    name TEXT NOT NULL,
    type TEXT NOT NULL CHECK (type IN ('Normal', 'Warning')),
    reason TEXT NOT NULL,
    message TEXT NOT NULL,
    first_at INTEGER NOT NULL,
    last_at INTEGER NOT NULL,
    count INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX events_same ON events (uid, type, reason, message);
CREATE INDEX events_by_age ON events (last_at);
