-- Ends a call of commit_rows with an error, whose detail names the places or numbers.
CREATE OR REPLACE FUNCTION stop_commit(code text, what text, which bigint[]) RETURNS void
LANGUAGE plpgsql VOLATILE
AS $$
BEGIN
    RAISE EXCEPTION USING ERRCODE = code, MESSAGE = what, DETAIL = array_to_string(which, ',');
END $$;
