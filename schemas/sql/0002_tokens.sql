-- Schema 2: bearer tokens of the MCP endpoint. Only digests are kept; no serializer of records reads these tables.
CREATE TABLE tokens (
    id INTEGER PRIMARY KEY AUTOINCREMENT, -- never given twice, so that a use is never booked on a successor of the same name
    name TEXT NOT NULL UNIQUE,
    sha256 TEXT NOT NULL UNIQUE CHECK (length(sha256) = 64), -- of the whole token, lower-case hex
    scopes TEXT NOT NULL, -- words separated by blanks
    created_at INTEGER NOT NULL, -- all times: milliseconds since 1970
    created_by TEXT NOT NULL,
    expires_at INTEGER -- NULL: never
) STRICT;

-- When a token was last used; written now and then, not with each call.
CREATE TABLE token_uses (
    token_id INTEGER NOT NULL PRIMARY KEY REFERENCES tokens (id) ON DELETE CASCADE,
    at INTEGER NOT NULL
) STRICT;
