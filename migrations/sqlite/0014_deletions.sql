-- When the account was deleted, in milliseconds since 1970 UTC. Its row stays: nobody gets its uid or its name again. `cleared`: what
-- belonged to it is removed; until then the program goes on with that.
ALTER TABLE accounts ADD COLUMN deleted_at INTEGER;
ALTER TABLE accounts ADD COLUMN cleared INTEGER NOT NULL DEFAULT FALSE;
CREATE INDEX accounts_deleted ON accounts (deleted_at) WHERE deleted_at IS NOT NULL;
CREATE INDEX accounts_to_clear ON accounts (uid) WHERE deleted_at IS NOT NULL AND NOT cleared;

-- An account's invitations end with it.
CREATE INDEX invites_by_maker ON invites (made_by);
