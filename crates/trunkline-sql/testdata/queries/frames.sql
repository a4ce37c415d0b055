-- name: ranks with peers
select id, department, rank() over w, dense_rank() over w, percent_rank() over w, cume_dist() over w from employees window w as (partition by department order by salary) order by id;
-- name: ntile with more buckets than rows
select id, ntile(100) over (order by id), ntile(3) over (order by id), ntile(1) over (order by id) from departments order by id;
-- name: ntile of null
select id, ntile(null) over (order by id) from departments order by id;
-- name: ntile of zero
select ntile(0) over (order by id) from departments;
-- name: nth_value of zero
select nth_value(id, 0) over (order by id) from departments;
-- name: nth_value of a column
select id, nth_value(name, id) over (order by id rows between unbounded preceding and unbounded following) from departments order by id;
-- name: lag by a column and by null
select id, lag(id, id) over (order by id), lag(id, null) over (order by id), lead(id, -1) over (order by id), lag(id, 0) over (order by id) from departments order by id;
-- name: lag with a default of another type
select id, lag(id, 1, 0.5) over (order by id) from departments order by id;
-- name: partitions by several keys
select id, count(*) over (partition by customer, status) from orders where id < 60 order by id;
-- name: partitions by an expression with nulls
select id, manager, count(*) over (partition by manager), row_number() over (partition by manager order by id desc) from employees order by id;
-- name: several windows
select id, sum(salary) over (partition by department order by id), avg(salary) over (order by hired, id rows 2 preceding), count(*) over () from employees order by id;
-- name: aggregates that grow
select id, count(salary) over w, sum(salary) over w, avg(salary) over w, min(salary) over w, max(salary) over w, array_agg(id) over w, bool_or(salary > 5000) over w, stddev(salary) over w from employees window w as (order by id) order by id;
-- name: aggregates that move
select id, count(salary) over w, sum(salary) over w, avg(salary) over w, min(salary) over w, max(salary) over w, array_agg(id) over w, bool_and(salary > 5000) over w from employees window w as (order by id rows between 1 preceding and 2 following) order by id;
-- name: rest of the partition
select id, sum(id) over (order by id rows between current row and unbounded following), string_agg(name, ',') over (order by id rows between 1 following and unbounded following) from departments order by id;
-- name: groups with offsets
select id, department, count(*) over (order by department groups between 1 following and 2 following), count(*) over (order by department groups between 2 preceding and 1 preceding) from employees order by id;
-- name: exclude group
select id, department, count(*) over (order by department range between unbounded preceding and unbounded following exclude group), sum(id) over (order by department groups 1 preceding exclude ties) from employees order by id;
-- name: values with exclusion
select id, first_value(id) over w, last_value(id) over w, nth_value(id, 2) over w from departments window w as (order by id rows between 1 preceding and 1 following exclude current row) order by id;
-- name: range with nulls
select id, salary, count(*) over (order by salary range between 500 preceding and 500 following), count(*) over (order by salary nulls first range between 500 preceding and unbounded following) from employees order by id;
-- name: range that descends
select id, count(*) over (order by id desc range between 2 preceding and 1 following), sum(id) over (order by id desc range between 3 following and 5 following) from orders where id < 30 order by id;
-- name: range of bigints
select x, count(*) over (order by x range between 9223372036854775807 preceding and 1 following) from (values (9223372036854775807), (9223372036854775806), (-9223372036854775808), (0)) v(x) order by x;
-- name: range of timestamps
select id, count(*) over (order by ordered range between '1 month' preceding and '2 days' following) from orders where id < 50 order by id;
-- name: range by a negative offset
select sum(id) over (order by id range between -1 preceding and current row) from departments;
-- name: range by null
select sum(id) over (order by id range between null preceding and current row) from departments;
-- name: rows by null
select sum(id) over (order by id rows between current row and null::int following) from departments;
-- name: range by a number for a date
select count(*) over (order by hired range between 1 preceding and current row) from employees;
-- name: range by a fraction
select count(*) over (order by id range between 1.5 preceding and current row) from employees;
-- name: range by two keys
select count(*) over (order by id, name range between 1 preceding and current row) from employees;
-- name: filter that fails elsewhere
select id, sum(10 / (id - 2)) filter (where id <> 2) over (order by id) from departments order by id;
-- name: window over no rows
select sum(id) over (order by id rows between -1 preceding and current row) from departments where false;
-- name: windows of windows
select x, sum(x) over (order by x) from (select sum(id) over (partition by department) as x, id from employees) s order by 1, 2;
-- name: large partition
select sum(r), min(r), max(r), count(distinct r) from (select row_number() over (order by customer, id) as r from orders) s;
-- name: running sum of all orders
select sum(s), max(s) from (select sum(items) over (order by id) as s from orders) s;
-- name: distinct over a window
select distinct count(*) over (partition by department) as n from employees order by 1;
-- name: limit over a window
select id, row_number() over (order by id desc) as r from employees order by r limit 3;
-- name: filter by rank
select * from (select id, department, rank() over (partition by department order by salary desc nulls last) as r from employees) s where r <= 2 order by department, r, id;
-- name: filter by a partition's key
select * from (select id, department, count(*) over (partition by department) as n, row_number() over (order by id) as r from employees) s where department = 2 order by id;
-- name: numeric sums
select x, sum(x) over (order by x), avg(x) over (order by x rows 1 preceding) from (values (1.5), (2.25), (100.000), (0.1)) v(x) order by x;
-- name: floats
select x, sum(x) over (order by x), sum(x) over (order by x rows 1 preceding) from (values (0.1::float8), (0.2), (0.3), ('infinity')) v(x) order by x;
-- name: distinct in a window
select count(distinct department) over () from employees;
-- name: order in a window aggregate
select array_agg(id order by id) over () from employees;
