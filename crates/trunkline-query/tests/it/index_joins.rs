//! Joins through indexes: they return the rows of a server, whatever the kind of the join and the type of
//! its keys, show the plans of a server, and read little in vain if they stop early. `TRUNKLINE_SEED` and
//! `TRUNKLINE_QUERIES` are those of the other paths.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use trunkline_aio::clock;
use trunkline_aio::facade::random::Rng;
use trunkline_format::{BLOCK_SIZE, PageBytes, page_checksum};
use trunkline_query::Session;

use crate::access_paths::{Predicates, TYPES, Table, commands, generated_table, number};
use crate::cluster::{fixtures, runtime};
use crate::compared_counts::print_counts;
use crate::gate::{Gate, PATIENCE, sessions};
use crate::server::{Server, servers};
use crate::sessions::{open_on, run};

/// What forces joins through indexes, and what forces hash joins.
const INDEX_JOINS: &str = "set enable_hashjoin = off; set enable_nestloop = on";
const HASH_JOINS: &str = "set enable_hashjoin = on; set enable_nestloop = off";

/// Tables of a shop. `lines` has duplicates, orders without lines, lines without orders, and nulls.
const SHOP: &str = "
    create table orders (id int primary key, day date, note text, big int8);
    insert into orders select i, '2024-01-01'::date + i % 50, 'n' || i % 90, i * 3
        from generate_series(1, 3000) i;
    create table lines (id int, o int, small int2, note varchar(20), price numeric, d date);
    insert into lines select i, case when i % 11 > 0 then i * 7 % 4000 end, (i % 300)::int2,
        case when i % 13 > 0 then 'n' || i % 120 end, i % 40 / 4.0, '2024-01-01'::date + i % 70
        from generate_series(1, 9000) i;
    create index lines_o on lines (o, price);
    create index lines_small on lines (small);
    create index lines_note on lines (note collate \"C\");
    create index orders_note on orders (note collate \"C\");
    create index orders_big on orders (big);
    create index lines_d on lines (d desc, o);
    create table few (o int, p numeric, n text, s text);
    insert into few select nullif(i * 37 % 120, 17), nullif(i % 9, 4) / 4.0, 'n' || i, repeat('s', i)
        from generate_series(1, 60) i;
    create table nothing (o int);
    create table wide (k int, t text);
    insert into wide select i % 500, (select string_agg(md5((i * j)::text), '') from generate_series(1, 200) j)
        from generate_series(1, 1500) i;
    create index wide_k on wide (k);
    create table prices (p numeric primary key);
    insert into prices select i / 4.0 from generate_series(0, 39) i;
    vacuum analyze orders, lines, few, nothing, wide, prices;
";

/// Queries of one text column.
const QUERIES: &str = "
    select f.o || ':' || l.id from few f join lines l on l.o = f.o
    select f.o || ':' || l.id from lines l join few f on f.o = l.o
    select concat_ws(':', f.n, f.o, l.id) from few f left join lines l on l.o = f.o
    select concat_ws(':', f.n, f.o, l.id) from lines l right join few f on l.o = f.o
    select concat_ws(':', f.n, f.o, l.id) from few f left join lines l on l.o = f.o and l.price > 5
    select concat_ws(':', f.n, f.o, l.id) from few f left join lines l on l.o = f.o and l.price > f.p
    select concat_ws(':', f.n, f.o, l.id) from few f left join lines l on l.o = f.o and f.p > 1
    select concat_ws(':', f.n, f.o, l.id) from few f left join lines l on l.o = f.o where l.id is null
    select concat_ws(':', f.n, f.o) from few f where exists (select from lines l where l.o = f.o)
    select concat_ws(':', f.n, f.o) from few f where not exists (select from lines l where l.o = f.o)
    select concat_ws(':', f.n, f.o) from few f where exists (select from lines l where l.o = f.o and l.price < f.p)
    select concat_ws(':', f.n, f.o) from few f where not exists (select from lines l where l.o = f.o and l.price < f.p)
    select concat_ws(':', f.n, f.o) from few f where f.o in (select l.o from lines l where l.price = 2.25)
    select concat_ws(':', f.n, f.o) from few f where f.o not in (select l.o from lines l where l.o is not null)
    select concat_ws(':', f.n, f.o) from few f where f.o not in (select l.o from lines l)
    select f.o || ':' || l.id from few f join lines l on l.o = f.o and l.price = f.p
    select f.o || ':' || l.id from few f join lines l on l.price = f.p and l.o = f.o and l.d > '2024-01-20'
    select f.o || ':' || l.id from few f join lines l on l.o = f.o and l.id % 2 = f.o % 2 and l.price in (1, 2.5, 7)
    select f.o || ':' || o.id from few f join orders o on o.big = f.o
    select f.o || ':' || l.id from few f join lines l on l.small = f.o
    select f.o || ':' || o.id from few f join orders o on o.big = f.o + 1::int8
    select l.id || ':' || o.id from (select * from lines where id < 200) l join orders o on o.note = l.note
    select f.o || ':' || l.id from few f join lines l on l.note = f.n
    select f.n || ':' || o.id from few f join orders o on o.note = f.n and o.day = '2024-01-05'
    select o.id || ':' || l.id from (select * from orders where id < 9) o join lines l on l.d = o.day and l.o = o.id
    select o.id || ':' || l.id from (select * from orders where id < 3) o join lines l on l.d = o.day and l.price > 8
    select o.id || ':' || l.id from orders o join lines l on l.o = o.id
    select n.o || ':' || l.id from nothing n join lines l on l.o = n.o
    select concat_ws(':', n.o, l.id) from nothing n right join lines l on l.o = n.o and l.id < 3 where l.id < 9
    select concat_ws(':', f.n, n.o) from few f left join nothing n on n.o = f.o
    select f.o || ':' || l.id || ':' || o.note from few f join lines l on l.o = f.o join orders o on o.id = l.small
    select f.o || ':' || g.o || ':' || l.id from few f left join few g on g.o = f.o left join lines l on l.o = g.o
    select f.n || md5(w.t) from few f join wide w on w.k = f.o
    select f.n || coalesce(md5(w.t), '-') from few f left join wide w on w.k = f.o and length(w.t) > 100
    select f.n from few f where exists (select from wide w where w.k = f.o and w.t like '%a%')
    select count(*)::text from few f join lines l on l.o = f.o
    select f.o || ':' || s.x from few f join (select o, id * 2 x from lines where price > 3) s on s.o = f.o
    select f.o || ':' || s.x from few f left join (select o, id * 2 x, 5 c from lines) s on s.o = f.o and s.c > 4
    select v.x || ':' || l.id from (values (7), (null), (7), (14), (5000)) v(x) join lines l on l.o = v.x
    select v.x || ':' || l.id from (values (7::int8), (3000000000)) v(x) join lines l on l.o = v.x
    select l.o || ':' || l.id || ':' || f.n from few f join lines l using (o) where f.n > 'n3' and l.price < 9
    select count(*)::text from (select floor(random() * 40)::int / 4.0 as r from few) f join prices p on p.p = f.r
";

/// Queries that a loop could answer wrongly, because it would call volatile functions again for each outer
/// row or each reference: of inner columns, and in a filter.
const VOLATILE: &str = "
    select concat_ws(':', count(*), count(*) filter (where r = q), count(distinct r)) from few f \
        join (select o, r, r as q from (select o, random() as r from lines) l) s on s.o = f.o % 9 * 7
    select concat_ws(':', count(*), count(distinct u)) from few f \
        left join (select o, gen_random_uuid() as u from lines) s on s.o = f.o % 9 * 7
    select count(*)::text from few f join (select o from lines where random() >= 0) s on s.o = f.o
";

/// The lines of a text that aren't empty.
fn listed(text: &'static str) -> impl Iterator<Item = &'static str> {
    text.lines().map(str::trim).filter(|line| !line.is_empty())
}

/// What a server returns for each query of one text column, sorted.
fn answers(server: &Server, queries: &[String]) -> Vec<Vec<String>> {
    let selects = queries.iter().map(|query| {
        format!(
            "select coalesce(string_agg(v, '|' order by v collate \"C\"), '') from ({query}) s(v);\n"
        )
    });
    let output = server.script("postgres", &selects.collect::<String>(), false);
    let output = String::from_utf8(output).expect("UTF-8");
    output.lines().map(|line| line.split('|').map(str::to_owned).collect()).collect()
}

async fn sorted(session: &mut Session, sql: &str) -> Vec<String> {
    let found = run(session, sql).await;
    let mut found: Vec<String> = found.split('|').map(str::to_owned).collect();
    found.sort_unstable();
    // The text of a null, which the server leaves out.
    found.retain(|line| line != "\\N");
    if found.is_empty() { vec![String::new()] } else { found }
}

async fn set(session: &mut Session, settings: &str) {
    for setting in settings.split("; ") {
        assert_eq!(run(session, setting).await, "SET", "{setting}");
    }
}

/// Compares joins through indexes with the answers. Returns the queries that were such joins.
async fn compare(
    session: &mut Session,
    queries: &[String],
    expected: &[Vec<String>],
) -> Vec<String> {
    let mut used = Vec::new();
    set(session, INDEX_JOINS).await;
    for (query, expected) in queries.iter().zip(expected) {
        let plan = run(session, &format!("explain (costs off) {query}")).await;
        let found = sorted(session, query).await;
        assert_eq!(&found, expected, "{query}\n{}", plan.replace('|', "\n"));
        if plan.contains("Nested Loop") && plan.contains("Index Cond") {
            used.push(query.clone());
        }
    }
    used
}

#[test]
fn every_kind_of_join_returns_the_rows_of_a_server() {
    let Some(bin) = servers().pop() else { return };
    let server = Server::start(&bin, &[]);
    server.script("postgres", SHOP, false);
    let queries: Vec<String> = listed(QUERIES).map(str::to_owned).collect();
    let expected = answers(&server, &queries);
    assert_eq!(expected.len(), queries.len());
    let volatile: Vec<String> = listed(VOLATILE).map(str::to_owned).collect();
    let of_volatile = answers(&server, &volatile);
    let stopped = server.stop();
    runtime().block_on(async {
        let session = open_on(stopped.data(), "postgres", &[], &[]).await;
        let mut session = session.expect("a session");
        let used = compare(&mut session, &volatile, &of_volatile).await;
        assert!(used.is_empty(), "{used:#?}");
        let used = compare(&mut session, &queries, &expected).await;
        let others: Vec<&String> = queries.iter().filter(|query| !used.contains(query)).collect();
        // NOT IN isn't a join of equalities, and `nothing` has no index.
        let others = others.into_iter().filter(|query| !query.contains(" not in "));
        let others = others.filter(|query| !query.contains("nothing")).collect::<Vec<_>>();
        assert!(others.is_empty(), "{others:#?}");
        set(&mut session, HASH_JOINS).await;
        for (query, expected) in queries.iter().zip(&expected) {
            assert_eq!(&sorted(&mut session, query).await, expected, "{query}");
        }
        let results = 2 * queries.len();
        print_counts(
            "kinds of joins",
            &[(queries.len(), "queries"), (results, "results"), (used.len(), "through an index")],
        );
    });
}

/// Each type of key, with nulls, duplicates, and indexes of all orders.
#[test]
fn keys_of_every_type_find_the_rows_of_a_server() {
    let Some(bin) = servers().pop() else { return };
    let server = Server::start(&bin, &[]);
    server.script("postgres", &commands(), false);
    let mut queries = Vec::new();
    for at in 0..TYPES.len() {
        let outer = "(select * from keys where id % 29 = 0) o";
        let on = format!("t.c{at} = o.c{at}");
        let negated = if at % 2 == 0 { "not " } else { "" };
        queries.extend([
            format!("select o.id || ':' || t.id from {outer} join keys t on {on} where o.id < 700"),
            format!(
                "select concat_ws(':', o.id, t.id) from {outer} \
                 left join keys t on {on} and t.id % 3 = 1"
            ),
            format!(
                "select o.id::text from {outer} \
                 where {negated}exists (select from keys t where {on} and t.id > o.id)"
            ),
        ]);
    }
    let expected = answers(&server, &queries);
    let stopped = server.stop();
    runtime().block_on(async {
        let session = open_on(stopped.data(), "postgres", &[], &[]).await;
        let mut session = session.expect("a session");
        let used = compare(&mut session, &queries, &expected).await;
        // Equalities of bit strings, intervals and the like may be no joins of equalities.
        let is_used = |at: usize| {
            let column = format!("t.c{at} = ");
            used.iter().filter(|query| query.contains(&column)).count()
        };
        let found: Vec<&str> = TYPES
            .iter()
            .enumerate()
            .filter(|(at, _)| is_used(*at) == 3)
            .map(|(_, (ty, _))| *ty)
            .collect();
        assert_eq!(found, SEARCHED);
        print_counts(
            "types of keys",
            &[(TYPES.len(), "types"), (queries.len(), "results"), (used.len(), "through an index")],
        );
    });
}

/// How many random joins CI compares for each server.
const JOINS: usize = 20;

/// Joins of some rows of the generated table with all of them, of which those of the inner side have a random
/// predicate.
fn random_joins(table: &Table, seed: u64, count: usize) -> Vec<String> {
    let mut generator = Predicates { rng: Rng::new(seed), table };
    let mut joins = Vec::new();
    for _ in 0..count {
        let at = generator.rng.below(TYPES.len() as u64);
        let one_of = 19 + generator.rng.below(60);
        let outer = format!("(select id outer_id, c{at} k from keys where id % {one_of} = 0) o");
        let on = format!("k = c{at} and {}", generator.predicate(1));
        joins.push(match generator.rng.below(5) {
            0 => format!("select concat_ws(':', outer_id, id) from {outer} left join keys on {on}"),
            1 => format!(
                "select outer_id::text from {outer} where exists (select from keys where {on})"
            ),
            2 => format!(
                "select outer_id::text from {outer} where not exists (select from keys where {on})"
            ),
            _ => format!("select outer_id || ':' || id from {outer} join keys on {on}"),
        });
    }
    joins
}

fn compare_random_joins(bin: &Path, seed: u64, count: usize) {
    let server = Server::start(bin, &[]);
    let table = generated_table(&server);
    let queries = random_joins(&table, seed, count);
    let expected = answers(&server, &queries);
    assert_eq!(expected.len(), queries.len());
    let stopped = server.stop();
    runtime().block_on(async {
        let session = open_on(stopped.data(), "postgres", &[], &[]).await;
        let mut session = session.expect("a session");
        let used = compare(&mut session, &queries, &expected).await.len();
        set(&mut session, "set enable_hashjoin = on").await;
        for (query, expected) in queries.iter().zip(&expected) {
            assert_eq!(&sorted(&mut session, query).await, expected, "{query}");
        }
        print_counts(
            "joins",
            &[(count, "joins"), (2 * count, "results"), (used, "through an index")],
        );
        assert!(used * 3 > count * 2, "{used} of {count}");
    });
}

#[test]
fn random_joins_return_the_rows_of_a_server() {
    let (seed, count) = (number("TRUNKLINE_SEED", 1) as u64, number("TRUNKLINE_QUERIES", JOINS));
    for (bin, seed) in servers().iter().zip(seed..) {
        compare_random_joins(bin, seed, count);
    }
}

/// The types that indexes are searched for in joins.
const SEARCHED: [&str; 26] = [
    "int2",
    "int4",
    "int8",
    "float4",
    "float8",
    "numeric",
    "text",
    "varchar(20)",
    "bpchar(6)",
    "name",
    "\"char\"",
    "bool",
    "bytea",
    "date",
    "timestamp",
    "timestamptz",
    "time",
    "timetz",
    "interval",
    "uuid",
    "oid",
    "inet",
    "macaddr",
    "money",
    "pg_lsn",
    "xid8",
];

/// Queries for which the server and we print the same lines.
const EXPLAINED: &str = "
    select * from few f join lines l on l.o = f.o
    select * from few f left join lines l on l.o = f.o and l.price > 5
    select * from few f where exists (select from lines l where l.o = f.o and l.id > 5)
    select * from few f where not exists (select from lines l where l.o = f.o and l.id > 5)
    select * from few f join lines l on l.o = f.o and l.price = f.p
    select * from few f join lines l on l.o = f.o where l.price = 3 and l.d > '2024-01-09'
    select * from few f join orders o on o.big = f.o
    select * from few f join lines l on l.small = f.o
";

#[test]
fn plans_are_shown_as_a_server_shows_them() {
    let Some(bin) = servers().pop() else { return };
    let server = Server::start(&bin, &[]);
    server.script("postgres", SHOP, false);
    let shown = |sql: &str| {
        let script = format!(
            "set enable_hashjoin = off; set enable_mergejoin = off; set enable_memoize = off; \
             set enable_bitmapscan = off; set enable_material = off; explain (costs off) {sql}"
        );
        let output = String::from_utf8(server.sql("postgres", &script)).expect("UTF-8");
        output.lines().map(str::to_owned).collect::<Vec<String>>()
    };
    let expected: Vec<_> = listed(EXPLAINED).map(|sql| (sql, shown(sql))).collect();
    let stopped = server.stop();
    runtime().block_on(async {
        let session = open_on(stopped.data(), "postgres", &[], &[]).await;
        let mut session = session.expect("a session");
        set(&mut session, INDEX_JOINS).await;
        let mut wrong = Vec::new();
        for (sql, expected) in &expected {
            let text = run(&mut session, &format!("explain (costs off) {sql}")).await;
            let found: Vec<String> = text.split('|').map(str::to_owned).collect();
            if found != *expected {
                let (found, expected) = (found.join("\n"), expected.join("\n"));
                wrong.push(format!("{sql}\n{found}\n-- expected\n{expected}\n"));
            }
        }
        assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), expected.len(), wrong.join("\n"));
        loops_are_counted(&mut session).await;
        choices_depend_on_costs(&mut session).await;
    });
}

/// The inner side has a loop for each outer row.
async fn loops_are_counted(session: &mut Session) {
    let options = "explain (analyze, costs off, timing off, summary off, buffers off)";
    let text =
        run(session, &format!("{options} select * from few f join lines l on l.o = f.o")).await;
    let rows = run(session, "select count(*) from few f join lines l on l.o = f.o").await;
    let mean = rows.parse::<f64>().expect("a number") / 60.0;
    let inner = format!("Index Scan using lines_o on lines l (actual rows={mean:.2} loops=60)");
    assert!(text.contains(&inner), "{inner}: {text}");
    assert!(text.starts_with(&format!("Nested Loop (actual rows={rows}.00 loops=1)")), "{text}");
}

async fn choices_depend_on_costs(session: &mut Session) {
    for name in ["enable_hashjoin", "enable_nestloop"] {
        assert_eq!(run(session, &format!("reset {name}")).await, "RESET");
    }
    let cases = [
        // Few keys of many rows, and all of them.
        ("select * from few f join lines l on l.o = f.o", "Nested Loop"),
        ("select * from orders o join lines l on l.o = o.id", "Hash Join"),
        ("select * from orders o join lines l on l.o = o.id limit 5", "Nested Loop"),
        (
            "select * from (select * from lines where id = 77) l join orders o on o.id = l.o",
            "Nested Loop",
        ),
    ];
    for (sql, node) in cases {
        let text = run(session, &format!("explain (costs off) {sql}")).await;
        assert!(text.contains(node), "{sql}: {text}");
    }
    // With index scans disabled, too, the hash join isn't worse.
    set(session, "set enable_hashjoin = off; set enable_indexscan = off").await;
    let text =
        run(session, "explain (costs off) select * from orders o join lines l on l.o = o.id").await;
    assert!(text.contains("Hash Join"), "{text}");
}

/// A table whose rows are found in random order, and another one with its keys.
const RANDOM: &str = "
    create table t (k int, filler text);
    insert into t select i, repeat('f', 700) from generate_series(1, 20000) i order by md5(i::text);
    alter table t add primary key (k);
    create table o (x int);
    insert into o select i * 7919 % 20000 + 1 from generate_series(1, 6000) i;
    vacuum analyze t, o;
    checkpoint;
";

/// The number after a word of an `EXPLAIN`.
fn number_after(text: &str, word: &str) -> u64 {
    let Some((_, rest)) = text.split_once(word) else { return 0 };
    let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().expect("a number")
}

/// What the inner side has done: its loops, hits and reads.
async fn inner_counts(session: &mut Session, sql: &str) -> [u64; 3] {
    let options = "explain (analyze, buffers, costs off, timing off, summary off)";
    let text = run(session, &format!("{options} {sql}")).await;
    let (_, inner) = text.split_once("Index Scan using t_pkey on t").expect("an index join");
    ["loops=", "hit=", "read="].map(|word| number_after(inner, word))
}

async fn on_random(data: &Path) -> Session {
    let instance = [("max_parallel_workers_per_gather", "0")];
    let session = open_on(data.to_owned(), "postgres", &instance, &[]).await;
    let mut session = session.expect("a session");
    set(&mut session, INDEX_JOINS).await;
    session
}

#[test]
fn a_loop_that_stops_early_has_read_little_in_vain() {
    let Some(bin) = servers().pop() else { return };
    let server = Server::start(&bin, &[]);
    server.script("postgres", RANDOM, false);
    let keys = server.sql("postgres", "select x from o order by ctid limit 1000");
    let keys = String::from_utf8(keys).expect("UTF-8");
    let keys: Vec<&str> = keys.lines().collect();
    let stopped = server.stop();
    let sql = |limit: usize| {
        format!("select t.k, length(filler) from o join t on t.k = o.x limit {limit}")
    };
    runtime().block_on(async {
        // Everything that is needed is cached by the same statement before.
        let mut session = on_random(&stopped.data()).await;
        let [loops, ..] = inner_counts(&mut session, &sql(1)).await;
        assert_eq!(loops, 1);
        let one = inner_counts(&mut session, &sql(1)).await;
        for limit in [10, 64, 100] {
            inner_counts(&mut session, &sql(limit)).await;
            let [loops, hits, reads] = inner_counts(&mut session, &sql(limit)).await;
            assert_eq!(reads, 0, "{limit}");
            let most = |needed: u64| needed + needed / 50;
            assert!(loops >= limit as u64 && loops <= most(limit as u64), "{limit}: {loops} keys");
            let needed = one.iter().skip(1).sum::<u64>() * limit as u64;
            assert!(hits <= most(needed), "{limit}: {hits} pages, {needed} are needed");
        }
        // Nothing is cached.
        for limit in [1, 20, 200] {
            let mut looping = on_random(&stopped.data()).await;
            let [loops, _, reads] = inner_counts(&mut looping, &sql(limit)).await;
            drop(looping);
            let mut single = on_random(&stopped.data()).await;
            let mut needed = 0;
            for key in keys.iter().take(limit) {
                let sql = format!("select t.k, length(filler) from t where k = {key}");
                needed += inner_counts(&mut single, &sql).await[2];
            }
            assert!(needed > limit as u64, "{limit}: {needed}");
            assert!(reads <= 2 * needed, "{limit}: {reads} reads, {needed} are needed");
            assert!(loops <= 2 * limit as u64, "{limit}: {loops} keys");
            if limit == 200 {
                assert!(loops > limit as u64, "{loops}: nothing was looked ahead");
            }
        }
    });
}

#[test]
fn damage_is_reported_as_that_of_a_scan() {
    let Some(bin) = servers().pop() else { return };
    let server = Server::start(&bin, &[]);
    server.script("postgres", RANDOM, false);
    let file = |name: &str| {
        let path = server.sql("postgres", &format!("select pg_relation_filepath('{name}')"));
        String::from_utf8(path).expect("UTF-8").trim().to_owned()
    };
    let (index, table) = (file("t_pkey"), file("t"));
    let stopped = server.stop();
    let data = stopped.data();
    let (index, table) = (data.join(index), data.join(table));
    let sql = "select count(filler) from (values (5), (6), (7)) v(x) join t on t.k = v.x";
    let found = || {
        runtime().block_on(async {
            let mut session = on_random(&data).await;
            run(&mut session, sql).await
        })
    };
    assert_eq!(found(), "3");
    // Two entries of the first leaf, exchanged.
    let bytes = fs::read(&index).expect("read");
    let mut damaged = bytes.clone();
    let page: &mut PageBytes = damaged[BLOCK_SIZE..].first_chunk_mut().expect("a page");
    let (five, six) = (24 + 4 * 5, 24 + 4 * 6);
    for at in 0..4 {
        page.swap(five + at, six + at);
    }
    let checksum = page_checksum(page, 1);
    page[8..10].copy_from_slice(&checksum.to_le_bytes());
    fs::write(&index, damaged).expect("written");
    let error = found();
    assert!(error.starts_with("XX002 ") && error.contains("block 1"), "{error}");
    // All pages of the table, without valid headers.
    fs::write(&index, bytes).expect("written");
    let length = fs::metadata(&table).expect("a file").len() as usize;
    fs::write(&table, vec![0xA5; length]).expect("written");
    let error = found();
    assert!(error.starts_with("XX001 "), "{error}");
}

/// A statement that is cancelled while its look-up waits, and one that is given up.
#[test]
fn nothing_stays_pinned() {
    let Some(data) = fixtures().pop() else { return };
    let (reads, calls): (Arc<Gate>, Arc<Gate>) = Default::default();
    let sql = "select count(*) from (values (1259::oid), (1255), (2617)) v(c) \
               join pg_depend d on d.classid = v.c and d.deptype <> 'x'";
    let pinned = "select count(*) from pg_buffercache where pinning_backends > 0";
    runtime().block_on(async {
        let [mut session, mut watcher] = sessions(data, &reads, &calls).await;
        set(&mut session, INDEX_JOINS).await;
        assert_eq!(
            run(&mut watcher, "create extension if not exists pg_buffercache").await,
            "CREATE EXTENSION"
        );
        let plan = run(&mut session, &format!("explain (costs off) {sql}")).await;
        assert!(plan.contains("Index Scan using pg_depend_depender_index"), "{plan}");
        reads.set(true);
        let canceller = session.canceller();
        let shown = format!("select wait_event from pg_stat_get_activity({})", session.pid());
        let cancelling = async {
            let deadline = clock::now().after(PATIENCE);
            while run(&mut watcher, &shown).await != "AioIoCompletion" && clock::now() < deadline {
                tokio::task::yield_now().await;
            }
            canceller.cancel();
        };
        let (found, ()) = tokio::join!(run(&mut session, sql), cancelling);
        reads.set(false);
        assert_eq!(found, "57014 canceling statement due to user request");
        assert_eq!(run(&mut watcher, pinned).await, "0");
        // A cursor that is closed in the middle of a look-up.
        let all = sql.replace("count(*)", "d.objid");
        let declare = format!("begin; declare c cursor for {all}; fetch 3 from c");
        assert!(run(&mut session, &declare).await.starts_with("BEGIN;DECLARE CURSOR;"));
        assert_eq!(run(&mut session, "close c; commit").await, "CLOSE CURSOR;COMMIT");
        assert_eq!(run(&mut watcher, pinned).await, "0");
    });
}
