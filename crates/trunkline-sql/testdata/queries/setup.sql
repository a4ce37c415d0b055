-- The databases that the queries in this directory ask. Every value is computed from constants, so
-- two runs on the same server store the same rows in the same order. Run this with psql as a
-- superuser of a new cluster.
--
-- The other files hold queries by area. A query begins with its name and ends before the next name:
--
--     -- name: order by an icu collation
--     -- database: intl            (shop if there is no such line)
--     -- rows: unordered           (ordered if there is no such line)
--     select ...;
--
-- The text after these lines, without the last line break, is what the client sends.

create database shop template template0 encoding 'UTF8' lc_collate 'C' lc_ctype 'C';
-- The ICU collation is one that trunkline cannot compute, so ordering by it is refused.
create database intl template template0 encoding 'UTF8' lc_collate 'C.UTF-8' lc_ctype 'C.UTF-8'
    locale_provider icu icu_locale 'de-DE';

\connect shop

-- The digest of seed and i as a number from 0 to n - 1.
create function pick(seed text, i int, n int) returns int language sql immutable
    return (('x' || substr(md5(seed || i), 1, 7))::bit(28)::int % n);

create type order_status as enum ('new', 'paid', 'shipped', 'returned');
alter type order_status add value 'packed' before 'shipped';
create type size as (width int, height int, unit text);
create domain positive as int check (value > 0);
create domain email as text check (value like '%@%');

create table departments (
    id int primary key, name text not null unique, budget numeric(12,2), opened date, floor int2);
insert into departments values
    (1, 'sales', 120000.50, '2001-03-01', 1), (2, 'engineering', 999999.99, '1999-12-31', 3),
    (3, 'support', null, '2010-06-15', null), (4, 'archive', 0, null, -2);

create table employees (
    id int primary key, name text not null, manager int references employees,
    department int references departments, salary int, bonus numeric, hired date not null,
    half_day bool);
insert into employees values
    (1, 'Ada', null, 2, 15000, 1000.00, '2000-01-03', false),
    (2, 'Bela', 1, 2, 9000, null, '2002-02-28', false),
    (3, 'Chloë', 1, 1, 8000, 250.5, '2004-02-29', true),
    (4, 'Dario', 2, 2, 7000, 0, '2004-02-29', null),
    (5, 'Emil', 2, 2, 7000, 10.0, '2010-10-10', false),
    (6, 'Freya', 3, 1, 5200, 10.00, '2011-11-11', true),
    (7, 'Gus', 3, 1, 4100, null, '2012-12-12', false),
    (8, 'Hana', 3, 1, 4100, 99.999, '2013-01-31', true),
    (9, 'Ivo', 5, 2, 6100, 5, '2016-02-29', null),
    (10, 'Jun', 5, 2, null, 5, '2019-07-01', false),
    (11, 'Kaï', null, null, 3000, 1, '2020-03-31', false),
    (12, 'O''Neil', 11, 3, 2900, null, '2023-12-31', true);

create table customers (
    id int primary key, name text not null, email email, city varchar(20), country char(2),
    born date, vip bool, credit numeric(10,2), joined timestamptz not null, tags text[],
    profile jsonb, reference uuid, address inet, referrer int references customers);
insert into customers
select i, initcap(substr(translate(md5('n' || i), '0123456789', 'aeioulnrst'), 1, 3 + i % 7)),
    case when i % 9 <> 0 then substr(md5('m' || i), 1, 6) || '@example.' || (array['com', 'org', 'net'])[1 + i % 3] end,
    (array['Berlin', 'Paris', 'København', 'Łódź', 'San José', null])[1 + pick('city', i, 6)],
    (array['DE', 'FR', 'DK', 'PL', 'CR', 'X'])[1 + pick('city', i, 6)],
    case when i % 11 <> 0 then date '1940-01-01' + pick('born', i, 25000) end,
    case when i % 5 <> 0 then i % 4 = 0 end,
    case when i % 7 <> 0 then (pick('credit', i, 2000000) - 500000) / 100.0 end,
    timestamptz '2015-01-01 00:00:00+00' + pick('joined', i, 300000000) * interval '1 second',
    case i % 6 when 0 then null when 1 then '{}' when 2 then array['new'] when 3 then array['b2b', 'net 30']
        when 4 then array['b2c', null, 'a,b'] else array['loyal', 'b2b', 'loyal'] end,
    case i % 5 when 0 then null
        when 1 then jsonb_build_object('lang', (array['de', 'fr', 'en'])[1 + i % 3], 'visits', pick('v', i, 50))
        when 2 then jsonb_build_object('lang', 'en', 'address', jsonb_build_object('zip', lpad(i::text, 5, '0'), 'lines', jsonb_build_array('Main St ' || i, null)))
        when 3 then jsonb_build_array(i, i * 1.50, 'x' || i, null, true)
        else jsonb_build_object('visits', null, 'scores', jsonb_build_array(i % 3, i % 5)) end,
    case when i % 4 <> 0 then md5('u' || i)::uuid end,
    case i % 4 when 0 then null when 1 then ('10.' || i % 256 || '.' || pick('ip', i, 256) || '.7')::inet
        when 2 then ('192.168.' || i % 256 || '.0/24')::inet else ('2001:db8::' || to_hex(i))::inet end,
    case when i > 10 and i % 3 = 0 then 1 + pick('ref', i, i - 1) end
from generate_series(1, 400) i;

create table products (
    id int primary key, sku text not null unique, name text not null, price numeric(8,2) not null,
    cost numeric, weight real, rating float8, stock int not null, active bool not null,
    dimensions size, attributes jsonb not null, tiers numeric[], photo bytea, sold daterange,
    code char(6), minimum positive);
insert into products
select i, 'SKU-' || lpad(i::text, 4, '0'),
    (array['Anvil', 'Bolt', 'Cable', 'Drill', 'Easel', 'Fan', 'Gear', 'Hinge'])[1 + i % 8] || ' ' || substr(md5('p' || i), 1, 4),
    (1 + pick('price', i, 99999)) / 100.0,
    case when i % 6 <> 0 then round((1 + pick('price', i, 99999)) / 173.0, i % 5) end,
    case when i % 8 <> 0 then pick('weight', i, 10000) / 64.0 end,
    case i % 10 when 0 then null when 1 then 'NaN' else 1 + pick('rating', i, 4001) / 1000.0 end,
    pick('stock', i, 500) - 20, i % 13 <> 0,
    case i % 4 when 0 then null when 1 then row(i, i * 2, 'cm')::size when 2 then row(null, i, null)::size else row(1, 2, 'in')::size end,
    jsonb_build_object('color', (array['red', 'green', 'blue', null])[1 + i % 4], 'parts', i % 6, 'specs', jsonb_build_object('volt', i * 10, 'tags', jsonb_build_array('t' || i % 3, 'u'))),
    case i % 3 when 0 then null when 1 then array[i * 0.5, i * 1.25] else array[null, i::numeric] end,
    case when i % 5 <> 0 then decode(substr(md5('ph' || i), 1, 2 * (i % 9)), 'hex') end,
    case i % 5 when 0 then null when 1 then daterange(date '2020-01-01' + i, null)
        when 2 then daterange(date '2020-01-01' + i, date '2021-01-01' + i, '[]') when 3 then 'empty' else daterange(null, date '2022-01-01') end,
    substr(md5('c' || i), 1, i % 7), case when i % 2 = 0 then i end
from generate_series(1, 120) i;

create table orders (
    id bigint primary key generated always as identity, customer int references customers,
    ordered timestamp not null, status order_status not null, shipped date, paid money,
    discount float8, items int2 not null, comment text);
insert into orders (customer, ordered, status, shipped, paid, discount, items, comment)
select case when i % 50 <> 0 then 1 + pick('cust', i, 380) end,
    timestamp '2023-01-01' + pick('when', i, 730 * 24) * interval '1 hour' + i * interval '1.25 seconds',
    (enum_range(null::order_status))[1 + pick('status', i, 5)],
    case when pick('status', i, 5) >= 2 then date '2023-01-03' + pick('when', i, 730 * 24) / 24 end,
    case when pick('status', i, 5) >= 1 then (pick('paid', i, 100000) / 100.0)::numeric::money end,
    case when i % 3 = 0 then pick('disc', i, 40) / 100.0::float8 end, 1 + i % 3,
    case i % 20 when 0 then 'gift' when 1 then 'call before delivery' when 2 then '' when 3 then 'Ünïcödé ✓' when 4 then E'two\nlines\tand a tab' end
from generate_series(1, 1000) i;

create table order_items (
    order_id bigint references orders, line int2, product int references products, quantity int,
    price numeric(8,2), primary key (order_id, line));
insert into order_items
select o, l, 1 + pick('product' || l, o, 115), 1 + pick('quantity' || l, o, 12),
    case when (o + l) % 17 <> 0 then (1 + pick('item price' || l, o, 50000)) / 100.0 end
from generate_series(1, 1000) o, lateral generate_series(1, 1 + o % 3) l;

-- Values at the ends of every number type.
create table numbers (
    id int primary key, small int2, medium int4, large int8, single float4, double float8,
    exact numeric, fixed numeric(6,3), bits bit(8), flags varbit, amount money);
insert into numbers values
    (1, 0, 0, 0, 0, 0, 0, 0, b'00000000', b'', 0),
    (2, 32767, 2147483647, 9223372036854775807, 3.4028235e38, 1.7976931348623157e308, 99999999999999999999999999999999999999.5, 999.999, b'11111111', b'1', 92233720368547758.07::numeric),
    (3, -32768, -2147483648, -9223372036854775808, -3.4028235e38, -1.7976931348623157e308, -0.00000000000000000000000001, -999.999, b'10101010', b'1010', -12.34::numeric),
    (4, 1, 10, 100, 'Infinity', '-Infinity', 'NaN', 0.001, b'00000001', b'00000001', 1234567.891::numeric),
    (5, -1, -10, -100, 'NaN', 'NaN', 'Infinity', 'NaN', null, null, null),
    (6, 7, 7, 7, 1.1, 1.1, 1.10, 1.1, b'01111110', b'0111', 7),
    (7, null, null, null, null, null, null, null, null, null, null),
    (8, 12, 100000, 5000000000, 1e-40, 5e-324, 1e-40, -0.5, b'11110000', b'11111111111', 0.01::numeric),
    (9, 2, 46341, 3037000500, 16777217, 9007199254740993, 1e131, 2.5, b'00001111', b'0', 100),
    (10, -7, -7, -7, '-0', '-0', '-Infinity', -2.5, b'10000000', b'01', -7),
    (11, 3, 3, 3, 0.5, 2.5, 2.50, 0.125, b'00000011', b'11', 3),
    (12, 4, 4, 4, 1.5, 3.5, 3.500, 0.375, b'00000100', b'100', 4);

create table moments (
    id int primary key, day date, clock time, zoned_clock timetz, local timestamp,
    instant timestamptz, length interval, short timestamp(0), month_length interval year to month,
    slots tstzrange, busy int4multirange);
insert into moments values
    (1, '2024-02-29', '12:34:56.789', '12:34:56+02', '2024-02-29 12:34:56.123456', '2024-02-29 12:34:56.123456+00', '1 day', '2024-02-29 12:34:56.5', '14 mons', '[2024-01-01,2024-02-01)', '{[1,3),[5,9)}'),
    (2, '2023-12-31', '00:00', '00:00-11', '2023-12-31 23:59:59.999999', '2023-12-31 23:59:59.999999+00', '1 mon', '2023-12-31 23:59:59.5', '1 year', '(2024-01-01,)', '{}'),
    (3, 'infinity', '24:00', '24:00+00', 'infinity', 'infinity', '-1 mon +30 days', 'infinity', '-1 mons', 'empty', '{(,)}'),
    (4, '-infinity', '23:59:59.999999', '23:59:59.999999-08', '-infinity', '-infinity', '30 days', '-infinity', '0', '(,)', '{[7,8)}'),
    (5, '4713-01-01 BC', '00:00:00.000001', '01:02:03.5+05:45', '4713-01-01 00:00 BC', '0044-03-15 12:00+00 BC', '-178000000 years', '0001-12-31 BC', '-99 years', null, null),
    (6, '5874897-12-31', '06:30', '06:30+14', '294276-12-31 23:59:59.999999', '294276-12-31 23:59:59.999999+00', '178000000 years 11 mons', '9999-12-31', '178000000 years', '[2024-03-31 00:00+00,2024-03-31 03:00+00]', '{[-5,0)}'),
    (7, '1970-01-01', '18:00', '18:00+00', '1970-01-01', '1970-01-01 00:00+00', '-1 days +02:03:04.5', '1970-01-01', null, null, null),
    (8, '2000-01-01', '09:15:30.25', '09:15:30.25+01', '2000-01-01 09:15:30.25', '2000-01-01 09:15:30.25+00', '720:00:00', '2000-01-01', '1 mons', '[2024-01-15,2024-01-15]', '{[1,2),[3,4),[5,6)}'),
    (9, null, null, null, null, null, null, null, null, null, null),
    (10, '2024-03-31', '02:30', '02:30+01', '2024-03-31 02:30', '2024-03-31 00:30+00', '1 year 2 mons 3 days 04:05:06.789', '2024-03-31 02:30', '3 mons', '[2024-01-10,2024-01-20)', '{[2,6)}'),
    (11, '2024-10-27', '02:30', '02:30+02', '2024-10-27 02:30', '2024-10-27 01:30+00', '00:00:00', '2024-10-27 02:30', '0', '[2024-01-20,2024-01-25)', '{[100,1000)}'),
    (12, '1999-12-31', '23:00', '23:00-05', '1999-12-31 23:00', '1999-12-31 23:00-05', '-00:00:00.000001', '1999-12-31 23:00', '-13 mons', '[2023-12-01,2024-01-02)', '{[1,100)}');

create table texts (id int primary key, t text, v varchar(8), c char(5), n name, q "char", b bytea, x text collate "C");
insert into texts values
    (1, 'abc', 'abc', 'abc', 'abc', 'a', 'abc', 'a'), (2, 'ABC', 'ABC  ', 'ABC', 'ABC', 'A', '\x00ff', 'B'),
    (3, '', '', '', '', '', '', ''), (4, null, null, null, null, null, null, null),
    (5, ' padded ', ' x ', ' x', 'pg_name', ' ', '\x20', ' '), (6, 'naïve café', 'ñandú', 'ñ', 'ünï', 'z', '\xc3a9', 'é'),
    (7, '100%', '%', '%', 'per_cent', '%', '\x25', '%'), (8, 'under_score', '_', '_', '_', '_', '\x5f', '_'),
    (9, E'back\\slash', E'\\', E'\\', 'bs', E'\\', '\x5c', E'\\'), (10, E'tab\tnl\nend', E'\t', E'\n', 'ctl', E'\001', '\x0a', E'\t'),
    (11, 'it''s "quoted"', '"', '''', 'Quoted "x"', '"', '\x22', '"'), (12, '日本語テキスト', '日本', '語', '日', 'j', '\xe697a5', '日'),
    (13, '😀 emoji', '😀', '😀', 'e', 'e', '\xf09f9880', '😀'), (14, 'aaa', 'b', 'a', 'aa', 'b', '\x6161', 'aa'),
    (15, 'The quick brown fox jumps over the lazy dog', 'fox', 'dog', 'fox', 'f', '\x666f78', 'fox'),
    (16, '2024-02-29', '42', '42', '42', '4', '\x3432', '42'), (17, ' 17 ', '1e3', '1.5', 'f', 't', '\x00', 'NaN'),
    (18, 'key=value;other=thing', 'k=v', 'a;b', 'kv', ';', '\x3d', ';');

-- Text that is compressed, stored out of line, or both.
create table articles (id int primary key, title text, body text, raw text, image bytea);
alter table articles alter raw set storage external;
insert into articles
select i, 'article ' || i, repeat('lorem ipsum ' || i || ' ', i * i * 20),
    (select string_agg(md5(i || ':' || j), '') from generate_series(1, i * 12) j),
    (select decode(string_agg(md5(i || '/' || j), ''), 'hex') from generate_series(1, i * 10) j)
from generate_series(1, 12) i;
insert into articles values (13, 'short', 'short', '', ''), (14, null, null, null, null);

create table hosts (id int primary key, address inet, network cidr, card macaddr, card8 macaddr8, place point, area box);
insert into hosts values
    (1, '10.0.0.1', '10.0.0.0/8', '08:00:2b:01:02:03', '08:00:2b:01:02:03:04:05', '(1,2)', '(3,4),(1,2)'),
    (2, '10.0.0.1/8', '10.1.0.0/16', '08:00:2b:01:02:04', '08:00:2b:ff:fe:01:02:03', '(-1.5,0)', '(0,0),(0,0)'),
    (3, '192.168.1.20/24', '192.168.1.0/24', 'ff:ff:ff:ff:ff:ff', 'ff:ff:ff:ff:ff:ff:ff:ff', '(1e300,-1e-300)', '(1,1),(-1,-1)'),
    (4, '::1', '::/0', '00:00:00:00:00:00', '00:00:00:00:00:00:00:00', '(Infinity,NaN)', '(5,5),(4,4)'),
    (5, '2001:db8::ff00:42:8329/64', '2001:db8::/32', null, null, null, null),
    (6, null, null, '12:34:56:78:9a:bc', null, '(0,0)', null), (7, '255.255.255.255', '0.0.0.0/0', null, null, null, null);

create table documents (id int primary key, j json, b jsonb, p jsonpath);
insert into documents values
    (1, '{"a": 1, "a": 2}', '{"a": 1, "b": {"c": [1, 2, {"d": null}]}}', '$.b.c[*]'),
    (2, '[1, "two", 3.0, null, true]', '[1, "two", 3.0, null, true, {"k": "v"}]', '$[*] ? (@ > 1)'),
    (3, '"text"', '"text"', '$'), (4, 'null', 'null', 'lax $'), (5, '1.50', '1.50', 'strict $'), (6, null, null, null),
    (7, '{}', '{}', '$.*'), (8, '[]', '[]', '$[0]'), (9, '{"z": "é\u00e9", "y": "\"q\""}', '{"z": "é\u00e9", "y": "\"q\"", "aa": -1e-5}', '$.z'),
    (10, 'true', 'true', '$ == true'), (11, '{"n": 12345678901234567890.123}', '{"n": 12345678901234567890.123}', '$.n'),
    (12, '{"items": [{"sku": "A", "qty": 2}, {"sku": "B", "qty": 5}]}', '{"items": [{"sku": "A", "qty": 2}, {"sku": "B", "qty": 5}]}', '$.items[*].qty');

create table arrays (id int primary key, i int[], t text[], n numeric[], grid int[][], s order_status[], c size[], f float8[]);
insert into arrays values
    (1, '{1,2,3}', '{a,b,c}', '{1.0,2.50}', '{{1,2},{3,4}}', '{new,shipped}', array[row(1,2,'cm')::size], '{1,NaN}'),
    (2, '{}', '{}', '{}', '{}', '{}', '{}', '{}'), (3, null, null, null, null, null, null, null),
    (4, '{NULL,1}', '{NULL,"NULL",""}', '{NaN,Infinity}', '[0:1][2:3]={{5,6},{7,8}}', '{returned,NULL}', array[null, row(null,null,null)::size], '{-0,0}'),
    (5, '{3,2,1}', '{"with space","q\"uote","c,omma","b\\slash"}', '{0.1}', '{{1,2,3}}', '{packed}', array[row(3,4,'a b')::size, row(5,6,'"')::size], '{Infinity}'),
    (6, '[5:7]={10,20,30}', '{a,b}', null, '{{1},{2}}', null, null, '{1e10,1e-10}'), (7, '{1,2,3,4}', '{a,b,c,a}', '{1,2.5}', null, null, null, null);

-- Partitioned by range, then by list, with default partitions, and by hash.
create table events (id int, at date not null, kind text, payload jsonb, primary key (id, at)) partition by range (at);
create table events_2023 partition of events for values from ('2023-01-01') to ('2024-01-01');
create table events_2024 (kind text, id int not null, at date not null, payload jsonb);
alter table events attach partition events_2024 for values from ('2024-01-01') to ('2025-01-01');
create table events_old partition of events default;
insert into events select i, date '2022-11-01' + i * 5, (array['click', 'view', 'buy', null])[1 + i % 4],
    case when i % 2 = 0 then jsonb_build_object('n', i) end from generate_series(1, 180) i;
create table regions (code text, name text, population bigint) partition by list (code);
create table regions_eu partition of regions for values in ('DE', 'FR', 'DK', 'PL');
create table regions_null partition of regions for values in (null);
create table regions_rest partition of regions default;
insert into regions values ('DE', 'Germany', 83200000), ('FR', 'France', 67750000), ('DK', 'Denmark', 5857000),
    ('PL', 'Poland', 37750000), ('CR', 'Costa Rica', 5150000), ('US', 'United States', 331900000), (null, 'High seas', 0);
create table readings (sensor int, at timestamp, value float8) partition by hash (sensor);
create table readings_0 partition of readings for values with (modulus 2, remainder 0);
create table readings_1 partition of readings for values with (modulus 2, remainder 1);
insert into readings select i % 9, timestamp '2024-01-01' + i * interval '7 minutes', case when i % 12 <> 0 then pick('r', i, 1000) / 8.0 end from generate_series(1, 600) i;

create table animals (id int primary key, name text);
create table dogs (breed text, check (id >= 100)) inherits (animals);
create table cats (lives int default 9, indoor bool) inherits (animals);
insert into animals values (1, 'newt'), (2, null);
insert into dogs values (100, 'Rex', 'boxer'), (101, 'Fido', null);
insert into cats values (200, 'Tom', 9, false), (201, 'Kit', 7, true);

create table empty (a int, b text);
create table "Mixed Case" ("Id" int primary key, "select" text, "a""b" int);
insert into "Mixed Case" values (1, 'keyword', 10), (2, null, 20);
create table no_columns ();
insert into no_columns default values;
insert into no_columns default values;
create table bits_and_pieces (k int, v int);
insert into bits_and_pieces select i % 4, case when i % 5 <> 0 then i end from generate_series(1, 14) i;
insert into bits_and_pieces values (null, 1), (null, null), (9, null);

-- Columns that were added and dropped, so stored rows have fewer columns or other ones.
create table altered (a int, gone text, c int8);
insert into altered select i, 'gone ' || i, i * 10 from generate_series(1, 3) i;
alter table altered add d text default 'added', add e numeric(6,2) default 1.5, add f int generated always as (a * 2) stored;
alter table altered drop gone;
insert into altered (a, c, d) values (4, 40, null);
-- Rows with several versions, dead rows and rows of a transaction that was rolled back.
create table versions (id int primary key, v text);
insert into versions select i, 'first' from generate_series(1, 20) i;
update versions set v = 'second' where id <= 5;
delete from versions where id between 11 and 15;
begin; insert into versions values (99, 'rolled back'); update versions set v = 'rolled back' where id = 20; rollback;

create schema audit;
create table audit.customers (id int, changed timestamptz, old jsonb);
insert into audit.customers values (1, '2024-01-01 00:00+00', '{"name": "before"}'), (2, null, null);
create table audit.log (id serial primary key, message varchar(50) default 'none', level int check (level between 0 and 9));
insert into audit.log (message, level) values ('start', 1), (default, null), ('stop', 9);

create sequence tickets start 1000 increment 5;
select nextval('tickets'), nextval('tickets');
create view active_products as select id, name, price from products where active;
create schema views;
create view views.joined as
    select o.id, c.name customer, o.status, o.ordered from orders o join customers c on o.customer = c.id;
create view views.outer_joins as
    select d.name department, e.name employee, m.name manager
    from departments d left join employees e on e.department = d.id left join employees m on m.id = e.manager;
create view views.merged as
    select * from (values (1, 'a'), (2, 'b')) x(k, l) full join (values (2, 'c'), (3, 'd')) y(k, r) using (k);
create view views.merged_alias as
    select u.k, l, j.r from ((values (1, 'a')) x(k, l) join (values (1, 'c')) y(k, r) using (k) as u)
    cross join (values (7)) j(r);
create view views.natural_join as
    select id, a.name, dogs.breed from animals a natural join dogs where id > 0;
create view views.grouped as
    select department, count(*) n, sum(salary) total, avg(salary)::numeric(10,2) mean,
        count(distinct manager) managers, string_agg(name, ', ' order by name desc) names,
        max(salary) filter (where half_day) half
    from employees group by department having count(*) > 1;
create view views.grouped_expression as
    select extract(year from hired) y, date_trunc('month', hired)::date m, count(*)
    from employees group by 1, date_trunc('month', hired) order by 2 desc nulls last limit 5;
create view views.percentiles as
    select percentile_cont(0.5) within group (order by salary) middle, mode() within group (order by manager) from employees;
create view views.windowed as
    select id, name, rank() over (partition by department order by salary desc nulls last) place,
        sum(salary) over w running, lag(name, 1, 'none') over (order by id) before,
        avg(salary) over (order by id rows between 1 preceding and 1 following exclude current row) around
    from employees window w as (order by id);
create view views.cte as
    with few as (select id, name from customers where id < 5), more(i) as materialized (select id from orders)
    select few.name, count(more.i) from few left join more on more.i = few.id group by few.name;
create view views.tree as
    with recursive t(id, name, depth) as (
        select id, name, 0 from employees where manager is null
        union all
        select e.id, e.name, t.depth + 1 from employees e join t on e.manager = t.id)
    select * from t;
create view views.union_all as
    select id, name from departments union all select id, name from employees order by 2, 1;
create view views.set_operations as
    (select 1 a union select 2) intersect select 2 except all (select 3 union all select 4) order by 1;
create view views.union_types as select 1 v union select 2.5 union select null;
create view views.subqueries as
    select name, (select max(salary) from employees e where e.department = d.id) top,
        exists (select 1 from employees e where e.department = d.id) has,
        array(select e.id from employees e where e.department = d.id order by 1) ids,
        id in (select department from employees) listed, 9000 > all (select salary from employees e where e.department = d.id) less,
        id not in (1, 2) late, (id, floor) in (select department, 1 from employees) paired
    from departments d;
create view views.distinct_rows as select distinct department, half_day from employees;
create view views.distinct_on as
    select distinct on (department) department, name, salary from employees order by department, salary desc nulls last, id;
create view views.constants as
    select 1 i, -1 n, 1.5 d, -2.5 e, 'a''b\c' t, null nothing, true b, date '2020-02-29' dt, interval '-1 day 2 hours' iv,
        timestamptz '2020-01-01 12:00+02' tz, '\xdead'::bytea by, array[1, 2, null] ar, '{"a": 1}'::jsonb j, 'new'::order_status st,
        'public.orders'::regclass rel, 12345678901 l, 1e300::float8 f, 'x'::char(3) c, 'abc'::varchar(2) v, B'101' bits,
        (1, 2, 'cm')::size sz, array[]::text[] em;
create view views.casts as
    select id::text, salary::bigint * 2 twice, bonus::int, name::varchar(3), hired::timestamp, salary::float8 / 3 third,
        (id || ' ' || name)::name label, cast(half_day as int), department::numeric(5,1)
    from employees;
create view views.cases as
    select id, case when salary > 8000 then 'high' when salary is null then 'none' else 'low' end level,
        case department when 1 then 'one' when 2 then 'two' end number, coalesce(bonus, 0) bonus, nullif(department, 2) other,
        greatest(salary, 5000) most, least(id, 3, null) least, half_day is not true half, bonus is distinct from 5 unequal
    from employees;
create view views.arrays as
    select id, i[1] first, i[2:3] slice, t[array_length(t, 1)] last, 2 = any (i) two, 1 <> all (i) ones, c[1].width wide from arrays;
create view views.patterns as
    select name from customers where name like 'A%' or name ilike '%e_' or name ~ '^[BC]' or name similar to '(X|Y)%' order by name collate "C";
create view views.functions as
    select g, upper(name), substring(name from 2 for 2) part, position('a' in name) place, trim(both 'A' from name) bare,
        name between 'B' and 'F' inside, ordered at time zone 'UTC' at, overlay(name placing 'x' from 1) laid
    from generate_series(1, 3) g, lateral (select name from employees where id = g) e
    left join lateral (select ordered from orders where id = g limit 1) o on true;
create view views.set_returning as select id, unnest(t) word from arrays;
create view views.ordinality as
    select * from rows from (unnest(array['a', 'b']), generate_series(1, 3)) with ordinality as u(word, number, place);
create view views.records as select a, b from jsonb_to_recordset('[{"a": 1, "b": "x"}]') as r(a int, b text);
create view views.list as values (1, 'one'), (2, 'two'), (3, null);
create view views.renamed(one, "Two", three) as select id, name, salary from employees;
create view views.outermost as
    select v."Two" who, j.customer, v.one + 1 next from views.renamed v left join views.joined j on j.id = v.one where v.three > 1;
create view views.whole as select d, d.id, row(d.*) is null gone from departments d;
create view views.field as select (s).width, (s).unit from (select (1, 2, 'cm')::size s) x;
create view views.quoted as select "Id", "select", "a""b" "c""d" from "Mixed Case" "T x";
create view views.only_parent as select id, name from only animals;
create view views.system_columns as select tableoid::regclass, id from animals;
create view views.sets as
    select department, half_day, count(*) from employees group by grouping sets ((department), (half_day), ());
create view views.ties as select name, salary from employees order by salary fetch first 9 rows with ties;
create view views.offset as select id from employees order by id desc offset 2 limit 3;
create view views.now as select current_user = 'postgres' me, current_date > '2001-01-01' late, localtimestamp > now()::timestamp - interval '1 day' recent;
create view views.by_subquery as
    select id, (select max(salary) from employees e where e.department = d.id) top from departments d order by 2 desc nulls last, 1;
create view views.grouped_subquery as
    select (select d.name from departments d where d.id = e.department) department, count(*) n, sum(salary) filter (where bonus > 0) paid
    from employees e group by 1 having count(*) > 0 order by 1 nulls first;
create view views.distinct_on_subquery as
    select distinct on ((select d.floor from departments d where d.id = e.department)) name,
        (select d.floor from departments d where d.id = e.department) floor
    from employees e order by (select d.floor from departments d where d.id = e.department), id;
create view views.json_of_rows as select json_agg(x) from (select id, name from departments order by id) x;
create table views.changing (a int, b text, c int);
create view views.changed as select b, c from views.changing where a > 0;
insert into views.changing values (1, 'x', 2), (0, 'y', 3);
alter table views.changing rename column b to "renamed b";
alter view views.changed rename column c to cc;
create view views.partitioned as select kind, count(*) from events group by kind;
create view views.nothing as select from empty;
create view views.same_names as select t.id, t_1.id other from employees t, lateral (select t.id from departments t where t.id = 1) t_1 where t.id < 3;
create materialized view sales as
    select date_trunc('month', ordered)::date as month, count(*) as orders, sum(quantity * price) as revenue
    from orders join order_items on order_id = orders.id group by 1 order by 1;
create index orders_customer on orders (customer);
create index orders_open on orders (ordered desc nulls last) where status in ('new', 'paid');
create index customers_lower on customers (lower(name), (credit + 1));
create unique index sales_month on sales (month) include (orders);
comment on table customers is 'people who buy';
comment on column customers.credit is 'may be negative';

\connect intl
create table names (id int primary key, name text, bytes text collate "C", short varchar(10));
insert into names values (1, 'Zoe', 'Zoe', 'z'), (2, 'Älva', 'Älva', 'ä'), (3, 'anna', 'anna', 'a'), (4, 'Anna', 'Anna', 'A'),
    (5, 'Österreich', 'Österreich', 'ö'), (6, 'zebra', 'zebra', 'Z'), (7, null, null, null), (8, 'Straße', 'Straße', 'ß'), (9, 'anna', 'anna', 'a');
create table notes (id int primary key, created date, body text);
insert into notes select i, date '2024-01-01' + i, 'note ' || i from generate_series(1, 50) i;

\connect shop
-- Two tables whose tuples are frozen or known to be visible.
vacuum (freeze, analyze) products;
vacuum order_items;
