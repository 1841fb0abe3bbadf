-- Changes a group, where the group is: compares its version, and notes the row to accept in the inbox of `by`.
-- A name, a topic or a history that is NULL: the group keeps it. The verdict:
--
--   made   it is changed
--   stale  the version is another one
--   owed   the change before it is not accepted yet, which comes first: version, actor, accept
CREATE OR REPLACE FUNCTION change_group(home bigint, from_version bigint, by bigint, new_name text, new_topic text,
    new_history smallint, changed jsonb, to_accept jsonb) RETURNS text
LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off
AS $$
DECLARE
    now   bigint;
    owing record;
BEGIN
    SELECT version INTO now FROM groups WHERE gid = home FOR UPDATE;
    SELECT version, actor, accept INTO owing FROM changes WHERE gid = home;
    IF FOUND THEN
        RETURN jsonb_build_object('verdict', 'owed', 'version', owing.version, 'actor', owing.actor,
            'accept', owing.accept);
    END IF;
    IF coalesce(now, 0) <> from_version THEN
        RETURN jsonb_build_object('verdict', 'stale');
    END IF;
    IF now IS NULL THEN
        INSERT INTO groups (gid, name, topic, history, version)
            VALUES (home, new_name, coalesce(new_topic, ''), coalesce(new_history, 0), 1)
            ON CONFLICT DO NOTHING;
        IF NOT FOUND THEN
            RETURN jsonb_build_object('verdict', 'stale');
        END IF;
    ELSE
        UPDATE groups SET version = from_version + 1, name = coalesce(new_name, name),
                topic = coalesce(new_topic, topic), history = coalesce(new_history, history)
            WHERE gid = home;
    END IF;
    INSERT INTO members (gid, uid, epoch, active, standing, since)
        SELECT home, member.uid, member.epoch, member.active, member.standing, member.since
        FROM jsonb_to_recordset(changed)
            AS member(uid bigint, epoch bigint, active boolean, standing smallint, since bigint)
        ON CONFLICT (gid, uid) DO UPDATE
            SET epoch = excluded.epoch, active = excluded.active,
                standing = excluded.standing, since = excluded.since;
    INSERT INTO changes (gid, version, actor, accept) VALUES (home, from_version + 1, by, to_accept);
    RETURN jsonb_build_object('verdict', 'made');
END $$;

SELECT create_distributed_function(
    'change_group(bigint, bigint, bigint, text, text, smallint, jsonb, jsonb)', 'home', colocate_with => 'groups');
