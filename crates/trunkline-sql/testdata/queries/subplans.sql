-- name: array of a correlated subquery in order
select d.id, array(select e.name from employees e where e.department = d.id order by e.name desc) from departments d order by d.id;
-- name: array without rows and with nulls
select array(select id from departments where id > 99), array(select e.salary from employees e order by e.id);
-- name: aggregates of a sorted subquery
select string_agg(s.name, ','), array_agg(s.id), json_agg(s.id) from (select id, name from employees order by name desc) s;
-- name: aggregates of a sorted subquery by group
select s.department, string_agg(s.label, '|') from (select department, upper(name) as label from employees order by salary desc nulls last, id) s group by s.department order by s.department;
-- name: aggregate of the first rows of a sorted subquery
select array_agg(s.id) from (select id from employees order by hired desc, id limit 4) s;
-- name: two rows only where no row asks
select case when d.id > 99 then (select id from employees) else d.id end from departments d order by d.id;
-- name: two rows without an outer row
select (select id from employees) from departments where id > 99;
-- name: two rows for one outer row
select (select e.id from employees e where e.department = d.id) from departments d order by d.id;
-- name: division that case prevents
select d.id, case when d.floor = 0 then null when d.floor is null then -1 else (select 100 / d.floor + e.id from employees e where e.id = d.id) end from departments d order by d.id;
-- name: division that and prevents
select d.id from departments d where d.floor is not null and (d.floor > 0 and (select 6 / d.floor from employees e where e.id = 1) > 1 or d.floor is null) order by d.id;
-- name: coalesce of subqueries
select d.id, coalesce((select min(e.bonus) from employees e where e.department = d.id), (select 1 / (d.id - d.id + 1)), 0) from departments d order by d.id;
-- name: quantified comparisons with nulls
select d.id, 7000 = any (select e.salary from employees e where e.department = d.id) as any, 7000 > all (select e.salary from employees e where e.department = d.id) as all, d.id not in (select e.manager from employees e where e.department = d.id) as none from departments d order by d.id;
-- name: row comparison with a correlated subquery
select d.id, (d.id, 1) in (select e.department, e.manager from employees e where e.department >= d.id) from departments d order by d.id;
-- name: subquery of a subquery refers to both
select d.id, (select count(*) from employees e where e.department = d.id and e.salary > (select avg(s.salary) from employees s where s.department = d.id and s.id <> e.id)) from departments d order by d.id;
-- name: set operation in a correlated subquery
select d.id, (select string_agg(u.name, ',' order by u.name) from (select e.name from employees e where e.department = d.id union all select d.name) u) from departments d order by d.id;
-- name: correlated having of all rows
select d.id, (select count(*) from employees e where e.department = d.id having d.id < 3) from departments d order by d.id;
-- name: correlated values
select d.id, (select sum(v.x) from (values (d.id), (d.id * 10)) v(x)) from departments d order by d.id;
-- name: aggregate of the outer query
select department, (select count(*) from departments d where d.id < max(e.salary) / 3000) from employees e group by department order by department;
-- name: order by a subquery
select d.name from departments d order by (select count(*) from employees e where e.department = d.id) desc, d.id;
-- name: subquery in having
select department, count(*) from employees e group by department having count(*) > (select count(*) from departments d where d.id < e.department) order by department;
-- name: subquery in an aggregate's filter
select count(*) filter (where exists (select 1 from employees m where m.manager = e.id)) from employees e;
-- name: lateral
select d.id, l.name, l.salary from departments d, lateral (select e.name, e.salary from employees e where e.department = d.id order by e.salary desc nulls last, e.id limit 2) l order by d.id, l.salary desc nulls last;
-- name: left join lateral
select d.id, l.n, l.most from departments d left join lateral (select count(*) as n, max(e.salary) as most from employees e where e.department = d.id having count(*) > 1) l on l.n > 2 order by d.id;
-- name: subquery in the condition of a join
select d.id, e.id from departments d join employees e on e.department = d.id and e.salary = (select max(s.salary) from employees s where s.department = d.id) order by d.id, e.id;
-- name: subquery in the condition of a left join
select d.id, e.id from departments d left join employees e on e.department = d.id and e.id in (select s.manager from employees s) order by d.id, e.id;
-- name: using shows the side that is not cast
select x, pg_typeof(x) from (values (1), (2)) a(x) join (values (1.00), (2.0)) b(x) using (x) order by x;
-- name: using of a right join
select x from (values (1.0), (3.0)) a(x) right join (values (1.00), (2.00)) b(x) using (x) order by x;
-- name: using of a full join
select x from (values (1.0), (3.0)) a(x) full join (values (1.00), (2.00)) b(x) using (x) order by x;
-- name: outer rows beyond a limit
select (select 6 / (3 - d.id) from employees e where e.id = 1) from departments d limit 2;
-- name: names of subqueries
select (values (1)), (select 1::int4)::text, (select 1)::text, (select 1 as x union all select 2 limit 1), case when true then 1 else (select 2) end;
-- name: an aggregate of the outer query in the select list
select department, (select max(e.salary) + count(*) from departments) from employees e group by department order by department;
-- name: an aggregate of the outer query in having
select department from employees e group by department having exists (select 1 from departments d where d.budget > sum(e.salary)) order by 1;
-- name: an aggregate of the outer query in where
select 1 from employees e where (select max(e.salary)) > 5;
-- name: an aggregate of two queries out
select department, (select (select count(e.id) from departments limit 1)) from employees e group by department order by department;
-- name: an aggregate of both queries
select e.id, (select max(d.id + e.id) from departments d) from employees e order by e.id;
-- name: a volatile subquery inside one that is executed for each row
select count(distinct x) from (select (select (select random()) where g > 0) x from generate_series(1, 200) g) s;
-- name: a volatile array inside a subquery that is executed for each row
select count(distinct x) from (select (select array(select random()) where g > 0) x from generate_series(1, 200) g) s;
-- name: a volatile subquery of outer columns inside another one
select count(distinct x) from (select (select (select random() + g * 0) where g > 0) x from generate_series(1, 200) g) s;
-- name: a volatile subquery in a recursive term
with recursive r as (select 1 a, 0.5::float8 b union all select a + 1, (select random()) from r where a < 20) select count(distinct b) from r;
-- name: a subquery of a middle query inside one
select (select string_agg((select sum(z)::text from (values (1), (2)) w(z) where z >= y and z > g - 2), ',' order by y) from (values (1), (2)) v(y)) from generate_series(1, 3) g order by g;
