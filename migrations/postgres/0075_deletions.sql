-- When the account was deleted. Its row stays: nobody gets its uid or its name again. `cleared`: what belonged to it is removed; until
-- then the servers go on with that. A deleted account is disabled, too, so that an older program lets nobody in; the first deletion
-- raises `oldest_program`, since such a program would write to the account.
ALTER TABLE accounts ADD COLUMN deleted_at bigint;
ALTER TABLE accounts ADD COLUMN cleared boolean NOT NULL DEFAULT false;
CREATE INDEX accounts_deleted ON accounts (deleted_at) WHERE deleted_at IS NOT NULL;
CREATE INDEX accounts_to_clear ON accounts (uid) WHERE deleted_at IS NOT NULL AND NOT cleared;

-- An account's invitations end with it.
CREATE INDEX invites_by_maker ON invites (made_by);
