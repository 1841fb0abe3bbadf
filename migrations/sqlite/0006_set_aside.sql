-- Rows that the unique index of entries refused: a second copy of a message that the receiver has already. The server never reads
-- them back; they are kept for the operator, who may delete them.
CREATE TABLE set_aside (
    partition_key TEXT    NOT NULL,
    receiver      INTEGER NOT NULL,
    message_id    INTEGER NOT NULL,
    kind          INTEGER NOT NULL,
    conversation  TEXT    NOT NULL,
    sender        INTEGER NOT NULL,
    client_id     BLOB,
    body          TEXT    NOT NULL,
    sent_at       INTEGER NOT NULL,
    reason        TEXT    NOT NULL,
    PRIMARY KEY (partition_key, receiver, message_id)
) STRICT, WITHOUT ROWID;
