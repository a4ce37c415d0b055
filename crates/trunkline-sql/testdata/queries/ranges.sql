-- name: bounds
select id, lower(sold), upper(sold), isempty(sold), lower_inc(sold), upper_inf(sold) from products where id <= 12 order by id;
-- name: operators
select id, slots @> timestamptz '2024-01-15 00:00+00', slots && '[2024-01-12,2024-01-22)', slots << '[2024-06-01,)', slots -|- '[2024-02-01,2024-03-01)' from moments order by id;
-- name: set operations
select int4range(1, 5) * int4range(3, 8), int4range(1, 5) + int4range(3, 8), int4range(1, 8) - int4range(5, 9), range_merge(int4range(1, 2), int4range(7, 9));
-- name: canonical forms
select int4range(1, 5, '[]'), int8range(1, 5, '()'), numrange(1.0, 2.50, '(]'), daterange('2024-01-01', '2024-01-31', '[]'), int4range(3, 3), '[,]'::numrange, 'empty'::int4range;
-- name: equality
select id from products where sold = daterange('2020-01-07', '2021-01-07', '[)') or sold = 'empty' order by id limit 5;
-- name: multiranges
select id, busy, busy @> 5, lower(busy), busy + '{[9,12)}', busy * '{[0,6)}', busy && int4range(2, 4), range_merge(busy) from moments order by id;
-- name: union that is not contiguous
select int4range(1, 2) + int4range(5, 6);
-- name: bounds in the wrong order
select int4range(5, 1);
-- name: bad range
select '[1,2'::int4range;
-- name: constructors
select int4range(1,5), int4range(1,5,'[]'), int4range(null,3), int4range(1,1), daterange('2024-01-01','2024-02-01','(]'), numrange(1.5,2.5,'()'), tsrange('2024-01-01', null), int8range(null,null);
-- name: constructor of wrong bounds
select int4range(3,1);
-- name: constructor with wrong flags
select int4range(1,3,'x');
-- name: constructor with null flags
select int4range(1,3,null);
-- name: properties of ranges
select lower(r), upper(r), isempty(r), lower_inc(r), upper_inc(r), lower_inf(r), upper_inf(r) from (values (int4range(1,5)), ('empty'), ('(,)'), (null), ('[3,)')) v(r);
-- name: relations of ranges
select r @> 3, r @> int4range(2,3), r <@ int4range(0,9), r && int4range(4,7), r -|- int4range(5,7), r << int4range(5,7), r >> int4range(0,1), r &< int4range(1,9), r &> int4range(1,9), 3 <@ r from (values (int4range(1,5)), ('empty'), ('(,)'), ('[3,)')) v(r);
-- name: results that are ranges
select int4range(1,5) + int4range(3,8), int4range(1,5) * int4range(3,8), int4range(1,5) - int4range(3,8), int4range(1,5) - int4range(0,2), int4range(1,5) + 'empty', int4range(1,2) * int4range(5,6), range_merge(int4range(1,2), int4range(5,6)), numrange(1,5,'[]') - numrange(3,5,'[)'), numrange(1,5) - numrange(1,3,'[]');
-- name: union with a gap
select int4range(1,2) + int4range(5,6);
-- name: difference with a gap
select int4range(1,10) - int4range(3,4);
-- name: order of ranges
select a.r, b.r, a.r < b.r, a.r = b.r, a.r >= b.r from (values (int4range(1,5)), ('empty'), ('(,)'), ('[3,)')) a(r), (values (int4range(1,5)), ('empty'), ('(,2)')) b(r) order by a.r, b.r;
-- name: distinct ranges
select distinct r from (values (int4range(1,5)), ('[1,4]'), ('empty')) v(r) order by r desc;
-- name: equal bounds that look different
select numrange(1.0, 2) = numrange(1.00, 2.0), numrange(1,2) @> 1.5, tstzrange('2024-01-01', '2024-01-02') @> '2024-01-01 12:00'::timestamptz;
-- name: range of an outer filter
select min(salary), max(salary) from employees where int4range(3000, 6000) @> salary::int;
-- name: multiranges are made
select int4multirange(), int4multirange(int4range(1,3)), int4multirange(int4range(5,7), int4range(1,3), int4range(2,4), 'empty'::int4range), multirange(int4range(1,3)), nummultirange(numrange(1.5,2), numrange(2,3,'[]')), datemultirange(variadic array[daterange('2024-01-01','2024-02-01')]), int4multirange('empty'::int4range);
-- name: a multirange with a null
select int4multirange(int4range(1,3), null);
-- name: properties of multiranges
select lower(m), upper(m), isempty(m), lower_inc(m), upper_inc(m), lower_inf(m), upper_inf(m), range_merge(m) from (values ('{[1,3),[5,9)}'::int4multirange), ('{}'), ('{(,)}'), ('{(,3)}'), ('{[3,)}'), (null)) v(m);
-- name: multiranges and elements
select m, m @> 5, m @> 3, 2 <@ m from (values ('{[1,3),[5,9)}'::int4multirange), ('{}'), ('{(,)}'), ('{(,3)}'), (null)) v(m);
-- name: multiranges and ranges
select m, r, m @> r, m <@ r, r @> m, r <@ m, m && r, r && m, m << r, r << m, m >> r, r >> m, m &< r, r &< m, m &> r, r &> m, m -|- r, r -|- m from (values ('{[1,3),[5,9)}'::int4multirange), ('{}'), ('{(,)}'), ('{(,3)}')) v(m), (values (int4range(2,6)), ('empty'), ('[3,5)'), ('[9,12)'), ('(,1)'), ('(,)')) w(r) order by m, r;
-- name: multiranges and multiranges
select a.m, b.m, a.m @> b.m, a.m <@ b.m, a.m && b.m, a.m << b.m, a.m >> b.m, a.m &< b.m, a.m &> b.m, a.m -|- b.m, a.m + b.m, a.m * b.m, a.m - b.m, a.m = b.m, a.m < b.m, a.m >= b.m from (values ('{[1,3),[5,9)}'::int4multirange), ('{}'), ('{(,)}'), ('{[3,5)}')) a(m), (values ('{[1,3),[5,9)}'::int4multirange), ('{}'), ('{[2,4),[6,7),[8,20)}'), ('{[9,12)}')) b(m) order by a.m, b.m;
-- name: unnest of multiranges
select unnest('{[1,3),[5,9)}'::int4multirange), unnest('{}'::int4multirange);
-- name: unnest of multiranges in from
select m.id, r, lower(r) from moments m, unnest(m.busy) r order by m.id, r;
-- name: multiranges are grouped
select busy, count(*) from moments group by busy order by busy;
-- name: range_agg
select range_agg(r), range_agg(r) filter (where false), range_intersect_agg(r) from (values (int4range(1,5)), ('[3,8)'), (null), ('[4,20)')) v(r);
-- name: range_agg by group
select g, range_agg(int4range(n, n + 2)), range_intersect_agg(int4range(n, n + 3)) from generate_series(1, 9) n, lateral (select n % 2 as g) x group by g order by g;
-- name: range_agg of multiranges
select range_agg(m), range_intersect_agg(m) from (values ('{[1,3),[5,9)}'::int4multirange), ('{[2,6)}'), (null), ('{}')) v(m) where m is null or not isempty(m);
-- name: range_agg of empty multiranges
select range_agg(m), range_intersect_agg(m) from (values ('{}'::int4multirange)) v(m);
-- name: range_agg of empty ranges
select range_agg(r) from (values ('empty'::int4range)) v(r);
-- name: range_agg of columns
select range_agg(sold), range_intersect_agg(sold) from products where not isempty(sold) and id < 40;
-- name: range_agg of nothing
select range_agg(sold), range_agg(busy), range_intersect_agg(busy) from products, moments where false;
-- name: which of equal bounds a range keeps
select numrange(1.0,3.0) + numrange(1.00,3.00), numrange(1.0,3.0) * numrange(1.00,3.00), numrange(1.0,3.0) - numrange(2.00,3.00), numrange(1.0,3.0) - numrange(1.00,2.00), range_merge(numrange(1.0,3.0), numrange(1.00,3.00)), numrange(null,3.0) + numrange(null,3.00), numrange(1.0,null) * numrange(1.00,null);
-- name: which of equal bounds a multirange keeps
select nummultirange(numrange(1.0,3.0)) + nummultirange(numrange(1.00,3.00)), nummultirange(numrange(1.00,3.0)) * nummultirange(numrange(1.0,3.00)), nummultirange(numrange(1.0,3.0)) - nummultirange(numrange(2.00,3.00)), nummultirange(numrange(1.0,3.0), numrange(1.00,3.00), numrange(1.000,2)), nummultirange(numrange(1.0,3.0), numrange(3.00,3.000,'[]')), '{[1.0,3.0],[1.00,3.00]}'::nummultirange, '{[1.00,3.00],[1.0,3.0]}'::nummultirange, '{[1.0,2],[5,6.0]}'::nummultirange - '{(1.00,2.0),(5.0,6)}'::nummultirange;
-- name: which of equal bounds an aggregate keeps
select range_agg(r), range_intersect_agg(r) from (values (numrange(1.0,3.0)), (numrange(1.00,3.00)), (numrange(1.000,4))) v(r);
-- name: relations of ranges with equal bounds
select a.r, b.r, a.r && b.r, a.r << b.r, a.r >> b.r, a.r &< b.r, a.r &> b.r, a.r -|- b.r, a.r @> b.r, a.r < b.r, a.r = b.r from (values (numrange(1,3,'[]')), ('[1,3)'), ('(1,3]'), ('(1,3)'), ('[3,3]'), ('empty'), ('(,3)'), ('(,3]'), ('[3,)'), ('(3,)'), ('(,)')) a(r), (values (numrange(3,5,'[]')), ('(3,5]'), ('[1,3]'), ('[1,3)'), ('(1,3]'), ('[3,3]'), ('empty'), ('(,3]'), ('(3,)'), ('(,)')) b(r) order by a.r, b.r;
-- name: relations of multiranges with equal bounds
select a.r, b.r, a.r && b.r, a.r << b.r, a.r >> b.r, a.r &< b.r, a.r &> b.r, a.r -|- b.r, a.r @> b.r, a.r + b.r, a.r * b.r, a.r - b.r from (values ('{[1,3],[7,9]}'::nummultirange), ('{[1,3),(3,4)}'), ('{(1,3]}'), ('{[3,3]}'), ('{}'), ('{(,3),[4,)}'), ('{(3,)}'), ('{(,)}')) a(r), (values ('{[3,5]}'::nummultirange), ('{(3,5],(9,)}'), ('{[1,3]}'), ('{[3,3]}'), ('{}'), ('{(,1)}'), ('{(,)}')) b(r) order by a.r, b.r;
-- name: multiranges with many ranges
with m as (select range_agg(int4range(i * 10, i * 10 + 5)) a, range_agg(int4range(i * 7, i * 7 + 3)) b from generate_series(0, 400) i) select a && b, a @> b, a @> (a * b), md5((a + b)::text), md5((a * b)::text), md5((a - b)::text), md5((b - a)::text), (a - b) + (a * b) = a, (a - b) && b from m;
-- name: parts of multiranges that ranges cover
select a.r - b.r, a.r * b.r, a.r @> b.r, a.r && b.r from (values ('{[1,3),[5,7),[9,11)}'::int4multirange), ('{[1,11)}'), ('{}'), ('{(,5),[20,)}')) a(r), (values ('{[2,10)}'::int4multirange), ('{[1,3),[9,11)}'), ('{[0,1),[3,5),[12,13)}'), ('{[2,6),[6,8),[10,30)}'), ('{(,)}'), ('{}'), ('{[6,7),[10,11)}')) b(r) order by a.r, b.r;
