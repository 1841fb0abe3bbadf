-- Copies of one sender are owed no more. Each of `copies`: acceptance, recipient.
CREATE OR REPLACE FUNCTION settle_copies(key text, uid bigint, copies jsonb) RETURNS void
LANGUAGE plpgsql VOLATILE
SET plan_cache_mode = force_generic_plan
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
END $$;

SELECT create_distributed_function('settle_copies(text, bigint, jsonb)', 'key', colocate_with => 'heads');
