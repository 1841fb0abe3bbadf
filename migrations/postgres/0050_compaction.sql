-- The newest row of each compaction key of an inbox: of the rows with one key only that one is kept. Rows that earlier versions wrote
-- have no key here and stay.
CREATE TABLE compaction_keys (
    partition_key text COLLATE "C" NOT NULL,
    receiver      bigint NOT NULL,
    name          text COLLATE "C" NOT NULL,  -- what the rows say, for example "read u:10002"
    message_id    bigint NOT NULL,
    PRIMARY KEY (partition_key, receiver, name)
) WITH (fillfactor = 50);

-- What a new row does to those that are there: an edit (kind 5) and a recall (6) change their message, and of the rows with one compaction
-- key only the newest stays. A recall is the last word (8: recalled): an edit that another server decided on at the same moment goes. Whoever inserts
-- a row holds the lock of the inbox's head. A row of a program that does not know the new kinds is treated alike.
CREATE FUNCTION compact_entry() RETURNS trigger
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
    of     jsonb := new.body::jsonb -> 'of';
    own    text;
    before bigint;
BEGIN
    -- From the first such row on, a program that does not know the kinds could not read this inbox. (The nodes of Citus have no meta.)
    IF new.kind <> 2 AND to_regclass('meta') IS NOT NULL THEN
        UPDATE meta SET value = '50' WHERE meta.key = 'oldest_program' AND value::int < 50;
    END IF;
    IF new.kind IN (5, 6) THEN
        UPDATE entries SET kind = CASE new.kind WHEN 6 THEN 8 ELSE kind END,
                body = CASE new.kind WHEN 6 THEN '{"recalled":true}' ELSE (new.body::json -> 'body')::text END
            WHERE partition_key = new.partition_key AND receiver = new.receiver AND sender = (of ->> 'sender')::bigint
                AND client_id = decode(replace(of ->> 'client_id', '-', ''), 'hex') AND kind = 1
                AND message_id < new.message_id;
        IF NOT FOUND AND new.kind = 5 AND EXISTS (SELECT FROM entries
            WHERE partition_key = new.partition_key AND receiver = new.receiver AND sender = (of ->> 'sender')::bigint
                AND client_id = decode(replace(of ->> 'client_id', '-', ''), 'hex') AND kind = 8
                AND message_id < new.message_id)
        THEN
            DELETE FROM entries WHERE partition_key = new.partition_key AND receiver = new.receiver AND message_id = new.message_id;
            RETURN NULL;
        END IF;
    END IF;
    own := CASE new.kind
        WHEN 2 THEN 'read ' || new.conversation
        WHEN 7 THEN 'react ' || new.sender || ' ' || (of ->> 'sender') || ' ' || (of ->> 'client_id')
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

-- A database that is distributed already (docs/CITUS.md). The trigger writes to the partition of the row that calls it.
DO $$
BEGIN
    IF EXISTS (SELECT FROM meta WHERE key = 'layout') THEN
        PERFORM create_distributed_table('compaction_keys', 'partition_key', colocate_with => 'heads');
        PERFORM set_config('citus.enable_unsafe_triggers', 'on', true);
    END IF;
END $$;

CREATE TRIGGER entries_compact AFTER INSERT ON entries FOR EACH ROW WHEN (new.kind IN (2, 5, 6, 7)) EXECUTE FUNCTION compact_entry();

-- In the distributed layout, too, only what is shown stands for a conversation in the list: a message (1) or a change of a group (3).
DO $$
DECLARE
    changed record;
    before  text;
BEGIN
    FOR changed IN SELECT * FROM (VALUES
        ('accept_messages(text, bigint, jsonb)', 'CASE w.kind WHEN 2 THEN 0 ELSE next END', 'CASE WHEN w.kind IN (1, 3) THEN next ELSE 0 END'),
        ('deliver_copies(text, bigint, jsonb)', 'VALUES (key, uid, c.conversation, next, 0)',
            'VALUES (key, uid, c.conversation, CASE WHEN c.kind IN (1, 3) THEN next ELSE 0 END, 0)')
    ) AS change(name, was, becomes)
    LOOP
        before := pg_get_functiondef(changed.name::regprocedure);
        IF position(changed.was IN before) = 0 THEN
            RAISE EXCEPTION 'the function % is not the one of migration 20', changed.name;
        END IF;
        EXECUTE replace(before, changed.was, changed.becomes);
    END LOOP;
END $$;
