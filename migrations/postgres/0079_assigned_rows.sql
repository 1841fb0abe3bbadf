-- Where a call of commit_rows only puts rows under numbers that it assigns, hardly any of them is there: they are inserted without looking
-- for what they would replace, which takes a quarter of the time less. If one is there, nothing of that holds, and the rows go the way of all others.
DO $$
DECLARE
    function text := pg_get_functiondef('commit_rows(bigint[],text[],bigint[],bytea[],bigint[],text[],bigint[],bytea[],int[],bigint[],'
        'bytea[],bigint[],bytea[],bigint)'::regprocedure);
    before   text := E'    SELECT array_agg(CASE row.counter WHEN 0 THEN row.before ELSE\n';
    added    text := $added$    IF array_position(r_counter, 0) IS NULL AND array_position(r_row, NULL) IS NULL
        AND cardinality(array_remove(r_expected, NULL)) = 0 THEN
        BEGIN
            INSERT INTO table_rows (partition_key, table_id, key, rest, rest_digest, revision, row)
                SELECT new.key, new.of_table, substr(new.whole, 1, 2000), substr(new.whole, 2001),
                    CASE WHEN octet_length(new.whole) > 2000 THEN sha256(substr(new.whole, 2001)) ELSE '' END, new_revision, new.row
                FROM (SELECT key, of_table, row,
                        before || '\x10'::bytea || int8send((last[counter] + plus) # '-9223372036854775808'::bigint) || after AS whole
                    FROM unnest(r_key, r_table, r_before, r_counter, r_plus, r_after, r_row)
                        AS given(key, of_table, before, counter, plus, after, row)
                    ORDER BY key COLLATE "C", of_table, whole) AS new;
            RETURN last;
        EXCEPTION WHEN unique_violation THEN
            -- A row was put under such a number by name: see below.
        END;
    END IF;

$added$;
BEGIN
    IF position(before IN function) = 0 THEN
        RAISE EXCEPTION 'the function commit_rows is not the one of migration 41';
    END IF;
    EXECUTE replace(function, before, added || before);
END $$;
