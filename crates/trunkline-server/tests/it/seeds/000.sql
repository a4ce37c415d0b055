-- The cover letter of asynchronous I/O: prewarm and sum, with 0, 1, 2 and 4 workers.
SELECT pg_prewarm('pgbench_accounts');
SET max_parallel_workers_per_gather = 0;
SELECT sum(abalance) FROM pgbench_accounts;
SET max_parallel_workers_per_gather = 1;
SELECT sum(abalance) FROM pgbench_accounts;
SET max_parallel_workers_per_gather = 2;
SELECT sum(abalance) FROM pgbench_accounts;
SET max_parallel_workers_per_gather = 4;
SELECT sum(abalance) FROM pgbench_accounts;
