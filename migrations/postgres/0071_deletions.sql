-- The text of an edit goes with its message: a deletion (14) also removes the row of the last edit (5).
DO $$
DECLARE
    function constant text := pg_get_functiondef('compact_entry()'::regprocedure);
    was      constant text := E'    IF new.kind = 14 THEN\n';
BEGIN
    IF position(was IN function) = 0 THEN
        RAISE EXCEPTION 'the function compact_entry is not the one of migration 70';
    END IF;
    EXECUTE replace(function, was, was || $new$
        DELETE FROM entries WHERE partition_key = new.partition_key AND receiver = new.receiver AND kind = 5
            AND message_id = (SELECT message_id FROM compaction_keys WHERE partition_key = new.partition_key
                AND receiver = new.receiver AND name = 'amend ' || (of ->> 'sender') || ' ' || (of ->> 'client_id'));
$new$);
END $$;
