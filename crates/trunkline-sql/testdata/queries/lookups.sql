-- Objects by the texts that name them, privileges, sizes, and definitions of objects.
-- name: functions by name
select 'pick'::regproc, 'now'::regproc, 'pg_catalog.now'::regproc, 'shop.public.pick'::regproc, '-'::regproc, '0'::regproc;
-- name: functions by signature
select 'abs(int)'::regprocedure, 'ABS( double precision )'::regprocedure, 'format(text,"any")'::regprocedure, 'now()'::regprocedure, 'numeric(numeric(10,2),int4)'::regprocedure;
-- name: operators by name
select '||/'::regoper, 'pg_catalog.||/'::regoper, '+(int,int)'::regoperator, '-(NONE,int)'::regoperator;
-- name: other objects by name
select '"C"'::regcollation, 'default'::regcollation, 'english'::regconfig, 'simple'::regdictionary, 'postgres'::regrole, 'audit'::regnamespace, 'double precision'::regtype, 'numeric(10,2)[]'::regtype, 'public . "orders"'::regclass;
-- name: names of columns
select x::regclass from (values ('orders'::text), ('audit.log')) t(x) order by x collate "C";
-- name: texts of columns as functions
select x::regprocedure::oid = x::regprocedure, x::regproc from (values ('pick(anyelement, anyelement)'), ('now()')) t(x) where x = 'nothing';
-- name: no function
select 'nosuch'::regproc;
-- name: several functions
select 'abs'::regproc;
-- name: no function of these types
select 'abs(text)'::regprocedure;
-- name: no type
select 'abs(nosuch)'::regprocedure;
-- name: no parenthesis
select 'abs'::regprocedure;
-- name: one operand
select '-(int)'::regoperator;
-- name: three operands
select '+(int,int,int)'::regoperator;
-- name: several operators
select '+'::regoper;
-- name: another database
select 'other.public.orders'::regclass;
-- name: too many parts
select 'a.b.c.d'::regproc;
-- name: not a name
select 'a b'::regclass;
-- name: no collation
select 'C'::regcollation;
-- name: to_reg
select to_regproc('nosuch'), to_regproc('abs'), to_regproc('now'), to_regprocedure('abs(int)'), to_regprocedure('f()'), to_regoper('||/'), to_regoper('+'), to_regoperator('+(int,int)'), to_regtype('int'), to_regtype('nosuch'), to_regtype('nosch.x'), to_regtype('double precision'), to_regcollation('"C"'), to_regcollation('nosuch'), to_regclass('nosch.x'), to_regrole('postgres'), to_regnamespace('nosuch');
-- name: to_reg of numbers
select to_regclass('99'), to_regproc('-'), to_regnamespace('12');
-- name: to_reg of wrong names
select to_regprocedure('abs(int');
-- name: encodings
select pg_char_to_encoding('utf-8'), pg_char_to_encoding('nosuch'), pg_char_to_encoding('Windows_1252'), pg_encoding_to_char(35), pg_encoding_to_char(-1) = '';
-- name: privileges by name
select has_type_privilege('int', 'usage'), has_function_privilege('abs(int)', 'execute'), has_language_privilege('plpgsql', 'usage'), has_tablespace_privilege('pg_default', 'create'), has_parameter_privilege('work_mem', 'alter system, set'), has_column_privilege('postgres', 'orders', 'id', 'select');
-- name: privileges on nothing
select has_server_privilege(99999::oid, 'usage'), has_foreign_data_wrapper_privilege(99999::oid, 'usage'), has_tablespace_privilege(99999::oid, 'create'), has_language_privilege(99999::oid, 'usage'), has_type_privilege(99999::oid, 'usage'), has_function_privilege(99999::oid, 'execute'), has_schema_privilege(99999::oid, 'usage'), has_database_privilege(99999::oid, 'connect'), has_table_privilege(99999::oid, 'select');
-- name: privileges on no server
select has_server_privilege('nosuch', 'usage');
-- name: sizes of numbers
select pg_size_pretty(12345::numeric), pg_size_pretty(10239.5::numeric), pg_size_pretty(-10752::numeric), pg_size_pretty(1234567890123456789012::numeric), pg_size_pretty('NaN'::numeric), pg_size_pretty(0.1::numeric), pg_size_pretty(20971520::numeric);
-- name: sizes of texts
select pg_size_bytes('1'), pg_size_bytes(' 1.5 MB '), pg_size_bytes('-1kB'), pg_size_bytes('1e3kb'), pg_size_bytes('.5 GB'), pg_size_bytes('1PB'), pg_size_bytes('0.5'), pg_size_bytes('1.');
-- name: no size
select pg_size_bytes('1 xB');
-- name: a size without digits
select pg_size_bytes('.');
-- name: a size that is too large
select pg_size_bytes('9000000 PB');
-- name: sizes of databases
select pg_database_size('shop') > 1000000, pg_database_size(current_database()) = pg_database_size('shop'), pg_tablespace_size('pg_global') > 100000, pg_tablespace_size(1663) > pg_database_size('shop'), pg_tablespace_location(1663);
-- name: no database with this number
select pg_database_size(99999::oid);
-- name: no tablespace with this number
select pg_tablespace_size(99999);
-- name: no database
select pg_database_size('nosuch');
-- name: no tablespace
select pg_tablespace_location(99999);
-- name: descriptions of objects
select pg_describe_object('pg_class'::regclass, 'orders'::regclass, 0), pg_describe_object('pg_class'::regclass, 'orders'::regclass, 1), pg_describe_object('pg_class'::regclass, 99999, 0), pg_describe_object('pg_class'::regclass, 'audit.log'::regclass, 0), pg_describe_object('pg_proc'::regclass, 'abs(int)'::regprocedure, 0), pg_describe_object('pg_type'::regclass, 'order_status'::regtype, 0), pg_describe_object('pg_collation'::regclass, 950, 0), pg_describe_object('pg_operator'::regclass, 96, 0), pg_describe_object('pg_namespace'::regclass, 11, 0), pg_describe_object(0, 0, 0);
-- name: descriptions of dependencies
select pg_describe_object(classid, objid, objsubid) from pg_depend where classid in ('pg_attrdef'::regclass, 'pg_class'::regclass, 'pg_constraint'::regclass) and refobjid in ('orders'::regclass, 'order_items'::regclass) and objid >= 16384 and deptype <> 'i' order by 1;
-- name: definitions of functions
select pg_get_functiondef(p.oid) from pg_proc p where p.oid in ('abs(int)'::regprocedure, 'now()'::regprocedure, 'row_number()'::regprocedure, 'plpgsql_call_handler()'::regprocedure) or p.pronamespace = 'public'::regnamespace and p.prokind <> 'a' order by p.proname, 1;
-- name: bodies of functions
select proname, pg_get_function_sqlbody(oid) from pg_proc where pronamespace = 'information_schema'::regnamespace and proname <> '_pg_index_position' order by 1;
-- name: definition of an aggregate
select pg_get_functiondef('sum(int)'::regprocedure);
-- name: defaults of arguments
select n, pg_get_function_arg_default('make_interval'::regproc, n) from generate_series(0, 8) n order by 1;
-- name: constraints of partitions
select c.oid::regclass, pg_get_partition_constraintdef(c.oid) from pg_class c where c.relispartition and c.relkind in ('r', 'p') and c.relname !~ '^readings' order by c.relname;
-- name: kinds of tokens
select * from ts_token_type('default') order by 1;
-- name: no parser
select * from ts_token_type('nosuch');
-- name: options as rows
select * from pg_options_to_table('{a=1,b,c=,d=x=y}') order by 1;
-- name: parameters of sequences
select * from pg_sequence_parameters('tickets'::regclass);
-- name: values of sequences
select schemaname, sequencename, last_value, data_type from pg_sequences order by 1, 2;
-- name: a sequence as a table
select last_value, is_called, t.tableoid::regclass, t.ctid from tickets t;
-- name: no sequence
select pg_sequence_last_value('orders');
-- name: functions with a set as argument
select to_regprocedure('abs(setof int)');
-- name: types that are sets
select to_regtype('setof int'), to_regtype('');
-- name: operators of sets
select to_regoperator('+(setof int, int)');
-- name: functions with half a set as argument
select to_regprocedure('abs(setof)');
-- name: a function with a set as argument as regprocedure
select 'abs(setof int)'::regprocedure;
