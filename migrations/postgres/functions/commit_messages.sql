-- One commit of the message store is one call, so that no lock waits for a server's next message.
-- store/postgres/commit makes the arguments: the rows, and the facts on which they were decided. The function locks the
-- heads and compares. Then it stores everything, or stores nothing and gives the reason:
--
--   stored  Everything is stored. `last`: the latest id of each head before; `acceptances`: the numbers of
--           more.pending, in order.
--   heads   A head is missing.
--   ids     An id would not be larger than the latest one, or be larger than the largest possible. `last`: the latest
--           ids.
--   facts   The database has something else than more.versions, more.markers or more.epochs say, which `facts` has.
--   TM001   Raised: one of the keys has a record already.
--   TM002   Raised: one of the copies of more.served is owed no more, or a group of more.groups is there already.
--   TM003   Raised: everything could be stored, but more.trial asked only whether.
--   TM007   Raised: the call came too late; its caller may have looked already whether it was stored.
--
-- Locks are taken in one order: heads, groups, pending, each by its key. Every statement after a lock sees the earlier
-- commits of others.
--
-- An id is last[base] + plus, or plus alone where base is 0: an id that the caller brings. A base, a head and a content
-- are places, from 1, in the arrays h_, h_ and c_.
--
-- A head changes with each commit, and so does a row of the conversation list. While somebody holds a snapshot, such as
-- a backup or a long report, none of its old versions may go: an index leads to all of them, the oldest first. So the
-- newest version is looked up from the other end, where it is the first one found, and is changed where it lies.
-- BETWEEN in place of = keeps the order: a column that equals something is not sorted by.
CREATE OR REPLACE FUNCTION commit_messages(
    -- The heads, by key: their next latest id, and the largest latest id with which the call works.
    h_key text[], h_receiver bigint[], h_base int[], h_plus bigint[], h_most bigint[],
    -- The contents, each once for all its copies: the conversation as its sender sees it, and as others do.
    c_kind smallint[], c_sender bigint[], c_client bytea[], c_body text[], c_sent_at bigint[], c_own text[],
    c_other text[],
    -- The copies, and what compact_entry takes; NULL: a copy has no effect on others.
    r_content int[], r_head int[], r_base int[], r_plus bigint[], r_effect text[],
    -- The idempotency records, with the ids of the senders' own copies.
    s_content int[], s_head int[], s_base int[], s_plus bigint[], s_digest bytea[],
    -- The conversations: the newest row (0: none), how far the owner has read (0: no read marker).
    v_head int[], v_name text[], v_base int[], v_plus bigint[], v_read bigint[],
    -- Parts that few calls have, each a list of objects; NULL where a call has none.
    --   locks     groups: gid
    --   versions  expected: gid, version (0: there is no such group)
    --   markers   new ones, which must be larger than those stored: place (told in `facts`), head, name, read_to
    --   epochs    expected to go on: gid, uid, epoch
    --   groups    made (is_new) or changed: gid, version, is_new, settings: those that change
    --   members   of those: gid, uid, epoch, active, standing, since
    --   ends      of membership epochs: gid, uid, epoch
    --   served    copies owed until now: partition_key, sender, acceptance, recipient
    --   pending   new acceptances with copies owed: content, head (the sender's), ends_uid, ends_epoch
    --   trial     true: store nothing
    --   owed      their copies, in order: pending (its place), head, recipient, epoch
    more jsonb,
    -- Until when it may begin, in milliseconds since 1970. From then on a caller that lost the answer looks for the rows.
    until bigint,
    OUT verdict text, OUT last bigint[], OUT acceptances bigint[], OUT facts jsonb
)
LANGUAGE plpgsql VOLATILE
-- One plan for calls and tables of any size, also for tables without statistics yet: along the keys.
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
AS $$
DECLARE
    done     bigint;
    versions tid[];
BEGIN
    -- One after the other in the order of the arguments, which is that of the keys.
    SELECT array_agg(locked.last_id ORDER BY locked.place), array_agg(locked.version ORDER BY locked.place)
        INTO last, versions
        FROM (
            SELECT wanted.place, head.last_id, head.version
            FROM unnest(h_key, h_receiver) WITH ORDINALITY AS wanted(partition_key, receiver, place)
            CROSS JOIN LATERAL (SELECT heads.last_id, heads.ctid AS version FROM heads
                WHERE heads.partition_key = wanted.partition_key
                    AND heads.receiver BETWEEN wanted.receiver AND wanted.receiver
                ORDER BY heads.receiver DESC LIMIT 1 FOR UPDATE) AS head
        ) AS locked;
    -- Under the locks: a caller that looks takes them, too.
    PERFORM commit_in_time(until);
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
        FROM unnest(versions, h_key, h_base, h_plus) AS head(version, partition_key, base, plus)
        WHERE heads.ctid = head.version AND heads.partition_key = head.partition_key AND head.plus > 0;
    GET DIAGNOSTICS done = ROW_COUNT;
    IF done < (SELECT count(*) FROM unnest(h_plus) AS plus WHERE plus > 0) THEN
        RAISE EXCEPTION 'a head has moved under its lock' USING ERRCODE = '40001';
    END IF;

    INSERT INTO entries (partition_key, receiver, message_id, kind, conversation, sender, client_id, body, sent_at)
        SELECT h_key[copy.head], h_receiver[copy.head], coalesce(last[copy.base], 0) + copy.plus, c_kind[copy.content],
            CASE c_sender[copy.content] WHEN h_receiver[copy.head] THEN c_own[copy.content]
                ELSE c_other[copy.content] END,
            c_sender[copy.content], c_client[copy.content], c_body[copy.content], c_sent_at[copy.content]
        FROM unnest(r_content, r_head, r_base, r_plus) AS copy(content, head, base, plus);
    PERFORM compact_entry(h_key[copy.head], h_receiver[copy.head], coalesce(last[copy.base], 0) + copy.plus,
            copy.effect::jsonb)
        FROM unnest(r_head, r_base, r_plus, r_effect) AS copy(head, base, plus, effect)
        WHERE copy.effect IS NOT NULL;

    SELECT array_agg(known.version ORDER BY row.place) INTO versions
        FROM unnest(v_head, v_name) WITH ORDINALITY AS row(head, name, place)
        LEFT JOIN LATERAL (SELECT conversations.ctid AS version FROM conversations
            WHERE conversations.partition_key = h_key[row.head] AND conversations.owner = h_receiver[row.head]
                AND conversations.conversation BETWEEN row.name AND row.name
            ORDER BY conversations.conversation DESC LIMIT 1) AS known ON true;
    UPDATE conversations AS known
        SET last_id = greatest(known.last_id, coalesce(last[row.base], 0) + row.plus),
            read_to = greatest(known.read_to, row.read_to)
        FROM unnest(versions, v_head, v_base, v_plus, v_read) AS row(version, head, base, plus, read_to)
        WHERE known.ctid = row.version AND known.partition_key = h_key[row.head];
    GET DIAGNOSTICS done = ROW_COUNT;
    IF done < cardinality(v_head) THEN
        -- Those that are new.
        INSERT INTO conversations AS known (partition_key, owner, conversation, last_id, read_to)
            SELECT h_key[row.head], h_receiver[row.head], row.name, coalesce(last[row.base], 0) + row.plus, row.read_to
            FROM unnest(versions, v_head, v_name, v_base, v_plus, v_read)
                AS row(version, head, name, base, plus, read_to)
            WHERE row.version IS NULL
            ON CONFLICT (partition_key, owner, conversation) DO UPDATE
                SET last_id = greatest(known.last_id, excluded.last_id),
                    read_to = greatest(known.read_to, excluded.read_to);
    END IF;

    IF more ? 'pending' THEN
        SELECT array_agg(nextval('acceptances') ORDER BY place) INTO acceptances
            FROM generate_series(1, jsonb_array_length(more -> 'pending')) AS place;
        INSERT INTO pending
                (partition_key, sender, acceptance, kind, target, client_id, body, sent_at, ends_uid, ends_epoch)
            SELECT h_key[new.head], h_receiver[new.head], acceptances[new.place], c_kind[new.content],
                c_own[new.content], c_client[new.content], c_body[new.content], c_sent_at[new.content],
                new.ends_uid, new.ends_epoch
            FROM ROWS FROM (jsonb_to_recordset(more -> 'pending')
                    AS (content int, head int, ends_uid bigint, ends_epoch bigint))
                WITH ORDINALITY AS new(content, head, ends_uid, ends_epoch, place);
        INSERT INTO outbox (partition_key, sender, acceptance, recipient, place, epoch)
            SELECT h_key[owed.head], h_receiver[owed.head], acceptances[owed.pending], owed.recipient, owed.place,
                owed.epoch
            FROM ROWS FROM (jsonb_to_recordset(more -> 'owed')
                    AS (pending int, head int, recipient bigint, epoch bigint))
                WITH ORDINALITY AS owed(pending, head, recipient, epoch, place)
            ON CONFLICT DO NOTHING;
    END IF;
    IF more ? 'trial' THEN
        RAISE EXCEPTION 'all of it could be stored' USING ERRCODE = 'TM003';
    END IF;
    verdict := 'stored';
END $$;
