-- Conversations with a time of their own for which messages are kept. Their rows need no table; an older program does not know the kind `keep`
-- and would refuse to read them, and it would lose the time of a group whose settings it changes.
UPDATE meta SET value = '5' WHERE key = 'oldest_program';
