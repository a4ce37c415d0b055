-- Users' views, of every shape; setup.sql has their queries.
-- name: joined
-- rows: unordered
select * from views.joined;
-- name: outer joins
-- rows: unordered
select * from views.outer_joins;
-- name: merged
-- rows: unordered
select * from views.merged;
-- name: merged alias
-- rows: unordered
select * from views.merged_alias;
-- name: natural join
-- rows: unordered
select * from views.natural_join;
-- name: grouped
-- rows: unordered
select * from views.grouped;
-- name: grouped expression
select * from views.grouped_expression;
-- name: percentiles
select * from views.percentiles;
-- name: windowed
-- rows: unordered
select * from views.windowed;
-- name: cte
-- rows: unordered
select * from views.cte;
-- name: tree
-- rows: unordered
select * from views.tree;
-- name: union all
select * from views.union_all;
-- name: set operations
select * from views.set_operations;
-- name: union types
-- rows: unordered
select * from views.union_types;
-- name: subqueries
-- rows: unordered
select * from views.subqueries;
-- name: distinct rows
-- rows: unordered
select * from views.distinct_rows;
-- name: distinct on
-- rows: unordered
select * from views.distinct_on;
-- name: constants
-- rows: unordered
select i, n, d, e, t, nothing, b, dt, iv, tz, by, ar, j, st, rel, l, f, c, v, bits, sz, em from views.constants;
-- name: casts
-- rows: unordered
select * from views.casts;
-- name: cases
-- rows: unordered
select * from views.cases;
-- name: arrays
-- rows: unordered
select * from views.arrays;
-- name: patterns
select * from views.patterns;
-- name: functions
-- rows: unordered
select * from views.functions;
-- name: set returning
-- rows: unordered
select * from views.set_returning;
-- name: ordinality
-- rows: unordered
select * from views.ordinality;
-- name: records
-- rows: unordered
select * from views.records;
-- name: list
select * from views.list;
-- name: renamed
-- rows: unordered
select * from views.renamed;
-- name: outermost
-- rows: unordered
select * from views.outermost;
-- name: whole
-- rows: unordered
select * from views.whole order by id;
-- name: field
-- rows: unordered
select * from views.field;
-- name: quoted
-- rows: unordered
select * from views.quoted;
-- name: only parent
-- rows: unordered
select * from views.only_parent;
-- name: system columns
-- rows: unordered
select * from views.system_columns;
-- name: sets
-- rows: unordered
select * from views.sets;
-- name: ties
select * from views.ties;
-- name: offset
select * from views.offset;
-- name: now
-- rows: unordered
select * from views.now;
-- name: by subquery
select * from views.by_subquery;
-- name: grouped subquery
select * from views.grouped_subquery;
-- name: distinct on subquery
select * from views.distinct_on_subquery;
-- name: json of rows
select * from views.json_of_rows;
-- name: changed
-- rows: unordered
select * from views.changed;
-- name: partitioned
-- rows: unordered
select * from views.partitioned;
-- name: nothing
-- rows: unordered
select count(*) from views.nothing;
-- name: same names
-- rows: unordered
select * from views.same_names;
-- name: aliases of columns
-- rows: unordered
select v.a, v.department, w.* from views.grouped v(a), views.renamed as w(x) where w.x = 1;
-- name: whole row of a view
-- rows: unordered
select r from views.renamed r where r.one < 3;
-- name: join of views
-- rows: unordered
select a.name, b.level from views.windowed a join views.cases b using (id) where a.place = 1;
-- name: view in a subquery
select id from employees where id in (select one from views.renamed where three > 7000) order by id;
-- name: system column of a view
select ctid from views.renamed;
-- name: unknown column of a view
select x from views.renamed;
-- name: too many aliases
select * from views.renamed v(a, b, c, d);
-- name: columns with their types
select v.c, pg_typeof(v.v), pg_typeof(v.n), pg_typeof(v.nothing) from views.constants v;
-- name: definitions
select relname, pg_get_viewdef(oid) from pg_class where relnamespace = 'views'::regnamespace and relkind = 'v' order by relname;
-- name: pretty definitions
select relname, pg_get_viewdef(oid, true) from pg_class where relnamespace = 'views'::regnamespace and relkind = 'v' order by relname;
-- name: definitions of the server's views
select oid::regclass, pg_get_viewdef(oid) from pg_class where oid < 16384 and relkind = 'v' order by relname, oid;
-- name: pretty definitions of the server's views
select oid::regclass, pg_get_viewdef(oid, true) from pg_class where oid < 16384 and relkind = 'v' order by relname, oid;
-- name: definition of a materialized view and of a table
select pg_get_viewdef('sales'::regclass), pg_get_viewdef('orders'::regclass), pg_get_viewdef(0);
