-- What a new row does to those that are there, as in 0050_compaction.sql, and for further kinds: a deletion (14) takes the text of a message (1,
-- 8), a moment (11) or a comment (13), which becomes a deleted row (15); of settings (9), of what one of two people says about being friends (10),
-- of likes (12) and of how far messages have come (16) only the newest row of a key stays. The keys are those of `Content::compaction_key`.
CREATE OR REPLACE FUNCTION compact_entry() RETURNS trigger
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
    of     jsonb := new.body::jsonb -> 'of';
    own    text;
    before bigint;
BEGIN
    -- From the first such row on, a program that does not know the kinds could not read this inbox. (The nodes of Citus have no meta.)
    IF new.kind <> 2 AND to_regclass('meta') IS NOT NULL THEN
        UPDATE meta SET value = CASE WHEN new.kind < 9 THEN '50' ELSE '70' END
            WHERE meta.key = 'oldest_program' AND value::int < CASE WHEN new.kind < 9 THEN 50 ELSE 70 END;
    END IF;
    IF new.kind IN (11, 13, 15) THEN
        RETURN NULL;
    END IF;
    IF new.kind = 14 THEN
        UPDATE entries SET kind = 15, body = '{"deleted":true}'
            WHERE partition_key = new.partition_key AND receiver = new.receiver AND sender = (of ->> 'sender')::bigint
                AND client_id = decode(replace(of ->> 'client_id', '-', ''), 'hex') AND kind IN (1, 8, 11, 13)
                AND message_id < new.message_id;
    END IF;
    IF new.kind IN (5, 6) THEN
        UPDATE entries SET kind = CASE new.kind WHEN 6 THEN 8 ELSE kind END,
                body = CASE new.kind WHEN 6 THEN '{"recalled":true}' ELSE (new.body::json -> 'body')::text END
            WHERE partition_key = new.partition_key AND receiver = new.receiver AND sender = (of ->> 'sender')::bigint
                AND client_id = decode(replace(of ->> 'client_id', '-', ''), 'hex') AND kind = 1
                AND message_id < new.message_id;
        IF NOT FOUND AND new.kind = 5 AND EXISTS (SELECT FROM entries
            WHERE partition_key = new.partition_key AND receiver = new.receiver AND sender = (of ->> 'sender')::bigint
                AND client_id = decode(replace(of ->> 'client_id', '-', ''), 'hex') AND kind IN (8, 15)
                AND message_id < new.message_id)
        THEN
            DELETE FROM entries WHERE partition_key = new.partition_key AND receiver = new.receiver AND message_id = new.message_id;
            RETURN NULL;
        END IF;
    END IF;
    own := CASE new.kind
        WHEN 2 THEN 'read ' || new.conversation
        WHEN 7 THEN 'react ' || new.sender || ' ' || (of ->> 'sender') || ' ' || (of ->> 'client_id')
        WHEN 9 THEN 'set ' || (new.body::json ->> 'name') || ' ' || new.conversation
        WHEN 10 THEN 'friend ' || new.conversation || ' ' || new.sender
        WHEN 12 THEN 'like ' || new.sender || ' ' || (of ->> 'sender') || ' ' || (of ->> 'client_id')
        WHEN 14 THEN 'delete ' || (of ->> 'sender') || ' ' || (of ->> 'client_id')
        WHEN 16 THEN 'seen ' || (new.body::json ->> 'state') || ' ' || new.conversation
        ELSE 'amend ' || (of ->> 'sender') || ' ' || (of ->> 'client_id')
    END;
    SELECT message_id INTO before FROM compaction_keys
        WHERE partition_key = new.partition_key AND receiver = new.receiver AND name = own;
    IF before > new.message_id THEN
        DELETE FROM entries WHERE partition_key = new.partition_key AND receiver = new.receiver AND message_id = new.message_id;
        RETURN NULL;
    END IF;
    DELETE FROM entries WHERE partition_key = new.partition_key AND receiver = new.receiver AND message_id = before;
    INSERT INTO compaction_keys (partition_key, receiver, name, message_id)
        VALUES (new.partition_key, new.receiver, own, new.message_id)
        ON CONFLICT (partition_key, receiver, name) DO UPDATE SET message_id = excluded.message_id;
    RETURN NULL;
END $$;

DROP TRIGGER entries_compact ON entries;

-- In the distributed layout the trigger writes to the partition of the row that calls it.
DO $$
BEGIN
    IF EXISTS (SELECT FROM meta WHERE key = 'layout') THEN
        PERFORM set_config('citus.enable_unsafe_triggers', 'on', true);
    END IF;
END $$;

CREATE TRIGGER entries_compact AFTER INSERT ON entries FOR EACH ROW WHEN (new.kind IN (2, 5, 6, 7) OR new.kind >= 9)
    EXECUTE FUNCTION compact_entry();
