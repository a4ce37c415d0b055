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
-- name: recursion with a wider type
with recursive t(n) as (select 1 union all select n+1.5 from t) select * from t;
-- name: recursion of texts
with recursive t(n) as (select 'a' union all select n||'b' from t) select * from t limit 2;
-- name: recursion with a modifier
with recursive t(n) as (select 'a'::varchar(5) union all select n||'b' from t) select * from t limit 2;
-- name: recursion without a union
with recursive t(n) as (select n from t) select * from t;
-- name: recursion in the first term
with recursive t(n) as (select n from t union all select 1) select * from t;
-- name: recursion in an intersection
with recursive t(n) as (select 1 intersect select n from t) select * from t;
-- name: recursion with an aggregate
with recursive t(n) as (select 1 union all select count(*)::int from t) select * from t;
-- name: recursion with an order
with recursive t(n) as (select 1 union all select n+1 from t order by 1) select * from t;
-- name: recursion with its own limit
with recursive t(n) as (select 1 union all select n+1 from t limit 3) select * from t;
-- name: two recursive references
with recursive t(n) as (select 1 union all select a.n from t a, t b) select * from t;
-- name: recursion in an outer join
with recursive t(n) as (select 1 union all select a.x from (select 1 as x) a left join t on true) select * from t;
-- name: recursion in two unions
with recursive t(n) as (select 1 union all (select n+1 from t union all select n from t)) select * from t;
-- name: recursion with except
with recursive t(n) as (select 1 union all select n from (select n from t except select 1) x) select * from t;
-- name: recursion with distinct rows
with recursive t(n) as (select 1 union all select distinct n+1 from t where n<3) select * from t;
-- name: recursion of numeric with a modifier
with recursive t(n) as (select 1::numeric(5,2) union all select n+1 from t where n<3) select * from t;
-- name: recursion with a window
with recursive t(n) as (select 1 union all select sum(n) over () from t where n<3) select * from t;
-- name: recursion from null
with recursive t(n) as (select null union all select 'x' from t where n is null) select n, pg_typeof(n) from t;
-- name: recursion through another query
with recursive t(n) as (select 1 union all select n+1 from (with s as (select * from t) select * from s) x where n<3) select * from t;
-- name: recursion with an inner limit
with recursive t(n) as (select 1 union all select n+1 from (select n from t limit 1) x where n<3) select * from t;
-- name: recursion of wider integers
with recursive t(n) as (select 1 union select n::int8 from t) select * from t;
-- name: recursion with too many names
with recursive t(n,m) as (select 1 union all select n+1 from t) select * from t;
-- name: recursion with two columns
with recursive t(n) as (select 1, 2 union all select n+1, 3 from t where n<3) select * from t;
-- name: recursive query used by another
with recursive t(n) as (select 1 union all select n+1 from t where n < 5), u as (select n * 10 as n from t) select * from u;
-- name: recursive without recursion
with recursive t as (select 1 as n union all select 2) select * from t order by n;
-- name: recursive query used twice
with recursive t(n) as (select 1 union all select n+1 from t where n < 3) select a.n, b.n from t a join t b on a.n < b.n order by 1, 2;
-- name: recursion in a subquery of a row
select id, (with recursive t(n) as (select 1 union all select n+1 from t where n < 3) select sum(n) from t) from departments order by id;
-- name: recursion from an outer column
select id, (with recursive t(n) as (select d.id union all select n+1 from t where n < 7) select count(*) from t) from departments d order by id;
-- name: recursion with a filter outside
with recursive t(n, s) as (select 1, 'x'::text union all select n+1, s || n from t where n < 4) select * from t where n > 2;
-- name: recursion up a tree
with recursive chain as (select id, manager from employees where id = 7 union all select e.id, e.manager from employees e, chain c where e.id = c.manager) select * from chain;
-- name: deep recursion
with recursive t(n) as (select 1 union all select n+1 from t where n < 100000) select count(*), max(n) from t;
-- name: recursion of dates
with recursive t(d) as (select date '2024-01-01' union all select (d + interval '1 month')::date from t where d < date '2024-06-01') select * from t;
-- name: recursion with a subquery
with recursive t(n) as (select 1 union all select n + (select count(*)::int from departments) from t where n < 20) select * from t;
-- name: recursion that grows
with recursive t(n) as (select 1 union all select n+1 from t join generate_series(1,2) g on true where n < 4) select n, count(*) from t group by n order by n;
-- name: aggregate beside a recursive reference
with recursive t(n) as (select 1 union all select a.n + b.c::int from (select n from t) a, (select count(*) c from departments) b where a.n < 20) select * from t;
-- name: aggregate over a recursive reference
with recursive t(n) as (select 1 union all select b.c::int from (select count(*) c from t) b) select * from t;
-- name: recursion in a lateral subquery
with recursive t(n) as (select 1 union all select x.n + 1 from generate_series(1, 1) g, lateral (select n from t where n > g - 5 order by n limit 5) x where x.n < 4) select * from t;
-- name: recursion through a query in a lateral subquery
with recursive t(n) as (select 1 union all select x.n + 1 from generate_series(1, 1) g, lateral (with s as (select n from t) select n from s where n > g - 5 order by n limit 5) x where x.n < 4) select * from t;
-- name: cycle with its columns
with recursive t(n) as (select 1 union all select n % 3 + 1 from t) cycle n set looped using path select * from t order by path;
-- name: cycle with other marks
with recursive t(n) as (select 1 union all select n % 3 + 1 from t) cycle n set looped to 'Y' default 'N' using path select * from t order by path;
-- name: search breadth first
with recursive t(id, parent) as (select id, manager from employees where manager is null union all select e.id, e.manager from employees e join t on e.manager = t.id) search breadth first by id set o select * from t order by o;
-- name: search and cycle
with recursive t(id, parent) as (select id, manager from employees where manager is null union all select e.id, e.manager from employees e join t on e.manager = t.id) search depth first by id, parent set o cycle id set m using p select * from t order by o;
-- name: cycle of a query that is not recursive
with t(n) as (select 1) cycle n set looped using path select * from t;
-- name: cycle of a query that does not refer to itself
with recursive t(n) as (select 1) cycle n set looped using path select * from t;
-- name: cycle from values
with recursive t(n) as (values (1) union all select n % 3 + 1 from t) cycle n set looped using path select * from t order by path;
-- name: cycle of a set operation
with recursive t(n) as ((select 1 union select 2) union all select n % 3 + 1 from t) cycle n set looped using path select * from t order by path;
-- name: cycle of a reference in a subquery
with recursive t(n) as (select 1 union all select n % 3 + 1 from (select * from t) x) cycle n set looped using path select * from t order by path;
-- name: cycle of an unknown column
with recursive t(n) as (select 1 union all select n % 3 + 1 from t) cycle x set looped using path select * from t;
-- name: cycle of a column twice
with recursive t(n) as (select 1 union all select n % 3 + 1 from t) cycle n, n set looped using path select * from t;
-- name: cycle with one name twice
with recursive t(n) as (select 1 union all select n % 3 + 1 from t) cycle n set m using m select * from t;
-- name: search and cycle with one name
with recursive t(n) as (select 1 union all select n % 3 + 1 from t) search depth first by n set o cycle n set o using p select * from t;
-- name: cycle with marks of two types
with recursive t(n) as (select 1 union all select n % 3 + 1 from t) cycle n set m to 1 default 'x' using p select * from t;
-- name: cycle with text
with recursive t(n, s) as (select 1, 'x' union all select n % 3 + 1, s || 'y' from t) cycle n set m using p select * from t;
-- name: cycle whose mark is used
with recursive t(n) as (select 1 union all select n % 3 + 1 from t where not m) cycle n set m using p select * from t;
-- name: cycle with a star
with recursive t(n) as (select 1 union all select t.* from t) cycle n set m using p select * from t;
