-- Facts about the whole installation, one a row: the history's name, how far the journal has been folded.
CREATE TABLE meta (
    key   TEXT NOT NULL PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- Plain counters: the next value to be given.
CREATE TABLE counters (
    name TEXT    NOT NULL PRIMARY KEY,
    next INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
