-- Delivers copies to one user, in this user's partition, those of each sender in the order of acceptance. Each of
-- `copies`:
--
--   entry                  the row, as put_entry wants it
--   acceptance, previous   which one of its sender, and the one before it that must be there
--   id                     0: the next one
--   gid, epoch             the membership epoch that must not have ended; epoch 0: none
--   ends                   the membership epoch that ends with it; 0: none
--   is_void                the inbox takes no such row: it counts as delivered
--   earlier                rows that are stored before the copy, if the copy is: id and entry
--
-- The answer has for each of them, in order, a verdict and an id. A copy that is early or late stays owed:
--
--   stored     with its id
--   already    it is there
--   void       no row: its membership epoch has ended, or is_void
--   end        the inbox takes no more
--   early      the one before it is not there
--   late       its id is not larger than the latest, which is told
CREATE OR REPLACE FUNCTION deliver_copies(key text, uid bigint, copies jsonb) RETURNS text
LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off
AS $$
DECLARE
    latest  bigint := lock_head(key, uid);
    author  bigint;
    done    bigint;
    next    bigint;
    verdict text;
    answers jsonb := '[]';
    c       record;
BEGIN
    FOR c IN SELECT * FROM jsonb_to_recordset(copies) AS c(acceptance bigint, previous bigint, entry jsonb, id bigint,
        gid bigint, epoch bigint, ends bigint, is_void boolean, earlier jsonb)
    LOOP
        author := (c.entry ->> 'sender')::bigint;
        next := CASE WHEN c.id = 0 THEN latest + 1 ELSE c.id END;
        SELECT last INTO done FROM links WHERE partition_key = key AND receiver = uid AND sender = author;
        done := coalesce(done, 0);
        verdict := CASE
            WHEN done >= c.acceptance THEN 'already'
            WHEN done < c.previous THEN 'early'
            WHEN c.is_void THEN 'void'
            WHEN c.epoch > 0 AND EXISTS (SELECT FROM stays WHERE partition_key = key AND member = uid
                AND gid = c.gid AND closed >= c.epoch) THEN 'void'
            WHEN coalesce((c.earlier -> 0 ->> 'id')::bigint, next) <= latest THEN 'late'
            WHEN next > 9007199254740991 THEN 'end'
            ELSE 'stored'
        END;
        IF verdict = 'stored' THEN
            PERFORM put_entry(key, uid, earlier.id, earlier.entry)
                FROM jsonb_to_recordset(c.earlier) AS earlier(id bigint, entry jsonb);
            latest := next;
            PERFORM put_entry(key, uid, next, c.entry);
            IF c.ends > 0 THEN
                PERFORM close_stay(key, uid, c.gid, c.ends);
            END IF;
        END IF;
        IF verdict IN ('stored', 'void', 'end') THEN
            INSERT INTO links AS known (partition_key, receiver, sender, last) VALUES (key, uid, author, c.acceptance)
                ON CONFLICT (partition_key, receiver, sender) DO UPDATE SET last = greatest(known.last, excluded.last);
        END IF;
        answers := answers
            || jsonb_build_object('verdict', verdict, 'id', CASE WHEN verdict = 'late' THEN latest ELSE next END);
    END LOOP;
    UPDATE heads SET last_id = latest WHERE partition_key = key AND receiver = uid AND last_id < latest;
    RETURN answers;
END $$;

SELECT create_distributed_function('deliver_copies(text, bigint, jsonb)', 'key', colocate_with => 'heads');
