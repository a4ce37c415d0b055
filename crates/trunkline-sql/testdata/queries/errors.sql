-- name: 42601 syntax error
select 1 form departments where;
-- name: 42601 at the end
select * from;
-- name: 42601 unterminated string
select 'abc;
-- name: 42601 unterminated comment
select 1 /* comment;
-- name: 42601 comparison is not associative
select 1 < 2 = true;
-- name: 42601 strings beside each other
select 'a' 'b';
-- name: 42601 trailing junk
select 12abc;
-- name: 42601 position after a multibyte character
select 'é' || 'ü' from departments were 1;
-- name: 42P01 table
select * from department;
-- name: 42P01 schema
select * from nowhere.departments;
-- name: 42P01 alias hides the table
select departments.id from departments d;
-- name: 42P01 missing from entry
select e.id from departments d;
-- name: 42P01 lateral reference missing
select * from departments d, (select d.id) s;
-- name: 42703 column
select nam from departments;
-- name: 42703 qualified column
select d.nam from departments d;
-- name: 42703 output name in where
select salary * 2 as twice from employees where twice > 10;
-- name: 42703 using
select * from departments join employees using (floor);
-- name: 42702 ambiguous
select id from departments, employees;
-- name: 42702 ambiguous in using
select * from departments d join employees e using (id) join animals a using (name);
-- name: 42712 alias twice
select * from departments d, employees d;
-- name: 42883 function
select nofunction(1, 'a');
-- name: 42883 function of other arguments
select length(5);
-- name: 42883 operator
select 1 + true;
-- name: 42883 operator of text and integer
select name = 5 from departments;
-- name: 42883 no equality
select j = j from documents;
-- name: 42725 operator not unique
select '1' + '2';
-- name: 42725 function not unique
select generate_series('1', '3');
-- name: 42804 types of case
select case when true then 1 else 'a'::text end;
-- name: 42804 where is not boolean
select * from departments where id;
-- name: 42804 coalesce
select coalesce(1, true);
-- name: 42809 any without an array
select 1 = any (5);
-- name: 42846 cannot cast
select date '2024-01-01'::int;
-- name: 42846 row with too few columns
select row(1, 2)::size;
-- name: 42803 not grouped
select name, count(*) from employees group by department;
-- name: 42803 aggregate in where
select id from employees where count(*) > 1;
-- name: 42803 nested aggregates
select sum(count(*)) from employees;
-- name: 42803 aggregate in group by
select count(*) from employees group by count(*);
-- name: 42803 subquery uses an ungrouped column
select department, (select max(salary) from employees e where e.name = employees.name) from employees group by department;
-- name: 42809 not an aggregate
select upper(distinct name) from departments;
-- name: 42809 not a window function
select upper(name) over () from departments;
-- name: 42809 window function without over
select row_number() from departments;
-- name: 42P10 order by position
select id from departments order by 3;
-- name: 42P10 group by position
select id from departments group by 2;
-- name: 42704 type
select 1::nothing;
-- name: 42704 collation
select 'a' collate "xx_XX";
-- name: 42P01 regclass
select 'nowhere'::regclass;
-- name: 42P18 indeterminate
select array[null, null] = array[];
-- name: 42P02 parameter
select $1 + 1;
-- name: 42P21 collations
select 'a' collate "C" < 'b' collate "POSIX";
-- name: 42P22 no collation
select x < y from (select t collate "C" as x, t collate "POSIX" as y from texts) s;
-- name: 22P02 in a comparison with a column
select id from departments where id = 'one';
-- name: 22P02 of a stored text
select v::int from texts order by id;
-- name: 22003 literal
select 99999999999::int;
-- name: 22007 timestamp
select 'yesterdayish'::timestamp;
-- name: 22008 field
select '25:00:00'::time;
-- name: 22012 at run time
select id, 100 / (id - 2) from departments order by id;
-- name: 22023 parameter value
select generate_series(1, 2, 0);
-- name: 2201W negative limit
select 1 limit -5;
-- name: 2201X negative offset
select 1 offset -5;
-- name: 21000 more than one row
select * from employees where department = (select id from departments);
-- name: 22026 bit strings
select b'101'::bit(3) & b'11'::bit(2);
-- name: 22004 null dimensions
select array_fill(1, null);
-- name: 2202E dimensions
select array[1] || array[[[1]]];
-- name: 0A000 set-returning function in where
select 1 where generate_series(1, 2) = 1;
-- name: 0A000 cross-database
select * from other.public.departments;
-- name: 0A000 for update of a group
select count(*) from employees group by department for update;
-- name: 42P10 too many aliases
select 1 from (select 1) s(a, b);
-- name: 3F000 schema in a cast
select 1::nowhere.thing;
-- name: 42P19 recursion in a subquery
with recursive t(n) as (select 1 union all select n + 1 from t where n in (select n from t)) select * from t;
-- name: 42P10 lateral right join
select * from departments d right join lateral (select d.id) s on true;
-- name: position beyond several lines
select id,
  name,
  "missing"
from departments;
-- name: 42P01 system view that no version has
select * from pg_stat_nothing;
-- name: 42703 system column of a subquery
select ctid from (select 1 as a) s;
-- name: 42883 ordered-set aggregate without within group
select percentile_cont(0.5) from employees;
-- name: 42704 window of a name that is missing
select sum(id) over w from departments;
-- name: 42P20 nested windows
select sum(row_number() over ()) over () from departments;
-- name: 42803 filter holds an aggregate
select count(*) filter (where max(id) > 1) from departments;
-- name: 42883 aggregate of a type
select sum(name) from departments;
-- name: 3F000 schema of a function
select foo.bar(1);
-- name: 42883 ordering operator
select id from departments order by id using ~~~;
-- name: 42601 star in an expression
select 1 + * from departments;
-- name: 42601 empty in
select 1 in ();
-- name: 22P02 limit
select 1 limit 'x';
-- name: 42P10 limit of a column
select id from departments limit id;
-- name: 22P02 bit string
select 'abcdef'::varchar(2), '12345'::bit(3);
-- name: 22P02 enum in a list
select id from orders where status in ('new', 'old');
-- name: 22P02 boolean of a column
select v::bool from texts where id = 1;
-- name: 22003 product of a cast sum
select sum(salary)::int * 100000 from employees;
-- name: 22007 interval
select interval '1 fortnightly';
-- name: 22023 unknown encoding
select encode('abc', 'rot13');
