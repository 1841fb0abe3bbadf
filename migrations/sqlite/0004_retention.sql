-- Rows that expire (`[retention]`).

-- Up to this id the rows of the inbox have expired, but for those that stay however old they are; 0: none has.
ALTER TABLE heads ADD COLUMN expired_to INTEGER NOT NULL DEFAULT 0;
