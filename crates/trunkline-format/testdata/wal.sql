-- What the logs wal-18.log.zst and wal-19.log.zst contain: nearly every kind of record, each only a few times. They were
-- written by 18.6 and 19rc1 in clusters with initdb --wal-segsize=1, wal_level = logical, full_page_writes = off,
-- wal_log_hints = on, track_commit_timestamp = on, autovacuum = off, max_prepared_transactions = 5. Before the script, the log was
-- switched; after it, the server was stopped at once. wal-*.dump.zst is what pg_waldump of the same release prints of
-- them with TZ=UTC, from the first record after the switch on.
CREATE TABLE t (id int PRIMARY KEY, a int, b text, c point, e int[]);
CREATE INDEX t_hash ON t USING hash (a);
CREATE INDEX t_gin ON t USING gin (e) WITH (fastupdate = off);
CREATE INDEX t_gist ON t USING gist (c);
CREATE INDEX t_spgist ON t USING spgist (c);
CREATE INDEX t_brin ON t USING brin (a) WITH (pages_per_range = 4);
INSERT INTO t SELECT i, i % 10, 'row ' || i, point(i, i), ARRAY[i % 7, i % 5] FROM generate_series(1, 30) i;
UPDATE t SET a = a + 1 WHERE id % 3 = 0;
DELETE FROM t WHERE id % 4 = 0;
VACUUM t;
VACUUM (FREEZE) t;
DROP TABLE t;
CREATE TABLE k (id int PRIMARY KEY, v text, s int) WITH (fillfactor = 50);
CREATE INDEX k_s ON k (s);
INSERT INTO k SELECT i, 'v' || i, i % 3 FROM generate_series(1, 60) i;
UPDATE k SET v = v || 'y' WHERE id < 10;
BEGIN; SELECT count(*) FROM (SELECT 1 FROM k WHERE id < 5 FOR UPDATE) x; SAVEPOINT s1; UPDATE k SET v = v || 'y' WHERE id < 3; SAVEPOINT s2; UPDATE k SET s = s + 1 WHERE id < 3; ROLLBACK TO s2; SELECT count(*) FROM (SELECT 1 FROM k WHERE id < 5 FOR SHARE) x; COMMIT;
BEGIN; SAVEPOINT a; INSERT INTO k VALUES (100001, 'x', 1); SAVEPOINT b; INSERT INTO k VALUES (100002, 'x', 1); RELEASE b; RELEASE a; ROLLBACK;
INSERT INTO k VALUES (1, 'dup', 1) ON CONFLICT (id) DO UPDATE SET v = 'up';
INSERT INTO k VALUES (200001, 'new', 1) ON CONFLICT (id) DO NOTHING;
BEGIN; INSERT INTO k VALUES (200002, 'prep', 1); SAVEPOINT p; INSERT INTO k VALUES (200003, 'prep', 1); DROP INDEX k_s; PREPARE TRANSACTION 'first one'; COMMIT PREPARED 'first one';
BEGIN; INSERT INTO k VALUES (200004, 'prep', 1); PREPARE TRANSACTION 'second'; ROLLBACK PREPARED 'second';
CREATE TABLE long (id int, v text); ALTER TABLE long ALTER v SET STORAGE EXTERNAL;
INSERT INTO long SELECT i, repeat('0123456789', 1000) FROM generate_series(1, 3) i;
TRUNCATE long;
BEGIN; CREATE TABLE frozen (x int, y text); COPY frozen FROM PROGRAM 'seq 1 40 | sed s/$/,abc/' WITH (FREEZE, FORMAT csv); COMMIT;
SELECT count(*) FROM frozen; VACUUM frozen; DROP TABLE frozen;
CREATE SEQUENCE sq; SELECT count(nextval('sq')) FROM generate_series(1, 40); SELECT setval('sq', 7);
CREATE TABLE serial (id serial, x int); INSERT INTO serial (x) SELECT 1; TRUNCATE serial RESTART IDENTITY;
SET allow_in_place_tablespaces = on; CREATE TABLESPACE ts1 LOCATION ''; CREATE TABLE tst (x int) TABLESPACE ts1; INSERT INTO tst VALUES (1); DROP TABLE tst; DROP TABLESPACE ts1;
CREATE DATABASE df STRATEGY file_copy; DROP DATABASE df;
SELECT pg_logical_emit_message(false, 'pre', 'hello');
SELECT pg_replication_origin_create('o1'); SELECT pg_replication_origin_session_setup('o1'); BEGIN; SELECT pg_replication_origin_xact_setup('0/1234567', '2024-01-02 03:04:05.678+00'); INSERT INTO k VALUES (7000, 'origin', 1); COMMIT; SELECT pg_replication_origin_session_reset(); SELECT pg_replication_origin_drop('o1');
SELECT pg_create_restore_point('point one');
BEGIN; LOCK TABLE k IN ACCESS EXCLUSIVE MODE; INSERT INTO k VALUES (7001, 'lock', 1); COMMIT;
CREATE TABLE dl (id int PRIMARY KEY, d int);
COPY dl FROM PROGRAM 'seq 1 1200 | sed s/$/,4/' WITH (FORMAT csv);
DELETE FROM dl WHERE id BETWEEN 20 AND 1180; VACUUM dl; VACUUM dl;
INSERT INTO dl SELECT i, 5 FROM generate_series(2000, 2010) i;
SET wal_compression = pglz; CREATE INDEX dl_pglz ON dl (d, id);
SET wal_compression = lz4; CREATE INDEX dl_lz4 ON dl (d, id);
SET wal_compression = zstd; CREATE INDEX dl_zstd ON dl (d, id); RESET wal_compression; CREATE INDEX dl_plain ON dl (d, id);
SET wal_consistency_checking = 'all'; UPDATE dl SET d = d + 1 WHERE id < 15; RESET wal_consistency_checking;
DROP TABLE dl;
VACUUM FULL pg_opfamily;
CHECKPOINT;
BEGIN; INSERT INTO k VALUES (9000, 'open', 1); SELECT pg_switch_wal(); INSERT INTO k VALUES (9001, 'last', 1); COMMIT;
