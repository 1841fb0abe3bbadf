-- Stand-ins for what Citus has, which check what Citus would refuse: for tests of distribute.sql, and of the layout, on PostgreSQL alone.
CREATE TABLE distributed_tables (name regclass PRIMARY KEY, of_column text NOT NULL, type oid NOT NULL);
CREATE TABLE distributed_functions (name regprocedure PRIMARY KEY, of_argument text);

CREATE FUNCTION create_distributed_table(table_name regclass, distribution_column text, colocate_with text DEFAULT 'default') RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    place  smallint;
    of     oid;
    unfit  text;
BEGIN
    SELECT attnum, atttypid INTO place, of FROM pg_attribute
        WHERE attrelid = table_name AND attname = distribution_column AND NOT attisdropped;
    IF NOT FOUND THEN
        RAISE EXCEPTION '% has no column %', table_name, distribution_column;
    END IF;
    SELECT indexrelid::regclass INTO unfit FROM pg_index
        WHERE indrelid = table_name AND indisunique AND NOT place = ANY (indkey::smallint[]);
    IF unfit IS NOT NULL THEN
        RAISE EXCEPTION 'the unique index % does not have %', unfit, distribution_column;
    END IF;
    IF colocate_with NOT IN ('default', 'none')
        AND NOT EXISTS (SELECT FROM distributed_tables WHERE name = colocate_with::regclass AND type = of) THEN
        RAISE EXCEPTION '% cannot lie together with %', table_name, colocate_with;
    END IF;
    INSERT INTO distributed_tables VALUES (table_name, distribution_column, of);
END $$;

CREATE FUNCTION create_distributed_function(
    function_name regprocedure, distribution_arg_name text DEFAULT NULL, colocate_with text DEFAULT 'default'
) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    place int;
BEGIN
    IF distribution_arg_name IS NOT NULL THEN
        SELECT array_position(proargnames, distribution_arg_name) INTO place FROM pg_proc WHERE oid = function_name;
        IF place IS NULL THEN
            RAISE EXCEPTION '% has no argument %', function_name, distribution_arg_name;
        END IF;
        IF NOT EXISTS (SELECT FROM distributed_tables JOIN pg_proc ON pg_proc.oid = function_name
            WHERE name = colocate_with::regclass AND type = proargtypes[place - 1]) THEN
            RAISE EXCEPTION '% cannot run where % lies', function_name, colocate_with;
        END IF;
    END IF;
    INSERT INTO distributed_functions VALUES (function_name, distribution_arg_name)
        ON CONFLICT (name) DO UPDATE SET of_argument = excluded.of_argument;
END $$;
