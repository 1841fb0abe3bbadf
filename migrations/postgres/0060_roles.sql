-- What members of a group may do, and who may not come back. `standing` says more than `active`: of who is in, 0 a member, 1 an
-- administrator, 2 the owner; of who is not, 0 left, 3 was removed, 4 is banned. `since`: the version of the group with which who is in
-- came (0: from before this was kept), or the time of the removal or ban, in milliseconds since 1970 UTC. A program that does not know
-- these columns writes `active` alone, which counts.
ALTER TABLE groups ADD COLUMN topic text NOT NULL DEFAULT '';
ALTER TABLE members ADD COLUMN standing smallint NOT NULL DEFAULT 0;
ALTER TABLE members ADD COLUMN since bigint NOT NULL DEFAULT 0;

-- Whoever made a group owns it, if still in: the first row of the group in that one's inbox says so. Of a group whose maker has left,
-- the one who stands longest is the owner; the program sees to that. (Distributed tables of users and of groups cannot be joined.)
DO $$
DECLARE
    made record;
BEGIN
    FOR made IN SELECT substr(known.conversation, 3)::bigint AS gid, known.owner
        FROM conversations AS known
        JOIN entries AS first ON first.partition_key = known.partition_key AND first.receiver = known.owner
            AND first.message_id = (SELECT min(message_id) FROM entries WHERE entries.partition_key = known.partition_key
                AND entries.receiver = known.owner AND entries.conversation = known.conversation)
        WHERE known.conversation LIKE 'g:%' AND first.kind = 3 AND first.sender = known.owner
            AND first.body::jsonb ->> 'action' = 'created'
    LOOP
        UPDATE members SET standing = 2 WHERE gid = made.gid AND uid = made.owner AND active;
    END LOOP;
END $$;

-- For how many an invitation was made, and what its maker's client calls it: a repetition of the request finds it.
ALTER TABLE invites ADD COLUMN uses bigint NOT NULL DEFAULT 0;
ALTER TABLE invites ADD COLUMN client_id bytea;
UPDATE invites SET uses = uses_left;
CREATE INDEX invites_by_group ON invites (gid, number);
CREATE UNIQUE INDEX invites_once ON invites (made_by, client_id) WHERE client_id IS NOT NULL;

-- commit_changes of 0004, where its argument is explained, with what is new in it; servers of the version before call it, too:
--
--   groups     also renamed (NULL: it keeps its name) and topic (NULL: it keeps it)
--   members    also standing and since
CREATE OR REPLACE FUNCTION commit_changes(more jsonb) RETURNS void
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
    done bigint;
BEGIN
    IF more ? 'groups' THEN
        INSERT INTO groups (gid, name, version, topic)
            SELECT made.gid, made.name, made.version, coalesce(made.topic, '')
            FROM jsonb_to_recordset(more -> 'groups') AS made(gid bigint, name text, version bigint, topic text)
            WHERE made.name IS NOT NULL
            ORDER BY made.gid
            ON CONFLICT DO NOTHING;
        GET DIAGNOSTICS done = ROW_COUNT;
        IF done < (SELECT count(*) FROM jsonb_to_recordset(more -> 'groups') AS made(name text) WHERE made.name IS NOT NULL) THEN
            RAISE EXCEPTION 'a group is there already' USING ERRCODE = 'TM002';
        END IF;
        UPDATE groups SET version = changed.version, name = coalesce(changed.renamed, groups.name), topic = coalesce(changed.topic, groups.topic)
            FROM jsonb_to_recordset(more -> 'groups') AS changed(gid bigint, name text, version bigint, renamed text, topic text)
            WHERE groups.gid = changed.gid AND changed.name IS NULL;
        INSERT INTO members (gid, uid, epoch, active, standing, since)
            SELECT changed.gid, changed.uid, changed.epoch, changed.active, coalesce(changed.standing, 0), coalesce(changed.since, 0)
            FROM jsonb_to_recordset(more -> 'members')
                AS changed(gid bigint, uid bigint, epoch bigint, active boolean, standing smallint, since bigint)
            ON CONFLICT (gid, uid) DO UPDATE
                SET epoch = excluded.epoch, active = excluded.active, standing = excluded.standing, since = excluded.since;
        -- From the first administrator or ban on, a program that does not know them would let members do what they may not.
        UPDATE meta SET value = '60' WHERE key = 'oldest_program' AND value::int < 60 AND EXISTS (
            SELECT FROM jsonb_to_recordset(more -> 'members') AS changed(standing smallint) WHERE changed.standing IN (1, 4));
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

-- change_group of 0020 with a name and a topic (NULL: it keeps them) and the standing of members. The old one stays for servers of the
-- version before.
CREATE FUNCTION alter_group(home bigint, from_version bigint, by bigint, new_name text, new_topic text, changed jsonb, to_accept jsonb)
    RETURNS text
LANGUAGE plpgsql VOLATILE
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
AS $$
DECLARE
    now   bigint;
    owing record;
BEGIN
    SELECT version INTO now FROM groups WHERE gid = home FOR UPDATE;
    SELECT version, actor, accept INTO owing FROM changes WHERE gid = home;
    IF FOUND THEN
        RETURN jsonb_build_object('verdict', 'owed', 'version', owing.version, 'actor', owing.actor, 'accept', owing.accept);
    END IF;
    IF coalesce(now, 0) <> from_version THEN
        RETURN jsonb_build_object('verdict', 'stale');
    END IF;
    IF now IS NULL THEN
        INSERT INTO groups (gid, name, version, topic) VALUES (home, new_name, 1, coalesce(new_topic, '')) ON CONFLICT DO NOTHING;
        IF NOT FOUND THEN
            RETURN jsonb_build_object('verdict', 'stale');
        END IF;
    ELSE
        UPDATE groups SET version = from_version + 1, name = coalesce(new_name, name), topic = coalesce(new_topic, topic) WHERE gid = home;
    END IF;
    INSERT INTO members (gid, uid, epoch, active, standing, since)
        SELECT home, member.uid, member.epoch, member.active, member.standing, member.since
        FROM jsonb_to_recordset(changed) AS member(uid bigint, epoch bigint, active boolean, standing smallint, since bigint)
        ON CONFLICT (gid, uid) DO UPDATE
            SET epoch = excluded.epoch, active = excluded.active, standing = excluded.standing, since = excluded.since;
    INSERT INTO changes (gid, version, actor, accept) VALUES (home, from_version + 1, by, to_accept);
    RETURN jsonb_build_object('verdict', 'made');
END $$;

-- A database that is distributed already (docs/CITUS.md).
DO $$
BEGIN
    IF EXISTS (SELECT FROM meta WHERE key = 'layout') THEN
        PERFORM create_distributed_function('alter_group(bigint, bigint, bigint, text, text, jsonb, jsonb)', 'home', colocate_with => 'groups');
    END IF;
END $$;
