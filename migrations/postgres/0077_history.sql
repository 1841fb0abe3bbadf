-- What those who join a group later see of what was said before: 0 nothing, 1 the newest messages. A program that does not know the column
-- leaves it as it is, and shows those whom it takes in nothing of before.
ALTER TABLE groups ADD COLUMN history smallint NOT NULL DEFAULT 0;

-- commit_changes of 0060, with what is new in it; servers of the version before call it, too:
--
--   groups     also history (NULL: it stays)
--
-- And deliver_copies of 0020, where its argument is explained. Each of `copies` may also have
--
--   earlier    what is stored before the copy, if the copy is: in order, each with kind, conversation, sender, client_id, body, sent_at, id
DO $$
DECLARE
    function text;
    changed  record;
BEGIN
    FOR changed IN SELECT * FROM (VALUES
        ('commit_changes(jsonb)', 'INSERT INTO groups (gid, name, version, topic)', 'INSERT INTO groups (gid, name, version, topic, history)'),
        ('commit_changes(jsonb)', 'SELECT made.gid, made.name, made.version, coalesce(made.topic, '''')',
            'SELECT made.gid, made.name, made.version, coalesce(made.topic, ''''), coalesce(made.history, 0)'),
        ('commit_changes(jsonb)', 'AS made(gid bigint, name text, version bigint, topic text)',
            'AS made(gid bigint, name text, version bigint, topic text, history smallint)'),
        ('commit_changes(jsonb)', 'topic = coalesce(changed.topic, groups.topic)',
            'topic = coalesce(changed.topic, groups.topic), history = coalesce(changed.history, groups.history)'),
        ('commit_changes(jsonb)', 'AS changed(gid bigint, name text, version bigint, renamed text, topic text)',
            'AS changed(gid bigint, name text, version bigint, renamed text, topic text, history smallint)'),
        ('deliver_copies(text, bigint, jsonb)', 'ends bigint, is_void boolean)', 'ends bigint, is_void boolean, earlier jsonb)'),
        ('deliver_copies(text, bigint, jsonb)', '            WHEN next <= latest THEN ''late''',
            '            WHEN coalesce((c.earlier -> 0 ->> ''id'')::bigint, next) <= latest THEN ''late'''),
        ('deliver_copies(text, bigint, jsonb)', '            latest := next;' || chr(10),
            '            IF c.earlier IS NOT NULL THEN' || chr(10)
            || '                PERFORM put_earlier(key, uid, c.earlier);' || chr(10)
            || '            END IF;' || chr(10)
            || '            latest := next;' || chr(10))
    ) AS change(name, was, becomes)
    LOOP
        function := pg_get_functiondef(changed.name::regprocedure);
        IF position(changed.was IN function) = 0 THEN
            RAISE EXCEPTION 'the function % has no %', changed.name, changed.was;
        END IF;
        EXECUTE replace(function, changed.was, changed.becomes);
    END LOOP;
END $$;

-- Rows that a user gets before a copy. The caller holds the lock of the head.
CREATE FUNCTION put_earlier(key text, uid bigint, earlier jsonb) RETURNS void
LANGUAGE plpgsql VOLATILE
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
AS $$
DECLARE
    c record;
BEGIN
    FOR c IN SELECT * FROM jsonb_to_recordset(earlier)
        AS c(kind smallint, conversation text, sender bigint, client_id text, body text, sent_at bigint, id bigint)
    LOOP
        INSERT INTO entries (partition_key, receiver, message_id, kind, conversation, sender, client_id, body, sent_at)
            VALUES (key, uid, c.id, c.kind, c.conversation, c.sender, decode(c.client_id, 'hex'), c.body, c.sent_at);
        INSERT INTO conversations AS known (partition_key, owner, conversation, last_id, read_to)
            VALUES (key, uid, c.conversation, CASE WHEN c.kind IN (1, 3) THEN c.id ELSE 0 END,
                CASE c.kind WHEN 2 THEN (c.body::json ->> 'read_to')::bigint ELSE 0 END)
            ON CONFLICT (partition_key, owner, conversation) DO UPDATE
                SET last_id = greatest(known.last_id, excluded.last_id), read_to = greatest(known.read_to, excluded.read_to);
    END LOOP;
END $$;

-- alter_group of 0060, also with what those see who join the group (NULL: it stays). The old one stays for servers of the version before.
CREATE FUNCTION alter_group(home bigint, from_version bigint, by bigint, new_name text, new_topic text, new_history smallint,
    changed jsonb, to_accept jsonb) RETURNS text
LANGUAGE plpgsql VOLATILE
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
AS $$
DECLARE
    verdict text := alter_group(home, from_version, by, new_name, new_topic, changed, to_accept);
BEGIN
    IF new_history IS NOT NULL AND verdict::jsonb ->> 'verdict' = 'made' THEN
        UPDATE groups SET history = new_history WHERE gid = home;
    END IF;
    RETURN verdict;
END $$;

-- A database that is distributed already (docs/CITUS.md).
DO $$
BEGIN
    IF EXISTS (SELECT FROM meta WHERE key = 'layout') THEN
        PERFORM create_distributed_function('put_earlier(text, bigint, jsonb)');
        PERFORM create_distributed_function('alter_group(bigint, bigint, bigint, text, text, smallint, jsonb, jsonb)', 'home',
            colocate_with => 'groups');
    END IF;
END $$;
