-- The latest id of each inbox. It is never derived from the rows that remain: the newest may have been deleted, or ids were skipped.
CREATE TABLE heads (
    partition_key TEXT    NOT NULL,  -- first 4 hex digits of md5(receiver)
    receiver      INTEGER NOT NULL,
    last_id       INTEGER NOT NULL,
    PRIMARY KEY (partition_key, receiver)
) STRICT, WITHOUT ROWID;

-- How far the inboxes had come by what earlier versions wrote: rows, those set aside, and what still names rows that were deleted.
INSERT INTO heads (partition_key, receiver, last_id)
    SELECT partition_key, receiver, max(message_id) FROM entries GROUP BY partition_key, receiver;
INSERT INTO heads (partition_key, receiver, last_id)
    SELECT partition_key, receiver, max(message_id) FROM set_aside WHERE TRUE GROUP BY partition_key, receiver
    ON CONFLICT (partition_key, receiver) DO UPDATE SET last_id = max(last_id, excluded.last_id);
INSERT INTO heads (partition_key, receiver, last_id)
    SELECT partition_key, owner, max(last_id) FROM conversations WHERE TRUE GROUP BY partition_key, owner
    ON CONFLICT (partition_key, receiver) DO UPDATE SET last_id = max(last_id, excluded.last_id);
INSERT INTO heads (partition_key, receiver, last_id)
    SELECT partition_key, sender, max(message_id) FROM sent WHERE TRUE GROUP BY partition_key, sender
    ON CONFLICT (partition_key, receiver) DO UPDATE SET last_id = max(last_id, excluded.last_id);
