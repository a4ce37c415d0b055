-- name: nulls last ascending
select id, bonus from employees order by bonus, id;
-- name: nulls first descending
select id, bonus from employees order by bonus desc, id;
-- name: nulls first and last given
select id, salary, manager from employees order by manager nulls first, salary desc nulls last, id;
-- name: floats with nan and zeros
select id, double from numbers order by double desc nulls last, id;
-- name: numerics with nan and infinity
select id, exact from numbers order by exact, id;
-- name: texts bytewise
select id, t from texts order by t;
-- name: blank-padded texts
select id, c from texts order by c, id;
-- name: dates with infinity
select id, day from moments order by day desc nulls last, id;
-- name: intervals
select id, length from moments order by length, id;
-- name: times with zones
select id, zoned_clock from moments order by zoned_clock, id;
-- name: enum order
select distinct status from orders order by status;
-- name: booleans
select id, vip from customers where id < 12 order by vip desc nulls last, id;
-- name: arrays
select id, i from arrays order by i, id;
-- name: jsonb
select id, b from documents order by b, id;
-- name: networks
select id, address from hosts order by address, id;
-- name: ranges
select id, slots from moments order by slots, id;
-- name: composites
select id, dimensions from products where id <= 12 order by dimensions, id;
-- name: uuid
select id from customers where id < 12 order by reference desc nulls last, id;
-- name: by position, alias and expression
select id, salary as pay from employees order by 2 desc nulls last, salary + 1, id;
-- name: alias hides a column
select id, -id as manager from employees order by manager limit 3;
-- name: expression uses the column
select id, -id as manager from employees order by manager + 0 nulls first, id limit 3;
-- name: column that is not selected
select name from employees order by hired desc, id limit 5;
-- name: limit and offset
select id from products order by id limit 5 offset 110;
-- name: fetch first
select id from products order by price desc, id fetch first 3 rows only;
-- name: fetch with ties
select id, salary from employees order by salary desc nulls last offset 3 rows fetch next 1 rows with ties;
-- name: limit null and all
select count(*) from (select 1 from products limit null) a, (select 1 from departments limit all) b;
-- name: limit zero
select id, name from products limit 0;
-- name: negative limit
select id from products limit -1;
-- name: distinct
select distinct country, vip from customers order by country, vip;
-- name: distinct on
select distinct on (department) department, name, salary from employees order by department, salary desc nulls last, id;
-- name: distinct on an expression
select distinct on (length(name) % 3) length(name) % 3 as m, name from departments order by 1, name;
-- name: distinct on does not match
select distinct on (department) name from employees order by name;
-- name: distinct with another order
select distinct name from employees order by salary;
-- name: order using an operator
select id from departments order by id using >;
-- name: collate
select id, t from texts order by t collate "POSIX" desc nulls last;
-- name: position out of range
select id from departments order by 2;
-- name: order using operators
select name, salary from employees order by department using <, salary using > nulls last, name using operator(pg_catalog.<);
-- name: order using in an aggregate and a window
select array_agg(id order by id using >), string_agg(name, ',' order by name using <) from departments;
-- name: order using an operator of another type
select id from departments order by id using ~<~;
-- name: order using an operator that does not order
select id from departments order by id using <=;
-- name: order using an operator that does not compare
select id from departments order by id using +;
