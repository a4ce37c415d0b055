-- An article on PostgreSQL 18: settings, count with its plan, pg_aios.
show io_method;
show effective_io_concurrency;
show io_combine_limit;
select count(abalance) from "pgbench_accounts";
explain (analyze, buffers) select count(abalance) from "pgbench_accounts";
explain (analyze, verbose, buffers off) select * from public.pgbench_accounts;
select * from pg_aios;
select count(*) from pg_get_aios();
