-- name: numbering
select name, row_number() over (order by hired, id), rank() over (order by hired), dense_rank() over (order by hired) from employees order by 2;
-- name: partitions
select department, name, salary, sum(salary) over (partition by department), count(*) over (partition by department) from employees order by department, id;
-- name: running sum with peers
select id, salary, sum(salary) over (order by salary) from employees order by salary, id;
-- name: running sum by rows
select id, salary, sum(salary) over (order by salary, id rows unbounded preceding) from employees order by salary, id;
-- name: moving average
select id, ordered, avg(items) over (order by id rows between 2 preceding and 2 following) from orders where id <= 12 order by id;
-- name: lag and lead
select id, lag(name) over w, lag(name, 2, 'none') over w, lead(salary) over w, lead(salary, 3, -1) over w from employees window w as (order by id) order by id;
-- name: first, last and nth value
select id, first_value(name) over w, last_value(name) over w, nth_value(name, 2) over w from employees window w as (partition by department order by salary desc nulls last, id rows between unbounded preceding and unbounded following) order by id;
-- name: last value with the default frame
select id, salary, last_value(id) over (order by salary) is not null from employees order by id;
-- name: ntile, percent_rank, cume_dist
select id, ntile(4) over w, percent_rank() over w, cume_dist() over w from employees window w as (order by salary nulls first, id) order by id;
-- name: window over an aggregate
select country, count(*), sum(count(*)) over (order by count(*) desc, country), rank() over (order by count(*) desc) from customers group by country order by country;
-- name: named window that is extended
select id, sum(salary) over (w order by id), sum(salary) over w from employees window w as (partition by department) order by id;
-- name: range by a number
select id, salary, count(*) over (order by salary range between 1000 preceding and 1000 following) from employees order by salary, id;
-- name: range by an interval
select id, hired, count(*) over (order by hired range between interval '2 years' preceding and current row) from employees order by hired, id;
-- name: groups
select id, salary, array_agg(id) over (order by salary groups between 1 preceding and 1 following exclude no others) is not null, count(*) over (order by salary groups between 1 preceding and 1 following) from employees order by salary, id;
-- name: exclude current row
select id, sum(id) over (order by id rows between 1 preceding and 1 following exclude current row) from departments order by id;
-- name: exclude ties
select id, salary, count(*) over (order by salary range unbounded preceding exclude ties) from employees order by salary, id;
-- name: empty frames
select id, sum(id) over (order by id rows between 3 following and 4 following), count(*) over (order by id rows between 3 following and 4 following) from departments order by id;
-- name: window with filter
select id, count(*) filter (where salary > 5000) over (partition by department) from employees order by id;
-- name: window in order by
select name from employees order by row_number() over (order by name desc) limit 4;
-- name: top of each group
select * from (select customer, id, row_number() over (partition by customer order by ordered desc, id) as n from orders where customer < 20) s where n = 1 order by customer;
-- name: deduplicate
select id, name from (select *, row_number() over (partition by lower(name) order by id) as copy from (values (1, 'A'), (2, 'a'), (3, 'b')) as v(id, name)) s where copy = 1 order by id;
-- name: difference to the previous row
select id, ordered - lag(ordered) over (order by id) as gap from orders where id <= 6 order by id;
-- name: string_agg as a window
select id, string_agg(name, '>') over (order by id rows between 1 preceding and current row) from departments order by id;
-- name: frame that starts after its end
select sum(id) over (order by id rows between current row and 1 preceding) from departments;
-- name: negative frame offset
select sum(id) over (order by id rows between -1 preceding and current row) from departments;
-- name: window in where
select id from employees where row_number() over (order by id) = 1;
