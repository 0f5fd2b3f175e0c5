-- Schema 5: thousands of sandboxes at once. Which of them a request may join, and which wait for a workspace, is found by columns that
-- hold something only as long as that is so.
ALTER TABLE records ADD COLUMN joined_by TEXT;  -- Sandbox that is on its way to run: the digest of the request that made it
ALTER TABLE records ADD COLUMN waits_for TEXT;  -- Sandbox that is bound to no workspace yet: the name of the one that it wants
UPDATE records SET joined_by = json_extract(meta, '$.annotations."chat2shell.dev/request"')
    WHERE kind = 'Sandbox' AND deletion_at IS NULL AND json_extract(status, '$.startedAt') IS NULL;
UPDATE records SET waits_for = json_extract(spec, '$.workspaceRef')
    WHERE kind = 'Sandbox' AND removed_at IS NULL AND workspace_uid IS NULL;
CREATE INDEX records_joined_by ON records (joined_by) WHERE joined_by IS NOT NULL;
DROP INDEX records_unbound_sandboxes;
CREATE INDEX records_waiting ON records (waits_for) WHERE waits_for IS NOT NULL;
