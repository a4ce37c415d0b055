-- name: output names
select 1, 'a', null, count(*), max(id), case when true then 1 end, coalesce(1, 2), nullif(1, 2), greatest(1, 2), (select 1 as inner_name), array[1], row(1), exists (select 1), 1::int8, cast('1' as numeric), current_date is null, 2 + 3, not true, name is null, array(select 1) from departments group by name order by name limit 1;
-- name: output names of other things
select d.id, (d).name, upper(name), name::text, id::text || 'x', extract(year from opened), d, (array[id])[1], interval '1 day', date '2024-01-01', -id, id between 1 and 2, id in (1, 2), trim(name), substring(name from 1 for 2), position('a' in name), overlay(name placing 'x' from 1), current_schema, true, opened at time zone 'UTC' from departments d order by d.id limit 1;
-- name: case with conditions
select id, case when salary > 8000 then 'high' when salary > 4000 then 'middle' when salary is null then null else 'low' end as level from employees order by id;
-- name: case with an operand
select id, case department when 1 then 'one' when 2 then 'two' else 'other' end from employees order by id;
-- name: case unifies types
select id, case when id = 1 then 1 when id = 2 then 2.5 else null end, case id when 1 then '2024-01-01' else opened end from departments order by id;
-- name: case protects from errors
select id, case when small <> 0 then medium / small end from numbers order by id;
-- name: coalesce
select id, coalesce(bonus, salary, 0), coalesce(manager, -1), coalesce(null, name) from employees order by id;
-- name: nullif
select id, nullif(name, 'sales'), nullif(floor, 1), nullif(1.0, 1) from departments order by id;
-- name: three-valued logic
select a, b, a and b, a or b, not a, a is true, a is not false, b is unknown, a = b, a is distinct from b from (values (true), (false), (null)) x(a), (values (true), (false), (null)) y(b) order by 1, 2;
-- name: null tests
select null is null, null = null, null is distinct from null, row(null, null) is null, row(1, null) is null, row(1, null) is not null, row(1, 2) is not null, null::size is null, 1 is not null;
-- name: in lists
select id, id in (1, 3, null), id not in (1, null), id in (2.0, 3), name in ('sales', 'archive') from departments order by id;
-- name: row comparisons
select (1, 2) < (1, 3), (1, null) = (1, 2), (1, null) < (2, 1), (1, 2) = (1, 2), row(1, 'a') <> row(1, 'b'), (1, 2) in ((1, 2), (3, 4)), (2, null) > (1, 5);
-- name: composites
select id, dimensions, (dimensions).width, (dimensions).unit is null, dimensions is null, dimensions = row(1, 2, 'in')::size from products where id <= 8 order by id;
-- name: fields of a composite
select id, (dimensions).* from products where id <= 6 order by id;
-- name: composite text
select row(1, 'a b', null, '', '"q"', 'x,y', true, 1.50), row(null), row(), '(1,2,"a ""b""")'::size;
-- name: domains
select id, minimum, minimum + 1, pg_typeof(minimum), 5::positive, 'a@b'::email from products where id <= 4 order by id;
-- name: domain check fails
select (-5)::positive;
-- name: enums
select id, status, status > 'paid', status::text, enum_first(status), enum_last(null::order_status) from orders where id <= 6 order by id;
-- name: bad enum value
select id from orders where status = 'lost';
-- name: uuid
select id, reference, reference > '80000000-0000-0000-0000-000000000000', reference::text, '{A0EEBC99-9C0B4EF8-BB6D6BB9-BD380A11}'::uuid from customers where id < 6 order by id;
-- name: bad uuid
select 'not-a-uuid'::uuid;
-- name: booleans
select 'yes'::bool, 'off'::bool, 't'::text::bool, 1::bool, 0::int::bool, true::int, true::text, true > false, bool 'f';
-- name: bad boolean
select 'maybe'::bool;
-- name: unknown literals
select '1' + 1, '2024-01-01' > date '2023-01-01', 'a' = 'a', 'x' || 'y', '5' between 1 and 10, 1 = '1', '{1}' = array[1], 'paid' = status from orders where id = 1;
-- name: literals and functions
select length('abc'), abs('-5'), upper('x'), round('2.567', 2), date_trunc('day', timestamp '2024-01-01 10:00'), coalesce('a', 'b');
-- name: cast notations
select int '5', '5'::int, cast('5' as int), int4('5'), text 'x', float8 '1.5', '1'::int::text::numeric(5,2), numeric(6,2) '3.14159';
-- name: implicit and assignment casts
select 1 = 1.0, 1::int2 = 1::int8, 'a'::text = 'a'::varchar, 1.5::real = 1.5, date '2024-01-01' = timestamp '2024-01-01', 1::oid = 1, 'a'::name = 'a';
-- name: operator precedence
select 2 + 3 * 4 ^ 2 / 8 - 1, not true = false, (1 < 2) = true, - 2 ^ 2, 2 ^ 3 ^ 2, 5 - 3 - 1, 1 + 1 || 'x', true or false and false, 1 - -1, 3 * -2, 8 >> 1 + 1;
-- name: qualified operators
select 1 operator(pg_catalog.+) 2, 'a' operator(pg_catalog.~) 'a' collate "C", 3 operator(pg_catalog.=) any (array[1, 3]);
-- name: named and default arguments
select make_interval(hours => 2, mins => 30), make_date(day => 1, month => 2, year => 2024), concat(variadic array['a', 'b']);
-- name: functions of the session
select current_user = session_user, current_schema(), current_schemas(false), current_database(), current_setting('timezone'), pg_typeof(pg_backend_pid()), version() like 'PostgreSQL %', inet_client_addr() is null;
-- name: functions of types
select pg_typeof(array[1]), pg_typeof(row(1, 2)), format_type(1043, 24), 'int4'::regtype, 'pg_class'::regclass::oid, 1259::regclass, 'abs(int)'::regprocedure, to_regclass('nowhere'), 'order_status'::regtype;
-- name: generate_series in the select list
select generate_series(1, 3), 'x', generate_series(10, 11);
-- name: series with steps
select * from generate_series(10, 1, -3) as s(n), generate_series(0.5, 2, 0.75) as d order by 1 desc, 2;
-- name: series with a zero step
select * from generate_series(1, 5, 0);
-- name: rows from
select * from rows from (generate_series(1, 3), unnest(array['a', 'b'])) with ordinality as r(n, t, o);
-- name: set-returning function with where
select x, x * x from generate_series(-2, 2) x where x <> 0 order by x;
-- name: set-returning function with an aggregate
select unnest(array_agg(id order by id)) from departments;
-- name: values with types
select * from (values (1, 'a', null), (2.5, null, true), (null, 'c', false)) as v(n, t, b) order by n;
-- name: values alone
values (1, 'one'), (2, 'two'), (3, null) order by 1 desc limit 2;
-- name: values of different lengths
values (1, 2), (3);
-- name: select without columns
select from departments;
-- name: no from with where
select 1 where false;
-- name: deep parentheses
select ((((((((((1 + ((2)) * (((3)))))))))))));
-- name: long chain
select 1 + 2 + 3 + 4 + 5 + 6 + 7 + 8 + 9 + 10 + 11 + 12 + 13 + 14 + 15 + 16 + 17 + 18 + 19 + 20 as total;
-- name: comments and whitespace
select /* a /* nested */ comment */ 1 as a, -- to the end
    2   as   b;
-- name: keywords as names
select 1 as "select", 2 as year, 3 as value, 4 as type, 5 as key, 6 "case", 7 name;
-- name: defaults of an interval
select make_interval(days => 1), make_interval(1,2,3), make_interval();
-- name: schemas of the search path
select current_schemas(true), current_schemas(false);
-- name: values that differ
select pi(), random() between 0 and 1, gen_random_uuid() is not null, length(gen_random_uuid()::text), clock_timestamp() >= now() - interval '100 years';
-- name: random numbers differ
select count(distinct random()) from generate_series(1, 100);
