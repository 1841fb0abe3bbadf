-- The part of commit_messages that stores groups, members and ends of membership epochs, and settles copies that are
-- owed no more. Its argument is explained there.
CREATE OR REPLACE FUNCTION commit_changes(more jsonb) RETURNS void
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
    done bigint;
BEGIN
    IF more ? 'groups' THEN
        INSERT INTO groups (gid, version, settings)
            SELECT made.gid, made.version, made.settings
            FROM jsonb_to_recordset(more -> 'groups')
                AS made(gid bigint, version bigint, settings jsonb, is_new boolean)
            WHERE made.is_new
            ORDER BY made.gid
            ON CONFLICT DO NOTHING;
        GET DIAGNOSTICS done = ROW_COUNT;
        IF done < (SELECT count(*) FROM jsonb_to_recordset(more -> 'groups') AS made(is_new boolean) WHERE made.is_new)
        THEN
            RAISE EXCEPTION 'a group is there already' USING ERRCODE = 'TM002';
        END IF;
        UPDATE groups SET version = changed.version, settings = groups.settings || changed.settings
            FROM jsonb_to_recordset(more -> 'groups')
                AS changed(gid bigint, version bigint, settings jsonb, is_new boolean)
            WHERE groups.gid = changed.gid AND NOT changed.is_new;
        INSERT INTO members (gid, uid, epoch, active, standing, since)
            SELECT changed.gid, changed.uid, changed.epoch, changed.active, changed.standing, changed.since
            FROM jsonb_to_recordset(more -> 'members')
                AS changed(gid bigint, uid bigint, epoch bigint, active boolean, standing smallint, since bigint)
            ON CONFLICT (gid, uid) DO UPDATE
                SET epoch = excluded.epoch, active = excluded.active,
                    standing = excluded.standing, since = excluded.since;
    END IF;
    IF more ? 'ends' THEN
        UPDATE members SET closed = greatest(members.closed, ended.epoch)
            FROM jsonb_to_recordset(more -> 'ends') AS ended(gid bigint, uid bigint, epoch bigint)
            WHERE members.gid = ended.gid AND members.uid = ended.uid;
    END IF;
    IF more ? 'served' THEN
        PERFORM FROM (SELECT DISTINCT partition_key, sender, acceptance FROM jsonb_to_recordset(more -> 'served')
                AS served(partition_key text COLLATE "C", sender bigint, acceptance bigint)) AS served
            JOIN pending USING (partition_key, sender, acceptance)
            ORDER BY pending.partition_key, pending.sender, pending.acceptance
            FOR UPDATE OF pending;
        DELETE FROM outbox USING jsonb_to_recordset(more -> 'served')
                AS served(partition_key text, sender bigint, acceptance bigint, recipient bigint)
            WHERE outbox.partition_key = served.partition_key AND outbox.sender = served.sender
                AND outbox.acceptance = served.acceptance AND outbox.recipient = served.recipient;
        GET DIAGNOSTICS done = ROW_COUNT;
        IF done < jsonb_array_length(more -> 'served') THEN
            RAISE EXCEPTION 'a copy is owed no more' USING ERRCODE = 'TM002';
        END IF;
        DELETE FROM pending USING jsonb_to_recordset(more -> 'served')
                AS served(partition_key text, sender bigint, acceptance bigint)
            WHERE pending.partition_key = served.partition_key AND pending.sender = served.sender
                AND pending.acceptance = served.acceptance
                AND NOT EXISTS (SELECT FROM outbox WHERE outbox.partition_key = served.partition_key
                    AND outbox.sender = served.sender AND outbox.acceptance = served.acceptance);
    END IF;
END $$;
