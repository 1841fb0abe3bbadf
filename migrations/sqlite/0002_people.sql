-- Names that change, accounts of operators, when people were online last, and the audit log.

-- The last change of the name, as long as its earlier names are reserved.
ALTER TABLE accounts ADD COLUMN renamed_at INTEGER;
-- The pages under /admin are shown to it; a command on the machine alone says so.
ALTER TABLE accounts ADD COLUMN operator INTEGER NOT NULL DEFAULT FALSE;

CREATE INDEX accounts_renamed ON accounts (renamed_at) WHERE renamed_at IS NOT NULL;

-- When people were online last, for those to whom they show it.
CREATE TABLE last_seen (
    uid     INTEGER NOT NULL PRIMARY KEY,
    seen_at INTEGER NOT NULL
) STRICT;

-- What operators, and administrators of groups, have done. It is only added to; the oldest lines go.
CREATE TABLE audit_log (
    number  INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    at      INTEGER NOT NULL,
    made_by INTEGER NOT NULL,  -- 0: a command of the operator
    action  TEXT    NOT NULL,  -- app::Audited
    person  INTEGER NOT NULL,  -- to whom; 0: nobody
    gid     INTEGER NOT NULL,  -- in which group; 0: in none
    detail  TEXT    NOT NULL
) STRICT;
