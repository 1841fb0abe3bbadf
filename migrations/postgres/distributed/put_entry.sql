-- Puts a row into an inbox of this partition, with its line in the list of conversations and its effect on earlier rows.
-- accept_messages and deliver_copies call it, and hold the lock of the head. `entry` has:
--
--   kind, conversation, sender, client_id (hex; absent for read markers), body, sent_at
--   is_shown  whether the conversation shows it in the list
--   read_to   of a read marker; else 0
--   effect    see compact_entry; absent where it has none
CREATE OR REPLACE FUNCTION put_entry(key text, uid bigint, id bigint, entry jsonb) RETURNS void
LANGUAGE plpgsql VOLATILE
AS $$
BEGIN
    INSERT INTO entries (partition_key, receiver, message_id, kind, conversation, sender, client_id, body, sent_at)
        VALUES (key, uid, id, (entry ->> 'kind')::smallint, entry ->> 'conversation', (entry ->> 'sender')::bigint,
            decode(entry ->> 'client_id', 'hex'), entry ->> 'body', (entry ->> 'sent_at')::bigint);
    INSERT INTO conversations AS known (partition_key, owner, conversation, last_id, read_to)
        VALUES (key, uid, entry ->> 'conversation', CASE WHEN (entry ->> 'is_shown')::boolean THEN id ELSE 0 END,
            (entry ->> 'read_to')::bigint)
        ON CONFLICT (partition_key, owner, conversation) DO UPDATE
            SET last_id = greatest(known.last_id, excluded.last_id),
                read_to = greatest(known.read_to, excluded.read_to);
    IF entry ? 'effect' THEN
        PERFORM compact_entry(key, uid, id, entry -> 'effect');
    END IF;
END $$;

SELECT create_distributed_function('put_entry(text, bigint, bigint, jsonb)');
-- Both layouts have this one.
SELECT create_distributed_function('compact_entry(text, bigint, bigint, jsonb)');
