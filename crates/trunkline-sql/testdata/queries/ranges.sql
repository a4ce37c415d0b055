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
