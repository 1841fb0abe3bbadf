-- Who may come in. Names are compared by their lower-case form.
CREATE TABLE accounts (
    uid           INTEGER NOT NULL PRIMARY KEY,
    name          TEXT    NOT NULL,
    name_key      TEXT    NOT NULL UNIQUE,
    password_hash TEXT    NOT NULL,
    created_at    INTEGER NOT NULL,
    disabled      INTEGER NOT NULL DEFAULT FALSE
) STRICT;

-- Tokens are known by their SHA-256 alone.
CREATE TABLE sessions (
    token_hash BLOB    NOT NULL PRIMARY KEY,
    uid        INTEGER NOT NULL REFERENCES accounts (uid),
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX sessions_by_uid ON sessions (uid);
CREATE INDEX sessions_by_expiry ON sessions (expires_at);
