-- Facts about the whole installation, one a row. `oldest_program`: a program serves this database only if it knows the migration of
-- this number; a migration after which an older program would go wrong raises it.
CREATE TABLE meta (
    key   text COLLATE "C" PRIMARY KEY,
    value text NOT NULL
);

INSERT INTO meta (key, value) VALUES ('oldest_program', '1');

-- Who may come in. partition_key: the first 4 hex digits of md5(uid).
CREATE TABLE accounts (
    partition_key text COLLATE "C" NOT NULL,
    uid           bigint  NOT NULL,
    name          text    NOT NULL,
    name_key      text COLLATE "C" NOT NULL,  -- the name's lower-case form
    password_hash text    NOT NULL,
    created_at    bigint  NOT NULL,           -- milliseconds since 1970 UTC, as every time here
    disabled      boolean NOT NULL DEFAULT false,
    PRIMARY KEY (partition_key, uid)
);

-- The operator's list and the largest uid; people who are looked for by the first letters of their name.
CREATE INDEX accounts_by_uid ON accounts (uid);
CREATE INDEX accounts_by_name ON accounts (name_key);

-- One account a name. Apart from the accounts, whose unique keys begin with partition_key: a name says nothing about its uid.
CREATE TABLE account_names (
    name_key text COLLATE "C" PRIMARY KEY,
    uid      bigint NOT NULL
);

-- Tokens are known by their SHA-256 alone.
CREATE TABLE sessions (
    token_hash bytea  PRIMARY KEY,
    uid        bigint NOT NULL,
    created_at bigint NOT NULL,
    expires_at bigint NOT NULL
);

CREATE INDEX sessions_by_uid ON sessions (uid);
CREATE INDEX sessions_by_expiry ON sessions (expires_at);

-- Invitations into groups. What stands in a link is this number, written as a code.
CREATE TABLE invites (
    number     bigint  PRIMARY KEY,
    gid        bigint  NOT NULL,
    made_by    bigint  NOT NULL,
    made_at    bigint  NOT NULL,
    expires_at bigint  NOT NULL,
    uses_left  bigint  NOT NULL
);

CREATE INDEX invites_by_expiry ON invites (expires_at);

-- Uses of invitations that were taken by a guest whose way into the group is not known to be over. Short-lived: a row goes when its
-- guest is in, when the use is given back, or with its invitation.
CREATE TABLE invite_claims (
    number bigint NOT NULL,
    uid    bigint NOT NULL,
    name   bytea  NOT NULL,  -- the client_id of the change of the group
    PRIMARY KEY (number, uid)
);
