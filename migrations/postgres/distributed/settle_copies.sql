-- Copies of one sender are owed no more. Each of `copies`: acceptance, recipient. Answers nothing, as a text: Citus sends a
-- call whose answer is converted to no node.
CREATE OR REPLACE FUNCTION settle_copies(key text, uid bigint, copies jsonb) RETURNS text
LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off
AS $$
BEGIN
    -- Of two calls that settle the last two copies of an acceptance, the second one sees that nothing is left.
    PERFORM FROM (SELECT DISTINCT acceptance FROM jsonb_to_recordset(copies) AS settled(acceptance bigint)) AS settled
        JOIN pending ON pending.partition_key = key AND pending.sender = uid AND pending.acceptance = settled.acceptance
        ORDER BY pending.acceptance
        FOR UPDATE OF pending;
    DELETE FROM outbox USING jsonb_to_recordset(copies) AS settled(acceptance bigint, recipient bigint)
        WHERE outbox.partition_key = key AND outbox.sender = uid
            AND outbox.acceptance = settled.acceptance AND outbox.recipient = settled.recipient;
    DELETE FROM pending USING jsonb_to_recordset(copies) AS settled(acceptance bigint)
        WHERE pending.partition_key = key AND pending.sender = uid AND pending.acceptance = settled.acceptance
            AND NOT EXISTS (SELECT FROM outbox WHERE outbox.partition_key = key AND outbox.sender = uid
                AND outbox.acceptance = settled.acceptance);
    RETURN '';
END $$;

SELECT create_distributed_function('settle_copies(text, bigint, jsonb)', 'key', colocate_with => 'heads');
