-- What callers have used of the limits that all servers share: sign-ups and log-ins of an address, log-ins under a name. Not logged:
-- after a crash of the database everybody starts afresh.
CREATE UNLOGGED TABLE rates (
    caller   bytea  PRIMARY KEY,  -- the SHA-256 of what is limited, and for whom
    whole_at bigint NOT NULL      -- from when on nothing is used; microseconds since 1970 by the database's clock
);

CREATE INDEX rates_by_time ON rates (whole_at);
