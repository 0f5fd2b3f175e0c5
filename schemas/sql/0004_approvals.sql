-- Schema 4: how many approvals were asked for lately, and which of the rejected ones is the oldest, is found by an index: rules
-- decide as fast as callers ask.
CREATE INDEX records_approvals ON records (decision, created_at) WHERE removed_at IS NULL AND kind = 'Approval';
