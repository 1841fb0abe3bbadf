-- Refuses a transaction that writes to two partitions.
CREATE FUNCTION one_partition() RETURNS trigger
LANGUAGE plpgsql AS $$
DECLARE
    written   jsonb := to_jsonb(coalesce(NEW, OLD));
    partition text := coalesce(written ->> 'partition_key', 'group ' || (written ->> 'gid'));
    before    text := coalesce(current_setting('tidemark.partition', true), '');
BEGIN
    IF before NOT IN ('', partition) THEN
        RAISE EXCEPTION 'a transaction writes to the partitions % and % (%)', before, partition, TG_TABLE_NAME;
    END IF;
    PERFORM set_config('tidemark.partition', partition, true);
    INSERT INTO partitions_written VALUES (partition) ON CONFLICT DO NOTHING;
    RETURN NULL;
END $$;
CREATE TABLE partitions_written (name text PRIMARY KEY);

DO $$
DECLARE
    of text;
BEGIN
    FOREACH of IN ARRAY '{heads,entries,sent,conversations,pending,outbox,links,stays,groups,members,changes,table_rows,table_counters,search_segments,search_parts}'::text[] LOOP
        -- The plain layout does not have all of them.
        CONTINUE WHEN to_regclass(of) IS NULL;
        EXECUTE format('CREATE TRIGGER one_partition AFTER INSERT OR UPDATE OR DELETE ON %I
            FOR EACH ROW EXECUTE FUNCTION one_partition()', of);
    END LOOP;
END $$;
