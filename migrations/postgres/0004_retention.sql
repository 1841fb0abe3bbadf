-- Rows that expire (`[retention]`). A server that does not know it serves on, and removes nothing.

-- Up to this id the rows of the inbox have expired, but for those that stay however old they are; 0: none has.
ALTER TABLE heads ADD COLUMN expired_to bigint NOT NULL DEFAULT 0;
