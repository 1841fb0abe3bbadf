-- The newest row of each compaction key of an inbox: of the rows with one key only that one is kept. Rows that earlier versions wrote
-- have no key here and stay.
CREATE TABLE compaction_keys (
    partition_key TEXT    NOT NULL,  -- first 4 hex digits of md5(receiver)
    receiver      INTEGER NOT NULL,
    name          TEXT    NOT NULL,  -- what the rows say, for example "read u:10002"
    message_id    INTEGER NOT NULL,
    PRIMARY KEY (partition_key, receiver, name)
) STRICT, WITHOUT ROWID;
