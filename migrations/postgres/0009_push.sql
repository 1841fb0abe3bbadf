-- Web Push: devices that are told of messages while no page of theirs is open. A server that does not know it serves on, and tells none.

-- By which key push services know this installation; one row.
CREATE TABLE push_key (
    one   bigint PRIMARY KEY CHECK (one = 1),
    pkcs8 bytea  NOT NULL
);

-- One a session, and gone with it.
CREATE TABLE push_subscriptions (
    token_hash    bytea  PRIMARY KEY REFERENCES sessions (token_hash) ON DELETE CASCADE,
    uid           bigint NOT NULL,
    endpoint      text   NOT NULL,
    p256dh        bytea  NOT NULL,
    auth          bytea  NOT NULL,
    synced        bigint NOT NULL,  -- the device has the rows up to this id, or none of them is told
    told_to       bigint NOT NULL,  -- the push service has taken a push for rows up to this id, which the device has not fetched; 0: none
    told_at       bigint NOT NULL,
    try_at        bigint NOT NULL,  -- a push is under way, or is tried again, and not before this time; 0: neither
    failing_since bigint NOT NULL,  -- since when the push service takes none; 0: it took the last one
    live_until    bigint NOT NULL   -- another server has a connection of the device, and says so again before this time
);

CREATE INDEX push_subscriptions_by_uid ON push_subscriptions (uid);
CREATE INDEX push_subscriptions_by_endpoint ON push_subscriptions (endpoint);
CREATE INDEX push_subscriptions_to_try ON push_subscriptions (try_at) WHERE try_at > 0;
