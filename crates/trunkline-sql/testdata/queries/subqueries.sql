-- name: scalar
select name, (select avg(salary) from employees) as average, salary - (select min(salary) from employees) as above from employees order by id;
-- name: scalar without a row
select (select name from departments where id = 99) as nothing, (select name from departments where id = 1);
-- name: scalar with two rows
select (select id from departments);
-- name: correlated scalar
select d.name, (select count(*) from employees e where e.department = d.id) as heads, (select max(e.salary) from employees e where e.department = d.id) as most from departments d order by d.id;
-- name: correlated scalar that is not aggregated
select e.name, (select m.name from employees m where m.id = e.manager) as manager from employees e order by e.id;
-- name: correlated scalar with order and limit
select c.id, (select o.id from orders o where o.customer = c.id order by o.ordered desc, o.id limit 1) as latest from customers c where c.id <= 15 order by c.id;
-- name: correlated in where
select e.name, e.salary from employees e where e.salary > (select avg(s.salary) from employees s where s.department = e.department) order by e.id;
-- name: correlated by an inequality
select d.id, (select count(*) from departments b where b.budget < d.budget) from departments d order by d.id;
-- name: correlated through two levels
select d.id, (select count(*) from employees e where e.department = d.id and exists (select 1 from employees s where s.manager = e.id and s.department = d.id)) from departments d order by d.id;
-- name: correlated in case and or
select c.id, case when c.vip then (select count(*) from orders o where o.customer = c.id) else -1 end as n from customers c where c.id < 8 or (select count(*) from orders o where o.customer = c.id) > 7 order by c.id;
-- name: exists
select d.name from departments d where exists (select from employees e where e.department = d.id and e.half_day) order by d.id;
-- name: not exists
select d.name from departments d where not exists (select * from employees e where e.department = d.id) order by d.id;
-- name: exists in the select list
select d.id, exists (select 1 from employees e where e.department = d.id) from departments d order by d.id;
-- name: in
select name from employees where department in (select id from departments where floor > 0) order by id;
-- name: not in with nulls
select count(*) from departments where id not in (select manager from employees);
-- name: not in without nulls
select id from departments where id not in (select manager from employees where manager is not null) order by id;
-- name: in as a value
select id, manager in (select id from departments) as small from employees order by id;
-- name: row in subquery
select id from orders o where (o.id, 2) in (select order_id, line from order_items where quantity > 10) order by id;
-- name: any and all
select id, salary >= all (select salary from employees where salary is not null) as top, salary < any (select salary from employees where department = 1) as below, salary <> all (select salary from employees where id > 5) as unknown from employees order by id;
-- name: any of an array
select id from customers where country = any (array['DE', 'CR']) and 'b2b' = any (tags) order by id limit 12;
-- name: all of an array with null
select 3 > all (array[1, 2]), 3 > all (array[1, null]), 3 < any (array[1, null]), 3 = all ('{}'::int[]), 3 = any (null::int[]);
-- name: array of a subquery
select d.id, array(select e.name from employees e where e.department = d.id order by e.name) as names from departments d order by d.id;
-- name: row comparison with a subquery
select (1, 'sales') = (select id, name from departments where id = 1);
-- name: subquery in from with aliases
select s.a, s.b from (select id, name from departments) as s(a, b) where s.a > 2 order by 1;
-- name: subquery in limit
select id from products order by id limit (select count(*) from departments) offset (select 2);
-- name: subquery in having
select department, count(*) from employees group by department having count(*) > (select avg(n) from (select count(*) as n from employees group by department) s) order by department;
-- name: outer aggregate in a subquery
select d.id, (select max(e.id) from employees e where e.department = d.id group by d.name) from departments d order by d.id;
-- name: union in a correlated subquery
select d.id, (select sum(x) from (select e.salary as x from employees e where e.department = d.id union all select d.floor) s) from departments d order by d.id;
-- name: subquery with too many columns
select (select id, name from departments where id = 1);
-- name: in with too many columns
select 1 in (select id, name from departments);
-- name: group by a subquery
select (select d.name from departments d where d.id = e.department) as department, count(*) from employees e group by (select d.name from departments d where d.id = e.department) order by 1;
-- name: group by one of two subqueries
select (select d.floor from departments d where d.id = e.department) from employees e group by (select d.name from departments d where d.id = e.department);
-- name: group by a subquery with other names
select 1 + (select max(d.id) from departments d where d.id < e.id), count(*) from employees e group by (select max(x.id) from departments x where x.id < e.id) order by 1;
-- name: group by a subquery of another subquery
select (select count(*) from departments d where exists (select 1 from orders o where o.id = d.id and d.floor > e.department)) n, count(*) from employees e group by (select count(*) from departments d where exists (select 1 from orders o where o.id = d.id and d.floor > e.department)) order by 1;
-- name: distinct rows ordered by a subquery
select distinct (select d.name from departments d where d.id = e.department) from employees e order by (select d.name from departments d where d.id = e.department) desc;
-- name: distinct rows ordered by another subquery
select distinct (select d.name from departments d where d.id = e.department) from employees e order by (select d.floor from departments d where d.id = e.department) desc;
-- name: distinct on a subquery
select distinct on ((select d.floor from departments d where d.id = e.department)) id from employees e order by (select d.floor from departments d where d.id = e.department), id desc;
-- name: group by exists
select exists (select 1 from orders o where o.id = e.id) has, count(*) from employees e group by exists (select 1 from orders o where o.id = e.id) order by 1;
-- name: group by a subquery with a common table
select (with s as (select id from departments where id = e.department) select count(*) from s, s t) n, count(*) from employees e group by (with s as (select id from departments where id = e.department) select count(*) from s, s t) order by 1;
-- name: group by in
select e.department in (select d.id from departments d where d.floor > 1) high, count(*) from employees e group by e.department in (select d.id from departments d where d.floor > 1) order by 1;
-- name: group by in of another column
select e.department in (select d.id from departments d where d.floor > 1) high, count(*) from employees e group by e.id in (select d.id from departments d where d.floor > 1) order by 1;
-- name: limit of a subquery
select id from products order by id desc limit (select 3);
-- name: offset of a subquery
select id from products order by price, id offset (select 115);
-- name: limit of a subquery that is null
select count(*) from (select id from products limit (select null::int)) s;
-- name: limit of a negative subquery
select id from products limit (select -1);
-- name: limit of an outer column
select d.id, (select array_agg(e.id) from (select id from employees order by id limit d.id) e) from departments d order by d.id;
-- name: limit of zero rows
select id from products order by id limit (select 0);
-- name: a volatile query of IN is evaluated once
select count(distinct x) from (select g * 0 + 1 in (select (random() < 0.5)::int) x from generate_series(1, 200) g) s;
-- name: a volatile query of ALL is evaluated once
select count(distinct x) from (select g * 0 + 0.5 < all (select random()) x from generate_series(1, 200) g) s;
-- name: a volatile query of NOT IN with nulls is evaluated once
select count(distinct coalesce(x::text, 'null')) from (select g * 0 + 1 not in (select nullif((random() < 0.5)::int, 0)) x from generate_series(1, 200) g) s;
-- name: a volatile query of IN in a subquery is evaluated once
select count(distinct x) from (select (select g * 0 + 1 in (select (random() < 0.5)::int) where g > 0) x from generate_series(1, 200) g) s;
-- name: a volatile query of IN under CASE is evaluated once
select count(distinct x) from (select case when g > 0 then g * 0 + 1 in (select (random() < 0.5)::int) end x from generate_series(1, 200) g) s;
-- name: a volatile operand of IN is evaluated once a row
select count(*) filter (where x) from (select (random() < 0.5)::int in (select 0 union all select 1) x from generate_series(1, 1000)) s;
-- name: a volatile condition of EXISTS is evaluated for each row
select count(*) between 100 and 900 from generate_series(1, 1000) g where exists (select from (values (1)) v(x) where x = g * 0 + 1 and random() < 0.5);
-- name: limits that are subqueries
select a, (select string_agg(x::text, ',') from (select x from generate_series(1, 5) x order by x desc limit a offset (select a - 1)) s) from (values (1), (2), (null), (0 + 3)) v(a) order by a;
-- name: limit that is a null subquery over no rows
select count(*) from (select 1 where false limit (select null::int)) s;
