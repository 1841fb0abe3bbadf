-- What the distributed layout needs, in which no transaction writes to two partitions (docs/CITUS.md). The plain layout uses none of it.
-- distribute.sql leads there; the server's store/postgres/distributed calls these functions. Each works on one partition: that of one
-- user, or that of one group.

-- The sender's acceptance before this one of which a copy was still owed to the same recipient; 0: none.
ALTER TABLE outbox ADD COLUMN previous bigint NOT NULL DEFAULT 0;

-- How far the acceptances of a sender have come with a receiver. A row itself says too little: it may have been deleted.
CREATE TABLE links (
    partition_key text COLLATE "C" NOT NULL,  -- the receiver's
    receiver      bigint NOT NULL,
    sender        bigint NOT NULL,
    last          bigint NOT NULL,            -- an acceptance; it and all before it are there, or void
    PRIMARY KEY (partition_key, receiver, sender)
) WITH (fillfactor = 50);

-- The last membership epoch of a member whose end is a row in the member's inbox: members.closed, where the member is.
CREATE TABLE stays (
    partition_key text COLLATE "C" NOT NULL,  -- the member's
    member        bigint NOT NULL,
    gid           bigint NOT NULL,
    closed        bigint NOT NULL,
    PRIMARY KEY (partition_key, member, gid)
);

-- The change of a group that is made, and not accepted yet in the inbox of whoever made it.
CREATE TABLE changes (
    gid     bigint PRIMARY KEY,
    version bigint NOT NULL,  -- to which it leads
    actor   bigint NOT NULL,
    accept  jsonb  NOT NULL   -- as accept_messages wants it
);

-- Copies that one sender may owe. With more, what the sender wants to send is refused for the moment.
CREATE FUNCTION most_owed() RETURNS bigint LANGUAGE sql IMMUTABLE AS 'SELECT 10000::bigint';

-- Locks the head of an inbox, makes it if it is missing, and returns its latest id.
CREATE FUNCTION lock_head(key text, uid bigint) RETURNS bigint
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
    latest bigint;
BEGIN
    SELECT last_id INTO latest FROM heads WHERE partition_key = key AND receiver = uid FOR UPDATE;
    IF NOT FOUND THEN
        INSERT INTO heads (partition_key, receiver, last_id) VALUES (key, uid, 0) ON CONFLICT DO NOTHING;
        SELECT last_id INTO latest FROM heads WHERE partition_key = key AND receiver = uid FOR UPDATE;
    END IF;
    RETURN latest;
END $$;

-- Accepts what one user sends, in this user's partition: the own copies, the idempotency records, and to whom copies are owed. The number
-- of an acceptance is the id of the own copy. Each of `writes`:
--
--   place       told in the answer
--   again       whether it is decided again where it is not stored; then nothing after it is stored either
--   kind, target, client_id (hex; absent for read markers), digest (hex), body, sent_at: what is said
--   id          of the own copy; 0: the next one
--   gid, epoch  the membership epoch that must not have ended; epoch 0: none
--   read_to     of a read marker (kind 2), which must be larger than that of the conversation; else 0
--   is_change   the change of a group that is made already: stored in any case
--   ends_uid, ends_epoch: the membership epoch that ends with the copy of its member
--   owed        in order: recipient, epoch
--
-- The answer has for each of them place, verdict, and what belongs to it:
--
--   stored     id, previous: for each of `owed`, in order
--   used       id: the key has a record already
--   closed     the membership epoch has ended
--   behind     the read marker does not move forward
--   late       the id is not larger than the latest
--   end        the inbox has come to the end of its ids
--   full       the sender owes too many copies
--   after      one before it is decided again
CREATE FUNCTION accept_messages(key text, uid bigint, writes jsonb) RETURNS text
LANGUAGE plpgsql VOLATILE
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
AS $$
DECLARE
    latest   bigint := lock_head(key, uid);
    owing    bigint;
    known    bigint;
    next     bigint;
    before   jsonb;
    open     jsonb;
    verdict  text;
    is_over  boolean := false;
    answers  jsonb := '[]';
    w        record;
BEGIN
    SELECT count(*) INTO owing FROM (SELECT FROM outbox WHERE partition_key = key AND sender = uid LIMIT most_owed()) AS owed;
    FOR w IN SELECT * FROM jsonb_to_recordset(writes) AS w(place int, again boolean, kind smallint, target text, client_id text, digest text,
        body text, sent_at bigint, id bigint, gid bigint, epoch bigint, read_to bigint, is_change boolean, ends_uid bigint,
        ends_epoch bigint, owed jsonb)
    LOOP
        next := CASE w.id WHEN 0 THEN latest + 1 ELSE w.id END;
        known := NULL;
        IF w.client_id IS NOT NULL THEN
            SELECT message_id INTO known FROM sent
                WHERE partition_key = key AND sender = uid AND client_id = decode(w.client_id, 'hex');
        END IF;
        verdict := CASE
            WHEN is_over THEN 'after'
            WHEN known IS NOT NULL THEN 'used'
            WHEN w.kind = 2 AND EXISTS (SELECT FROM conversations WHERE partition_key = key AND owner = uid
                AND conversation = w.target AND read_to >= w.read_to) THEN 'behind'
            WHEN w.epoch > 0 AND NOT w.is_change AND EXISTS (SELECT FROM stays WHERE partition_key = key AND member = uid
                AND gid = w.gid AND closed >= w.epoch) THEN 'closed'
            WHEN next <= latest THEN 'late'
            WHEN next > 9007199254740991 THEN 'end'
            WHEN owing >= most_owed() AND jsonb_array_length(w.owed) > 0 AND NOT w.is_change THEN 'full'
            ELSE 'stored'
        END;
        IF verdict <> 'stored' THEN
            is_over := is_over OR w.again;
            answers := answers || jsonb_build_object('place', w.place, 'verdict', verdict, 'id', known);
            CONTINUE;
        END IF;

        latest := next;
        INSERT INTO entries (partition_key, receiver, message_id, kind, conversation, sender, client_id, body, sent_at)
            VALUES (key, uid, next, w.kind, w.target, uid, decode(w.client_id, 'hex'), w.body, w.sent_at);
        INSERT INTO conversations AS known (partition_key, owner, conversation, last_id, read_to)
            VALUES (key, uid, w.target, CASE w.kind WHEN 2 THEN 0 ELSE next END, w.read_to)
            ON CONFLICT (partition_key, owner, conversation) DO UPDATE
                SET last_id = greatest(known.last_id, excluded.last_id), read_to = greatest(known.read_to, excluded.read_to);
        IF w.client_id IS NOT NULL THEN
            INSERT INTO sent (partition_key, sender, client_id, digest, message_id, sent_at)
                VALUES (key, uid, decode(w.client_id, 'hex'), decode(w.digest, 'hex'), next, w.sent_at);
        END IF;
        IF w.ends_uid = uid THEN
            PERFORM close_stay(key, uid, w.gid, w.ends_epoch);
        END IF;
        before := '[]';
        IF jsonb_array_length(w.owed) > 0 THEN
            INSERT INTO pending (partition_key, sender, acceptance, kind, target, client_id, body, sent_at, ends_uid, ends_epoch)
                VALUES (key, uid, next, w.kind, w.target, decode(w.client_id, 'hex'), w.body, w.sent_at, w.ends_uid, w.ends_epoch);
            SELECT jsonb_object_agg(recipient, last) INTO open
                FROM (SELECT recipient, max(acceptance) AS last FROM outbox WHERE partition_key = key AND sender = uid GROUP BY recipient)
                AS recent;
            SELECT jsonb_agg(coalesce((open ->> owed.recipient::text)::bigint, 0) ORDER BY owed.place) INTO before
                FROM ROWS FROM (jsonb_to_recordset(w.owed) AS (recipient bigint)) WITH ORDINALITY AS owed(recipient, place);
            INSERT INTO outbox (partition_key, sender, acceptance, recipient, place, epoch, previous)
                SELECT key, uid, next, owed.recipient, owed.place, owed.epoch, coalesce((open ->> owed.recipient::text)::bigint, 0)
                FROM ROWS FROM (jsonb_to_recordset(w.owed) AS (recipient bigint, epoch bigint)) WITH ORDINALITY
                    AS owed(recipient, epoch, place);
            owing := owing + jsonb_array_length(w.owed);
        END IF;
        answers := answers || jsonb_build_object('place', w.place, 'verdict', verdict, 'id', next, 'previous', before);
    END LOOP;
    UPDATE heads SET last_id = latest WHERE partition_key = key AND receiver = uid AND last_id < latest;
    RETURN answers;
END $$;

-- A membership epoch ends with a row of the member's inbox.
CREATE FUNCTION close_stay(key text, uid bigint, of_gid bigint, epoch bigint) RETURNS void
LANGUAGE plpgsql VOLATILE
AS $$
BEGIN
    INSERT INTO stays AS known (partition_key, member, gid, closed) VALUES (key, uid, of_gid, epoch)
        ON CONFLICT (partition_key, member, gid) DO UPDATE SET closed = greatest(known.closed, excluded.closed);
END $$;

-- Delivers copies to one user, in this user's partition, those of each sender in the order of acceptance. Each of `copies`:
--
--   place                  told in the answer
--   sender, acceptance, previous: which one, and the one before it that must be there
--   kind, conversation, client_id (hex), body, sent_at
--   id                     0: the next one
--   gid, epoch             the membership epoch that must not have ended; epoch 0: none
--   ends                   the membership epoch that ends with it; 0: none
--   is_void                the inbox takes no such row: it counts as delivered
--
-- The answer has for each of them place, verdict (stored with id; already; void; end: the inbox takes no more; early: one before it is not
-- there; late: as above). What is early or late stays owed.
CREATE FUNCTION deliver_copies(key text, uid bigint, copies jsonb) RETURNS text
LANGUAGE plpgsql VOLATILE
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
AS $$
DECLARE
    latest   bigint := lock_head(key, uid);
    done     bigint;
    next     bigint;
    verdict  text;
    answers  jsonb := '[]';
    c        record;
BEGIN
    FOR c IN SELECT * FROM jsonb_to_recordset(copies) AS c(place int, sender bigint, acceptance bigint, previous bigint, kind smallint,
        conversation text, client_id text, body text, sent_at bigint, id bigint, gid bigint, epoch bigint, ends bigint, is_void boolean)
    LOOP
        next := CASE c.id WHEN 0 THEN latest + 1 ELSE c.id END;
        SELECT last INTO done FROM links WHERE partition_key = key AND receiver = uid AND sender = c.sender;
        done := coalesce(done, 0);
        verdict := CASE
            WHEN done >= c.acceptance THEN 'already'
            WHEN done < c.previous THEN 'early'
            WHEN c.is_void THEN 'void'
            WHEN c.epoch > 0 AND EXISTS (SELECT FROM stays WHERE partition_key = key AND member = uid
                AND gid = c.gid AND closed >= c.epoch) THEN 'void'
            WHEN next <= latest THEN 'late'
            WHEN next > 9007199254740991 THEN 'end'
            ELSE 'stored'
        END;
        IF verdict = 'stored' THEN
            latest := next;
            INSERT INTO entries (partition_key, receiver, message_id, kind, conversation, sender, client_id, body, sent_at)
                VALUES (key, uid, next, c.kind, c.conversation, c.sender, decode(c.client_id, 'hex'), c.body, c.sent_at);
            INSERT INTO conversations AS known (partition_key, owner, conversation, last_id, read_to)
                VALUES (key, uid, c.conversation, next, 0)
                ON CONFLICT (partition_key, owner, conversation) DO UPDATE SET last_id = greatest(known.last_id, excluded.last_id);
            IF c.ends > 0 THEN
                PERFORM close_stay(key, uid, c.gid, c.ends);
            END IF;
        END IF;
        IF verdict IN ('stored', 'void', 'end') THEN
            INSERT INTO links AS known (partition_key, receiver, sender, last) VALUES (key, uid, c.sender, c.acceptance)
                ON CONFLICT (partition_key, receiver, sender) DO UPDATE SET last = greatest(known.last, excluded.last);
        END IF;
        answers := answers || jsonb_build_object('place', c.place, 'verdict', verdict, 'id', next);
    END LOOP;
    UPDATE heads SET last_id = latest WHERE partition_key = key AND receiver = uid AND last_id < latest;
    RETURN answers;
END $$;

-- Copies of one sender are owed no more. Each of `copies`: acceptance, recipient.
CREATE FUNCTION settle_copies(key text, uid bigint, copies jsonb) RETURNS void
LANGUAGE plpgsql VOLATILE
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
AS $$
BEGIN
    -- Of two who settle the last two copies of an acceptance, the second one sees that nothing is left.
    PERFORM FROM (SELECT DISTINCT acceptance FROM jsonb_to_recordset(copies) AS settled(acceptance bigint)) AS settled
        JOIN pending ON pending.partition_key = key AND pending.sender = uid AND pending.acceptance = settled.acceptance
        ORDER BY pending.acceptance
        FOR UPDATE OF pending;
    DELETE FROM outbox USING jsonb_to_recordset(copies) AS settled(acceptance bigint, recipient bigint)
        WHERE outbox.partition_key = key AND outbox.sender = uid
            AND outbox.acceptance = settled.acceptance AND outbox.recipient = settled.recipient;
    DELETE FROM pending USING jsonb_to_recordset(copies) AS settled(acceptance bigint)
        WHERE pending.partition_key = key AND pending.sender = uid AND pending.acceptance = settled.acceptance
            AND NOT EXISTS (SELECT FROM outbox WHERE outbox.partition_key = key AND outbox.sender = uid
                AND outbox.acceptance = settled.acceptance);
END $$;

-- Changes a group, where the group is: compares its version, and notes what has to be accepted in the inbox of `by`. The verdict:
--
--   made   it is changed
--   stale  the version is another one
--   owed   the change before it is not accepted yet, which comes first: version, actor, accept
CREATE FUNCTION change_group(home bigint, from_version bigint, by bigint, new_name text, changed jsonb, to_accept jsonb) RETURNS text
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
        INSERT INTO groups (gid, name, version) VALUES (home, new_name, 1) ON CONFLICT DO NOTHING;
        IF NOT FOUND THEN
            RETURN jsonb_build_object('verdict', 'stale');
        END IF;
    ELSE
        UPDATE groups SET version = from_version + 1 WHERE gid = home;
    END IF;
    INSERT INTO members (gid, uid, epoch, active)
        SELECT home, member.uid, member.epoch, member.active
        FROM jsonb_to_recordset(changed) AS member(uid bigint, epoch bigint, active boolean)
        ON CONFLICT (gid, uid) DO UPDATE SET epoch = excluded.epoch, active = excluded.active;
    INSERT INTO changes (gid, version, actor, accept) VALUES (home, from_version + 1, by, to_accept);
    RETURN jsonb_build_object('verdict', 'made');
END $$;

-- The change that leads to this version is accepted.
CREATE FUNCTION settle_change(home bigint, to_version bigint) RETURNS void
LANGUAGE plpgsql VOLATILE
AS $$
BEGIN
    DELETE FROM changes WHERE gid = home AND version = to_version;
END $$;
