-- name: simple
with big as (select * from products where price > 900) select count(*), min(price) from big;
-- name: used twice
with s as (select department, sum(salary) as total from employees group by department) select a.department, b.department from s a join s b on a.total > b.total order by 1, 2;
-- name: chain
with a as (select 1 as x union all select 2), b as (select x * 10 as y from a), c(z) as (select y + 1 from b) select a.x, c.z from a, c order by 1, 2;
-- name: column names
with t(n, m) as (values (1, 'a'), (2, 'b')) select m, n from t order by n desc;
-- name: shadows a table
with departments as (select 7 as id) select * from departments;
-- name: materialized
with m as materialized (select id, name from employees where salary > 5000), n as not materialized (select id from employees) select m.name from m join n using (id) order by m.id;
-- name: inside a subquery
select * from (with x as (select 3 as v) select v, v + 1 as w from x) s;
-- name: correlated cte
select d.id, (with e as (select salary from employees where department = d.id) select sum(salary) from e) from departments d order by d.id;
-- name: recursive series
with recursive t(n) as (values (1) union all select n + 1 from t where n < 10) select sum(n), count(*) from t;
-- name: recursive tree
with recursive tree as (select id, name, 0 as depth, name as path from employees where manager is null union all select e.id, e.name, depth + 1, path || '/' || e.name from employees e join tree t on e.manager = t.id) select * from tree order by path;
-- name: recursive with distinct
with recursive reach(id) as (select 1 union select (id * 2) % 7 from reach) select * from reach order by id;
-- name: recursive graph with an array of the path
with recursive g(f, t) as (values (1, 2), (2, 3), (3, 1), (3, 4)), p(t, path) as (select t, array[f, t] from g where f = 1 union all select g.t, path || g.t from p join g on g.f = p.t where g.t <> all (path)) select * from p order by path;
-- name: fibonacci
with recursive f(a, b) as (select 0::numeric, 1::numeric union all select b, a + b from f where b < 1e30) select max(a) from f;
-- name: recursive with a limit
with recursive t(n) as (select 1 union all select n + 1 from t) select n from t limit 5;
-- name: search depth first
with recursive t(id, parent) as (select id, manager from employees where manager is null union all select e.id, e.manager from employees e join t on e.manager = t.id) search depth first by id set o select id, parent from t order by o;
-- name: cycle clause
with recursive t(n) as (select 1 union all select n % 3 + 1 from t) cycle n set looped using path select n, looped from t order by path;
-- name: not recursive by mistake
with t as (select 1 as n union all select n + 1 from t) select * from t;
-- name: recursion of different types
with recursive t(n) as (select 1 union all select n + 1.5 from t where n < 5) select * from t;
-- name: too few columns
with t(a, b) as (select 1) select * from t;
