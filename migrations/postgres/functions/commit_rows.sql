-- One commit of the table store is one call. store/postgres/tables/commit makes the arguments. The function locks,
-- compares, and stores everything; or stores nothing and says why. The answer: the latest number of each counter
-- before.
--
--   TM004  Raised: rows are not there as they are expected. The detail: their places, from 1.
--   TM005  Raised: counters would come beyond their end. The detail: their places.
--   TM006  Raised: tables are deleted. The detail: their numbers.
--   TM007  Raised: the call came too late; its caller may have looked already whether it was stored.
--
-- Locks are taken in one order: counters, then rows, each by its key. A counter or a row that is missing is made in
-- that order, too.
CREATE OR REPLACE FUNCTION commit_rows(
    -- The tables, each once.
    t_id bigint[],
    -- The counters that move, each once, and how many numbers each gives.
    c_key text[], c_table bigint[], c_first bytea[], c_gives bigint[],
    -- The rows, each once but for keys that this call assigns. A key is `before`; or, where `counter` is not 0, the bytes
    -- before the number, that counter's number `plus` further on, and `after`. `expected` is 0 where nothing may be there,
    -- a revision, or NULL where it does not matter. A row that is NULL is deleted.
    r_key text[], r_table bigint[], r_before bytea[], r_counter int[], r_plus bigint[], r_after bytea[],
    r_expected bigint[], r_row bytea[],
    -- Of the rows from now on; no other call has it.
    new_revision bigint,
    -- Until when it may begin, in milliseconds since 1970. From then on a caller that lost the answer looks for the rows.
    until bigint
) RETURNS bigint[]
LANGUAGE plpgsql VOLATILE
-- A plan must not depend on the statistics of the tables, of which there are none at first.
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
AS $$
DECLARE
    most     CONSTANT bigint := 9007199254740991;
    floor    bigint;
    last     bigint[] := '{}';
    moved_to bigint[];
    places   bigint[];
    whole    bytea[];
    final    boolean[] := array_fill(true, ARRAY[cardinality(r_key)]);
    wrong    bigint[];
BEGIN
    -- Held until the transaction ends: a caller that lost the answer waits for that.
    PERFORM pg_advisory_xact_lock(-new_revision);
    PERFORM commit_in_time(until);
    SELECT array_agg(wanted.id) INTO wrong FROM unnest(t_id) AS wanted(id)
        WHERE NOT EXISTS (SELECT FROM tables WHERE tables.id = wanted.id AND deleted IS NULL);
    IF wrong IS NOT NULL THEN
        PERFORM stop_commit('TM006', 'tables are deleted', wrong);
    END IF;

    IF cardinality(c_key) > 0 THEN
        -- A transaction that raises the floor holds this until it is raised.
        LOCK TABLE table_counters IN ROW EXCLUSIVE MODE;
        SELECT coalesce((SELECT value::bigint FROM meta WHERE key = 'table_floor'), 0) INTO floor;
        WITH moved AS (
            INSERT INTO table_counters AS known (partition_key, table_id, first, last_id)
                SELECT new.key, new.of_table, new.first, floor + new.gives
                FROM unnest(c_key, c_table, c_first, c_gives) AS new(key, of_table, first, gives)
                ORDER BY new.key COLLATE "C", new.of_table, new.first
                ON CONFLICT (partition_key, table_id, first) DO UPDATE
                    SET last_id = known.last_id + excluded.last_id - floor
                RETURNING known.partition_key, known.table_id, known.first, known.last_id)
        SELECT array_agg(moved.last_id ORDER BY moved.partition_key COLLATE "C", moved.table_id, moved.first)
            INTO moved_to FROM moved;
        -- Both lists are sorted and laid side by side. Looking each counter up in the other takes time by the square.
        SELECT array_agg(new.place ORDER BY new.key COLLATE "C", new.of_table, new.first) INTO places
            FROM unnest(c_key, c_table, c_first) WITH ORDINALITY AS new(key, of_table, first, place);
        SELECT array_agg(moved_to[n] - c_gives[places[n]] ORDER BY places[n]) INTO last
            FROM generate_subscripts(places, 1) AS n;
        SELECT array_agg(new.place) INTO wrong FROM unnest(last, c_gives) WITH ORDINALITY AS new(last, gives, place)
            WHERE new.last > most - new.gives;
        IF wrong IS NOT NULL THEN
            PERFORM stop_commit('TM005', 'counters have come to their end', wrong);
        END IF;
    END IF;

    -- Rows that are only put under numbers which this call assigns: hardly any of them is there. They are inserted without
    -- looking for rows that they would replace, in three quarters of the time.
    IF array_position(r_counter, 0) IS NULL AND array_position(r_row, NULL) IS NULL
        AND cardinality(array_remove(r_expected, NULL)) = 0
    THEN
        BEGIN
            INSERT INTO table_rows (partition_key, table_id, key, rest, rest_digest, revision, row)
                SELECT new.key, new.of_table, substr(new.whole, 1, 2000), substr(new.whole, 2001),
                    CASE WHEN octet_length(new.whole) > 2000 THEN sha256(substr(new.whole, 2001)) ELSE '' END,
                    new_revision, new.row
                FROM (SELECT key, of_table, row,
                        before || '\x10'::bytea
                            || int8send((last[counter] + plus) # '-9223372036854775808'::bigint) || after AS whole
                    FROM unnest(r_key, r_table, r_before, r_counter, r_plus, r_after, r_row)
                        AS given(key, of_table, before, counter, plus, after, row)
                    ORDER BY key COLLATE "C", of_table, whole) AS new;
            RETURN last;
        EXCEPTION WHEN unique_violation THEN
            -- A row was put under such a number by name. Nothing of this holds, and the rows go the way of all others.
        END;
    END IF;

    SELECT array_agg(CASE row.counter WHEN 0 THEN row.before ELSE
            row.before || '\x10'::bytea
                || int8send((last[row.counter] + row.plus) # '-9223372036854775808'::bigint) || row.after END
            ORDER BY row.place) INTO whole
        FROM unnest(r_before, r_counter, r_plus, r_after) WITH ORDINALITY AS row(before, counter, plus, after, place);
    IF cardinality(c_key) > 0 AND array_position(r_counter, 0) IS NOT NULL THEN
        -- A key that is named may be one that has just been assigned: then the later row counts.
        SELECT array_agg(row.later IS NULL ORDER BY row.place) INTO final
            FROM (SELECT place, lead(place) OVER (PARTITION BY key, of_table, whole_key ORDER BY place) AS later
                FROM unnest(r_key, r_table, whole) WITH ORDINALITY AS row(key, of_table, whole_key, place)) AS row;
    END IF;

    IF cardinality(array_remove(r_expected, NULL)) > 0 OR array_position(r_row, NULL) IS NOT NULL THEN
        -- All are locked. Those that are missing are made, with a revision of 0, which no reader takes for a row.
        INSERT INTO table_rows AS known (partition_key, table_id, key, rest, rest_digest, revision, row)
            SELECT new.key, new.of_table, substr(new.whole, 1, 2000), substr(new.whole, 2001),
                CASE WHEN octet_length(new.whole) > 2000 THEN sha256(substr(new.whole, 2001)) ELSE '' END, 0, ''
            FROM unnest(r_key, r_table, whole, final) AS new(key, of_table, whole, is_final)
            WHERE new.is_final
            ORDER BY new.key COLLATE "C", new.of_table, new.whole
            ON CONFLICT (partition_key, table_id, key, rest_digest) DO UPDATE
                SET revision = excluded.revision WHERE false;
        SELECT array_agg(new.place ORDER BY new.place) INTO wrong
            FROM unnest(r_key, r_table, whole, r_expected)
                WITH ORDINALITY AS new(key, of_table, whole, expected, place)
            JOIN table_rows ON table_rows.partition_key = new.key AND table_rows.table_id = new.of_table
                AND table_rows.key = substr(new.whole, 1, 2000)
                AND table_rows.rest_digest =
                    CASE WHEN octet_length(new.whole) > 2000 THEN sha256(substr(new.whole, 2001)) ELSE '' END
            WHERE table_rows.revision <> new.expected;
        IF wrong IS NOT NULL THEN
            PERFORM stop_commit('TM004', 'rows have changed', wrong);
        END IF;
        DELETE FROM table_rows
            USING unnest(r_key, r_table, whole, r_row, final) AS old(key, of_table, whole, row, is_final)
            WHERE table_rows.partition_key = old.key AND table_rows.table_id = old.of_table
                AND table_rows.key = substr(old.whole, 1, 2000)
                AND table_rows.rest_digest =
                    CASE WHEN octet_length(old.whole) > 2000 THEN sha256(substr(old.whole, 2001)) ELSE '' END
                AND old.row IS NULL AND old.is_final;
    END IF;
    INSERT INTO table_rows AS known (partition_key, table_id, key, rest, rest_digest, revision, row)
        SELECT new.key, new.of_table, substr(new.whole, 1, 2000), substr(new.whole, 2001),
            CASE WHEN octet_length(new.whole) > 2000 THEN sha256(substr(new.whole, 2001)) ELSE '' END,
            new_revision, new.row
        FROM unnest(r_key, r_table, whole, r_row, final) AS new(key, of_table, whole, row, is_final)
        WHERE new.row IS NOT NULL AND new.is_final
        ORDER BY new.key COLLATE "C", new.of_table, new.whole
        ON CONFLICT (partition_key, table_id, key, rest_digest) DO UPDATE
            SET revision = excluded.revision, row = excluded.row;
    RETURN last;
END $$;
