-- What members of a group may do, and who may not come back. `standing` says more than `active`: of who is in, 0 a member, 1 an
-- administrator, 2 the owner; of who is not, 0 left, 3 was removed, 4 is banned. `since`: the version of the group with which who is in
-- came (0: from before this was kept), or the time of the removal or ban, in milliseconds since 1970 UTC.
ALTER TABLE groups ADD COLUMN topic TEXT NOT NULL DEFAULT '';
ALTER TABLE members ADD COLUMN standing INTEGER NOT NULL DEFAULT 0;
ALTER TABLE members ADD COLUMN since INTEGER NOT NULL DEFAULT 0;

-- Whoever made a group owns it, if still in: the first row of the group in that one's inbox says so. Of a group whose maker has left,
-- the one who stands longest is the owner; the program sees to that.
UPDATE members SET standing = 2 WHERE active AND (gid, uid) IN (
    SELECT CAST(substr(known.conversation, 3) AS INTEGER), known.owner
    FROM conversations AS known
    JOIN entries AS first ON first.partition_key = known.partition_key AND first.receiver = known.owner
        AND first.message_id = (SELECT min(message_id) FROM entries WHERE partition_key = known.partition_key
            AND receiver = known.owner AND conversation = known.conversation)
    WHERE known.conversation LIKE 'g:%' AND first.kind = 3 AND first.sender = known.owner
        AND first.body ->> '$.action' = 'created'
);

-- For how many an invitation was made, and what its maker's client calls it: a repetition of the request finds it.
ALTER TABLE invites ADD COLUMN uses INTEGER NOT NULL DEFAULT 0;
ALTER TABLE invites ADD COLUMN client_id BLOB;
UPDATE invites SET uses = uses_left;
CREATE INDEX invites_by_group ON invites (gid, number);
CREATE UNIQUE INDEX invites_once ON invites (made_by, client_id) WHERE client_id IS NOT NULL;
