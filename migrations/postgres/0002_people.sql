-- Names that change, accounts of operators, when people were online last, and the audit log. A server that does not know them serves
-- on.

-- The last change of the name, as long as its earlier names are reserved.
ALTER TABLE accounts ADD COLUMN renamed_at bigint;
-- The pages under /admin are shown to it; a command alone says so.
ALTER TABLE accounts ADD COLUMN operator boolean NOT NULL DEFAULT false;

CREATE INDEX accounts_renamed ON accounts (renamed_at) WHERE renamed_at IS NOT NULL;

-- When people were online last, for those to whom they show it.
CREATE TABLE last_seen (
    uid     bigint PRIMARY KEY,
    seen_at bigint NOT NULL
);

-- What operators, and administrators of groups, have done. It is only added to; the oldest lines go.
CREATE TABLE audit_log (
    number  bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at      bigint NOT NULL,
    made_by bigint NOT NULL,  -- 0: a command of the operator
    action  text   NOT NULL,  -- app::Audited
    person  bigint NOT NULL,  -- to whom; 0: nobody
    gid     bigint NOT NULL,  -- in which group; 0: in none
    detail  text   NOT NULL
);
