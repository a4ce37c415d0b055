-- name: a filtered aggregate of a subquery
SELECT sum((SELECT 10/x)) FILTER (WHERE x <> 0) FROM (VALUES (0),(5)) v(x);
-- name: a filtered aggregate ordered by a subquery
SELECT string_agg(a::text, ',' ORDER BY (SELECT 10/a)) FILTER (WHERE a <> 0), array_agg(DISTINCT 10/a) FILTER (WHERE a <> 0) FROM (VALUES (0),(5),(2),(2)) v(a);
-- name: a filter that is a subquery
SELECT count(10/a) FILTER (WHERE (SELECT a <> 0)), count(*) FILTER (WHERE a IN (SELECT 5)) FROM (VALUES (0),(5),(2)) v(a);
-- name: a filter that is a subquery over a window
SELECT a, sum(a) FILTER (WHERE (SELECT a > 1)) OVER (ORDER BY a), count((SELECT 10/a)) FILTER (WHERE a <> 0) OVER () FROM (VALUES (0),(5),(2)) v(a) ORDER BY a;
-- name: a volatile filter is evaluated once
SELECT count(g + 1) FILTER (WHERE pg_relation_size('orders') > 0) FROM generate_series(1, 10000) g;
-- name: a volatile filter over a window is evaluated once
SELECT DISTINCT count(g + 1) FILTER (WHERE pg_relation_size('orders') > 0) OVER () FROM generate_series(1, 10000) g;
-- name: a subquery behind a decided pair
SELECT ROW(1, 1) < ROW(2, (SELECT 10/a)) FROM (VALUES (0),(0)) v(a);
-- name: subqueries in pairs of rows
SELECT a, ROW(a, 1) >= ROW(2, (SELECT 10/a)), ROW(a, 1, (SELECT 10/(a-3))) < ROW(2, (SELECT 10/a), 5) FROM (VALUES (0),(2),(null),(3)) v(a);
-- name: a subquery in a pair that decides
SELECT ROW(a, 1) < ROW(2, (SELECT 10/(a-2))) FROM (VALUES (0),(2)) v(a);
-- name: a subquery whose value nobody reads
SELECT count(*) FROM (SELECT (SELECT 10/a) FROM (VALUES (0),(0)) v(a)) s;
-- name: subqueries of which one is read
SELECT b FROM (SELECT a, (SELECT 10/a) AS c, (SELECT a + 1) AS b, (SELECT 20/a) AS d FROM (VALUES (0),(1)) v(a)) s WHERE b > 0 ORDER BY b;
-- name: a join that does not read a subquery
SELECT g, s.a FROM generate_series(0, 1) g JOIN (SELECT a, (SELECT 10/a) AS c FROM (VALUES (0),(1)) v(a)) s ON s.a = g ORDER BY g;
-- name: a subquery that another subquery needs
SELECT d FROM (SELECT c, (SELECT c + 1) AS d FROM (SELECT a, (SELECT a * 2) AS c, (SELECT 10/a) AS e FROM (VALUES (0),(1)) v(a)) s) t ORDER BY d;
-- name: a subquery below EXISTS
SELECT a FROM (VALUES (0),(1)) v(a) WHERE EXISTS (SELECT (SELECT 10/a) FROM generate_series(1, 2) LIMIT 1) ORDER BY a;
-- name: the first value of a window
SELECT a, first_value(10/a) OVER (ORDER BY a DESC), last_value(10/(a-1)) OVER (ORDER BY a ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), nth_value(10/(a-2), 2) OVER (ORDER BY a) FROM (VALUES (1),(0)) v(a);
-- name: values of other rows of a window
SELECT a, lag(10/a, 1, 20/a) OVER (ORDER BY a DESC), lead(10/(a-2), 1, a/(a-2)) OVER (ORDER BY a DESC) FROM (VALUES (2),(1),(0)) v(a);
-- name: a default of a window that nobody needs
SELECT a, lag(a, 0, 10/a) OVER (ORDER BY a), lead(a, 1, null) OVER (ORDER BY a), lag(a, b) OVER (ORDER BY a) FROM (VALUES (0, 1),(1, null),(2, 2)) v(a, b);
-- name: the buckets of a window are known after the first row
SELECT a, ntile(10/a) OVER (ORDER BY a DESC), ntile(nullif(3-a, 1)) OVER (ORDER BY a DESC) FROM (VALUES (2),(1),(0)) v(a);
-- name: an aggregate over frames that leave rows out
SELECT a, sum(10/a) OVER (ORDER BY a DESC ROWS BETWEEN 1 PRECEDING AND 1 PRECEDING), count(10/a) FILTER (WHERE 10/a > 5) OVER (ORDER BY a DESC ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) FROM (VALUES (2),(1),(0)) v(a);
-- name: an aggregate over a window divides by zero
SELECT sum(10/a) OVER (ORDER BY a DESC) FROM (VALUES (2),(1),(0)) v(a);
-- name: the order of values of an outer row
SELECT a, ARRAY(SELECT x FROM (VALUES (a), (a+5), (a-3), (a+1)) v(x)), (SELECT string_agg(y, '') FROM (VALUES (a, 'x'), (1, 'y'), (null, a::text)) v(x, y)) FROM generate_series(1,3) a;
-- name: joined with values of an outer row
SELECT a, v.* FROM generate_series(1, 2) a, LATERAL (VALUES (a, 'first'), (a * 10, null), (null, a || 'rd')) v(x, y);
-- name: a volatile query in a lateral join
WITH c AS (SELECT pg_relation_size('orders') r) SELECT count(DISTINCT x.r) FROM generate_series(1,5) g, LATERAL (SELECT c.r FROM c WHERE g > 0) x;
-- name: a volatile query in a join with a subquery
WITH c AS (SELECT pg_relation_size('orders') r) SELECT count(DISTINCT c.r) FROM generate_series(1,5) g LEFT JOIN c ON (SELECT g > 0);
-- name: a volatile query on the left of a lateral join
WITH c AS (SELECT pg_relation_size('orders') r) SELECT count(DISTINCT c.r) FROM c, LATERAL (SELECT c.r FROM generate_series(1,5)) x;
-- name: volatile and other conditions
SELECT count(*) FROM generate_series(1, 1000) g WHERE pg_relation_size('orders') > 0 AND g % 10 = 0 AND g < 500;
-- name: a volatile filter of a subquery
SELECT count((SELECT 10/a)) FILTER (WHERE a <> 0 AND pg_relation_size('orders') > 0) FROM (VALUES (0),(5)) v(a);
-- name: a volatile query that is used twice
WITH c AS (SELECT random() AS r FROM generate_series(1, 5)) SELECT count(*) FROM c a JOIN c b ON a.r = b.r;
-- name: a volatile query that is used in subqueries
WITH c AS (SELECT random() AS r), d AS (SELECT r FROM c) SELECT (SELECT r FROM c) = (SELECT r FROM d), (SELECT c.r FROM c) = d.r FROM d;
-- name: a volatile query that is used in a subquery of each row
WITH c AS (SELECT random() AS r) SELECT count(DISTINCT (SELECT c.r + g * 0 FROM c)) FROM generate_series(1, 5) g, c;
