-- name: tables of a schema
select c.relname, c.relkind, c.relnatts, c.relpersistence, pg_get_userbyid(c.relowner) from pg_class c join pg_namespace n on n.oid = c.relnamespace where n.nspname = 'public' and c.relkind in ('r', 'p', 'm', 'v', 'S') order by c.relname;
-- name: columns of a table
select a.attnum, a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull, a.atthasdef from pg_attribute a where a.attrelid = 'orders'::regclass and a.attnum > 0 and not a.attisdropped order by a.attnum;
-- name: dropped columns
select attnum, attisdropped, atttypid, attlen from pg_attribute where attrelid = 'altered'::regclass and attnum > 0 order by attnum;
-- name: indexes
select i.indexrelid::regclass, i.indrelid::regclass, i.indisunique, i.indisprimary, i.indkey, am.amname from pg_index i join pg_class c on c.oid = i.indexrelid join pg_am am on am.oid = c.relam where i.indrelid in ('orders'::regclass, 'customers'::regclass) order by i.indexrelid::regclass::text collate "C";
-- name: constraints
select conname, contype, conrelid::regclass, confrelid::regclass, conkey, confkey, convalidated from pg_constraint where conrelid = any (array['orders', 'order_items', 'employees']::regclass[]) and contype <> 'n' order by conname;
-- name: enum labels
select enumlabel, enumsortorder from pg_enum where enumtypid = 'order_status'::regtype order by enumsortorder;
-- name: partitions
select inhparent::regclass, inhrelid::regclass from pg_inherits where inhparent in ('events'::regclass, 'regions'::regclass, 'animals'::regclass) order by inhparent::regclass::text collate "C", inhrelid::regclass::text collate "C";
-- name: types
select typname, typtype, typcategory, typlen, typbyval, typelem::regtype, typbasetype::regtype from pg_type where typnamespace = 'public'::regnamespace and typtype in ('e', 'd') order by typname;
-- name: number of built-in operators
select count(*) > 700, count(distinct oprname) > 50 from pg_operator where oid < 16384;
-- name: functions by name
select p.oid::regprocedure, p.prorettype::regtype, p.provolatile, p.proisstrict from pg_proc p where p.proname in ('substr', 'pick') order by p.oid::regprocedure::text collate "C";
-- name: casts
select castsource::regtype, casttarget::regtype, castfunc::regproc, castcontext, castmethod from pg_cast where castsource = 'int4'::regtype and casttarget < 16384 order by 2::text;
-- name: databases
select datname, pg_encoding_to_char(encoding), datcollate, datistemplate, datallowconn from pg_database order by datname;
-- name: roles
select rolname, rolsuper, rolcanlogin, rolvaliduntil from pg_roles where rolsuper order by rolname;
-- name: comments
select obj_description('customers'::regclass), col_description('customers'::regclass, 8), col_description('customers'::regclass, 1), obj_description('customers'::regclass, 'pg_class');
-- name: sequences
select seqrelid::regclass, seqtypid::regtype, seqstart, seqincrement, seqmax, seqcycle from pg_sequence order by seqrelid::regclass::text collate "C";
-- name: views of tables
select schemaname, tablename, tableowner, tablespace, hasindexes, hasrules from pg_tables where schemaname in ('public', 'audit') order by 1, 2;
-- name: information schema columns
select table_name, column_name, ordinal_position, is_nullable, data_type, character_maximum_length, numeric_precision from information_schema.columns where table_schema = 'public' and table_name in ('texts', 'departments') order by 1, 3;
-- name: information schema tables
select table_schema, table_name, table_type from information_schema.tables where table_schema = 'audit' order by 2;
-- name: definitions
select pg_get_indexdef('orders_open'::regclass), pg_get_expr(adbin, adrelid) from pg_attrdef where adrelid = 'audit.log'::regclass order by 2;
-- name: constraint definitions
select conname, pg_get_constraintdef(oid) from pg_constraint where conrelid in ('order_items'::regclass, 'audit.log'::regclass, 'dogs'::regclass) and contype <> 'n' order by conname;
-- name: partition definitions
select c.relname, pg_get_partkeydef(c.oid), pg_get_expr(c.relpartbound, c.oid) from pg_class c where c.relname like 'events%' and c.relkind in ('r', 'p') order by 1;
-- name: sizes
select pg_relation_size('orders') % 8192, pg_relation_size('orders') > 0, pg_size_pretty(10240::bigint), pg_table_size('orders') >= pg_relation_size('orders'), pg_relation_size('empty');
-- name: visibility and privileges
select pg_table_is_visible('orders'::regclass), pg_table_is_visible('audit.log'::regclass), has_table_privilege('orders', 'select'), has_schema_privilege('audit', 'usage'), pg_type_is_visible('int4'::regtype);
-- name: settings
select name, setting, unit, vartype from pg_settings where name in ('block_size', 'segment_size', 'integer_datetimes', 'max_identifier_length') order by name;
-- name: client reflection of keys
select kcu.column_name, tc.constraint_type from information_schema.table_constraints tc join information_schema.key_column_usage kcu using (constraint_schema, constraint_name) where tc.table_name = 'order_items' order by 1, 2;
-- name: reflection of columns as drivers do it
select a.attname, pg_catalog.format_type(a.atttypid, a.atttypmod), (select pg_catalog.pg_get_expr(d.adbin, d.adrelid) from pg_catalog.pg_attrdef d where d.adrelid = a.attrelid and d.adnum = a.attnum and a.atthasdef) as default, a.attnotnull, a.attnum, pgd.description from pg_catalog.pg_attribute a left join pg_catalog.pg_description pgd on pgd.objoid = a.attrelid and pgd.objsubid = a.attnum where a.attrelid = 'customers'::regclass and a.attnum > 0 and not a.attisdropped order by a.attnum;
-- name: acl and options
select relname, relacl, reloptions from pg_class where relname in ('articles', 'orders') order by 1;
