-- Of the rows about one pinned message (17) only the newest stays, as of other rows that say how things stand (0070_kinds.sql). The key is that of
-- `Content::compaction_key`. From the first such row on, a program that does not know the kind could not read the inbox.
DO $$
DECLARE
    function text := pg_get_functiondef('compact_entry()'::regprocedure);
    changed  record;
BEGIN
    FOR changed IN SELECT * FROM (VALUES
        (E'        WHEN 16 THEN ', E'        WHEN 17 THEN ''pin '' || new.conversation || '' '' || (of ->> ''sender'') || '' '' || (of ->> ''client_id'')\n'
            || E'        WHEN 16 THEN '),
        ('CASE WHEN new.kind < 9 THEN ''50'' ELSE ''70'' END', 'CASE WHEN new.kind < 9 THEN ''50'' WHEN new.kind < 17 THEN ''70'' ELSE ''74'' END'),
        ('CASE WHEN new.kind < 9 THEN 50 ELSE 70 END', 'CASE WHEN new.kind < 9 THEN 50 WHEN new.kind < 17 THEN 70 ELSE 74 END')
    ) AS change(was, becomes)
    LOOP
        IF position(changed.was IN function) = 0 THEN
            RAISE EXCEPTION 'the function compact_entry is not the one of migration 71';
        END IF;
        function := replace(function, changed.was, changed.becomes);
    END LOOP;
    EXECUTE function;
END $$;
