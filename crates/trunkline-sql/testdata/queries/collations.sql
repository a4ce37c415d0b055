-- The database has an ICU collation, which trunkline does not compute.
-- name: order by an icu collation
-- database: intl
select id, name from names order by name, id;
-- name: order by C instead
-- database: intl
select id, name from names order by name collate "C", id;
-- name: column with C
-- database: intl
select id, bytes from names where bytes > 'Z' order by bytes, id;
-- name: equality and grouping
-- database: intl
select name, count(*) from names where name in ('anna', 'Älva', 'Straße') group by name order by min(id);
-- name: comparison by an icu collation
-- database: intl
select id from names where name < 'b' order by id;
-- name: min and max
-- database: intl
select min(name), max(name), min(bytes), max(short collate "C") from names;
-- name: upper by locale
-- database: intl
select id, upper(name), lower(name), initcap(name) from names order by id;
-- name: other types are not concerned
-- database: intl
select id, created, body from notes where created < '2024-01-10' order by created desc;
-- name: like
-- database: intl
select id from names where name like '%n%' and name ilike 'A%' order by id;
-- name: distinct
-- database: intl
select count(distinct name), count(distinct bytes) from names;
-- name: regular expression
-- database: intl
select id, name ~ '^[[:alpha:]]+$', name ~ '\w{4}' from names order by id;
-- name: two collations
-- database: intl
select name < bytes from names order by id;
