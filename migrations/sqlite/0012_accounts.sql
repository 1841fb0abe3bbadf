-- Codes with which somebody who has forgotten the password sets another. Known by their SHA-256 alone; each goes when it is used.
CREATE TABLE recovery_codes (
    uid       INTEGER NOT NULL REFERENCES accounts (uid),
    code_hash BLOB    NOT NULL,
    PRIMARY KEY (uid, code_hash)
) STRICT, WITHOUT ROWID;

-- Invitations to make an account. What stands in a link is known by its SHA-256 alone.
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

-- What the owner of the account calls the device; empty: of a session that was begun before.
ALTER TABLE sessions ADD COLUMN label TEXT NOT NULL DEFAULT '';
