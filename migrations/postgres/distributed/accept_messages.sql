-- Accepts what one user sends, in this user's partition: the own copies, the idempotency records, and the copies that
-- are owed to others. The number of an acceptance is the id of the own copy. Each of `writes`:
--
--   entry       the row, as put_entry wants it. A read marker must be larger than that of the conversation
--   digest      of the request, in hex
--   id          of the own copy; 0: the next one
--   gid, epoch  the membership epoch that must not have ended; epoch 0: none
--   is_change   the change of a group that is made already: stored in any case
--   ends_uid, ends_epoch: the membership epoch that ends with the copy of its member
--   owed        in order: recipient, epoch
-- The answer has for each of them, in order, verdict and the fields of the verdict:
--
--   stored     id, previous: for each of `owed`, in order
--   used       id: the key has a record already
--   closed     the membership epoch has ended
--   behind     the read marker does not move forward
--   late       the id is not larger than the latest
--   end        the inbox has come to the end of its ids
--   full       the sender owes too many copies; refused for the moment
CREATE OR REPLACE FUNCTION accept_messages(key text, uid bigint, writes jsonb) RETURNS text
LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off
AS $$
DECLARE
    most_owed CONSTANT bigint := 10000;
    latest    bigint := lock_head(key, uid);
    owing     bigint;
    known     bigint;
    next      bigint;
    goal      text;
    client    bytea;
    marker    bigint;
    said_at   bigint;
    before    jsonb;
    open      jsonb;
    verdict   text;
    answers   jsonb := '[]';
    w         record;
BEGIN
    SELECT count(*) INTO owing
        FROM (SELECT FROM outbox WHERE partition_key = key AND sender = uid LIMIT most_owed) AS owed;
    FOR w IN SELECT * FROM jsonb_to_recordset(writes) AS w(entry jsonb, digest text, id bigint, gid bigint, epoch bigint,
        is_change boolean, ends_uid bigint, ends_epoch bigint, owed jsonb)
    LOOP
        goal := w.entry ->> 'conversation';
        client := decode(w.entry ->> 'client_id', 'hex');
        marker := (w.entry ->> 'read_to')::bigint;
        next := CASE WHEN w.id = 0 THEN latest + 1 ELSE w.id END;
        known := NULL;
        IF client IS NOT NULL THEN
            SELECT message_id INTO known FROM sent
                WHERE partition_key = key AND sender = uid AND client_id = client;
        END IF;
        verdict := CASE
            WHEN known IS NOT NULL THEN 'used'
            WHEN marker > 0 AND EXISTS (SELECT FROM conversations WHERE partition_key = key AND owner = uid
                AND conversation = goal AND read_to >= marker) THEN 'behind'
            WHEN w.epoch > 0 AND NOT w.is_change AND EXISTS (SELECT FROM stays WHERE partition_key = key
                AND member = uid AND gid = w.gid AND closed >= w.epoch) THEN 'closed'
            WHEN next <= latest THEN 'late'
            WHEN next > 9007199254740991 THEN 'end'
            WHEN owing >= most_owed AND jsonb_array_length(w.owed) > 0 AND NOT w.is_change THEN 'full'
            ELSE 'stored'
        END;
        IF verdict <> 'stored' THEN
            answers := answers || jsonb_build_object('verdict', verdict, 'id', known);
            CONTINUE;
        END IF;

        latest := next;
        said_at := (w.entry ->> 'sent_at')::bigint;
        PERFORM put_entry(key, uid, next, w.entry);
        IF client IS NOT NULL THEN
            INSERT INTO sent (partition_key, sender, client_id, digest, message_id, sent_at)
                VALUES (key, uid, client, decode(w.digest, 'hex'), next, said_at);
        END IF;
        IF w.ends_uid = uid THEN
            PERFORM close_stay(key, uid, w.gid, w.ends_epoch);
        END IF;
        before := '[]';
        IF jsonb_array_length(w.owed) > 0 THEN
            INSERT INTO pending
                    (partition_key, sender, acceptance, kind, target, client_id, body, sent_at, ends_uid, ends_epoch)
                VALUES (key, uid, next, (w.entry ->> 'kind')::smallint, goal, client, w.entry ->> 'body', said_at,
                    w.ends_uid, w.ends_epoch);
            SELECT jsonb_object_agg(recipient, last) INTO open
                FROM (SELECT recipient, max(acceptance) AS last FROM outbox
                    WHERE partition_key = key AND sender = uid GROUP BY recipient) AS recent;
            SELECT jsonb_agg(coalesce((open ->> owed.recipient::text)::bigint, 0) ORDER BY owed.place) INTO before
                FROM ROWS FROM (jsonb_to_recordset(w.owed) AS (recipient bigint))
                    WITH ORDINALITY AS owed(recipient, place);
            INSERT INTO outbox (partition_key, sender, acceptance, recipient, place, epoch, previous)
                SELECT key, uid, next, owed.recipient, owed.place, owed.epoch,
                    coalesce((open ->> owed.recipient::text)::bigint, 0)
                FROM ROWS FROM (jsonb_to_recordset(w.owed) AS (recipient bigint, epoch bigint))
                    WITH ORDINALITY AS owed(recipient, epoch, place);
            owing := owing + jsonb_array_length(w.owed);
        END IF;
        answers := answers || jsonb_build_object('verdict', verdict, 'id', next, 'previous', before);
    END LOOP;
    UPDATE heads SET last_id = latest WHERE partition_key = key AND receiver = uid AND last_id < latest;
    RETURN answers;
END $$;

SELECT create_distributed_function('accept_messages(text, bigint, jsonb)', 'key', colocate_with => 'heads');
