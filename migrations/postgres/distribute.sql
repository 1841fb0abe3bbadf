-- Distributes the tables over the nodes of a Citus cluster, once. docs/CITUS.md says when, and at which cost. All
-- servers are stopped; then, as the owner of the tables, on the coordinator:
--
--     psql --set ON_ERROR_STOP=1 --file migrations/postgres/distribute.sql 'postgres://…'
--
-- It is one transaction: after an error nothing is changed. There is no way back but an older backup. `tidemark migrate`
-- then makes the functions of this layout on the nodes, those of `distributed/`.
BEGIN;

-- All commands to the nodes over one connection each: functions are made in the same transaction as shards.
SET LOCAL citus.multi_shard_modify_mode = 'sequential';
SET LOCAL statement_timeout = 0;
SET LOCAL lock_timeout = '10s';

DO $$
DECLARE
    others text;
BEGIN
    IF to_regproc('create_distributed_table') IS NULL OR to_regproc('create_distributed_function') IS NULL THEN
        RAISE EXCEPTION 'Citus is not installed in this database'
            USING HINT = 'Add it to shared_preload_libraries on all nodes, restart them, and run CREATE EXTENSION citus.';
    END IF;
    IF to_regclass('meta') IS NULL OR to_regclass('functions') IS NULL THEN
        RAISE EXCEPTION 'This database has no tables of Tidemark' USING HINT = 'Run tidemark migrate first.';
    END IF;
    IF EXISTS (SELECT FROM meta WHERE key = 'layout') THEN
        RAISE EXCEPTION 'The tables are distributed already' USING HINT = 'There is nothing to do.';
    END IF;
    SELECT string_agg(DISTINCT coalesce(nullif(application_name, ''), 'without a name'), ', ') INTO others FROM pg_stat_activity
        WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'
            AND application_name NOT LIKE 'citus%';
    IF others IS NOT NULL THEN
        RAISE EXCEPTION 'The database is in use: %', others USING HINT = 'Stop all servers and close all other connections first.';
    END IF;
    IF EXISTS (SELECT FROM pending) THEN
        RAISE EXCEPTION 'Copies of messages are owed' USING HINT = 'Start a server, wait until the table pending is empty, and stop it.';
    END IF;
END $$;

-- Keeps everybody else out from here on.
LOCK TABLE meta, heads IN ACCESS EXCLUSIVE MODE;

-- A server that still commits as if nothing had changed is refused.
DROP FUNCTION commit_messages;
INSERT INTO meta (key, value) VALUES ('layout', 'distributed');

-- The acceptance of the same sender before this one of which a copy was still owed to the same recipient; 0: none.
ALTER TABLE outbox ADD COLUMN previous bigint NOT NULL DEFAULT 0;

-- How far the acceptances of a sender have come with a receiver. A row itself says too little: it may have been deleted.
CREATE TABLE links (
    partition_key text COLLATE "C" NOT NULL,  -- the receiver's
    receiver      bigint NOT NULL,
    sender        bigint NOT NULL,
    last          bigint NOT NULL,            -- an acceptance; it and all before it are there, or void
    PRIMARY KEY (partition_key, receiver, sender)
) WITH (fillfactor = 50);

-- The change of a group that is made, and not accepted yet in the inbox of its actor.
CREATE TABLE changes (
    gid     bigint PRIMARY KEY,
    version bigint NOT NULL,  -- to which it leads
    actor   bigint NOT NULL,
    accept  jsonb  NOT NULL   -- as accept_messages wants it
);

-- The last membership epoch of a member whose end is a row in the member's inbox: members.closed, where the member is.
CREATE TABLE stays (
    partition_key text COLLATE "C" NOT NULL,  -- the member's
    member        bigint NOT NULL,
    gid           bigint NOT NULL,
    closed        bigint NOT NULL,
    PRIMARY KEY (partition_key, member, gid)
);
INSERT INTO stays (partition_key, member, gid, closed)
    SELECT left(md5(uid::text), 4), uid, gid, closed FROM members WHERE closed > 0;

-- The rows of one user lie together, by partition_key.
SELECT create_distributed_table('heads', 'partition_key');
SELECT create_distributed_table('entries', 'partition_key', colocate_with => 'heads');
SELECT create_distributed_table('sent', 'partition_key', colocate_with => 'heads');
SELECT create_distributed_table('conversations', 'partition_key', colocate_with => 'heads');
SELECT create_distributed_table('compaction_keys', 'partition_key', colocate_with => 'heads');
SELECT create_distributed_table('pending', 'partition_key', colocate_with => 'heads');
SELECT create_distributed_table('outbox', 'partition_key', colocate_with => 'heads');
SELECT create_distributed_table('links', 'partition_key', colocate_with => 'heads');
SELECT create_distributed_table('stays', 'partition_key', colocate_with => 'heads');
SELECT create_distributed_table('table_rows', 'partition_key', colocate_with => 'heads');
SELECT create_distributed_table('table_counters', 'partition_key', colocate_with => 'heads');
SELECT create_distributed_table('search_segments', 'partition_key', colocate_with => 'heads');
SELECT create_distributed_table('search_parts', 'partition_key', colocate_with => 'heads');

-- The rows of one group lie together, by the group.
SELECT create_distributed_table('groups', 'gid', colocate_with => 'none');
SELECT create_distributed_table('members', 'gid', colocate_with => 'groups');
SELECT create_distributed_table('changes', 'gid', colocate_with => 'groups');

-- Accounts, names and the parts by which they are found, when people were online last, sessions, subscriptions to push,
-- invitations, reports, the audit log, tickets, definitions of tables, access keys, meta and the numbers of the issuer stay
-- on the coordinator: they are written rarely, several of them in one statement, and names and numbers are common to all.

COMMIT;
