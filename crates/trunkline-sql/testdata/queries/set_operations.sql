-- name: union
select country from customers union select code from regions order by 1;
-- name: union all
select id, name from departments union all select id, name from animals order by 1, 2;
-- name: intersect
select country::text from customers intersect select code from regions order by 1;
-- name: except
select code from regions except select country from customers order by 1 nulls first;
-- name: except all and intersect all
(select k from bits_and_pieces except all select v from bits_and_pieces) union all (select k from bits_and_pieces intersect all select v from bits_and_pieces) order by 1;
-- name: precedence
select 1 union select 2 intersect select 3 order by 1;
-- name: parentheses
(select 1 union select 2) intersect (select 2 union select 3);
-- name: common types
select 1 as x union all select 2.50 union all select null union all select 3::int8 order by x;
-- name: integer and float
select 1 union all select 1.5::float8 order by 1;
-- name: unknown literals
select 'a' union select 'b' order by 1 desc;
-- name: unknown with a type
select '2024-01-01' union all select day from moments where id = 7 order by 1;
-- name: limit inside a branch
(select id from departments order by id desc limit 1) union all (select id from employees order by id limit 2) order by 1;
-- name: duplicates with nulls
select k, v from bits_and_pieces where k is null union select null, null order by 1, 2;
-- name: names come from the first
select id as first_name from departments union select salary from employees where id = 1 order by first_name;
-- name: order by an expression
select id from departments union select 9 order by id + 1;
-- name: different numbers of columns
select 1, 2 union select 3;
-- name: types that do not match
select 1 union select 'x'::text;
-- name: literal of a wrong type
select 1 union select 'x';
-- name: values as a branch
values (1, 'a'), (2, 'b') except values (2, 'b') order by 1;
-- name: enum and unknown
select status from orders where id < 5 union select 'packed' order by 1;
-- name: distinct on jsonb, json fails
select j from documents union select j from documents;
-- name: jsonb rows are distinct
select count(*) from (select b from documents where id < 6 union select '1.5'::jsonb) u;
