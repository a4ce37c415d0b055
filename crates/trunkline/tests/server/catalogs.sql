-- Objects of every kind that a server of any version makes without extensions. The tests read the
-- rows that they leave in the catalogs.
create role alice login password 'secret' valid until '2030-01-01';
create role "Bob's role" in role alice connection limit 3;
create schema app authorization alice;
create schema "Odd ""schema""";
create type app.mood as enum ('sad', 'ok', 'happy');
alter type app.mood add value 'glum' before 'ok';
create domain app.positive as numeric(10, 2) default 1 check (value > 0);
create type app.pair as (first bigint, second text collate "C");
create type app.span as range (subtype = float8, subtype_diff = float8mi);
create table app.item (
    id bigint generated always as identity primary key,
    name text not null default 'none',
    price app.positive,
    mood app.mood default 'ok',
    tags text[],
    pair app.pair,
    total numeric generated always as (price * 2) stored,
    created timestamptz default now(),
    constraint item_name unique (name, price) include (mood),
    constraint item_tags check (cardinality(tags) < 10)
);
insert into app.item (name, price, tags, pair)
select 'item ' || i, i, array['a', repeat('b', i % 7)], row(i, 'x'::text)::app.pair from generate_series(1, 300) i;
alter table app.item add column late int default 42;
alter table app.item add column text_late text default 'added later, long enough to have a header';
alter table app.item add column moods app.mood[] default '{sad,happy}';
alter table app.item drop column tags;
create index item_expression on app.item (lower(name) desc nulls last) where price > 10;
create table app.child () inherits (app.item);
create table app.parts (k int, v text) partition by range (k);
create table app.parts_low partition of app.parts for values from (minvalue) to (10);
create table app.parts_high partition of app.parts default partition by list (v);
create table app.parts_high_a partition of app.parts_high for values in ('a', null);
create index on app.parts (k);
create table app.reference (item bigint references app.item on delete cascade, at point,
    exclude using gist (at with ~=));
create unlogged table app.unlogged (a int) with (fillfactor = 50, autovacuum_enabled = off);
create materialized view app.dear as select name, price from app.item where price > 100;
create view app.cheap with (security_barrier) as select * from app.item where price < 10;
create rule nothing as on insert to app.cheap do instead nothing;
create sequence app.counter as smallint increment -3 maxvalue 100 minvalue -100 cycle cache 5;
create function app.double(a int) returns int language sql immutable as 'select a * 2';
create function app.double(a text, variadic b int[] default '{1}') returns text
    language plpgsql as $$ begin return a || a; end $$;
create function app.abs(a app.positive) returns numeric language sql as 'select abs(a::numeric)';
create procedure app.work(inout a int, b refcursor) language plpgsql set work_mem = '1MB'
    as $$ begin a := a + 1; end $$;
create function app.fire() returns trigger language plpgsql as $$ begin return new; end $$;
create function app.event() returns event_trigger language plpgsql as $$ begin end $$;
create aggregate app.total (int) (sfunc = int4pl, stype = int, initcond = '0');
create operator app.### (leftarg = int, rightarg = int, function = int4pl, commutator = ###);
create operator family app.family using btree;
create operator class app.backwards for type int using btree family app.family as
    operator 1 >, operator 2 >=, operator 3 =, operator 4 <=, operator 5 <, function 1 btint4cmp(int, int);
create cast (app.pair as text) with inout as assignment;
create collation app.bytes (provider = libc, locale = 'C');
create conversion app.conversion for 'LATIN1' to 'UTF8' from iso8859_1_to_utf8;
create text search dictionary app.dictionary (template = simple, accept = false);
create text search configuration app.config (copy = english);
alter text search configuration app.config alter mapping for word with app.dictionary, simple;
create trigger fire before update of name, price on app.item for each row
    when (old.name is distinct from new.name) execute function app.fire('x', 'y');
create event trigger event on ddl_command_end when tag in ('CREATE TABLE') execute function app.event();
create statistics app.together (dependencies, ndistinct, mcv) on name, price, (price * 2) from app.item;
create policy mine on app.item for select to alice using (price > 0);
alter table app.item enable row level security;
create publication everything for table app.item (id, name) where (id > 5) with (publish = 'insert');
create publication app_schema for tables in schema app with (publish = 'insert');
create foreign data wrapper wrapper options (debug 'true');
create server remote type 'x' version '1' foreign data wrapper wrapper options (host 'nowhere');
create user mapping for alice server remote options (password 'hidden');
create foreign table app.far (a int options (name 'b'), b text) server remote options (x 'y');
create tablespace inside location '';
create table app.elsewhere (a int primary key using index tablespace inside, b text) tablespace inside;
grant select (id, name), update on app.item to "Bob's role" with grant option;
grant usage on schema app to public;
grant all on type app.mood to alice;
grant execute on function app.double(int) to alice;
grant create, temporary on database objects to alice;
alter default privileges for role alice in schema app grant select on tables to public;
revoke all on function app.abs(app.positive) from public;
alter role alice set search_path = app, public;
alter database objects set statement_timeout = '1h';
alter role alice in database objects set work_mem = '8MB';
comment on table app.item is 'an item';
comment on column app.item.name is 'its name';
comment on database objects is 'objects';
comment on role alice is 'a role';
select lo_from_bytea(4711, decode(repeat('00ff10', 2000), 'hex'));
comment on large object 4711 is 'large';
alter table app.item alter column name set storage external, alter column name set statistics 500;
alter table app.item alter column price set (n_distinct = -0.5);
cluster app.item using item_pkey;
delete from app.item where id % 10 = 0;
vacuum analyze;
vacuum full pg_class, pg_attribute, pg_type, pg_proc;
create table "Odd ""schema""".after_the_vacuum (a int);
begin;
create table app.never (a int);
rollback;
begin;
savepoint one;
create type app.never as enum ('a');
rollback to one;
create type app.kept as enum ('a', 'b');
commit;
drop table "Odd ""schema""".after_the_vacuum;
