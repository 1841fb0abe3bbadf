-- Of the rows about one starred message (18) only the newest stays, as of pins (0074_pins.sql). The key is that of `Content::compaction_key`.
-- From the first such row on, a program that does not know the kind could not read the inbox.
DO $$
DECLARE
    function text := pg_get_functiondef('compact_entry()'::regprocedure);
    changed  record;
BEGIN
    FOR changed IN SELECT * FROM (VALUES
        (E'        WHEN 17 THEN ', E'        WHEN 18 THEN ''star '' || (of ->> ''sender'') || '' '' || (of ->> ''client_id'')\n        WHEN 17 THEN '),
        ('WHEN new.kind < 17 THEN ''70'' ELSE ''74'' END', 'WHEN new.kind < 17 THEN ''70'' WHEN new.kind < 18 THEN ''74'' ELSE ''78'' END'),
        ('WHEN new.kind < 17 THEN 70 ELSE 74 END', 'WHEN new.kind < 17 THEN 70 WHEN new.kind < 18 THEN 74 ELSE 78 END')
    ) AS change(was, becomes)
    LOOP
        IF position(changed.was IN function) = 0 THEN
            RAISE EXCEPTION 'the function compact_entry is not the one of migration 74';
        END IF;
        function := replace(function, changed.was, changed.becomes);
    END LOOP;
    EXECUTE function;
END $$;
