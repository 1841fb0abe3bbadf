-- One commit of the message store is one call of commit_messages, so that no lock waits for a client's next message. The server's
-- store/postgres/commit makes the arguments: what is to be stored, and what that was decided on. The function locks the heads, compares,
-- and stores everything, or stores nothing and says why:
--
--   stored  Everything is stored. `last`: the latest id of each head before; `acceptances`: the numbers of more.pending, in order.
--   heads   A head is missing.
--   ids     An id would not be larger than the latest one, or be larger than the largest possible. `last`: the latest ids.
--   facts   Something else is there than more.versions, more.markers or more.epochs say; `facts`: what.
--   TM001   Raised: one of the keys has a record already.
--   TM002   Raised: one of the copies of more.served is owed no more, or a group of more.groups is there already.
--   TM003   Raised: everything could be stored, but more.trial asked only whether.
--
-- Locks are taken in one order: heads, groups, pending, each by its key. Every statement after a lock sees what others committed before.
--
-- An id is last[base] + plus, or plus alone where base is 0: an id that the caller brings. A base, a head and a content are places, from
-- 1, in the arrays h_, h_ and c_.

-- Locks the groups of `more`, and says what is there that it does not expect; NULL: nothing.
CREATE FUNCTION commit_facts(h_key text[], h_receiver bigint[], more jsonb) RETURNS jsonb
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

-- Stores what `more` has to store, but for new acceptances: groups, and copies that are owed no more.
CREATE FUNCTION commit_changes(more jsonb) RETURNS void
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
    done bigint;
BEGIN
    IF more ? 'groups' THEN
        INSERT INTO groups (gid, name, version)
            SELECT made.gid, made.name, made.version
            FROM jsonb_to_recordset(more -> 'groups') AS made(gid bigint, name text, version bigint)
            WHERE made.name IS NOT NULL
            ORDER BY made.gid
            ON CONFLICT DO NOTHING;
        GET DIAGNOSTICS done = ROW_COUNT;
        IF done < (SELECT count(*) FROM jsonb_to_recordset(more -> 'groups') AS made(name text) WHERE made.name IS NOT NULL) THEN
            RAISE EXCEPTION 'a group is there already' USING ERRCODE = 'TM002';
        END IF;
        UPDATE groups SET version = changed.version
            FROM jsonb_to_recordset(more -> 'groups') AS changed(gid bigint, name text, version bigint)
            WHERE groups.gid = changed.gid AND changed.name IS NULL;
        INSERT INTO members (gid, uid, epoch, active)
            SELECT changed.gid, changed.uid, changed.epoch, changed.active
            FROM jsonb_to_recordset(more -> 'members') AS changed(gid bigint, uid bigint, epoch bigint, active boolean)
            ON CONFLICT (gid, uid) DO UPDATE SET epoch = excluded.epoch, active = excluded.active;
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

CREATE FUNCTION commit_messages(
    -- The heads, by key: their next latest id, and the largest latest id with which the call works.
    h_key text[], h_receiver bigint[], h_base int[], h_plus bigint[], h_most bigint[],
    -- What is said, once for all copies: its conversation as its sender sees it, and as others do.
    c_kind smallint[], c_sender bigint[], c_client bytea[], c_body text[], c_sent_at bigint[], c_own text[], c_other text[],
    -- The copies.
    r_content int[], r_head int[], r_base int[], r_plus bigint[],
    -- The idempotency records, with the ids of the senders' own copies.
    s_content int[], s_head int[], s_base int[], s_plus bigint[], s_digest bytea[],
    -- The conversations: the newest row (0: none), how far the owner has read (0: no read marker).
    v_head int[], v_name text[], v_base int[], v_plus bigint[], v_read bigint[],
    -- What few calls have, each a list of objects; NULL where a call has nothing of it.
    --   locks     groups: gid
    --   versions  expected: gid, version (0: there is no such group)
    --   markers   new ones, which must be larger than what is there: place (told in `facts`), head, name, read_to
    --   epochs    expected to go on: gid, uid, epoch
    --   groups    made (with a name) or changed: gid, name, version
    --   members   of those: gid, uid, epoch, active
    --   ends      of membership epochs: gid, uid, epoch
    --   served    copies owed until now: partition_key, sender, acceptance, recipient
    --   pending   new acceptances with copies owed: content, head (the sender's), ends_uid, ends_epoch
    --   trial     true: store nothing
    --   owed      their copies, in order: pending (its place), head, recipient, epoch
    more jsonb,
    OUT verdict text, OUT last bigint[], OUT acceptances bigint[], OUT facts jsonb
)
LANGUAGE plpgsql VOLATILE
-- One plan for calls and tables of any size, also for tables of which nothing is known yet: along the keys.
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
AS $$
DECLARE
    done bigint;
BEGIN
    SELECT array_agg(locked.last_id ORDER BY locked.place) INTO last FROM (
        SELECT wanted.place, heads.last_id
        FROM unnest(h_key, h_receiver) WITH ORDINALITY AS wanted(partition_key, receiver, place)
        JOIN heads ON heads.partition_key = wanted.partition_key AND heads.receiver = wanted.receiver
        ORDER BY heads.partition_key, heads.receiver
        FOR UPDATE OF heads
    ) AS locked;
    IF coalesce(cardinality(last), 0) < cardinality(h_key) THEN
        verdict := 'heads';
        RETURN;
    END IF;
    IF EXISTS (SELECT FROM unnest(last, h_most) AS head(latest, most) WHERE head.latest > head.most) THEN
        verdict := 'ids';
        RETURN;
    END IF;
    IF more IS NOT NULL THEN
        facts := commit_facts(h_key, h_receiver, more);
        IF facts IS NOT NULL THEN
            verdict := 'facts';
            RETURN;
        END IF;
        PERFORM commit_changes(more);
    END IF;

    INSERT INTO sent (partition_key, sender, client_id, digest, message_id, sent_at)
        SELECT h_key[key.head], h_receiver[key.head], c_client[key.content], key.digest,
            coalesce(last[key.base], 0) + key.plus, c_sent_at[key.content]
        FROM unnest(s_content, s_head, s_base, s_plus, s_digest) AS key(content, head, base, plus, digest)
        ON CONFLICT DO NOTHING;
    GET DIAGNOSTICS done = ROW_COUNT;
    IF done < cardinality(s_content) THEN
        RAISE EXCEPTION 'a key has a record already' USING ERRCODE = 'TM001';
    END IF;

    UPDATE heads SET last_id = coalesce(last[head.base], 0) + head.plus
        FROM unnest(h_key, h_receiver, h_base, h_plus) AS head(partition_key, receiver, base, plus)
        WHERE heads.partition_key = head.partition_key AND heads.receiver = head.receiver AND head.plus > 0;

    INSERT INTO entries (partition_key, receiver, message_id, kind, conversation, sender, client_id, body, sent_at)
        SELECT h_key[copy.head], h_receiver[copy.head], coalesce(last[copy.base], 0) + copy.plus, c_kind[copy.content],
            CASE c_sender[copy.content] WHEN h_receiver[copy.head] THEN c_own[copy.content] ELSE c_other[copy.content] END,
            c_sender[copy.content], c_client[copy.content], c_body[copy.content], c_sent_at[copy.content]
        FROM unnest(r_content, r_head, r_base, r_plus) AS copy(content, head, base, plus);

    INSERT INTO conversations AS known (partition_key, owner, conversation, last_id, read_to)
        SELECT h_key[row.head], h_receiver[row.head], row.name, coalesce(last[row.base], 0) + row.plus, row.read_to
        FROM unnest(v_head, v_name, v_base, v_plus, v_read) AS row(head, name, base, plus, read_to)
        ON CONFLICT (partition_key, owner, conversation) DO UPDATE
            SET last_id = greatest(known.last_id, excluded.last_id), read_to = greatest(known.read_to, excluded.read_to);

    IF more ? 'pending' THEN
        SELECT array_agg(nextval('acceptances') ORDER BY place) INTO acceptances
            FROM generate_series(1, jsonb_array_length(more -> 'pending')) AS place;
        INSERT INTO pending (partition_key, sender, acceptance, kind, target, client_id, body, sent_at, ends_uid, ends_epoch)
            SELECT h_key[new.head], h_receiver[new.head], acceptances[new.place], c_kind[new.content], c_own[new.content],
                c_client[new.content], c_body[new.content], c_sent_at[new.content], new.ends_uid, new.ends_epoch
            FROM ROWS FROM (jsonb_to_recordset(more -> 'pending') AS (content int, head int, ends_uid bigint, ends_epoch bigint))
                WITH ORDINALITY AS new(content, head, ends_uid, ends_epoch, place);
        INSERT INTO outbox (partition_key, sender, acceptance, recipient, place, epoch)
            SELECT h_key[owed.head], h_receiver[owed.head], acceptances[owed.pending], owed.recipient, owed.place, owed.epoch
            FROM ROWS FROM (jsonb_to_recordset(more -> 'owed') AS (pending int, head int, recipient bigint, epoch bigint))
                WITH ORDINALITY AS owed(pending, head, recipient, epoch, place)
            ON CONFLICT DO NOTHING;
    END IF;
    IF more ? 'trial' THEN
        RAISE EXCEPTION 'all of it could be stored' USING ERRCODE = 'TM003';
    END IF;
    verdict := 'stored';
END $$;
