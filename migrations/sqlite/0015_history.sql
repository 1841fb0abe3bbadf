-- What those who join a group later see of what was said before: 0 nothing, 1 the newest messages.
ALTER TABLE groups ADD COLUMN history INTEGER NOT NULL DEFAULT 0;
