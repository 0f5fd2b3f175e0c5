-- Schema 3: what is looked for among many records is found by an index, not by reading all records of its kind.
CREATE INDEX records_unbound_sandboxes ON records (kind) WHERE removed_at IS NULL AND kind = 'Sandbox' AND workspace_uid IS NULL;
CREATE INDEX records_unbound_dependents ON records (kind)
    WHERE removed_at IS NULL AND kind IN ('Session', 'Exposure') AND sandbox_uid IS NULL;
CREATE INDEX records_of_path ON records (kind, mode, path) WHERE removed_at IS NULL AND path IS NOT NULL; -- Workspace, Approval
CREATE INDEX records_sandboxes_by_birth ON records (created_at) WHERE removed_at IS NULL AND kind = 'Sandbox';
