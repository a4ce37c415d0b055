-- name: row of a table
select d from departments d order by id limit 2;
-- name: counts of rows
select count(d), count(d.*), count(*) from departments d;
-- name: row of the nullable side of a join
select e.id, d from employees e left join departments d on d.id = e.department order by e.id limit 5;
-- name: row of a query on the nullable side
select e.id, s from employees e left join (select id, name from departments where id < 3) s on s.id = e.department order by e.id limit 6;
-- name: row to json
select row_to_json(d) from departments d order by id limit 2;
-- name: row of a query to json
select row_to_json(s) from (select id, name from departments order by id limit 2) s;
-- name: rows with other names to json
select row_to_json(row(1,'a',null,true,array[row(1,2)])), row_to_json(row(1,2), true);
-- name: lateral row to json
select e.id, row_to_json(s) from employees e left join lateral (select d.id, d.name from departments d where d.id = e.department and d.id > 1) s on true order by e.id limit 6;
-- name: rows aggregated to json
select json_agg(s), jsonb_agg(s) from (select id, name from departments order by id limit 2) s;
-- name: values aggregated to json
select json_agg(id order by id desc), json_object_agg(id, name order by id), jsonb_object_agg(id, name) from departments;
-- name: nothing aggregated to json
select json_agg(x), jsonb_agg(x), json_object_agg(x,x) from (select 1 as x where false) s;
-- name: nulls aggregated to json
select json_agg(x) from (values (1),(null),(3)) v(x);
-- name: null key of an object
select json_object_agg(k, 1) from (values ('a'),(null)) v(k);
-- name: null key of a binary object
select jsonb_object_agg(k, 1) from (values ('a'),(null)) v(k);
-- name: unique keys
select json_object_agg_unique(k, 1) from (values ('a'),('a')) v(k);
-- name: unique keys of a binary object
select jsonb_object_agg_unique(k, 1) from (values ('a'),('a')) v(k);
-- name: json without nulls
select json_agg_strict(x) from (values (1),(null),(3)) v(x);
-- name: groups of rows as json
select e.department, json_agg(e) from employees e group by 1 order by 1 limit 2;
-- name: types of rows
select pg_typeof(1), pg_typeof('a'), pg_typeof(null), pg_typeof(row(1)), pg_typeof(d), pg_typeof(array[1]) from departments d limit 1;
-- name: rows as values compared
select row(1,2) = row(1,2), (row(1,2)) is distinct from row(1,null), d = d from departments d limit 1;
-- name: field of a row without a type
select (s.r).f1, (s.r).* from (select row(1,'x') as r) s;
-- name: unknown field of a row
select (s.r).f3 from (select row(1,'x') as r) s;
-- name: null tests of rows
select s.r is null, s.r is not null from (values (row(1,null)),(row(null,null)),(null)) s(r);
-- name: distinct rows
select distinct s.r from (values (row(1,null)),(row(1,null)),(row(2,1))) s(r) order by 1;
-- name: text of rows
select row(1,2)::text, row(1,2)::text::text, array[row(1,2), row(3,4)];
-- name: rows of other lengths
select row(1,2) = row(1,2,3);
-- name: row with an unknown field compared
select r = row(1,'a') from (values (row(1,2))) v(r);
-- name: rows of other types compared
select r = row(1,'a'::text) from (values (row(1,2))) v(r);
-- name: rows without an order
select r < row('{}'::json) from (values (row('{"a":1}'::json))) v(r);
-- name: row and a query
select (1,2) = (select 1,2), (1,2) < (select 1,3), (1,2) = (select 1,2 where false);
-- name: row and a query of one column
select (1,2) = (select 1);
-- name: row and a correlated query
select id, (id, name) = (select e.department, d.name from employees e where e.department = d.id limit 1) from departments d order by id;
-- name: row of a right join
select d from employees e right join departments d on d.id = e.department where e.id is null;
-- name: rows of a full join
select e, d from employees e full join departments d on d.id = e.department where e.id is null or d.id is null order by 1, 2;
-- name: counts of missing rows
select count(d), count(s) from employees e left join departments d on false left join (select 1 as a) s on e.id = 1;
-- name: row of a scalar function
select f from generate_series(1,2) f;
-- name: row of a function
select f from jsonb_each('{"a":1}') f;
-- name: cast of all columns
select t.*::text from (select 1 as a, 2 as b) t;
-- name: row to jsonb
select to_json(t), to_jsonb(t) from (select now() is null as a, '2020-01-01'::date as b, '{1,2}'::int[] as c) t;
-- name: rows in built json
select json_build_object('a', t, 'b', array[t]) from (select 1 as x) t;
-- name: array of rows
select array_agg(t) from (select id, name from departments order by id limit 2) t;
-- name: row with composites
select p from products p order by id limit 2;
-- name: coalesce of rows
select coalesce(t, null) from (select 1 as x) t;
-- name: case of rows
select case when x > 1 then t end from (select 1 as x union select 2) t order by x;
-- name: order by a row
select d from departments d order by d desc limit 2;
-- name: group by a row
select d, count(*) from departments d group by d order by d limit 2;
-- name: row of a grouped table
select d.id, count(*), d from departments d group by d.id order by d.id limit 2;
-- name: composite compared with a row
select t from products t where t.dimensions = row(1, 2, 'in')::size;
-- name: join of rows
select a.r, b.r from (values (row(1,2)), (row(3,4))) a(r) join (values (row(1,2))) b(r) on a.r = b.r;
-- name: arrays and rows in lines
select array_to_json(array[[1,2],[3,4]], true), array_to_json(array[row(1,2)], true);
-- name: arrays aggregated to json
select json_agg(array[1,x]) from generate_series(1,3) x;
