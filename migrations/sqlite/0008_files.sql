-- Files that messages and moments name, and which messages those are.

CREATE TABLE files (
    id         BLOB    NOT NULL PRIMARY KEY,
    owner      INTEGER NOT NULL,
    name       TEXT    NOT NULL,
    made_at    INTEGER NOT NULL,
    length     INTEGER NOT NULL,  -- bytes, as its sender says
    stored     INTEGER NOT NULL,  -- so many of them are there
    segments   TEXT    NOT NULL,  -- the objects in which its bytes lie, in order (files::Segments)
    state      INTEGER NOT NULL,  -- store::FileState
    size       INTEGER NOT NULL,  -- bytes that readers get, once it is whole
    media_type TEXT    NOT NULL,
    width      INTEGER NOT NULL,  -- of a picture; 0: of none
    height     INTEGER NOT NULL,
    previews   TEXT    NOT NULL,  -- their words, with spaces between them
    check_at   INTEGER NOT NULL   -- when it is asked next whether anybody needs it; of an unfinished one, when it goes
) STRICT;

CREATE INDEX files_of_owner ON files (owner, id);
CREATE INDEX files_to_check ON files (check_at);

-- A message that names a file, or is about to. It is written before the message is.
CREATE TABLE file_uses (
    file      BLOB    NOT NULL,
    sender    INTEGER NOT NULL,
    client_id BLOB    NOT NULL,
    target    TEXT    NOT NULL,  -- the conversation, from the sender's side
    holders   TEXT    NOT NULL,  -- JSON, uids that get it and do not follow from the conversation
    used_at   INTEGER NOT NULL,  -- when it was last about to be sent
    PRIMARY KEY (file, sender, client_id)
) STRICT, WITHOUT ROWID;
