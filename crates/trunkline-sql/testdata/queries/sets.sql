-- name: series for each row
select d.id, g from departments d, generate_series(1, d.id) g where d.id < 4 order by 1, 2;
-- name: left join lateral keeps rows
select a.id, x from arrays a left join lateral unnest(a.i) x on true order by 1, 2;
-- name: left join lateral with ordinality
select a.id, x, k from arrays a left join lateral unnest(a.i) with ordinality u(x, k) on true order by 1, 3;
-- name: lateral subquery over a function
select a.id, s.y from arrays a, lateral (select x * 2 as y from unnest(a.i) x where x > 1) s order by 1, 2;
-- name: lateral function with a condition
select a.id, x from arrays a join lateral unnest(a.i) x on x > 1 order by 1, 2;
-- name: sets of different lengths
select id, generate_series(1, id), unnest(i) from arrays order by 1, 2, 3;
-- name: set within a set
select generate_series(1, generate_series(1, 3));
-- name: set in an expression
select generate_series(1, 3) * 10 + 1 as x, 'a' || unnest(array['p', 'q', null]);
-- name: a set and a limit
select generate_series(1, 1000000000) limit 3;
-- name: a series and a limit
select * from generate_series(1, 100000) g limit 3 offset 2;
-- name: count of a long series
select count(*), sum(g) from generate_series(1, 100000) g;
-- name: series of bigints
select g from generate_series(9223372036854775805, 9223372036854775807) g;
-- name: rows from with ordinality
select * from rows from (generate_series(1, 2), generate_series(10, 13), unnest(array['x'])) with ordinality as r(a, b, c, n);
-- name: null arguments
select * from generate_series(1, null::int) g;
-- name: null arguments in a left join
select d.id, g from departments d left join generate_series(1, nullif(d.id, 2)) g on true where d.id < 4 order by 1, 2;
-- name: a scalar function in from
select * from upper('abc') u, lower(u) l;
-- name: a scalar function with ordinality
select * from abs(-3) with ordinality;
-- name: set over groups
select department, generate_series(1, count(*)::int) from employees group by department order by 1, 2;
-- name: distinct set
select distinct unnest(array[3, 1, 3, 2, 1]) order by 1;
-- name: set in a union
select generate_series(1, 2) union all select generate_series(2, 3) order by 1;
-- name: empty set beside another
select unnest('{}'::int[]), generate_series(1, 2);
-- name: only empty sets
select unnest('{}'::int[]), unnest(null::text[]);
-- name: filter above a set
select * from (select id, unnest(i) as x from arrays) s where x > 1 and id > 1 order by 1, 2;
-- name: join with a series
select g, d.name from generate_series(1, 6) g left join departments d on d.id = g order by g;
-- name: full join of series
select a, b from generate_series(1, 3) a full join generate_series(2, 5) b on a = b order by a, b;
-- name: regexp_matches in from
select * from regexp_matches('a1b22', '[0-9]+', 'g') m;
-- name: string_to_table
select * from string_to_table('a,b,,c', ',', '') with ordinality t(x, n);
-- name: jsonb_each of each row
select v.id, e.key, e.value from (values (1, '{"a": 1, "b": [2]}'::jsonb), (2, '{}'), (3, '{"c": null}')) v(id, j), jsonb_each(v.j) e order by 1, 2;
-- name: jsonb_array_elements with ordinality
select e, n from jsonb_array_elements('[1, "x", null]') with ordinality as t(e, n);
-- name: error in a later row
select id, generate_series(1, 3, id - 2) from departments where id < 3 order by id;
-- name: where after an error
select g from generate_series(1, 3) g where 6 / (g - 2) > 0;
-- name: series of timestamps by months
select g from generate_series(timestamp '2024-01-31', '2024-04-30', '1 month') g;
-- name: generate_subscripts of two dimensions
select generate_subscripts(grid, 1), generate_subscripts(grid, 2) from arrays where id = 4;
-- name: same set twice
select generate_series(1, 2), generate_series(1, 2);
-- name: set ordered by itself
select unnest(array[2, 3, 1]) as u order by u desc;
-- name: lateral chain
select a, b, c from generate_series(1, 3) a, generate_series(a, 3) b, generate_series(b, 3) c order by 1, 2, 3;
-- name: lateral values
select d.id, v.x from departments d, lateral (values (d.id * 2)) v(x) order by 1;
-- name: lateral select
select d.id, v.x from departments d, lateral (select d.id * 2 as x) v where v.x > 2 order by 1;
-- name: first with ties
select salary from employees order by salary desc nulls last fetch first 3 rows with ties;
-- name: first with ties and an offset
select count(*) from employees group by department order by count(*) offset 1 fetch first 1 row with ties;
-- name: ties of null
select id from departments order by id fetch first null rows with ties;
-- name: ties without an order
select id from departments fetch first 1 rows with ties;
-- name: volatile cte used once
with r as (select random() as x from generate_series(1, 100)) select count(*), min(x) >= 0, max(x) < 1 from r where x is not null;
-- name: volatile filter of a series
select count(*) between 300 and 700 from generate_series(1, 1000) where random() < 0.5;
-- name: volatile values differ
select count(distinct r) > 900 from (select random() as r from generate_series(1, 1000)) s;
-- name: volatile column is evaluated once
select count(*) from (select random() as r from generate_series(1, 1000)) s where r <> r;
-- name: functions of one row in FROM without a row
select * from jsonb_to_record(null) as t(a int, b text);
-- name: functions of one row in FROM for each row
select x, t.* from (values ('{"a":1}'::jsonb), (null)) v(x), jsonb_to_record(x) t(a int);
-- name: functions of one row in FROM beside a series
select * from rows from (generate_series(1, 2), jsonb_to_record(null) as (a int)) with ordinality;
-- name: functions of a row with an argument that is null
select t is null, t from pg_sequence_parameters(null) t;
-- name: functions of a scalar in FROM without a value
select * from abs(null::int), regexp_match('a', 'b');
-- name: set-returning functions in FROM without rows
select * from rows from (generate_series(1, 0), abs(null::int));
-- name: functions of one row as values with an argument that is null
select pg_sequence_parameters(null) is null, (pg_sequence_parameters(null)).start_value;
