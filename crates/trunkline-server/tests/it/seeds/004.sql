-- A guide to tuning: which method, how many workers.
SHOW io_method;
SHOW io_min_workers;
SHOW io_max_workers;
SET effective_io_concurrency = 64;
SHOW effective_io_concurrency;
ALTER SYSTEM SET io_method = 'io_uring';
ALTER SYSTEM SET maintenance_io_concurrency = 100;
SELECT pg_reload_conf();
SHOW maintenance_io_concurrency;
SELECT count(*) FROM large WHERE i % 100 = 7;
SELECT asked FROM trunkline_io_method;
