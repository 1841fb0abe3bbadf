-- The part of commit_messages that compares, whose argument `more` is explained there. Locks the groups, and answers
-- the facts that the call does not expect; NULL: none.
CREATE OR REPLACE FUNCTION commit_facts(h_key text[], h_receiver bigint[], more jsonb) RETURNS jsonb
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
    versions jsonb;
    markers  jsonb;
    epochs   jsonb;
BEGIN
    IF more ? 'groups' OR more ? 'ends' THEN
        PERFORM FROM jsonb_to_recordset(more -> 'locks') AS wanted(gid bigint)
            JOIN groups ON groups.gid = wanted.gid
            ORDER BY groups.gid
            FOR UPDATE OF groups;
    ELSIF more ? 'locks' THEN
        PERFORM FROM jsonb_to_recordset(more -> 'locks') AS wanted(gid bigint)
            JOIN groups ON groups.gid = wanted.gid
            ORDER BY groups.gid
            FOR SHARE OF groups;
    END IF;
    IF more ? 'versions' THEN
        SELECT jsonb_agg(jsonb_build_array(expected.gid, coalesce(groups.version, 0))) INTO versions
            FROM jsonb_to_recordset(more -> 'versions') AS expected(gid bigint, version bigint)
            LEFT JOIN groups ON groups.gid = expected.gid
            WHERE coalesce(groups.version, 0) <> expected.version;
    END IF;
    IF more ? 'markers' THEN
        SELECT jsonb_agg(marker.place) INTO markers
            FROM jsonb_to_recordset(more -> 'markers') AS marker(place int, head int, name text, read_to bigint)
            JOIN conversations AS known ON known.partition_key = h_key[marker.head]
                AND known.owner = h_receiver[marker.head] AND known.conversation = marker.name
            WHERE known.read_to >= marker.read_to;
    END IF;
    IF more ? 'epochs' THEN
        SELECT jsonb_agg(jsonb_build_array(members.gid, members.uid, members.closed)) INTO epochs
            FROM jsonb_to_recordset(more -> 'epochs') AS expected(gid bigint, uid bigint, epoch bigint)
            JOIN members ON members.gid = expected.gid AND members.uid = expected.uid
            WHERE members.closed >= expected.epoch;
    END IF;
    IF coalesce(versions, markers, epochs) IS NOT NULL THEN
        RETURN jsonb_strip_nulls(jsonb_build_object('versions', versions, 'markers', markers, 'epochs', epochs));
    END IF;
    RETURN NULL;
END $$;
