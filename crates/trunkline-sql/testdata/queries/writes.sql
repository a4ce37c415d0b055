-- Statements that change something. The server that answers has default_transaction_read_only set.
-- name: insert
insert into departments values (9, 'new');
-- name: insert from a select, returning
insert into empty select id, name from departments returning a;
-- name: update
update employees set salary = salary + 1 where id = 1;
-- name: delete
delete from orders using customers where customer = customers.id;
-- name: merge
merge into empty e using departments d on e.a = d.id when not matched then insert values (d.id, d.name);
-- name: truncate
truncate empty;
-- name: create table
create table copy_of as select * from departments;
-- name: create view
create view v as select 1;
-- name: drop
drop table departments;
-- name: alter
alter table departments add column x int;
-- name: select into
select * into copy_of from departments;
-- name: for update
select id from departments for update;
-- name: for share of a name that is missing
select id from departments d for share of departments;
-- name: nextval
select nextval('tickets');
-- name: setval
select setval('tickets', 1);
-- name: comment
comment on table departments is 'none';
-- name: refresh
refresh materialized view sales;
-- name: grant
grant select on departments to public;
-- name: vacuum of a table that is missing
vacuum nothing;
-- name: modifying cte
with gone as (delete from empty returning *) select count(*) from gone;
-- name: errors come before the refusal
insert into departments values ('x');
