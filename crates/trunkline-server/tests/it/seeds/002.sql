-- A thread on read streams that encounter blocks again.
CREATE EXTENSION  test_aio;
SELECT pg_buffercache_evict_relation('large');
EXPLAIN ANALYZE SELECT * FROM read_stream_for_blocks('large', ARRAY(SELECT i + generate_series(0, 3) FROM
generate_series(1,10000) g(i)));
