-- What names look like, as skeletons of Unicode UTS #39: as they are written, in small and in capital letters. Each skeleton belongs to
-- the account that had it first; accounts of earlier versions may share one.
CREATE TABLE name_skeletons (
    skeleton text COLLATE "C" PRIMARY KEY,
    uid      bigint NOT NULL
);

-- By which part of a name a person is found: the lower-case name from each of its characters but the first and the last on.
CREATE TABLE name_endings (
    ending text COLLATE "C" NOT NULL,
    uid    bigint NOT NULL,
    PRIMARY KEY (ending, uid)
);

-- Whether both have the account's name. The program sees to those of earlier versions, of servers that run one, and of imports.
ALTER TABLE accounts ADD COLUMN name_indexed boolean NOT NULL DEFAULT false;
CREATE INDEX accounts_to_index ON accounts (uid) WHERE NOT name_indexed;
