-- Rows that a user gets before a copy. deliver_copies calls it, and holds the lock of the head. Each of `earlier`, in
-- order: kind, conversation, sender, client_id (hex), body, sent_at, id.
CREATE OR REPLACE FUNCTION put_earlier(key text, uid bigint, earlier jsonb) RETURNS void
LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off
AS $$
DECLARE
    c record;
BEGIN
    FOR c IN SELECT * FROM jsonb_to_recordset(earlier)
        AS c(kind smallint, conversation text, sender bigint, client_id text, body text, sent_at bigint, id bigint)
    LOOP
        INSERT INTO entries (partition_key, receiver, message_id, kind, conversation, sender, client_id, body, sent_at)
            VALUES (key, uid, c.id, c.kind, c.conversation, c.sender, decode(c.client_id, 'hex'), c.body, c.sent_at);
        INSERT INTO conversations AS known (partition_key, owner, conversation, last_id, read_to)
            VALUES (key, uid, c.conversation, CASE WHEN c.kind IN (1, 3) THEN c.id ELSE 0 END,
                CASE WHEN c.kind = 2 THEN (c.body::json ->> 'read_to')::bigint ELSE 0 END)
            ON CONFLICT (partition_key, owner, conversation) DO UPDATE
                SET last_id = greatest(known.last_id, excluded.last_id),
                    read_to = greatest(known.read_to, excluded.read_to);
    END LOOP;
END $$;

SELECT create_distributed_function('put_earlier(text, bigint, jsonb)');
