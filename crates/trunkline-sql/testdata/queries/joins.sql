-- name: inner join
select e.name, d.name as department from employees e join departments d on e.department = d.id order by e.id;
-- name: left join with nulls
select e.name, d.name from employees e left join departments d on e.department = d.id order by e.id;
-- name: right join
select e.name, d.name from employees e right join departments d on e.department = d.id order by d.id, e.id;
-- name: full join
select e.id, d.id from employees e full join departments d on e.department = d.id order by e.id, d.id;
-- name: full join with conditions on both sides
select a.k, a.v, b.v from bits_and_pieces a full join bits_and_pieces b on a.k = b.v order by 1, 2, 3;
-- name: cross join
select d.id, x from departments d cross join (values (1), (2)) as v(x) order by 1, 2;
-- name: join using
select department, count(*) from employees join (select id as department, budget from departments) d using (department) group by department order by department;
-- name: using merges columns
select * from (values (1, 'a'), (2, 'b')) as l(id, l) full join (values (2, 'x'), (3, 'y')) as r(id, r) using (id) order by id;
-- name: using with an alias
select j.id, l.x, r.y from (values (1, 10)) as l(id, x) join (values (1, 20)) as r(id, y) using (id) as j;
-- name: natural join
select * from (values (1, 2, 'a'), (3, 4, 'b')) as l(x, y, l) natural join (values (1, 2, 'c'), (3, 5, 'd')) as r(x, y, r);
-- name: self join
select e.name, m.name as manager, mm.name as above from employees e left join employees m on m.id = e.manager left join employees mm on mm.id = m.manager order by e.id;
-- name: three tables and an aggregate
select c.country, count(distinct o.id) as orders, sum(i.quantity) as pieces, sum(i.quantity * i.price) as amount from customers c join orders o on o.customer = c.id join order_items i on i.order_id = o.id group by c.country order by c.country;
-- name: join on an inequality
select a.id, b.id from departments a join departments b on a.id < b.id order by 1, 2;
-- name: join on an expression
select o.id, s.month from orders o join sales s on date_trunc('month', o.ordered) = s.month where o.id <= 10 order by o.id;
-- name: join of different integer types
select i.line, p.id from order_items i join products p on p.id = i.line::int8 where i.order_id = 8 order by 1;
-- name: join on numeric and integer
select n.id, p.id from numbers n join products p on n.exact = p.id order by 1, 2;
-- name: join on text and char
select t.id, u.id from texts t join texts u on t.c = u.v order by 1, 2;
-- name: anti join by left join
select c.id from customers c left join orders o on o.customer = c.id where o.id is null order by c.id;
-- name: condition of an outer join against where
select d.id, e.id from departments d left join employees e on e.department = d.id and e.salary > 7000 where d.id < 4 order by 1, 2;
-- name: nested joins with parentheses
select d.name, e.name, c.name from departments d left join (employees e join employees c on c.manager = e.id) on e.department = d.id order by d.id, e.id, c.id;
-- name: lateral subquery
select d.name, top.name, top.salary from departments d cross join lateral (select e.name, e.salary from employees e where e.department = d.id order by e.salary desc nulls last, e.id limit 2) top order by d.id, top.salary desc, top.name;
-- name: left join lateral
select d.id, x.n from departments d left join lateral (select count(*) as n from employees e where e.department = d.id having count(*) > 0) x on true order by d.id;
-- name: join that many rows pass
select count(*), sum(a.v * b.v) from bits_and_pieces a, bits_and_pieces b where a.k = b.k;
-- name: comma and join mixed
select count(*) from departments d, employees e join employees m on m.id = e.manager where d.id = e.department;
-- name: join on nothing
select count(*) from departments join employees on true;
