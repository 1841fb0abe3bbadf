-- Rows of inboxes that get few, among many others that do.

-- A row of an inbox is here or in `entries`. Here it costs one page; there it costs one in each of four trees. Rows of an inbox that
-- gets few come here. Each flush moves a part of the table on, where rows of one inbox and of its neighbours share pages.
CREATE TABLE young_entries (
    partition_key TEXT    NOT NULL,
    receiver      INTEGER NOT NULL,
    message_id    INTEGER NOT NULL,
    kind          INTEGER NOT NULL,
    conversation  TEXT    NOT NULL,
    sender        INTEGER NOT NULL,
    client_id     BLOB,
    body          TEXT    NOT NULL,
    sent_at       INTEGER NOT NULL,
    PRIMARY KEY (partition_key, receiver, message_id)
) STRICT, WITHOUT ROWID;

-- A row that a flush which was cut off has put into `entries` stays there. A copy is delivered once (I5), as `entries_once` has it. The
-- table needs no index for that: an inbox has few rows here.
CREATE TRIGGER young_entries_once BEFORE INSERT ON young_entries BEGIN
    SELECT CASE message_id WHEN NEW.message_id THEN RAISE(IGNORE) ELSE RAISE(ABORT, 'a second copy of a message') END
        FROM entries WHERE partition_key = NEW.partition_key AND receiver = NEW.receiver
            AND sender = NEW.sender AND client_id = NEW.client_id;
    SELECT RAISE(IGNORE) FROM entries WHERE NEW.client_id IS NULL
        AND partition_key = NEW.partition_key AND receiver = NEW.receiver AND message_id = NEW.message_id;
    SELECT RAISE(ABORT, 'a second copy of a message')
        FROM young_entries WHERE partition_key = NEW.partition_key AND receiver = NEW.receiver
            AND sender = NEW.sender AND client_id = NEW.client_id AND message_id <> NEW.message_id;
END;
