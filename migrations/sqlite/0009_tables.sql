-- Tables with an auto-increment key column (S19). A number is never given to a second table.
CREATE TABLE tables (
    id         INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    instance   TEXT    NOT NULL,
    name       TEXT    NOT NULL,
    definition TEXT    NOT NULL,  -- JSON
    created_at INTEGER NOT NULL,  -- milliseconds since 1970 UTC, as every time here
    deleted    INTEGER            -- the last batch of the journal that may have rows of it; NULL: it is not deleted
) STRICT;

-- One table a name, and the list of an instance. Deleted ones wait until their rows are removed.
CREATE UNIQUE INDEX tables_by_name ON tables (instance, name) WHERE deleted IS NULL;
CREATE INDEX tables_deleted ON tables (deleted) WHERE deleted IS NOT NULL;

-- Their rows, in the order of the keys. The journal beside this database holds what is newer; see store/sqlite/tables.
CREATE TABLE table_rows (
    table_id      INTEGER NOT NULL,
    key           BLOB    NOT NULL,  -- its columns, encoded so that bytes come in the order of the values
    partition_key TEXT    NOT NULL,  -- the first 4 hex digits of md5 of the first key column's value
    row           BLOB    NOT NULL,
    PRIMARY KEY (table_id, key)
) STRICT, WITHOUT ROWID;

-- The latest number that was assigned under each value of a first key column; never derived from the rows that remain.
CREATE TABLE table_counters (
    table_id      INTEGER NOT NULL,
    first         BLOB    NOT NULL,  -- the first key column, encoded
    partition_key TEXT    NOT NULL,
    last_id       INTEGER NOT NULL,
    PRIMARY KEY (table_id, first)
) STRICT, WITHOUT ROWID;

-- Who may use the tables of an instance, by signed requests.
CREATE TABLE access_keys (
    id         TEXT    NOT NULL PRIMARY KEY,
    secret     TEXT    NOT NULL,
    instance   TEXT    NOT NULL,
    may_write  INTEGER NOT NULL,  -- 0 or 1
    inbox      INTEGER,           -- the uid in whose name rows are put into inboxes; NULL: none may be
    created_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
