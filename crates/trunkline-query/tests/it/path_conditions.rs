//! Conditions that could easily say more than the filter that they come from, so that rows would be
//! missing: nulls, values of other types, padding, -0 and NaN, old rows of columns that were added later,
//! children with other columns, and scans that are executed more than once.
//!
//! Every query is evaluated by each kind of path, and compared with a server.

use std::path::Path;

use trunkline_query::Session;

use crate::access_paths::{Compared, PATHS};
use crate::cluster::runtime;
use crate::compared_counts::print_counts;
use crate::server::{Server, servers};
use crate::sessions::{open_on, run};

const TABLES: &str = r#"
    create domain small as int4 check (value < 100000);
    create type label as enum ('one', 'two', 'three');

    create table t (id int, gone text, a int, b int, flag bool, s small, c text collate "C", p bpchar(8),
        v varchar(12), n name, f float8, g float4, d date, ts timestamp, tz timestamptz, num numeric,
        i2 int2, i8 int8, o oid, ch "char", e label, arr int[], r int4range);
    insert into t select i, 'gone' || i, nullif(i % 50, 7), nullif(i % 20, 3),
        case i % 3 when 0 then true when 1 then false end, i % 300,
        case when i % 31 <> 0 then 'c' || i % 90 end, 'p' || i % 40, 'v' || i % 60,
        case when i % 10 = 0 then repeat('n', 63) else 'n' || i % 70 end,
        case i % 9 when 0 then '-0' when 1 then '0' when 2 then 'NaN' when 3 then '-Infinity'
            when 4 then null else (i % 25 / 10.0)::text end::float8,
        case i % 9 when 0 then '-0' when 1 then 'NaN' when 2 then 'Infinity' when 3 then null
            else (i % 25 / 10.0)::text end::float4,
        case when i % 100 = 0 then 'infinity' else '2020-01-01'::date + i % 200 end,
        '2020-01-01'::timestamp + (i % 500) * interval '6 hours',
        '2020-01-01 00:00+00'::timestamptz + (i % 500) * interval '6 hours',
        case when i % 77 = 0 then 'NaN' else (i % 120)::numeric / 4 end,
        i % 130, (i % 110)::int8 * 1000000000, (i % 140)::oid, chr(60 + i % 50)::"char",
        (array['one', 'two', 'three'])[1 + i % 3]::label, array[i % 5, i % 7], int4range(i % 9, i % 9 + 3)
        from generate_series(1, 3000) i;
    create index t_a on t (a);
    create index t_ba on t (b desc nulls last, a nulls first);
    create index t_flag on t (flag, id) include (b);
    create index t_s on t (s);
    create index t_c on t (c desc);
    create index t_p on t (p);
    create index t_v on t (v);
    create index t_n on t (n);
    create index t_f on t (f);
    create index t_g on t (g desc);
    create index t_d on t (d);
    create index t_ts on t (ts);
    create index t_tz on t (tz);
    create index t_num on t (num);
    create index t_i2 on t (i2 nulls first);
    create index t_i8 on t (i8);
    create index t_o on t (o);
    create index t_ch on t (ch);
    create index t_e on t (e);
    create index t_arr on t (arr);
    create index t_r on t (r);
    create index t_twice on t (i2, a, i2 desc);
    create index t_pattern on t (v varchar_pattern_ops);
    create index t_partial on t (o) where a > 10;
    create index t_lower on t (lower(c), a);
    alter table t drop column gone;
    alter table t add column later int default 7;
    alter table t add column words text default 'missing';
    insert into t (id, a, later, words) select i, i % 50, i % 9, 'w' || i % 4
        from generate_series(3001, 3200) i;
    create index t_later on t (later, words);

    create table parent (id int, k int, x text);
    create table child (more text) inherits (parent);
    create table other (x text, more int, k int, id int);
    alter table other inherit parent;
    insert into parent select i, i % 40, 'x' || i % 9 from generate_series(1, 900) i;
    insert into child select i, i % 40, 'x' || i % 9, 'm' from generate_series(901, 1800) i;
    insert into other select 'x' || i % 9, 5, i % 40, i from generate_series(1801, 2700) i;
    create index on parent (k);
    create index on child (x, k);
    create index on other (k desc);

    create table parts (id int, k int, x text) partition by range (id);
    create table parts_1 partition of parts for values from (1) to (1000);
    create table parts_2 (x text, gone int, id int, k int);
    alter table parts_2 drop column gone;
    alter table parts attach partition parts_2 for values from (1000) to (5000);
    insert into parts select i, i % 45, 'x' || i % 11 from generate_series(1, 2500) i;
    create index on parts (k, x);
    create index on parts (id);

    create table long (id int, k text, raw text);
    alter table long alter column raw set storage external;
    insert into long select i, repeat('k' || i % 30, 900),
        (select string_agg(md5((i % 40 * 100 + j)::text), '') from generate_series(1, 70) j)
        from generate_series(1, 200) i;
    create index long_k on long (k, id);
    create index long_raw on long (raw);

    create unlogged table fresh (id int primary key, a int);
    insert into fresh select i, i % 10 from generate_series(1, 500) i;

    analyze;
    update t set a = a + 1 where id % 11 = 0;
    update t set flag = not flag where id % 13 = 0;
    delete from t where id % 19 = 0;
    checkpoint;
"#;

/// Conditions of `t`. Those that begin with `+` must use an index if others are disabled.
const CONDITIONS: &str = r#"
    + a = 5
    + a is null
    + a is not null
    + a in (1, null, 2)
    + a = any ('{4,null,9}')
    + a < any ('{5}')
    a < any ('{5,null,8}')
    a = any ('{}')
    a = any (null::int[])
    a = all ('{4}')
    a > all ('{4,8}')
    a not in (1, 2)
    a not in (1, null)
    + not a < 40
    not (a = 1 or b = 2)
    not (a = 1 and b = 2)
    a = null
    a > null
    a <> 5
    a is distinct from 5
    a is not distinct from 5
    a is not distinct from null
    a is distinct from null
    (a = 5) is true
    (a = 5) is not false
    (a = 5) is unknown
    (a = 5) is not null
    coalesce(a, 5) = 5
    case when a = 5 then false else true end
    + a = 3000000000
    + a < 3000000000
    + a > -3000000000 and a <= 7::int8
    a > 5.5
    a = 5.0
    a::int8 = 5
    a::int2 = 5
    a::text = '5'
    a::numeric < 3
    a + 0 = 5
    -a = -5
    + 5 = a
    + 5 < a and a < 9
    + a between 3 and 8
    a not between 3 and 8
    + a between symmetric 8 and 3
    + a > 5 and a < 3
    a = 5 and a = 6
    + a = 5 and a in (5, 6)
    + a = (3 + length('xx'))
    a = (select 5)
    a = (select max(id) from t where id < 40)
    a in (select k from parent where k < 3)
    a = 5 or b = 7
    a = 5 or b + 1 = 7
    a = 5 or b = 7 or f is null
    (a = 5 and b > 3) or (b = 7 and c < 'c5')
    (a = 5 or b = 7) and (c = 'c12' or s < 100)
    a = 5 or (b = 7 and (a = 3 or f > 2))
    a = 5 or null
    a is null or b is null
    a = 5 or a is null
    + (b, a) < (7, 20)
    + (b, a) <= (7, null)
    + (b, a) >= (7, 20)
    + (b, a) > (null, 20)
    + (7, 20) < (b, a)
    + (b, a, id) > (7, 20, 500)
    + (a, b) >= (7, 4)
    + (a, b, c) < (7, null, 'x')
    (a, b) = (7, 7)
    (a, b) in ((7, 7), (8, null))
    (a, b) <> (7, 7)
    (a, b) is not distinct from (7, null)
    row(a, b) is null
    row(a, b) is not null
    + b is null and a is null
    + b is null and a = 5
    + b is not null and a is null
    + a = 12 and b in (2, 12)
    + flag
    + not flag
    + flag is true
    + flag is false
    flag is not true
    flag is not false
    + flag is unknown
    + flag is null
    + flag is not unknown
    + flag = true
    flag <> true
    + flag < true
    + flag and id < 50
    flag or a = 5
    not (flag and a = 5)
    flag is not distinct from null
    + s = 17
    s > 280::small
    + s in (3, 4)
    s::int4 = 17
    + c = 'c5'
    + c = 'c5   '
    + c < 'c2' and c > ''
    + c in ('c1', 'c2', null)
    c like 'c1%'
    c ~ '^c1$'
    c || '' = 'c5'
    lower(c) = 'c5'
    lower(c) = 'c5' and a = 5
    + c = 'c5'::varchar
    + c = 'c5'::name
    c = 'c5'::bpchar
    + c > 'c8'::name
    c collate "POSIX" = 'c5'
    + p = 'p1'
    + p = 'p1      '
    p = 'p1'::text
    + p in ('p1  ', 'p2')
    + p < 'p2  '
    + p >= 'p3'
    p::text = 'p1'
    p::text = 'p1      '
    p like 'p1%'
    p || 'x' = 'p1x'
    + v = 'v1'
    + v = 'v1 '
    v = 'v1'::bpchar
    v::bpchar = 'v1  '
    + v = any (array['v1', 'v2']::varchar[])
    + v = any (array['v1', null]::text[])
    + v ~<~ 'v2'
    + v ~>=~ 'v3' and v < 'v4'
    + v > 'v5'
    + n = 'n5'
    + n = 'n5'::text
    + n < repeat('n', 70)
    + n >= repeat('n', 63)
    + n > repeat('n', 64)
    + n <= repeat('n', 64)
    n::text = 'n5'
    + n in ('n1', 'n2')
    + f = 0
    + f = '-0'
    + f < 0
    + f <= '-0'
    + f > '-0'
    + f = 'NaN'
    + f >= 'NaN'
    + f < 'NaN'
    + f > 'Infinity'
    + f in (0, 'NaN', 1.5)
    + f = 0.5::float4
    + f <> 0 and f = 1.5
    + g = 0.1::float4
    + g = 0.1
    + g < 0.1
    + g <= 0.1
    + g > 0.1::float8
    + g >= 1e300
    + g < 1e300
    + g = 'NaN'::float8
    + g = '-0'::float8
    + g in (0.5, 'Infinity')
    + d = '2020-02-01'
    + d < '2020-02-01'::date
    d < '2020-02-01 12:00'::timestamp
    d = '2020-02-01'::timestamp
    + d = 'infinity'
    + ts = '2020-02-01'::date
    + ts < '2020-02-01'::date
    ts > '5000000-01-01'::date
    + ts < 'infinity'::date
    ts < '2020-02-01'::timestamptz
    + tz >= '2020-02-01 10:00+02'
    tz < '2020-02-01'::date
    tz < '2020-02-01'::timestamp
    + tz < now()
    + num = 4.5
    + num = 4.50
    + num in (1, 2.0, 'NaN')
    + num > 29
    + num >= 'NaN'
    num = 4.5::float8
    + i2 = 5
    + i2 = 70000
    + i2 < 70000
    + i2 > -70000::int8
    + i2 in (1, 70000, 2)
    + i2 = 5 and a = 5
    + i2 > 120 and a < 9
    + i2 is null
    + i8 = 5000000000
    + i8 < 7
    + i8 > 100000000000
    i8 = 5e9
    + o = 7
    + o > 130::oid
    o::int8 > 130
    o = '7'::regclass
    + ch = 'A'
    + ch > 'Z'
    ch::text = 'A'
    e = 'two'
    e > 'one'
    arr = '{1,2}'
    arr @> '{1}'
    1 = any (arr)
    a = any (arr)
    r = '[1,4)'
    r @> 2
    + later = 7
    + later = 7 and words = 'missing'
    later is null
    + later < 8 and words > 'w1'
    words = 'missing'
    id = 5
    ctid = '(0,5)'
    + a = 5 and random() < 2
    + a = 5 and 10 / nullif(b, 0) > 1
"#;

/// Whole queries.
const QUERIES: &str = r#"
    select id, k, x from parent where k = 7 order by id
    select id, k, x from parent where k > 30 and x = 'x3' order by id
    select id, k from only parent where k = 7 order by id
    select id, more from other where k between 3 and 4 order by id
    select id, k, x from parts where k = 7 order by id
    select id, k, x from parts where k in (7, 9) and x > 'x2' order by id
    select id, x from parts where id between 900 and 1100 order by id
    select count(*) from (select 1 from parts where k > 5 limit 1234) s
    select count(*) from (select 1 from parent where k > 5 limit 1234) s
    select count(*) from (select 1 from t where a < 30 limit 100) s
    select count(*) from (select 1 from t where a < 30 offset 100 limit 50) s
    select id from t where a = 5 order by id desc limit 3
    select id, length(k), md5(k) from long where k = repeat('k7', 900) order by id
    select id, md5(raw) from long where k >= repeat('k7', 900) and id < 100 order by id
    select count(*) from long where raw > 'a'
    select id from long where raw = (select raw from long where id = 17) order by id
    select count(*) from fresh where id between 5 and 100 and a = 3
    select count(*) from parent p where exists (select 1 from t where t.a = p.k and t.b = 4)
    select p.id, (select count(*) from t where t.a = p.k and t.s = 30) from parent p where p.k < 4 order by 1
    select p.id, (select count(*) from t where t.a = 5 and t.s < p.k * 10) from parent p where p.k < 9 order by 1
    select p.id, l.id from parent p, lateral (select id from t where a = 9 and id > p.id order by id limit 2) l where p.k = 7 order by 1, 2
    select p.id, l.n from parent p, lateral (select count(*) n from parts q where q.k = p.k and q.id < 500) l where p.k in (3, 4) order by 1
    select count(*), sum(t.id) from t join parts q on q.k = t.a where t.b = 7 and q.id < 300
    select count(*), sum(t.id) from t left join parts q on q.k = t.a and q.id < 300 where t.b = 7
    select count(*) from t full join fresh f on f.id = t.id and f.a = 3 where t.a = 5 or f.a = 3
    select count(*) from t where a = 5 and not exists (select 1 from fresh where fresh.id = t.id and fresh.a = 3)
    with recursive w(n, k) as (select 1, 1 union all select n + 1, (select min(id) from t where a = 5 and id > w.k)::int from w where n < 9) select n, k from w order by n
    with recursive w as (select id, a from t where id = 8 union select t.id, t.a from t join w on t.id = w.a * 3 where t.b < 15) select id, a from w order by 1
    select a, count(*) from t where a in (3, 4) group by a having count(*) > 1 order by a
    select id from t where a = 5 union all select id from t where a = 6 order by 1
    select id from t where a = 5 except select id from t where b = 5 order by 1
    select count(*) from t x, t y where x.a = 5 and y.a = 5 and x.id < y.id
    select row_number() over (order by id), id from t where b = 7 and a < 20 order by 2
    select relname from pg_class where relname = 't_ba' or oid = 'pg_type'::regclass order by 1
    select count(*) from pg_attribute where attrelid = 't'::regclass and attnum > 0
    select attname from pg_attribute where attrelid = 'parts_2'::regclass and attname < 'gone' order by 1
"#;

fn listed(text: &str) -> impl Iterator<Item = &str> {
    text.lines().map(str::trim).filter(|line| !line.is_empty())
}

/// All queries, and whether an index must be used for them if nothing else is enabled.
fn queries() -> Vec<(String, bool)> {
    let conditions = listed(CONDITIONS).map(|line| {
        let (must, condition) = match line.strip_prefix("+ ") {
            Some(condition) => (true, condition),
            None => (false, line),
        };
        let sums = "count(*), coalesce(sum(id), 0), coalesce(sum(id::int8 * id), 0)";
        (format!("select {sums} from t where {condition}"), must)
    });
    conditions.chain(listed(QUERIES).map(|query| (query.to_owned(), false))).collect()
}

/// What a server returns for each query, with an unlikely line between two results.
fn answers(server: &Server, queries: &[(String, bool)]) -> Vec<String> {
    let script: String = queries.iter().map(|(sql, _)| format!("{sql};\n\\echo ~\n")).collect();
    let null = format!("\\pset null '\\\\\\\\N'\n{script}");
    let output = server.script("postgres", &null, false);
    let output = String::from_utf8(output).expect("UTF-8");
    let mut results: Vec<String> =
        output.split("~\n").map(|rows| rows.trim_end_matches('\n').replace('\n', "|")).collect();
    assert_eq!(results.pop().as_deref(), Some(""), "nothing after the last result");
    results
}

async fn check(session: &mut Session, queries: &[(String, bool)], expected: &[String]) {
    let mut wrong = Vec::new();
    for ((sql, must), expected) in queries.iter().zip(expected) {
        for (path, forced, node) in PATHS {
            Compared::force(session, forced).await;
            let found = run(session, sql).await;
            if found != *expected {
                wrong.push(format!("the {path} path of {sql}:\n  {found}\n  {expected}"));
            }
            if *must {
                let plan = run(session, &format!("explain {sql}")).await;
                if !plan.contains(node) {
                    wrong.push(format!("no {path} path of {sql}: {plan}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}:\n{}", wrong.len(), wrong.join("\n"));
}

fn compare_with_server(bin: &Path) {
    let server = Server::start(bin, &[]);
    server.script("postgres", TABLES, false);
    let queries = queries();
    let expected = answers(&server, &queries);
    assert_eq!(expected.len(), queries.len());
    let stopped = server.stop();
    runtime().block_on(async {
        let session = open_on(stopped.data(), "postgres", &[], &[]).await;
        check(&mut session.expect("a session"), &queries, &expected).await;
        let must = queries.iter().filter(|(_, must)| *must).count();
        print_counts(
            "conditions",
            &[
                (queries.len(), "queries"),
                (PATHS.len() * queries.len(), "results"),
                (must, "by each path"),
            ],
        );
    });
}

#[test]
fn conditions_say_no_more_than_their_filters() {
    for bin in servers() {
        compare_with_server(&bin);
    }
}
