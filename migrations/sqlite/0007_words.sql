-- Names of the glossary. In the comments of earlier files, "stay" is a membership epoch and "folded" is flushed.
ALTER TABLE members RENAME COLUMN generation TO epoch;
ALTER TABLE members RENAME COLUMN closed TO ended_epoch;
UPDATE meta SET key = 'flushed_through' WHERE key = 'folded_through';
