-- name: all simple aggregates
select count(*), count(salary), sum(salary), avg(salary), min(salary), max(salary) from employees;
-- name: aggregates of no rows
select count(*), sum(a), avg(a), min(b), max(b), array_agg(a), string_agg(b, ',') from empty;
-- name: group by of no rows
select a, count(*) from empty group by a;
-- name: group by one column
select department, count(*), sum(salary), avg(salary) from employees group by department order by department;
-- name: group by position and alias
select extract(year from ordered) as year, status, count(*) from orders group by year, 2 order by 1, 2;
-- name: group by an expression
select length(name) % 3 as m, count(*) from customers group by length(name) % 3 order by m;
-- name: having
select customer, count(*) as n from orders group by customer having count(*) > 5 and sum(items) > 10 order by n desc, customer;
-- name: having without group by
select count(*) from employees having count(*) > 100;
-- name: group by a primary key
select d.id, d.name, d.budget, count(e.id) from departments d left join employees e on e.department = d.id group by d.id order by d.id;
-- name: filter
select count(*) filter (where vip) as vips, count(*) filter (where not vip) as others, sum(credit) filter (where credit < 0) as debts, avg(credit) filter (where false) as nothing from customers;
-- name: distinct aggregates
select count(distinct country), count(distinct city), sum(distinct k), avg(distinct k), string_agg(distinct country::text, ',' order by country::text desc) from customers cross join (values (1), (1), (2)) as v(k);
-- name: ordered aggregates
select department, array_agg(name order by salary desc nulls last, name), string_agg(name, ', ' order by hired, id) from employees group by department order by department;
-- name: array_agg of nulls and arrays
select array_agg(bonus order by id), array_agg(array[id, salary] order by id) from employees where id > 8;
-- name: string_agg with a delimiter of each row
select string_agg(name, code::text order by name) from regions;
-- name: sums of every number type
select sum(small), sum(medium), sum(large::numeric), sum(exact) filter (where id < 4), sum(fixed) filter (where id in (2, 3, 4)), sum(single) filter (where id in (6, 11, 12)), sum(double) filter (where id in (6, 11, 12)) from numbers;
-- name: types of sums
select pg_typeof(sum(small)), pg_typeof(sum(medium)), pg_typeof(sum(large)), pg_typeof(sum(single)), pg_typeof(avg(small)), pg_typeof(avg(single)), pg_typeof(sum(amount)) from numbers where id > 5;
-- name: sum beyond bigint
select sum(large), avg(large) from numbers where large > 5000000000;
-- name: averages
select avg(small), avg(medium), avg(large), avg(exact), avg(double) from numbers where id in (6, 11, 12, 10);
-- name: min and max of many types
select min(t), max(t), min(c), max(c) from texts;
-- name: min and max of dates
select min(day), max(day), min(local), max(instant), min(length), max(length), min(clock), max(zoned_clock) from moments;
-- name: min and max of enum, inet, array
select (select max(status) from orders), (select min(address) from hosts), (select max(i) from arrays), (select min(amount) from numbers);
-- name: nan and infinity in aggregates
select min(double), max(double), min(single), max(exact), min(exact) from numbers;
-- name: bool aggregates
select department, bool_and(half_day), bool_or(half_day), every(salary > 3000) from employees group by department order by department;
-- name: bit aggregates
select bit_and(small), bit_or(small), bit_and(bits), bit_or(bits) from numbers;
-- name: statistics of integers
select variance(salary), stddev(salary), var_pop(salary), stddev_pop(salary), var_samp(salary), stddev_samp(salary) from employees;
-- name: statistics of floats and numerics
select round(variance(weight)::numeric, 4), round(stddev_pop(rating)::numeric, 6), variance(price) from products where rating <> 'NaN';
-- name: statistics of one row
select variance(salary), var_pop(salary), stddev(salary) from employees where id = 1;
-- name: regression
select regr_count(rating, weight), round(corr(rating, weight)::numeric, 8), round(regr_slope(rating, weight)::numeric, 8), round(covar_pop(rating, weight)::numeric, 6) from products where rating <> 'NaN';
-- name: percentiles
select percentile_cont(0.5) within group (order by salary), percentile_disc(0.5) within group (order by salary), percentile_disc(array[0.1, 0.9]) within group (order by salary) from employees;
-- name: mode
select mode() within group (order by department), mode() within group (order by salary desc) from employees;
-- name: hypothetical rank
select rank(5000) within group (order by salary), dense_rank(5000) within group (order by salary), percent_rank(5000) within group (order by salary) from employees where salary is not null;
-- name: json aggregates
select jsonb_agg(name order by id), json_agg(budget order by id), jsonb_object_agg(name, floor order by id), json_object_agg(id, name order by id) from departments;
-- name: aggregate of an aggregate's subquery
select avg(n), max(n) from (select count(*) as n from orders group by customer) s;
-- name: group by null
select half_day, count(*) from employees group by half_day order by half_day nulls first;
-- name: group by char and varchar
select c, count(*) from texts group by c order by c limit 5;
-- name: group by numeric scale
select cost, count(*) from (values (1.0), (1.00), (1), (2.50), (2.5)) as v(cost) group by cost order by cost;
-- name: group by float zero and nan
select double, count(*) from (values ('-0'::float8), (0), ('NaN'), ('NaN'), (null), (null)) as v(double) group by double order by double;
-- name: group by an array and a composite
select tags, count(*) from customers group by tags order by tags nulls first;
-- name: grouping sets
select country, vip, count(*), grouping(country, vip) from customers group by grouping sets ((country, vip), (country), ()) order by 1 nulls last, 2 nulls last, 4, 3;
-- name: rollup
select department, half_day, sum(salary) from employees group by rollup (department, half_day) order by 1 nulls last, 2 nulls last, 3;
-- name: cube
select status, items, count(*) from orders group by cube (status, items) order by 1 nulls last, 2 nulls last, 3;
-- name: count of rows and of composites
select count(d), count((d.budget, d.floor)), count(d.*) from departments d;
-- name: range aggregates
select range_agg(sold) filter (where id < 12), range_intersect_agg(sold) filter (where id in (2, 7)) from products;
-- name: grouping of a plain group
select department, grouping(department), count(*) from employees group by department order by 1 nulls first;
-- name: grouping of a cube
select grouping(status, items), grouping(items), grouping(items, status), status, items, count(*) from orders group by cube (status, items) order by 1, 4, 5, 6;
-- name: grouping in another order than the sets
select grouping(a), grouping(b), grouping(c), a, b, c, count(*) from (values (1, 2, 3), (1, 2, 4)) v(a, b, c) group by grouping sets ((c), (b, a), (a, c), ()) order by 1, 2, 3, 4, 5, 6;
-- name: grouping of sets that are the same
select grouping(a), a, count(*) from (values (1), (2)) v(a) group by grouping sets ((a), (a), (), ()) order by 1, 2, 3;
-- name: grouping in having and order by
select department, half_day, count(*) from employees group by rollup (department, half_day) having grouping(half_day) = 1 order by grouping(department), 1, 2, 3;
-- name: grouping of an expression
select id % 2, grouping(id % 2), sum(id) from departments group by rollup (id % 2) order by 2, 1;
-- name: grouping in a case and a window
select case grouping(department) when 1 then 'all' else department::text end d, rank() over (partition by grouping(department) order by count(*) desc) from employees group by rollup (department) order by 2, 1;
-- name: grouping of another column
select grouping(id) from employees group by department;
-- name: grouping without groups
select grouping(id) from employees;
-- name: grouping in where
select id from employees where grouping(id) = 0 group by id;
-- name: grouping of too many columns
select grouping(id, id, id, id, id, id, id, id, id, id, id, id, id, id, id, id, id, id, id, id, id, id, id, id, id, id, id, id, id, id, id, id) from departments group by id;
-- name: percentiles by group
select department, percentile_cont(0.25) within group (order by salary), percentile_cont(0.25) within group (order by salary desc), percentile_disc(0.75) within group (order by name desc), percentile_cont(array[0, 0.5, null, 1]) within group (order by salary), percentile_disc(array[[0, 0.5], [null, 1]]) within group (order by salary) from employees group by department order by department;
-- name: percentiles of intervals
select percentile_cont(0.3) within group (order by hired - date '2000-01-01' + interval '1 hour'), percentile_cont(array[0.1, 0.9]) within group (order by hired - date '2000-01-01' + interval '1 hour'), percentile_disc(0.3) within group (order by hired) from employees;
-- name: percentiles of nothing
select percentile_cont(0.5) within group (order by salary), percentile_disc(0.5) within group (order by name), percentile_cont(null) within group (order by salary), mode() within group (order by id), percentile_disc(array[0.5]) within group (order by id) from employees where false;
-- name: percentiles with a filter
select percentile_disc(0.5) within group (order by salary) filter (where department = 1), percentile_cont(null) within group (order by salary), percentile_disc('{}'::float8[]) within group (order by salary) from employees;
-- name: percentile beyond one
select percentile_cont(1.5) within group (order by salary) from employees;
-- name: percentile below zero
select percentile_disc(array[0.5, -0.1]) within group (order by salary) from employees;
-- name: mode of equal values
select mode() within group (order by x), mode() within group (order by x desc) from (values (2.0), (1.50), (1.5), (2.00), (null), (null), (null)) v(x);
-- name: mode of many types
select mode() within group (order by status), mode() within group (order by ordered::date), mode() within group (order by comment) is not null from orders;
-- name: min and max of enums and arrays by group
select customer % 3 as g, min(status), max(status), min(array[items, id % 7]), max(array[items, id % 7]) from orders group by customer % 3 order by 1;
-- name: max of enums as a window
select id, max(status) over (order by id) from orders where id < 8 order by id;
-- name: hypothetical ranks
select rank(5000) within group (order by salary), dense_rank(7000) within group (order by salary desc), percent_rank(7000) within group (order by salary), cume_dist(7000) within group (order by salary) from employees;
-- name: hypothetical ranks of nulls
select rank(null) within group (order by salary), rank(null) within group (order by salary nulls first), rank(1, 'x') within group (order by department, name), dense_rank(null::int) within group (order by salary nulls first), dense_rank(1) within group (order by salary nulls first) from employees;
-- name: hypothetical ranks by group
select department, rank(5000) within group (order by salary), cume_dist(5000.5) within group (order by salary desc) from employees group by department order by 1;
-- name: hypothetical ranks of no rows
select rank(5) within group (order by salary) filter (where department = 1), percent_rank(3) within group (order by salary) filter (where false), cume_dist(3) within group (order by salary) filter (where false) from employees;
-- name: hypothetical ranks with too few arguments
select rank(1) within group (order by salary, name) from employees;
-- name: hypothetical ranks of another type
select rank(5) within group (order by name) from employees;
-- name: a hypothetical rank of an aggregate
select rank(sum(salary)) within group (order by salary) from employees;
-- name: types of hypothetical ranks
select pg_typeof(rank(3) within group (order by salary)), pg_typeof(cume_dist(3) within group (order by salary)) from employees;
-- name: grouping sets of numerics
select fixed, small, count(*), grouping(fixed, small) from numbers where id in (1, 4, 6, 7) group by grouping sets ((fixed), (small), (fixed, small), ()) order by 4, 1, 2;
-- name: rollup of texts with equal values
select bonus, count(*), grouping(bonus) from employees group by rollup (bonus) order by 3, 1;
-- name: an aggregate with one of an outer query inside
select d, (select sum(x + max(e.d)) from (values (1), (2)) v(x)) from (values (1), (2), (2)) e(d) group by d order by d;
-- name: an aggregate of an outer query inside of it in a filter
select (select count(*) filter (where x < max(e.d)) from (values (1), (2)) v(x)) from (values (1), (2), (2)) e(d);
-- name: an aggregate of an outer query inside of it in an order
select (select string_agg(x::text, ',' order by x * max(e.d)) from (values (2), (1)) v(x)) from (values (1), (2)) e(d);
-- name: an aggregate of an outer query two levels out
select (select (select sum(x + max(e.d))) from (values (1), (2)) v(x)) from (values (1), (2)) e(d);
-- name: an aggregate inside one of the same outer query
select (select sum(max(e.d)) from (values (1), (2)) v(x)) from (values (1), (2)) e(d);
-- name: an aggregate inside one of the same outer query without rows of its own
select (select sum(max(e.d))) from (values (1), (2)) e(d);
-- name: an aggregate inside one of the same outer query, three levels
select (select (select sum(max(e.d)) from (values (1)) w(y)) from (values (1), (2)) v(x)) from (values (1), (2)) e(d);
-- name: an aggregate of both levels with one inside
select (select sum(e.d + max(x)) from (values (1), (2)) v(x)) from (values (1), (2)) e(d);
-- name: an aggregate of a subquery with one inside
select sum((select max(d))) from (values (1), (2)) e(d);
-- name: an aggregate of a subquery with one of both levels inside
select sum((select max(d + x) from (values (1), (2)) v(x))) from (values (1), (2)) e(d);
-- name: nested outer aggregates in having
select d from (values (1), (2)) e(d) group by d having (select sum(max(e.d)) from (values (1), (2)) v(x)) > 2;
-- name: nested outer aggregates in where
select d from (values (1), (2)) e(d) where (select sum(max(e.d)) from (values (1), (2)) v(x)) > 2;
-- name: outer aggregate inside a window function
select (select sum(x) over (order by max(e.d)) from (values (1), (2)) v(x) limit 1) from (values (1), (2)) e(d);
-- name: outer aggregate as an argument of an ordered-set aggregate
select (select percentile_cont(0.5) within group (order by x + max(e.d)) from (values (1), (2)) v(x)) from (values (1), (2)) e(d);
