-- The latest id of each inbox, and the row under whose lock everything else of the inbox is written. It is never derived from the rows
-- that remain: the newest may have been deleted. partition_key, here and below: the first 4 hex digits of md5(uid), of the first uid.
CREATE TABLE heads (
    partition_key text COLLATE "C" NOT NULL,
    receiver      bigint NOT NULL,
    last_id       bigint NOT NULL,
    epoch         bigint NOT NULL DEFAULT 0,  -- of the owner, where ids come from a sequence service
    PRIMARY KEY (partition_key, receiver)
) WITH (fillfactor = 50);  -- room for the next version of a row on its page

-- Every row of every inbox.
CREATE TABLE entries (
    partition_key text COLLATE "C" NOT NULL,
    receiver      bigint   NOT NULL,
    message_id    bigint   NOT NULL,  -- grows within a receiver, with gaps
    kind          smallint NOT NULL,  -- 1 message, 2 read marker, 3 change of a group
    conversation  text COLLATE "C" NOT NULL,  -- u:UID or g:GID, from the receiver's side
    sender        bigint   NOT NULL,
    client_id     bytea,              -- 16 bytes; absent for read markers
    body          text     NOT NULL,  -- JSON
    sent_at       bigint   NOT NULL,  -- milliseconds since 1970 UTC
    PRIMARY KEY (partition_key, receiver, message_id)
);

-- A copy is delivered once. A conflict here is an error, never ignored.
CREATE UNIQUE INDEX entries_once ON entries (partition_key, receiver, sender, client_id) WHERE client_id IS NOT NULL;

-- Pages of a conversation; with kind and sender it also counts the unread without touching the rows.
CREATE INDEX entries_by_conversation ON entries (partition_key, receiver, conversation, message_id, kind, sender);

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

-- The conversation list: its newest row that is not a read marker (0: none), and how far the owner has read.
CREATE TABLE conversations (
    partition_key text COLLATE "C" NOT NULL,
    owner         bigint NOT NULL,
    conversation  text COLLATE "C" NOT NULL,
    last_id       bigint NOT NULL,
    read_to       bigint NOT NULL,
    PRIMARY KEY (partition_key, owner, conversation)
) WITH (fillfactor = 50);

CREATE TABLE groups (
    gid     bigint PRIMARY KEY,
    name    text   NOT NULL,
    version bigint NOT NULL  -- counts the changes; 1 after the making
);

-- Everyone who is or was in a group.
CREATE TABLE members (
    gid    bigint  NOT NULL,
    uid    bigint  NOT NULL,
    epoch  bigint  NOT NULL,            -- the current or last membership epoch
    active boolean NOT NULL,            -- whether it goes on
    closed bigint  NOT NULL DEFAULT 0,  -- the last one whose end is a row in the member's inbox; 0: none
    PRIMARY KEY (gid, uid)
);

-- Acceptances with copies owed: what they say, and the membership epoch that ends with one of the copies.
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

-- To whom they owe one.
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
