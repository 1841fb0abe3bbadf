-- A membership epoch ends with a row of the member's inbox.
CREATE OR REPLACE FUNCTION close_stay(key text, uid bigint, of_gid bigint, epoch bigint) RETURNS void
LANGUAGE plpgsql VOLATILE
AS $$
BEGIN
    INSERT INTO stays AS known (partition_key, member, gid, closed) VALUES (key, uid, of_gid, epoch)
        ON CONFLICT (partition_key, member, gid) DO UPDATE SET closed = greatest(known.closed, excluded.closed);
END $$;

SELECT create_distributed_function('close_stay(text, bigint, bigint, bigint)');
