-- Web Push: devices that are told of messages while no page of theirs is open.

-- By which key push services know this installation; one row.
CREATE TABLE push_key (
    one   INTEGER NOT NULL PRIMARY KEY CHECK (one = 1),
    pkcs8 BLOB    NOT NULL
) STRICT;

-- One a session, and gone with it.
CREATE TABLE push_subscriptions (
    token_hash    BLOB    NOT NULL PRIMARY KEY REFERENCES sessions (token_hash) ON DELETE CASCADE,
    uid           INTEGER NOT NULL,
    endpoint      TEXT    NOT NULL,
    p256dh        BLOB    NOT NULL,
    auth          BLOB    NOT NULL,
    synced        INTEGER NOT NULL,  -- the device has the rows up to this id, or none of them is told
    told_to       INTEGER NOT NULL,  -- the push service has taken a push for rows up to this id, which the device has not fetched; 0: none
    told_at       INTEGER NOT NULL,
    try_at        INTEGER NOT NULL,  -- a push is under way, or is tried again, and not before this time; 0: neither
    failing_since INTEGER NOT NULL,  -- since when the push service takes none; 0: it took the last one
    live_until    INTEGER NOT NULL   -- another server has a connection of the device, and says so again before this time
) STRICT, WITHOUT ROWID;

CREATE INDEX push_subscriptions_by_uid ON push_subscriptions (uid);
CREATE INDEX push_subscriptions_by_endpoint ON push_subscriptions (endpoint);
CREATE INDEX push_subscriptions_to_try ON push_subscriptions (try_at) WHERE try_at > 0;
