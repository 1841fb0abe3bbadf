-- The index of words (server/src/store/search). It is derived from `entries`: a server fills it beside the messages, and what is missing
-- in it is read from there. A server that does not know it serves on.

-- What an inbox has indexed: ranges of ids without gaps from the first on.
CREATE TABLE search_segments (
    partition_key text COLLATE "C" NOT NULL,
    receiver      bigint NOT NULL,
    first_id      bigint NOT NULL,
    last_id       bigint NOT NULL,
    build         bigint NOT NULL,
    number        bigint NOT NULL,  -- by which its parts are known
    head          bytea  NOT NULL,  -- store::search::SegmentHead
    PRIMARY KEY (partition_key, receiver, first_id)
);

CREATE TABLE search_parts (
    partition_key text COLLATE "C" NOT NULL,
    receiver      bigint  NOT NULL,
    number        bigint  NOT NULL,
    part          integer NOT NULL,
    data          bytea   NOT NULL,
    PRIMARY KEY (partition_key, receiver, number, part)
);

DO $$
BEGIN
    IF EXISTS (SELECT FROM meta WHERE key = 'layout') THEN
        PERFORM create_distributed_table('search_segments', 'partition_key', colocate_with => 'heads');
        PERFORM create_distributed_table('search_parts', 'partition_key', colocate_with => 'heads');
    END IF;
END $$;
