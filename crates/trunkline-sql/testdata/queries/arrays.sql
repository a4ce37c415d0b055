-- name: every type
select * from arrays order by id;
-- name: elements and slices
select id, i[1], i[2:3], i[:2], t[99], grid[1][2], grid[2:2][1:1], i[5], (array[7, 8, 9])[2] from arrays order by id;
-- name: constructors
select array[1, 2.5, null], array['a', 'b'], array[[1, 2], [3, 4]], array[]::int[], array[row(1, 2)], array[1, 2] || 3, 0 || array[1], array[1] || array[2, 3], array[[1]] || array[2];
-- name: empty constructor
select array[];
-- name: ragged constructor
select array[[1, 2], [3]];
-- name: dimensions
select id, array_length(i, 1), cardinality(grid), array_ndims(grid), array_dims(grid), array_lower(i, 1), array_upper(i, 1), array_length(i, 2) from arrays order by id;
-- name: operators
select id, i @> array[1], i <@ array[1, 2, 3, 4], i && array[3, 99], i = '{1,2,3}', i < '{2}', t || 'z'::text from arrays order by id;
-- name: functions
select array_append(array[1], 2), array_prepend(0, array[1]), array_cat(array[1], array[2]), array_remove(array[1, 2, 1, null], 1), array_replace(array[1, 2, null], null, 0), array_position(array['a', 'b', null], 'b'), array_positions(array[1, 2, 1], 1), array_fill(7, array[2, 2]), trim_array(array[1, 2, 3], 1);
-- name: unnest in from
select a.id, u.x, u.n from arrays a, unnest(a.i) with ordinality as u(x, n) order by a.id, u.n;
-- name: unnest of several arrays
select * from unnest(array[1, 2, 3], array['a', 'b'], array[true]) as u(x, y, z);
-- name: unnest in the select list
select id, unnest(t) from arrays where id in (1, 4, 5) order by id, 2;
-- name: unnest in step
select unnest(array[1, 2, 3]) as a, unnest(array['x', 'y']) as b;
-- name: unnest of rows
select w.width, w.unit from arrays, unnest(c) w where id in (1, 5) order by 1;
-- name: unnest of two dimensions
select unnest(grid) from arrays where id = 4;
-- name: subscripts in a series
select a.id, k, a.i[k] from arrays a, generate_subscripts(a.i, 1) k order by 1, 2;
-- name: input and output
select '{1, 2 ,NULL}'::int[], '{"a,b","c\"d",null,"null",""}'::text[], '[0:1]={5,6}'::int[], '{{1,2},{3,4}}'::int[], '{}'::text[];
-- name: bad array
select '{1,2'::int[];
-- name: bad element
select '{1,x}'::int[];
-- name: casts
select array[1, 2]::text[], '{1.5,2.5}'::numeric[]::int[], array['1', '2']::int[], array[1, 2]::text;
-- name: comparison
select array[1, 2] < array[1, 2, 0], array[1, null] = array[1, null], array[null::int] > array[1], array[[1, 2]] = array[1, 2];
-- name: any with like
select name from products where name like any (array['Anvil%', '%ff%']) order by id limit 5;
-- name: enums in arrays
select s, s[1], 'new' = any (s), array_length(s, 1), enum_range('paid'::order_status, null) from arrays order by id;
-- name: distinct elements
select array(select distinct x from unnest(array[3, 1, 3, 2]) x order by x), array_agg(distinct t order by t desc) from unnest(array['b', 'a', 'b']) t;
-- name: vectors of the catalogs
select indkey, indkey[0], indoption, array_upper(indkey, 1) from pg_index where indexrelid = 'order_items_pkey'::regclass;
-- name: type mismatch
select array[1, 2] || 'x';
-- name: function of a later version
select array_sort(array[2, 1, null, 3]);
-- name: ranges of enums
select enum_range(null::order_status), enum_range('paid'::order_status, 'new'), enum_range(null, 'paid'::order_status), enum_range('paid'::order_status, 'paid'), enum_first(null::order_status), enum_last('new'::order_status), enum_range(null::order_status, null);
-- name: range of enums of each row
select id, enum_range(status, null) from orders where id < 5 order by id;
-- name: unnest of anonymous rows
select * from unnest(array[row(1,2), null, row(3,null::int)]) as t(a int, b int);
-- name: unnest of rows with another type
select * from unnest(array[row(1,2)]) as t(a int, b text);
-- name: unnest of rows of a type
select * from unnest(array[row(1,2,'x')::size, null, row(3,4,null)::size]) with ordinality;
-- name: unnest of rows as values
select unnest(array[row(1,2,'x')::size, null]), (unnest(array[row(1,2,'x')::size, null])).unit;
-- name: unnest of rows as rows
select t from unnest(array[row(1,2,'x')::size, null]) t;
-- name: unnest of rows without a description
select * from unnest(array[row(1,2)]);
-- name: unnest of anonymous rows as values
select unnest(array[row(1,'a'::text), row(2,'b')]);
-- name: array_sort (18)
select array_sort('{3,1,null,2}'::int[]), array_sort('{3,1,null,2}'::int[], true), array_sort('{3,1,null,2}'::int[], true, false), array_sort('[5:7]={3,1,2}'::int[]), array_sort('{{3,1},{2,5},{2,null},{2,4}}'::int[]), array_sort('{}'::int[]), array_sort('{1}'::int[]), array_sort(array['b','a','C']), array_sort(null::int[]);
-- name: array_reverse (18)
select array_reverse('{3,1,null,2}'::int[]), array_reverse('[5:7]={3,1,2}'::int[]), array_reverse('{{1,2},{3,4}}'::int[]), array_reverse('{}'::int[]);
-- name: array_agg of arrays
select array_agg(a order by a) from (values ('{1,2}'::int[]), ('{3,null}')) v(a);
-- name: array_agg of arrays by group
select g, array_agg(array[g, n]) from (values (1, 1), (1, 2), (2, 3)) v(g, n) group by g order by g;
-- name: array_agg of arrays of different sizes
select array_agg(a) from (values ('{1,2}'::int[]), ('{3}')) v(a);
-- name: array_agg of an empty array
select array_agg(a) from (values ('{}'::int[])) v(a);
-- name: array_agg of a null array
select array_agg(a) from (values ('{1}'::int[]), (null)) v(a);
-- name: variadic arguments of any type
select concat(variadic array['a',null,'b']), concat_ws(',', variadic array[1,2,null]), format('%s-%s', variadic array['a','b']), concat(variadic null::text[]), format('x', variadic null::text[]), num_nulls(variadic array[1,null]), num_nonnulls(variadic null::int[]), json_build_array(variadic array[1,2]), jsonb_build_object(variadic array['a','b']);
-- name: variadic arguments of each row
select id, concat_ws('+', variadic t), num_nulls(variadic i), format('%s %s', variadic t || array['x', 'y']) from arrays order by id;
-- name: a variadic argument that is not an array
select concat(variadic 'a');
-- name: slices of vectors
select ('1 2 3'::int2vector)[0:1], pg_typeof(('1 2 3'::int2vector)[0:1]), ('1 2 3'::oidvector)[1:2], pg_typeof(('1 2 3'::oidvector)[-1:1]), ('1 2 3'::int2vector)[:], ('1 2 3'::int2vector)[5:6], array_lower(('1 2 3'::oidvector)[1:2], 1), ('1 2'::int2vector)[null:1], ('1 2'::int2vector)[0][1:2];
-- name: slices of types of fixed length with nulls
select ('(1,2)'::point)[null:1], (null::name)[0:1];
-- name: slices of a name
select ('abc'::name)[0:1];
