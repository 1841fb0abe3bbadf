-- Files that messages and moments name, and which messages those are. A server that does not know them serves on.

CREATE TABLE files (
    id         bytea  PRIMARY KEY,
    owner      bigint NOT NULL,
    name       text   NOT NULL,
    made_at    bigint NOT NULL,
    length     bigint NOT NULL,  -- bytes, as its sender says
    stored     bigint NOT NULL,  -- so many of them are there
    segments   text   NOT NULL,  -- the objects in which its bytes lie, in order (files::Segments)
    state      bigint NOT NULL,  -- store::FileState
    size       bigint NOT NULL,  -- bytes that readers get, once it is whole
    media_type text   NOT NULL,
    width      bigint NOT NULL,  -- of a picture; 0: of none
    height     bigint NOT NULL,
    previews   text   NOT NULL,  -- their words, with spaces between them
    check_at   bigint NOT NULL   -- when it is asked next whether anybody needs it; of an unfinished one, when it goes
);

CREATE INDEX files_of_owner ON files (owner, id);
CREATE INDEX files_to_check ON files (check_at);

-- A message that names a file, or is about to. It is written before the message is.
CREATE TABLE file_uses (
    file      bytea  NOT NULL,
    sender    bigint NOT NULL,
    client_id bytea  NOT NULL,
    target    text   NOT NULL,  -- the conversation, from the sender's side
    holders   text   NOT NULL,  -- JSON, uids that get it and do not follow from the conversation
    used_at   bigint NOT NULL,  -- when it was last about to be sent
    PRIMARY KEY (file, sender, client_id)
);
