-- Reports of messages and people. The text of a reported message stays with its report.
CREATE TABLE reports (
    number       INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    reporter     INTEGER,           -- NULL: the account is deleted
    client_id    BLOB    NOT NULL,  -- of the request that made it: a repetition finds it
    made_at      INTEGER NOT NULL,
    reason       TEXT    NOT NULL,
    words        TEXT    NOT NULL,  -- the reporter's own; may be empty
    about        INTEGER NOT NULL,  -- the person, who sent the message
    gid          INTEGER,           -- the group of the message; NULL: it was for the reporter alone, or there is none
    said_id      BLOB,              -- the client_id of the message; NULL: the report is about the person
    said         TEXT,              -- the text of the message
    said_at      INTEGER,
    dismissed_at INTEGER,           -- when an administrator of the group was done with it
    closed_at    INTEGER            -- when an operator was
) STRICT;

CREATE UNIQUE INDEX reports_once ON reports (reporter, client_id);
CREATE INDEX reports_by_reporter ON reports (reporter, made_at);
CREATE INDEX reports_by_person ON reports (about);
CREATE INDEX reports_of_group ON reports (gid, number) WHERE dismissed_at IS NULL;
CREATE INDEX reports_open ON reports (number) WHERE closed_at IS NULL;
CREATE INDEX reports_by_age ON reports (made_at);
