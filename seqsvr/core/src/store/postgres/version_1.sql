-- As the program of commit f942689 made it, with a claim that was taken over, and ceilings.
CREATE TABLE schema_version (one BOOLEAN PRIMARY KEY CHECK (one), version INTEGER NOT NULL);
INSERT INTO schema_version VALUES (true, 1);
CREATE TABLE layout (one BOOLEAN PRIMARY KEY CHECK (one), section_size BIGINT NOT NULL, step BIGINT NOT NULL);
CREATE TABLE sections (section BIGINT PRIMARY KEY, ceiling BIGINT NOT NULL);
CREATE TABLE hands (first BIGINT PRIMARY KEY, last BIGINT NOT NULL,
    term BIGINT NOT NULL, version BIGINT NOT NULL, incarnation BIGINT NOT NULL, released BOOLEAN NOT NULL,
    earlier_term BIGINT, earlier_version BIGINT, earlier_incarnation BIGINT, earlier_released BOOLEAN);
INSERT INTO layout VALUES (true, 100000, 10000);
INSERT INTO sections VALUES (0, 10000), (9, 9223372036854775807);
INSERT INTO hands VALUES (0, 4, 3, 2, -1, false, 3, 1, 7, true), (5, 9, 3, 1, 7, false, NULL, NULL, NULL, NULL);
