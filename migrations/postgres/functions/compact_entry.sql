-- The effect of a new row, which is stored already, on the rows before it. The transaction that stores it holds the lock
-- of the inbox's head, and calls this for each row that has an effect, in the order of the ids. `effect` is made by
-- store/postgres/effect.rs:
--
--   key     of the rows with one compaction key only the newest stays
--   change  of another row, with sender and client_id (hex): its kind and its body from now on, if its kind is one of
--           `from`. `also`: the key and the kind of one more row that has the text, which goes.
--           `void`: where the other row is of such a kind already, and none of `from`, the new row goes. Another server
--           decided on it at the same moment.
CREATE OR REPLACE FUNCTION compact_entry(key text, uid bigint, id bigint, effect jsonb) RETURNS void
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
    change   jsonb := effect -> 'change';
    author   bigint := (change ->> 'sender')::bigint;
    client   bytea := decode(change ->> 'client_id', 'hex');
    new_kind smallint := (change ->> 'kind')::smallint;
    new_body text := change ->> 'body';
    own      text := effect ->> 'key';
    also     text := change -> 'also' ->> 0;
    its_kind smallint := (change -> 'also' ->> 1)::smallint;
    kinds    smallint[];
    before   bigint;
BEGIN
    IF also IS NOT NULL THEN
        DELETE FROM entries WHERE partition_key = key AND receiver = uid AND kind = its_kind
            AND message_id = (SELECT message_id FROM compaction_keys
                WHERE partition_key = key AND receiver = uid AND name = also);
    END IF;
    IF change IS NOT NULL THEN
        kinds := ARRAY(SELECT jsonb_array_elements_text(change -> 'from')::smallint);
        UPDATE entries SET kind = new_kind, body = new_body
            WHERE partition_key = key AND receiver = uid AND sender = author AND client_id = client
                AND kind = ANY (kinds) AND message_id < id;
        IF NOT FOUND AND change ? 'void' THEN
            kinds := ARRAY(SELECT jsonb_array_elements_text(change -> 'void')::smallint);
            IF EXISTS (SELECT FROM entries WHERE partition_key = key AND receiver = uid AND sender = author
                AND client_id = client AND kind = ANY (kinds) AND message_id < id)
            THEN
                DELETE FROM entries WHERE partition_key = key AND receiver = uid AND message_id = id;
                RETURN;
            END IF;
        END IF;
    END IF;

    SELECT message_id INTO before FROM compaction_keys
        WHERE partition_key = key AND receiver = uid AND name = own;
    IF before > id THEN
        DELETE FROM entries WHERE partition_key = key AND receiver = uid AND message_id = id;
        RETURN;
    END IF;
    DELETE FROM entries WHERE partition_key = key AND receiver = uid AND message_id = before;
    INSERT INTO compaction_keys (partition_key, receiver, name, message_id) VALUES (key, uid, own, id)
        ON CONFLICT (partition_key, receiver, name) DO UPDATE SET message_id = excluded.message_id;
END $$;
