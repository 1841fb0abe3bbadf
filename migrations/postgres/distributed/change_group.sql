-- Changes a group, where the group is: compares its version, and notes the row to accept in the inbox of `by`.
-- `new_settings` has the settings that change. The verdict:
--
--   made   it is changed
--   stale  the version is another one
--   owed   the change before it is not accepted yet, which comes first: version, actor, accept
CREATE OR REPLACE FUNCTION change_group(home bigint, from_version bigint, by bigint, new_settings jsonb, changed jsonb,
    to_accept jsonb) RETURNS text
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
        INSERT INTO groups (gid, version, settings) VALUES (home, 1, new_settings) ON CONFLICT DO NOTHING;
        IF NOT FOUND THEN
            RETURN jsonb_build_object('verdict', 'stale');
        END IF;
    ELSE
        UPDATE groups SET version = from_version + 1, settings = settings || new_settings WHERE gid = home;
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
    'change_group(bigint, bigint, bigint, jsonb, jsonb, jsonb)', 'home', colocate_with => 'groups');
