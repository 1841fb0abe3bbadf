-- Refuses a call that begins after the moment which its caller has named, in milliseconds since 1970: one that was still
-- on its way when the caller's connection broke.
CREATE OR REPLACE FUNCTION commit_in_time(until bigint) RETURNS void
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    IF extract(epoch FROM clock_timestamp()) * 1000 > until THEN
        RAISE EXCEPTION 'the call came too late' USING ERRCODE = 'TM007';
    END IF;
END $$;
