-- name: all columns of a small table
select * from departments order by id;
-- name: columns and arithmetic
select id, name, salary * 12 + 500 as yearly, -salary as negated from employees order by id;
-- name: where with and, or, not
select id, name from customers where (vip or credit > 10000) and not country = 'DE' order by id limit 20;
-- name: physical order
-- rows: unordered
select id, v from versions;
-- name: rows of a table without columns
-- rows: unordered
select * from no_columns;
-- name: count of a table without columns
select count(*) from no_columns;
-- name: empty table
select * from empty order by a;
-- name: table command
table departments order by name desc;
-- name: only the parent
select id, name from only animals order by id;
-- name: inheritance tree with tableoid
select tableoid::regclass, id, name from animals order by id;
-- name: quoted identifiers
select "Id", "select", "a""b" + 1 as "Sum", "Mixed Case".* from "Mixed Case" order by "Id";
-- name: qualified names
select public.departments.name, d.id from public.departments, departments d where d.id = departments.id order by 2;
-- name: alias with column list
select x, y, floor from departments as d(x, y) order by x;
-- name: whole row
select d, (d).name from departments d order by d.id;
-- name: star of one relation
select e.*, d.name from employees e join departments d on d.id = e.department where d.id = 1 order by e.id;
-- name: dropped and added columns
select * from altered order by a;
-- name: system columns
select ctid, xmin = xmax, cmin, tableoid = 'versions'::regclass as here, id from versions order by ctid;
-- name: tid comparison
select id, ctid from versions where ctid >= '(0,3)' and ctid < '(0,9)' order by ctid;
-- name: tid equality
select id from products where ctid = '(0,1)';
-- name: partitioned table, pruned
select tableoid::regclass as part, count(*), min(at), max(at) from events where at >= '2023-06-01' and at < '2024-03-01' group by 1 order by 1;
-- name: partition with columns in another order
select id, at, kind, payload from events where id between 100 and 110 order by id;
-- name: list partitions with null
select code, name, population from regions order by code nulls first;
-- name: list partition of null
select tableoid::regclass, name from regions where code is null;
-- name: hash partitions
select sensor, count(*), count(value) from readings group by sensor order by sensor;
-- name: materialized view
select * from sales order by month;
-- name: sequence as a relation
select last_value, is_called from tickets;
-- name: view
select * from active_products where price > 800 order by id;
-- name: text stored out of line
select id, length(body), md5(body), length(raw), md5(raw), octet_length(image), md5(image) from articles order by id;
-- name: part of text stored out of line
select id, left(raw, 8), substr(body, 20, 15) from articles where id in (2, 11) order by id;
-- name: schema other than public
select * from audit.customers order by id;
