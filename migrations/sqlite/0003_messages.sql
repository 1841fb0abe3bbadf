-- Every row of every inbox (S15). The journal beside this database holds what is newer; see store/sqlite.
CREATE TABLE entries (
    partition_key TEXT    NOT NULL,  -- first 4 hex digits of md5(receiver)
    receiver      INTEGER NOT NULL,
    message_id    INTEGER NOT NULL,  -- grows within a receiver, with gaps
    kind          INTEGER NOT NULL,  -- 1 message, 2 receipt, 3 membership
    conversation  TEXT    NOT NULL,  -- u:UID or g:GID, from the receiver's side
    sender        INTEGER NOT NULL,
    client_id     BLOB,              -- 16 bytes; absent for receipts
    body          TEXT    NOT NULL,  -- JSON
    sent_at       INTEGER NOT NULL,  -- milliseconds since 1970 UTC
    PRIMARY KEY (partition_key, receiver, message_id)
) STRICT, WITHOUT ROWID;

-- A copy is delivered once (I5). A conflict here is an error, never ignored.
CREATE UNIQUE INDEX entries_once ON entries (partition_key, receiver, sender, client_id)
    WHERE client_id IS NOT NULL;

-- Pages of a conversation; with kind and sender it also counts the unread without touching the rows.
CREATE INDEX entries_by_conversation
    ON entries (partition_key, receiver, conversation, message_id, kind, sender);

-- Idempotency records (I4); they outlive the rows. partition_key is the sender's.
CREATE TABLE sent (
    partition_key TEXT    NOT NULL,
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
    gid     INTEGER NOT NULL PRIMARY KEY,
    name    TEXT    NOT NULL,
    version INTEGER NOT NULL
) STRICT;

-- Everyone who is or was in a group.
CREATE TABLE members (
    gid        INTEGER NOT NULL,
    uid        INTEGER NOT NULL,
    generation INTEGER NOT NULL,  -- the current or last stay
    active     INTEGER NOT NULL,  -- 1: the stay goes on
    closed     INTEGER NOT NULL,  -- the last stay whose end is a row in the member's inbox; 0: none
    PRIMARY KEY (gid, uid)
) STRICT, WITHOUT ROWID;

-- Acceptances that had copies owed when the journal was folded last, each as one record of the journal's format.
CREATE TABLE pending (
    acceptance INTEGER NOT NULL PRIMARY KEY,
    record     BLOB    NOT NULL
) STRICT;
