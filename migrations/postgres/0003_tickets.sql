-- Tickets that open one WebSocket each, on whichever server, within 30 seconds. Not logged: after a crash of the database clients fetch
-- new ones.
CREATE UNLOGGED TABLE tickets (
    ticket_hash bytea  PRIMARY KEY,
    token_hash  bytea  NOT NULL,  -- of the session
    expires_at  bigint NOT NULL   -- by the database's clock
);

CREATE INDEX tickets_by_expiry ON tickets (expires_at);
