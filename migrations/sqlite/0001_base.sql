-- Everything of the main database. The journal beside it has the newer rows; see server/src/store/sqlite. A time is in milliseconds
-- since 1970 UTC, a partition key is the first 4 hex digits of md5 of the uid.

-- Facts about the whole installation, one a row: the history's name, how far the journal is flushed.
CREATE TABLE meta (
    key   TEXT NOT NULL PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- Names are compared by their lower-case form. A deleted account keeps its row: nobody gets its uid or its name again.
CREATE TABLE accounts (
    uid           INTEGER NOT NULL PRIMARY KEY,
    name          TEXT    NOT NULL,
    name_key      TEXT    NOT NULL UNIQUE,
    password_hash TEXT    NOT NULL,
    created_at    INTEGER NOT NULL,
    disabled      INTEGER NOT NULL DEFAULT FALSE,
    name_indexed  INTEGER NOT NULL DEFAULT FALSE,  -- whether the two tables of names have it; an import leaves that to the server
    renamed_at    INTEGER,                         -- the last change of the name, as long as its earlier names are reserved
    deleted_at    INTEGER,                         -- NULL: it is not deleted
    operator      INTEGER NOT NULL DEFAULT FALSE,  -- the pages under /admin are shown to it; a command on the machine alone says so
    cleared       INTEGER NOT NULL DEFAULT FALSE   -- the data of the deleted account is removed, too
) STRICT;

CREATE INDEX accounts_to_index ON accounts (uid) WHERE NOT name_indexed;
CREATE INDEX accounts_renamed ON accounts (renamed_at) WHERE renamed_at IS NOT NULL;
CREATE INDEX accounts_deleted ON accounts (deleted_at) WHERE deleted_at IS NOT NULL;
CREATE INDEX accounts_to_clear ON accounts (uid) WHERE deleted_at IS NOT NULL AND NOT cleared;

-- The look of names, as skeletons of Unicode UTS #39: as they are written, in small and in capital letters. Each skeleton belongs to
-- the account that had it first; imported accounts may share one.
CREATE TABLE name_skeletons (
    skeleton TEXT    NOT NULL PRIMARY KEY,
    uid      INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- By which part of a name a person is found: the lower-case name from each of its characters but the first and the last on.
CREATE TABLE name_endings (
    ending TEXT    NOT NULL,
    uid    INTEGER NOT NULL,
    PRIMARY KEY (ending, uid)
) STRICT, WITHOUT ROWID;

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

-- Tokens are known by their SHA-256 alone.
CREATE TABLE sessions (
    token_hash BLOB    NOT NULL PRIMARY KEY,
    uid        INTEGER NOT NULL REFERENCES accounts (uid),
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    label      TEXT    NOT NULL  -- the device, in its owner's words
) STRICT, WITHOUT ROWID;

CREATE INDEX sessions_by_uid ON sessions (uid);
CREATE INDEX sessions_by_expiry ON sessions (expires_at);

-- Recovery codes: a person who has forgotten the password sets another with one. Known by their SHA-256 alone; each goes when it is
-- used.
CREATE TABLE recovery_codes (
    uid       INTEGER NOT NULL REFERENCES accounts (uid),
    code_hash BLOB    NOT NULL,
    PRIMARY KEY (uid, code_hash)
) STRICT, WITHOUT ROWID;

-- Invitations to make an account. The code in a link is known by its SHA-256 alone.
CREATE TABLE sign_up_invites (
    code_hash  BLOB    NOT NULL PRIMARY KEY,
    made_by    INTEGER NOT NULL,  -- 0: the operator
    made_at    INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    uses       INTEGER NOT NULL,
    uses_left  INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX sign_up_invites_by_maker ON sign_up_invites (made_by, expires_at);
CREATE INDEX sign_up_invites_by_expiry ON sign_up_invites (expires_at);

-- Every row of every inbox (S15).
CREATE TABLE entries (
    partition_key TEXT    NOT NULL,  -- of the receiver
    receiver      INTEGER NOT NULL,
    message_id    INTEGER NOT NULL,  -- grows within a receiver, with gaps
    kind          INTEGER NOT NULL,  -- domain::Kind
    conversation  TEXT    NOT NULL,  -- u:UID or g:GID, from the receiver's side
    sender        INTEGER NOT NULL,
    client_id     BLOB,              -- 16 bytes; absent for receipts
    body          TEXT    NOT NULL,  -- JSON
    sent_at       INTEGER NOT NULL,
    PRIMARY KEY (partition_key, receiver, message_id)
) STRICT, WITHOUT ROWID;

-- A copy is delivered once (I5). A conflict here is an error, never ignored.
CREATE UNIQUE INDEX entries_once ON entries (partition_key, receiver, sender, client_id)
    WHERE client_id IS NOT NULL;

-- Pages of a conversation; with kind and sender it also counts the unread without touching the rows.
CREATE INDEX entries_by_conversation
    ON entries (partition_key, receiver, conversation, message_id, kind, sender);

-- Rows that the unique index of entries refused: a second copy of a message that the receiver has already. The server never reads
-- them back; they are kept for the operator, who may delete them.
CREATE TABLE set_aside (
    partition_key TEXT    NOT NULL,
    receiver      INTEGER NOT NULL,
    message_id    INTEGER NOT NULL,
    kind          INTEGER NOT NULL,
    conversation  TEXT    NOT NULL,
    sender        INTEGER NOT NULL,
    client_id     BLOB,
    body          TEXT    NOT NULL,
    sent_at       INTEGER NOT NULL,
    reason        TEXT    NOT NULL,
    PRIMARY KEY (partition_key, receiver, message_id)
) STRICT, WITHOUT ROWID;

-- The latest id of each inbox. It is never derived from the rows that remain: the newest may have been deleted, or ids were skipped.
CREATE TABLE heads (
    partition_key TEXT    NOT NULL,
    receiver      INTEGER NOT NULL,
    last_id       INTEGER NOT NULL,
    PRIMARY KEY (partition_key, receiver)
) STRICT, WITHOUT ROWID;

-- The newest row of each compaction key of an inbox: of the rows with one key only that one is kept.
CREATE TABLE compaction_keys (
    partition_key TEXT    NOT NULL,
    receiver      INTEGER NOT NULL,
    name          TEXT    NOT NULL,  -- for example "read u:10002"
    message_id    INTEGER NOT NULL,
    PRIMARY KEY (partition_key, receiver, name)
) STRICT, WITHOUT ROWID;

-- Idempotency records (I4); they outlive the rows.
CREATE TABLE sent (
    partition_key TEXT    NOT NULL,  -- of the sender
    sender        INTEGER NOT NULL,
    client_id     BLOB    NOT NULL,
    digest        BLOB    NOT NULL,
    message_id    INTEGER NOT NULL,  -- of the sender's own copy
    sent_at       INTEGER NOT NULL,
    PRIMARY KEY (partition_key, sender, client_id)
) STRICT, WITHOUT ROWID;

-- The conversation list: its newest row that is not a receipt (0: none), and how far the owner has read.
CREATE TABLE conversations (
    partition_key TEXT    NOT NULL,
    owner         INTEGER NOT NULL,
    conversation  TEXT    NOT NULL,
    last_id       INTEGER NOT NULL,
    read_to       INTEGER NOT NULL,
    PRIMARY KEY (partition_key, owner, conversation)
) STRICT, WITHOUT ROWID;

CREATE TABLE groups (
    gid      INTEGER NOT NULL PRIMARY KEY,
    version  INTEGER NOT NULL,
    settings TEXT    NOT NULL  -- `GroupSettings` as JSON
) STRICT;

-- Everyone who is or was in a group, or is banned from it. `standing` says more than `active`: of an active member 0 a member, 1 an
-- administrator, 2 the owner; of another one 0 left, 3 was removed, 4 is banned. `since`: the version of the group with which an active
-- member came (0: not known), or the time of the removal or ban.
CREATE TABLE members (
    gid         INTEGER NOT NULL,
    uid         INTEGER NOT NULL,
    epoch       INTEGER NOT NULL,  -- the current or last membership epoch
    active      INTEGER NOT NULL,  -- 1: the epoch goes on
    ended_epoch INTEGER NOT NULL,  -- the last epoch whose end is a row in the member's inbox; 0: none
    standing    INTEGER NOT NULL,
    since       INTEGER NOT NULL,
    PRIMARY KEY (gid, uid)
) STRICT, WITHOUT ROWID;

-- Acceptances that had copies pending when the journal was flushed last, each as one record of the journal's format.
CREATE TABLE pending (
    acceptance INTEGER NOT NULL PRIMARY KEY,
    record     BLOB    NOT NULL
) STRICT;

-- Invitations into groups. The code of a link is this number.
CREATE TABLE invites (
    number     INTEGER NOT NULL PRIMARY KEY,
    gid        INTEGER NOT NULL,
    made_by    INTEGER NOT NULL,
    made_at    INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    uses       INTEGER NOT NULL,
    uses_left  INTEGER NOT NULL,
    client_id  BLOB  -- of the request that made it: a repetition finds it
) STRICT;

CREATE INDEX invites_by_expiry ON invites (expires_at);
CREATE INDEX invites_by_group ON invites (gid, number);
CREATE INDEX invites_by_maker ON invites (made_by);
CREATE UNIQUE INDEX invites_once ON invites (made_by, client_id) WHERE client_id IS NOT NULL;

-- Uses of invitations that were taken by a guest whose way into the group is not known to be over. Short-lived: a row goes when its
-- guest is in, when the use is given back, or with its invitation.
CREATE TABLE invite_claims (
    number INTEGER NOT NULL REFERENCES invites ON DELETE CASCADE,
    uid    INTEGER NOT NULL,
    name   BLOB    NOT NULL,  -- the client_id of the change of the group
    PRIMARY KEY (number, uid)
) STRICT, WITHOUT ROWID;

-- Tables with an auto-increment key column (S19). A number is never given to a second table.
CREATE TABLE tables (
    id         INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    instance   TEXT    NOT NULL,
    name       TEXT    NOT NULL,
    definition TEXT    NOT NULL,  -- JSON
    created_at INTEGER NOT NULL,
    deleted    INTEGER            -- the last batch of the journal that may have rows of it; NULL: it is not deleted
) STRICT;

-- One table a name, and the list of an instance. Deleted ones wait until their rows are removed.
CREATE UNIQUE INDEX tables_by_name ON tables (instance, name) WHERE deleted IS NULL;
CREATE INDEX tables_deleted ON tables (deleted) WHERE deleted IS NOT NULL;

-- Their rows, in the order of the keys.
CREATE TABLE table_rows (
    table_id      INTEGER NOT NULL,
    key           BLOB    NOT NULL,  -- its columns, encoded so that bytes come in the order of the values
    partition_key TEXT    NOT NULL,  -- of the first key column's value
    row           BLOB    NOT NULL,
    PRIMARY KEY (table_id, key)
) STRICT, WITHOUT ROWID;

-- The latest number that was assigned under each value of a first key column; never derived from the rows that remain.
CREATE TABLE table_counters (
    table_id      INTEGER NOT NULL,
    first         BLOB    NOT NULL,  -- the first key column, encoded
    partition_key TEXT    NOT NULL,
    last_id       INTEGER NOT NULL,
    PRIMARY KEY (table_id, first)
) STRICT, WITHOUT ROWID;

-- Access keys: their holders may use the tables of an instance, by signed requests.
CREATE TABLE access_keys (
    id         TEXT    NOT NULL PRIMARY KEY,
    secret     TEXT    NOT NULL,
    instance   TEXT    NOT NULL,
    may_write  INTEGER NOT NULL,  -- 0 or 1
    inbox      INTEGER,           -- the uid in whose name rows are put into inboxes; NULL: none may be
    created_at INTEGER NOT NULL,
    sign_outs  INTEGER NOT NULL   -- how often somebody has signed out of the pages with it, which ends all that were signed in
) STRICT, WITHOUT ROWID;
