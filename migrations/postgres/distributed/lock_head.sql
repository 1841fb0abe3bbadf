-- Locks the head of an inbox, makes it if it is missing, and answers its latest id.
CREATE OR REPLACE FUNCTION lock_head(key text, uid bigint) RETURNS bigint
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
    latest bigint;
BEGIN
    SELECT last_id INTO latest FROM heads WHERE partition_key = key AND receiver = uid FOR UPDATE;
    IF NOT FOUND THEN
        INSERT INTO heads (partition_key, receiver, last_id) VALUES (key, uid, 0) ON CONFLICT DO NOTHING;
        SELECT last_id INTO latest FROM heads WHERE partition_key = key AND receiver = uid FOR UPDATE;
    END IF;
    RETURN latest;
END $$;

SELECT create_distributed_function('lock_head(text, bigint)');
