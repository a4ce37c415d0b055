-- name: offset without order
-- rows: unordered
select count(*) from (select id from products limit 3 offset 2) s;
-- name: conditions without columns
select count(*) from departments where 1.5 > 2.0 and 2.5 > 1.0;
-- name: rows that differ from all
select (1, 2) <> all (select 1, 3), (1, 2) <> any (select 1, 2), (1, 2) <> all (select 1, 2);
-- name: constants and groups
-- rows: unordered
select 5 as k, id + 5 from departments group by grouping sets ((1, id), (id));
-- name: count without a star
select count() from departments;
-- name: order by null
select id from departments order by null;
-- name: nested nullif
select nullif(nullif(nullif(id, 1), 2), 3) from departments order by id;
-- name: aliases of joined columns
select d, f from (departments join (values (1)) as one(v) on true) as j(a, b, c, d, e, f) order by a;
-- name: negative numerics with zero digits
select x from (values (-1::numeric), (-1.00005), (-100000001), (-100000000), (0), (1.00005), (1), (-0.0001)) v(x) order by x;
-- name: lists and nulls
select v.a, a not in (1, 2, 3, 4) or a not in (5, 6, 7, 8), a in (1, 2, 3, 4) and a not in (5, 6, 7, null), a in (1, 2) and a in (3, 4) from (values (1), (5), (null)) v(a) order by 1;
-- name: order of bit strings
select x from (values (b'10'::varbit), (b'1'), (b'101'), (b'0'), (b'')) v(x) order by x;
-- name: first rows of a union by a constant
select c0, c1 from (select 2, 0 from departments d full join employees e on d.id = e.id union all select 1, id % 1 from orders) q(c0, c1) order by c0 desc, c1 limit 20;
-- name: first rows of a union by a constant behind a column
select c1, c0 from (select 0 * d.id, 1 from departments d full join employees e on d.id = e.id union all select id % 1, 2 from orders) q(c1, c0) order by c1 nulls first, c0 limit 20;
-- name: first rows of a union by a constant and its text
select c0 from (select 'b', 0 from departments d full join employees e on d.id = e.id union all select 'a', id % 1 from orders) q(c0, c1) order by c0 desc, c0 || 'x', c1 limit 20;
-- name: group by a test of a boolean
select half_day is true, half_day is not true, half_day is false, half_day is not false, half_day is unknown, half_day is not unknown, count(*) from employees group by 1, 2, 3, 4, 5, 6 order by 1, 2, 3, 4, 5, 6;
-- name: distinct tests of a boolean
select distinct (b is true), (b and null) is not unknown from (values (true), (false), (null)) v(b) order by 1, 2;
-- name: order behind a join with distinct rows
select c0, c1, c2 from (select t1.c0, t4.c0, t1.c0 from (select distinct (select max(date '2024-02-29') from hosts) from departments) as t1(c0) cross join generate_series(1, 6) as t4(c0) group by t1.c0, t4.c0, t1.c0) as q(c0, c1, c2) order by c0 nulls first, c1 desc, c2;
-- name: order behind an outer join with an aggregate
select c0, c1 from (select ceil(nullif(s.revenue, s.revenue)), a.n from (select max(0) from departments) a(n) full join sales s on a.n = s.orders) q(c0, c1) order by c0, c1 desc nulls last limit 3;
-- name: window behind an outer join with an aggregate
select g, n, count(*) over (order by n) from generate_series(1, 4) g full join (select max(salary) from employees) e(n) on g = n order by n, g;
-- name: false condition on constants beside an aggregate
select c from (select b, 2 from (select max(name) from employees) a(m) cross join (select 1 from departments) d(b)) q(b, c) where b >= c group by c;
-- name: order by a constant of the nullable side of a full join
select l.c, e.id from (select 5 as c, id from departments) l full join employees e on l.id = e.id order by l.c nulls first, e.id limit 30;
-- name: order by an expression of a constant behind a full join
select c0, c1 from (select to_jsonb(octet_length(e.name)), t1.c0 + 59 from (select 'infinity'::date from departments t2 where t2.id not in (42)) t1(c0) full join employees e on t1.c0 = e.hired) q(c0, c1) order by c0 desc, c0::text, c1;
-- name: order by a constant of the nullable side of a left join
select d.id, c.one from departments d left join (select id, 1 as one from departments where id < 3) c on c.id = d.id order by c.one desc, d.id;
-- name: order by a column that a condition makes constant behind a full join
select l.id, e.id from (select id from departments where id = 3) l full join employees e on l.id = e.id order by l.id desc, e.id;
-- name: order by constants of the operands of a union
select a, b, c from (select 1 as a, id as b, 'x' as c from departments union all select id, 2, 'y' from departments union all select 3, 4, name from departments) u order by a nulls first, b desc, c nulls first;
-- name: order by a constant that is joined where nulls are equal
select e.id, e.department, c.k, c.id from employees e join (select 2 as k, id from departments) c on e.department is not distinct from c.k order by e.department, c.k desc, c.id desc, e.id;
-- name: first rows of an ordered subquery by a subquery
select * from (select id from products order by id desc) s limit (select 3);
-- name: first distinct rows by a subquery
select distinct on (price) price, id from products order by price desc, id limit (select 3);
-- name: a recursion that a subquery ends
with recursive r(n) as (select 3 union all select n - 1 + 0 / (n - 1) from r) select n from r limit (select 2);
-- name: an int2 compared with an oid
select relname from pg_class where oid = 1259::int2;
-- name: an int2 as an oid
select 1259::int2::oid, pg_typeof(1259::int2::oid), 1249::int8::regclass::oid;
-- name: oids in an array of int2
select relname from pg_class where oid = any (array[1259, 1249]::int2[]) order by 1;
-- name: comparisons of int2 and oid
select count(*) from pg_class where 1259::int2 = oid or oid < 1259::int2;
