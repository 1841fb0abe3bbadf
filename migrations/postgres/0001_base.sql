-- The tables of 0.1.0. Times are milliseconds since 1970 UTC unless a line says something else. A partition_key is the
-- first 4 hex digits of md5 of the uid in the column after it, as text: the rows of one user lie in one partition. What
-- people have beside rows, such as accounts, is the same on both databases (server/src/store/sql): those tables have no
-- such key.

-- Facts about the whole installation, one a row. `oldest_program`: a program serves this database only if it knows the
-- migration of this number; a migration after which older programs would go wrong raises it.
CREATE TABLE meta (
    key   text COLLATE "C" PRIMARY KEY,
    value text NOT NULL
);

INSERT INTO meta (key, value) VALUES ('oldest_program', '1');

-- The stored functions, as the program that was started last made them. A start replaces them if its texts have other
-- sums (migrations/README.md).
CREATE TABLE functions (
    name text COLLATE "C" PRIMARY KEY,
    sum  bytea NOT NULL  -- SHA-256 of the text
);

-- Accounts.
CREATE TABLE accounts (
    uid           bigint  PRIMARY KEY,
    name          text    NOT NULL,
    name_key      text COLLATE "C" NOT NULL UNIQUE,  -- the name's lower-case form
    password_hash text    NOT NULL,
    created_at    bigint  NOT NULL,
    disabled      boolean NOT NULL DEFAULT false,  -- true of a deleted account, too
    renamed_at    bigint,                          -- the last change of the name, as long as its earlier names are reserved
    deleted_at    bigint,                          -- its row stays: nobody gets its uid or its name again
    operator      boolean NOT NULL DEFAULT false,  -- the pages under /admin are shown to it; a command alone says so
    cleared       boolean NOT NULL DEFAULT false,  -- the data of the deleted account is removed
    name_indexed  boolean NOT NULL DEFAULT false   -- both tables below have its name; an import leaves that to a server
);

-- Work that servers go on with, and accounts that were deleted a short time ago.
CREATE INDEX accounts_to_index ON accounts (uid) WHERE NOT name_indexed;
CREATE INDEX accounts_to_clear ON accounts (uid) WHERE deleted_at IS NOT NULL AND NOT cleared;
CREATE INDEX accounts_renamed ON accounts (renamed_at) WHERE renamed_at IS NOT NULL;
CREATE INDEX accounts_deleted ON accounts (deleted_at) WHERE deleted_at IS NOT NULL;

-- The look of names, as skeletons of Unicode UTS #39: as they are written, in small and in capital letters. Each
-- skeleton belongs to the account that had it first; imported accounts may share one.
CREATE TABLE name_skeletons (
    skeleton text COLLATE "C" PRIMARY KEY,
    uid      bigint NOT NULL
);

-- By which part of a name a person is found: the lower-case name from each of its characters but the first and the last
-- on.
CREATE TABLE name_endings (
    ending text COLLATE "C" NOT NULL,
    uid    bigint NOT NULL,
    PRIMARY KEY (ending, uid)
);

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

-- Recovery codes: a person who has forgotten the password sets another with one. Known by their SHA-256 alone; each goes
-- when it is used.
CREATE TABLE recovery_codes (
    uid       bigint NOT NULL,
    code_hash bytea  NOT NULL,
    PRIMARY KEY (uid, code_hash)
);

-- Tokens are known by their SHA-256 alone.
CREATE TABLE sessions (
    token_hash bytea  PRIMARY KEY,
    uid        bigint NOT NULL,
    created_at bigint NOT NULL,
    expires_at bigint NOT NULL,
    label      text   NOT NULL  -- the device, in its owner's words; may be empty
);

CREATE INDEX sessions_by_uid ON sessions (uid);
CREATE INDEX sessions_by_expiry ON sessions (expires_at);

-- Tickets that open one WebSocket each, on whichever server, within 30 seconds. Not logged: after a crash of the
-- database clients fetch new ones.
CREATE UNLOGGED TABLE tickets (
    ticket_hash bytea  PRIMARY KEY,
    token_hash  bytea  NOT NULL,  -- of the session
    expires_at  bigint NOT NULL   -- by the database's clock
);

CREATE INDEX tickets_by_expiry ON tickets (expires_at);

-- The callers' use of the limits that all servers share: sign-ups and log-ins of an address, log-ins under a name.
-- Not logged: after a crash of the database everybody starts afresh.
CREATE UNLOGGED TABLE rates (
    caller   bytea  PRIMARY KEY,  -- the SHA-256 of the limit and its caller
    whole_at bigint NOT NULL      -- from when on nothing is used; microseconds since 1970 by the database's clock
);

CREATE INDEX rates_by_time ON rates (whole_at);

-- Invitations to make an account. The code of a link is known by its SHA-256 alone.
CREATE TABLE sign_up_invites (
    code_hash  bytea  PRIMARY KEY,
    made_by    bigint NOT NULL,  -- 0: the operator
    made_at    bigint NOT NULL,
    expires_at bigint NOT NULL,
    uses       bigint NOT NULL,
    uses_left  bigint NOT NULL
);

CREATE INDEX sign_up_invites_by_maker ON sign_up_invites (made_by, expires_at);
CREATE INDEX sign_up_invites_by_expiry ON sign_up_invites (expires_at);

-- Invitations into groups. The code of a link is this number.
CREATE TABLE invites (
    number     bigint PRIMARY KEY,
    gid        bigint NOT NULL,
    made_by    bigint NOT NULL,
    client_id  bytea,            -- of the request that made it, if that had one: its repetition finds the invitation
    made_at    bigint NOT NULL,
    expires_at bigint NOT NULL,
    uses       bigint NOT NULL,  -- for how many it was made
    uses_left  bigint NOT NULL
);

CREATE UNIQUE INDEX invites_once ON invites (made_by, client_id) WHERE client_id IS NOT NULL;
CREATE INDEX invites_by_group ON invites (gid, number);
-- An account's invitations end with it.
CREATE INDEX invites_by_maker ON invites (made_by);
CREATE INDEX invites_by_expiry ON invites (expires_at);

-- Uses of invitations that were taken by a guest whose way into the group is not known to be over. Short-lived: a row
-- goes when its guest is in, when the use is given back, or with its invitation.
CREATE TABLE invite_claims (
    number bigint NOT NULL REFERENCES invites ON DELETE CASCADE,
    uid    bigint NOT NULL,
    name   bytea  NOT NULL,  -- the client_id of the change of the group
    PRIMARY KEY (number, uid)
);

-- The latest id of each inbox, and the row under whose lock everything else of the inbox is written. It is never derived
-- from the rows that remain: the newest may have been deleted.
CREATE TABLE heads (
    partition_key text COLLATE "C" NOT NULL,
    receiver      bigint NOT NULL,
    last_id       bigint NOT NULL,
    PRIMARY KEY (partition_key, receiver)
) WITH (fillfactor = 50);  -- room for the next version of a row on its page

-- Every row of every inbox.
CREATE TABLE entries (
    partition_key text COLLATE "C" NOT NULL,
    receiver      bigint   NOT NULL,
    message_id    bigint   NOT NULL,          -- grows within a receiver, with gaps
    kind          smallint NOT NULL,          -- `Kind::code` of the server's domain
    conversation  text COLLATE "C" NOT NULL,  -- u:UID or g:GID, from the receiver's side
    sender        bigint   NOT NULL,
    client_id     bytea,                      -- 16 bytes; absent for read markers
    body          text     NOT NULL,          -- JSON
    sent_at       bigint   NOT NULL,
    PRIMARY KEY (partition_key, receiver, message_id)
);

-- A copy is delivered once. A conflict here is an error, never ignored.
CREATE UNIQUE INDEX entries_once ON entries (partition_key, receiver, sender, client_id) WHERE client_id IS NOT NULL;

-- Pages of a conversation; with kind and sender it also counts the unread without touching the rows.
CREATE INDEX entries_by_conversation ON entries
    (partition_key, receiver, conversation, message_id, kind, sender);

-- The newest row of each compaction key of an inbox: of the rows with one key only that one is kept.
CREATE TABLE compaction_keys (
    partition_key text COLLATE "C" NOT NULL,
    receiver      bigint NOT NULL,
    name          text COLLATE "C" NOT NULL,  -- for example "read u:10002"
    message_id    bigint NOT NULL,
    PRIMARY KEY (partition_key, receiver, name)
) WITH (fillfactor = 50);

-- Idempotency records; they outlive the rows.
CREATE TABLE sent (
    partition_key text COLLATE "C" NOT NULL,
    sender        bigint NOT NULL,
    client_id     bytea  NOT NULL,
    digest        bytea  NOT NULL,
    message_id    bigint NOT NULL,  -- of the sender's own copy
    sent_at       bigint NOT NULL,
    PRIMARY KEY (partition_key, sender, client_id)
);

-- The conversation list: the newest row of a conversation that is shown in it (0: none), and how far the owner has read.
CREATE TABLE conversations (
    partition_key text COLLATE "C" NOT NULL,
    owner         bigint NOT NULL,
    conversation  text COLLATE "C" NOT NULL,
    last_id       bigint NOT NULL,
    read_to       bigint NOT NULL,
    PRIMARY KEY (partition_key, owner, conversation)
) WITH (fillfactor = 50);

CREATE TABLE groups (
    gid      bigint PRIMARY KEY,
    version  bigint NOT NULL,  -- counts the changes; 1 after the making
    settings jsonb  NOT NULL   -- `GroupSettings` of the server's domain
);

-- All who are or were in a group.
CREATE TABLE members (
    gid      bigint   NOT NULL,
    uid      bigint   NOT NULL,
    epoch    bigint   NOT NULL,            -- the current or last membership epoch
    active   boolean  NOT NULL,            -- whether it goes on
    standing smallint NOT NULL,            -- active: 0 member, 1 administrator, 2 owner; else 0 left, 3 removed, 4 banned
    since    bigint   NOT NULL,            -- active: the group's version at the joining; else when removed or banned
    closed   bigint   NOT NULL DEFAULT 0,  -- the last epoch whose end is a row in the member's inbox; 0: none
    PRIMARY KEY (gid, uid)
);

-- Acceptances with copies owed: their content, and the membership epoch that ends with one of the copies.
CREATE TABLE pending (
    partition_key text COLLATE "C" NOT NULL,
    sender        bigint   NOT NULL,
    acceptance    bigint   NOT NULL,
    kind          smallint NOT NULL,
    target        text COLLATE "C" NOT NULL,  -- u:UID or g:GID, from the sender's side
    client_id     bytea,
    body          text     NOT NULL,
    sent_at       bigint   NOT NULL,
    ends_uid      bigint,
    ends_epoch    bigint,
    PRIMARY KEY (partition_key, sender, acceptance)
);

CREATE INDEX pending_by_acceptance ON pending (acceptance);

-- The recipients of those copies.
CREATE TABLE outbox (
    partition_key text COLLATE "C" NOT NULL,
    sender        bigint  NOT NULL,
    acceptance    bigint  NOT NULL,
    recipient     bigint  NOT NULL,
    place         integer NOT NULL,  -- in the order of the acceptance
    epoch         bigint  NOT NULL,  -- the recipient's membership epoch; 0 outside groups
    PRIMARY KEY (partition_key, sender, acceptance, recipient)
);

CREATE SEQUENCE acceptances;

-- Tables with an auto-increment key column (S19). A number is never given to a second table.
CREATE TABLE tables (
    id         bigint GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
    instance   text COLLATE "C" NOT NULL,
    name       text COLLATE "C" NOT NULL,
    definition text   NOT NULL,  -- JSON
    created_at bigint NOT NULL,
    deleted    bigint            -- when; NULL: it is not deleted
);

-- One table a name, and the list of an instance. Deleted ones wait until their rows are removed.
CREATE UNIQUE INDEX tables_by_name ON tables (instance, name) WHERE deleted IS NULL;
CREATE INDEX tables_deleted ON tables (deleted) WHERE deleted IS NOT NULL;

-- Their rows. partition_key, here and below: the first 4 hex digits of md5 of the first key column's value. An index
-- takes no more than 2,700 bytes, so the bytes of a key beyond 2,000 stand in `rest`; hardly any key has such.
CREATE TABLE table_rows (
    partition_key text COLLATE "C" NOT NULL,
    table_id      bigint NOT NULL,
    key           bytea  NOT NULL,  -- its columns, encoded so that bytes come in the order of the values
    rest          bytea  NOT NULL,
    rest_digest   bytea  NOT NULL,  -- SHA-256 of `rest`; empty where that is
    revision      bigint NOT NULL,  -- no two states of a row have the same one
    row           bytea  NOT NULL,
    PRIMARY KEY (partition_key, table_id, key, rest_digest)
);

-- Ranges over several partitions.
CREATE INDEX table_rows_by_key ON table_rows (table_id, key);

-- The latest number that was assigned under each value of a first key column, and the row under whose lock the next one
-- is; never derived from the rows that remain.
CREATE TABLE table_counters (
    partition_key text COLLATE "C" NOT NULL,
    table_id      bigint NOT NULL,
    first         bytea  NOT NULL,  -- the first key column, encoded
    last_id       bigint NOT NULL,
    PRIMARY KEY (partition_key, table_id, first)
) WITH (fillfactor = 50);  -- room for the next version of a row on its page

-- The counters of one table: to remove them, and to walk over them.
CREATE INDEX table_counters_by_table ON table_counters (table_id, first);

-- Each server takes numbers from it, and makes revisions of them.
CREATE SEQUENCE table_revisions;

-- Keys by whose signature programs use the tables of an instance.
CREATE TABLE access_keys (
    id         text COLLATE "C" PRIMARY KEY,
    secret     text    NOT NULL,
    instance   text COLLATE "C" NOT NULL,
    may_write  boolean NOT NULL,
    inbox      bigint,             -- the uid in whose name rows are put into inboxes; NULL: none may be
    created_at bigint  NOT NULL,
    sign_outs  bigint  NOT NULL    -- how often somebody has signed out of the pages with it, which ends all that were signed in
);
