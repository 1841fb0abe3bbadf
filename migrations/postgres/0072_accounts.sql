-- Codes with which somebody who has forgotten the password sets another. Known by their SHA-256 alone; each goes when it is used.
CREATE TABLE recovery_codes (
    partition_key text COLLATE "C" NOT NULL,
    uid           bigint NOT NULL,
    code_hash     bytea  NOT NULL,
    PRIMARY KEY (partition_key, uid, code_hash)
);

-- Invitations to make an account. What stands in a link is known by its SHA-256 alone.
CREATE TABLE sign_up_invites (
    code_hash  bytea  PRIMARY KEY,
    made_by    bigint NOT NULL,  -- 0: the operator
    made_at    bigint NOT NULL,
    expires_at bigint NOT NULL,
    uses       bigint NOT NULL,
    uses_left  bigint NOT NULL
);

CREATE INDEX sign_up_invites_by_maker ON sign_up_invites (made_by, expires_at);
CREATE INDEX sign_up_invites_by_expiry ON sign_up_invites (expires_at);

-- What the owner of the account calls the device; empty: of a session that was begun before, or by a server of the version before.
ALTER TABLE sessions ADD COLUMN label text NOT NULL DEFAULT '';
