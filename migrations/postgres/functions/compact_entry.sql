-- The effects of a new row on the stored ones; the trigger entries_compact calls it. Of the rows with one compaction
-- key only the newest stays: the keys are those of `Content::compaction_key`, and the kinds those of `Kind::code`
-- (server/src/domain). The transaction that inserts the row holds the lock of the inbox's head.
--
--   An edit (5) and a recall (6) change their message (1). A recall is the last word (8: recalled): an edit that
--   another server decided on at the same moment goes.
--   A deletion (14) takes the text of a message (1, 8), a moment (11) or a comment (13), which becomes a deleted row
--   (15), and removes the last edit, which has the text, too.
CREATE OR REPLACE FUNCTION compact_entry() RETURNS trigger
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
    of     jsonb := new.body::jsonb -> 'of';
    own    text;
    before bigint;
BEGIN
    IF new.kind = 14 THEN
        DELETE FROM entries WHERE partition_key = new.partition_key AND receiver = new.receiver AND kind = 5
            AND message_id = (SELECT message_id FROM compaction_keys WHERE partition_key = new.partition_key
                AND receiver = new.receiver AND name = 'amend ' || (of ->> 'sender') || ' ' || (of ->> 'client_id'));
        UPDATE entries SET kind = 15, body = '{"deleted":true}'
            WHERE partition_key = new.partition_key AND receiver = new.receiver AND sender = (of ->> 'sender')::bigint
                AND client_id = decode(replace(of ->> 'client_id', '-', ''), 'hex') AND kind IN (1, 8, 11, 13)
                AND message_id < new.message_id;
    END IF;
    IF new.kind IN (5, 6) THEN
        UPDATE entries SET kind = CASE WHEN new.kind = 6 THEN 8 ELSE kind END,
                body = CASE WHEN new.kind = 6 THEN '{"recalled":true}' ELSE (new.body::json -> 'body')::text END
            WHERE partition_key = new.partition_key AND receiver = new.receiver AND sender = (of ->> 'sender')::bigint
                AND client_id = decode(replace(of ->> 'client_id', '-', ''), 'hex') AND kind = 1
                AND message_id < new.message_id;
        IF NOT FOUND AND new.kind = 5 AND EXISTS (SELECT FROM entries
            WHERE partition_key = new.partition_key AND receiver = new.receiver AND sender = (of ->> 'sender')::bigint
                AND client_id = decode(replace(of ->> 'client_id', '-', ''), 'hex') AND kind IN (8, 15)
                AND message_id < new.message_id)
        THEN
            DELETE FROM entries WHERE partition_key = new.partition_key AND receiver = new.receiver
                AND message_id = new.message_id;
            RETURN NULL;
        END IF;
    END IF;

    own := CASE
        WHEN new.kind = 2 THEN 'read ' || new.conversation
        WHEN new.kind = 7 THEN 'react ' || new.sender || ' ' || (of ->> 'sender') || ' ' || (of ->> 'client_id')
        WHEN new.kind = 9 THEN 'set ' || (new.body::json ->> 'name') || ' ' || new.conversation
        WHEN new.kind = 10 THEN 'friend ' || new.conversation || ' ' || new.sender
        WHEN new.kind = 12 THEN 'like ' || new.sender || ' ' || (of ->> 'sender') || ' ' || (of ->> 'client_id')
        WHEN new.kind = 14 THEN 'delete ' || (of ->> 'sender') || ' ' || (of ->> 'client_id')
        WHEN new.kind = 16 THEN 'seen ' || (new.body::json ->> 'state') || ' ' || new.conversation
        WHEN new.kind = 17 THEN 'pin ' || new.conversation || ' ' || (of ->> 'sender') || ' ' || (of ->> 'client_id')
        WHEN new.kind = 18 THEN 'star ' || (of ->> 'sender') || ' ' || (of ->> 'client_id')
        ELSE 'amend ' || (of ->> 'sender') || ' ' || (of ->> 'client_id')
    END;
    SELECT message_id INTO before FROM compaction_keys
        WHERE partition_key = new.partition_key AND receiver = new.receiver AND name = own;
    IF before > new.message_id THEN
        DELETE FROM entries WHERE partition_key = new.partition_key AND receiver = new.receiver
            AND message_id = new.message_id;
        RETURN NULL;
    END IF;
    DELETE FROM entries WHERE partition_key = new.partition_key AND receiver = new.receiver AND message_id = before;
    INSERT INTO compaction_keys (partition_key, receiver, name, message_id)
        VALUES (new.partition_key, new.receiver, own, new.message_id)
        ON CONFLICT (partition_key, receiver, name) DO UPDATE SET message_id = excluded.message_id;
    RETURN NULL;
END $$;
