-- What the logs redo-15.log.zst, redo-18.log.zst and redo-19.log.zst contain: every operation of the managers that redo has rules
-- for, each a few times, with the image of every page after every change. They were written by 15.20, 18.6 and 19rc1 in clusters with
-- initdb --wal-segsize=1, and with wal_consistency_checking = all, autovacuum = off, max_prepared_transactions = 5. Before the
-- script, the log was switched; after it, the server was stopped at once.
CHECKPOINT;
CREATE SEQUENCE sq; SELECT count(nextval('sq')) FROM generate_series(1, 40); SELECT setval('sq', 7);
CREATE TABLE r (id int PRIMARY KEY, n int, v text) WITH (fillfactor = 60);
INSERT INTO r SELECT i, 0, repeat('v', i) FROM generate_series(1, 60) i;
UPDATE r SET n = n + 1 WHERE id % 3 = 0; UPDATE r SET n = n + 1, v = v || 'z' WHERE id % 4 = 0; UPDATE r SET id = id + 1000 WHERE id % 10 = 1; UPDATE r SET n = 7 WHERE id = 5; UPDATE r SET v = 'short' WHERE id BETWEEN 20 AND 25;
DELETE FROM r WHERE id % 7 = 0;
BEGIN; UPDATE r SET n = -1 WHERE id < 12; SAVEPOINT a; UPDATE r SET n = -2 WHERE id < 6; DELETE FROM r WHERE id = 8; ROLLBACK TO a; UPDATE r SET n = -3 WHERE id = 2; COMMIT;
SELECT count(*) FROM r WHERE v LIKE 'v%';
VACUUM r; UPDATE r SET n = 1 WHERE id = 30; VACUUM (FREEZE) r;
SELECT count(*) FROM (SELECT 1 FROM r WHERE id < 10 FOR UPDATE) q; DELETE FROM r WHERE id = 9; INSERT INTO r VALUES (500, 0, 'new'); VACUUM (FREEZE) r;
BEGIN; UPDATE r SET n = 9 WHERE id BETWEEN 10 AND 13; UPDATE r SET n = 10 WHERE id BETWEEN 10 AND 13; PREPARE TRANSACTION 'other';
BEGIN; SELECT count(*) FROM (SELECT 1 FROM r WHERE id BETWEEN 2 AND 13 FOR KEY SHARE) q; SAVEPOINT b; SELECT count(*) FROM (SELECT 1 FROM r WHERE id BETWEEN 2 AND 5 FOR UPDATE) q; COMMIT;
COMMIT PREPARED 'other'; VACUUM (FREEZE) r;
INSERT INTO r VALUES (2, 0, 'x'), (501, 0, 'x') ON CONFLICT (id) DO UPDATE SET n = r.n + 100;
INSERT INTO r SELECT i, 0, repeat('tail', 100) FROM generate_series(600, 650) i ON CONFLICT DO NOTHING; DELETE FROM r WHERE id > 599; VACUUM r; VACUUM r;
CREATE TABLE u (id int, v text); ALTER TABLE u ALTER v SET STORAGE PLAIN; INSERT INTO u SELECT i, repeat('u', 2600) FROM generate_series(1, 3) i; UPDATE u SET id = id + 1 WHERE id = 2;
CREATE TABLE part (id int, v text) PARTITION BY RANGE (id); CREATE TABLE part1 PARTITION OF part FOR VALUES FROM (0) TO (10); CREATE TABLE part2 PARTITION OF part FOR VALUES FROM (10) TO (20);
INSERT INTO part VALUES (1, 'one'), (2, 'two'); UPDATE part SET id = id + 10 WHERE id = 1;
BEGIN; CREATE TABLE frozen (x int, y text); COPY frozen FROM PROGRAM 'seq 1 200 | sed s/$/,abc/' WITH (FREEZE, FORMAT csv); COMMIT;
DELETE FROM frozen WHERE x = 5; UPDATE frozen SET y = 'longer than a page has room for' WHERE x = 6; COPY frozen FROM PROGRAM 'seq 1 30 | sed s/$/,abc/' WITH (FORMAT csv); VACUUM frozen; TRUNCATE frozen;
CREATE TABLE dup (k text, p int); CREATE INDEX dup_k ON dup (k);
INSERT INTO dup SELECT repeat('k' || i % 3, 60), i FROM generate_series(1, 160) i; INSERT INTO dup SELECT repeat('k' || i % 3, 60), i FROM generate_series(1, 20) i;
DELETE FROM dup WHERE p % 5 < 3; VACUUM dup; INSERT INTO dup SELECT repeat('k' || i % 3, 60), i FROM generate_series(1, 30) i; DELETE FROM dup WHERE k LIKE 'k1%'; VACUUM dup;
CREATE TABLE upd (k text, p text) WITH (fillfactor = 40); CREATE INDEX upd_k ON upd (k) WITH (deduplicate_items = off); CREATE INDEX upd_p ON upd (p); INSERT INTO upd SELECT lpad(i::text, 100, '0'), i FROM generate_series(1, 40) i;
DO $$ BEGIN FOR j IN 1..5 LOOP UPDATE upd SET p = p || '1'; COMMIT; PERFORM count(*) FROM upd WHERE k > '0'; END LOOP; END $$;
CREATE TABLE wide (id int, v text); CREATE INDEX wide_v ON wide (v); ALTER TABLE wide ALTER v SET STORAGE PLAIN;
INSERT INTO wide SELECT i, lpad(i::text, 4, '0') || repeat(md5(i::text), 40) FROM generate_series(1, 45) i;
INSERT INTO wide SELECT i, lpad(i::text, 4, '0') || repeat(md5(i::text), 40) FROM generate_series(300, 285, -1) i;
DELETE FROM wide WHERE id BETWEEN 8 AND 40; VACUUM wide; SELECT txid_current(); VACUUM wide; DELETE FROM wide WHERE id < 285; VACUUM wide; DELETE FROM wide WHERE id < 299; VACUUM wide; SELECT txid_current(); VACUUM wide;
INSERT INTO wide SELECT i, lpad(i::text, 4, '0') || repeat(md5(i::text), 40) FROM generate_series(310, 318) i;
