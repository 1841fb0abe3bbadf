-- Uses of invitations that were taken by a guest whose way into the group is not known to be over. Short-lived: a row goes when its
-- guest is in, when the use is given back, or with its invitation.
CREATE TABLE invite_claims (
    number INTEGER NOT NULL,
    uid    INTEGER NOT NULL,
    -- The client_id of the change of the group.
    name   BLOB    NOT NULL,
    PRIMARY KEY (number, uid)
) STRICT, WITHOUT ROWID;
