-- Invitations into groups. What stands in a link is this number, written as a code.
CREATE TABLE invites (
    number     INTEGER NOT NULL PRIMARY KEY,
    gid        INTEGER NOT NULL,
    made_by    INTEGER NOT NULL,
    made_at    INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    uses_left  INTEGER NOT NULL
) STRICT;

CREATE INDEX invites_by_expiry ON invites (expires_at);

-- The numbers of users and groups come from the number issuer now.
DROP TABLE counters;
