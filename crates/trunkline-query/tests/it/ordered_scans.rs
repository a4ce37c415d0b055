//! `ORDER BY` through indexes: the same rows in the same order as a sort and as a server returns them,
//! shown as a server shows them, and with a limit, no more pages than it takes.
//!
//! Each random query is evaluated with a sort, in the order of an index if there is one, and as it is
//! chosen. `TRUNKLINE_SEED` and `TRUNKLINE_QUERIES` are those of the other paths.

use std::path::Path;

use trunkline_aio::facade::random::Rng;
use trunkline_query::Session;

use crate::access_paths::{
    Compared, EXPLAINED, Predicates, Table, generated_table, lines_of, number,
};
use crate::cluster::runtime;
use crate::compared_counts::print_counts;
use crate::server::{Server, servers};
use crate::sessions::{open_on, run};

/// How many queries CI evaluates for each server.
const QUERIES: usize = 40;

/// The settings of `enable_seqscan`, `enable_indexscan` and `enable_bitmapscan` that force a sort, that
/// prefer the order of an index, and that leave the choice to the costs.
const WAYS: [(&str, [&str; 3]); 3] = [
    ("sorted", ["on", "off", "on"]),
    ("ordered", ["off", "on", "off"]),
    ("chosen", ["on", "on", "on"]),
];

/// A query that returns its sort keys, and the row's id behind them unless it has a limit.
struct OrderedQuery {
    sql: String,
    /// The number of keys.
    keys: usize,
}

/// Indexes with several columns of the generated table, as sort keys.
const SEVERAL: [&[(&str, bool, bool)]; 3] = [
    &[("c11", false, false), ("c1", true, true), ("c6", false, false)],
    &[("c1", true, true), ("c2", false, false)],
    &[("c4", false, false), ("c5", false, false)],
];

/// A key as a server shows it, so that equal values are equal texts.
fn shown(column: &str, type_name: &str) -> String {
    match type_name {
        "float8" => format!("({column} + 0)::text"),
        "interval" => format!("justify_days({column})::text"),
        "bpchar(6)" => format!("rtrim({column}::text)"),
        _ => format!("{column}::text"),
    }
}

fn key(name: &str, descending: bool, nulls_first: bool) -> String {
    let direction = if descending { " desc" } else { "" };
    let nulls = match (descending, nulls_first) {
        (true, false) => " nulls last",
        (false, true) => " nulls first",
        _ => "",
    };
    format!("{name}{direction}{nulls}")
}

fn query(generator: &mut Predicates<'_>, table: &Table) -> OrderedQuery {
    let mut columns: Vec<(String, bool, bool)> = Vec::new();
    if generator.rng.below(2) == 0 {
        let (index, back) = (*generator.pick(&SEVERAL), generator.rng.below(2) == 0);
        let count = 1 + generator.rng.below(index.len() as u64) as usize;
        let given = index.iter().take(count);
        columns.extend(given.map(|&(name, descending, nulls_first)| {
            (name.to_owned(), descending != back, nulls_first != back)
        }));
        if generator.rng.below(4) == 0
            && let Some(last) = columns.last_mut()
        {
            last.1 = !last.1;
        }
    } else {
        let column = generator.pick(&table.columns).name.clone();
        columns.push((column, generator.rng.below(2) == 0, generator.rng.below(2) == 0));
        if generator.rng.below(4) == 0 {
            let column = generator.pick(&table.columns).name.clone();
            columns.push((column, generator.rng.below(2) == 0, generator.rng.below(2) == 0));
        }
    }
    let mut conditions = Vec::new();
    if generator.rng.below(3) == 0
        && let Some((name, ..)) = columns.first()
        && let Some(first) = table.columns.iter().find(|column| column.name == *name)
    {
        // The column of the first key has one value, so that others decide.
        let value = generator.pick(&first.values).replace('\'', "''");
        conditions.push(format!("{name} = '{value}'::{}", first.type_name));
    }
    if generator.rng.below(2) == 0 {
        conditions.push(generator.predicate(1));
    }
    let condition = match conditions.is_empty() {
        true => String::new(),
        false => format!(" where {}", conditions.join(" and ")),
    };
    let types = |name: &str| {
        let found = table.columns.iter().find(|column| column.name == name);
        found.map_or("", |column| &column.type_name)
    };
    let mut output: Vec<String> =
        columns.iter().map(|(name, ..)| shown(name, types(name))).collect();
    let limit = match generator.rng.below(4) {
        0 => " limit 1".to_owned(),
        1 => format!(" limit {}", 1 + generator.rng.below(300)),
        2 => format!(" limit {} offset {}", generator.rng.below(40), generator.rng.below(90)),
        _ => {
            output.push("id::text".to_owned());
            String::new()
        }
    };
    let keys: Vec<String> = columns
        .iter()
        .map(|(name, descending, nulls_first)| key(name, *descending, *nulls_first))
        .collect();
    let row = output.iter().map(|text| format!("coalesce({text}, '-')"));
    let row = row.collect::<Vec<_>>().join(" || '/' || ");
    OrderedQuery {
        sql: format!("select {row} from keys{condition} order by {}{limit}", keys.join(", ")),
        keys: keys.len(),
    }
}

/// A query for each column, in the order of its index.
fn each_column(table: &Table) -> Vec<OrderedQuery> {
    let columns = table.columns.iter().enumerate().map(|(at, column)| {
        let text = shown(&column.name, &column.type_name);
        let back = at % 2 == 1;
        // As the indexes were made.
        let (descending, nulls_first) =
            [(false, false), (true, true), (false, true), (true, false)][at % 4];
        let key = key(&column.name, descending != back, nulls_first != back);
        let row = format!("coalesce({text}, '-')");
        OrderedQuery { sql: format!("select {row} from keys order by {key} limit 333"), keys: 1 }
    });
    columns.collect()
}

/// The keys of rows in their order, and the rows in any order.
fn in_order(query: &OrderedQuery, text: &str) -> (Vec<String>, Vec<String>) {
    let mut rows: Vec<String> = text.split('|').map(str::to_owned).collect();
    let keys = rows.iter().map(|row| {
        // Only an id, which has no slash, may be behind the keys; some keys have one.
        match query.sql.contains("id::text") {
            true => row.rsplit_once('/').map_or("", |(keys, _)| keys).to_owned(),
            false => row.clone(),
        }
    });
    let keys = keys.collect();
    rows.sort_unstable();
    (keys, rows)
}

fn compare_with_server(bin: &Path, seed: u64, count: usize) {
    let server = Server::start(bin, &[]);
    let table = generated_table(&server);
    let mut generator = Predicates { rng: Rng::new(seed), table: &table };
    let mut queries = each_column(&table);
    let columns = queries.len();
    queries.extend((0..count).map(|_| query(&mut generator, &table)));
    let script: String =
        queries.iter().map(|query| format!("{};\n\\echo ~\n", query.sql)).collect();
    let output = String::from_utf8(server.script("postgres", &script, false)).expect("UTF-8");
    let expected: Vec<String> = output
        .split("~\n")
        .map(|rows| rows.trim_end_matches('\n').replace('\n', "|"))
        .take(queries.len())
        .collect();
    assert_eq!(expected.len(), queries.len());
    let stopped = server.stop();
    runtime().block_on(async {
        let session = open_on(stopped.data(), "postgres", &[], &[]).await;
        let mut session = session.expect("a session");
        let (mut used, mut wrong) = ([0; 3], Vec::new());
        let (mut several, mut backward) = (0, 0);
        for (query, expected) in queries.iter().zip(&expected).take(columns) {
            Compared::force(&mut session, WAYS[1].1).await;
            let found = run(&mut session, &query.sql).await;
            let plan = run(&mut session, &format!("explain (costs off) {}", query.sql)).await;
            if found != *expected || plan.contains("Sort Key") {
                wrong.push(format!("{}\n  {found}\n  {expected:?}\n  {plan}", query.sql));
            }
        }
        for (query, expected) in queries.iter().zip(&expected).skip(columns) {
            let sql = &query.sql;
            let expected = in_order(query, expected);
            for (way, (name, forced)) in WAYS.into_iter().enumerate() {
                Compared::force(&mut session, forced).await;
                let found = run(&mut session, sql).await;
                let plan = run(&mut session, &format!("explain (costs off) {sql}")).await;
                if in_order(query, &found) != expected {
                    wrong.push(format!("{name}: {sql}\n  {found}\n  {expected:?}\n  {plan}"));
                }
                if plan.contains(" using ") && !plan.contains("Sort Key") {
                    used[way] += 1;
                    several += usize::from(way == 1 && query.keys > 1);
                    backward += usize::from(way == 1 && plan.contains("Index Scan Backward"));
                }
            }
        }
        assert!(wrong.is_empty(), "{} of {count}:\n{}", wrong.len(), wrong.join("\n"));
        let [sorted, ordered, chosen] = used;
        print_counts(
            "order",
            &[
                (count, "queries"),
                (WAYS.len() * count + columns, "results"),
                (ordered + columns, "in the order of an index"),
                (backward, "backward"),
            ],
        );
        assert_eq!(sorted, 0, "sorts of {count} queries");
        assert!(ordered * 4 > count && chosen * 10 > count, "{ordered}, {chosen} of {count}");
        assert!(several * 30 > count && backward * 15 > count, "{several}, {backward} of {count}");
    });
}

#[test]
fn the_order_of_an_index_is_that_of_a_sort() {
    let (seed, count) = (number("TRUNKLINE_SEED", 1) as u64, number("TRUNKLINE_QUERIES", QUERIES));
    for (bin, seed) in servers().iter().zip(seed..) {
        compare_with_server(bin, seed, count);
    }
}

/// Queries for which a server and we print the same plan, if only index scans are enabled.
const SHOWN: &str = "
    select * from x order by a
    select * from x order by a desc
    select * from x order by a limit 5
    select * from x order by a desc limit 5 offset 3
    select * from x order by a nulls first
    select * from x order by a desc nulls last limit 3
    select * from x order by e
    select * from x order by e desc
    select * from x order by e nulls first
    select * from x order by f limit 1
    select * from x order by g desc
    select * from x order by b, c
    select * from x order by b desc, c desc
    select * from x order by b
    select * from x order by c
    select * from x where b = 'b7' order by c
    select * from x where b = 'b7' order by c desc, b limit 3
    select * from x where b = 'b7' order by b, c
    select * from x where b in ('b7', 'b8') order by c
    select * from x where b > 'b7' order by b desc
    select * from x where a > 100 order by a desc
    select * from x where a > 100 and c = 4 order by a
    select * from x where a = 5 order by a
    select * from x where f is null order by f
    select * from x where f < 3 order by f desc
    select a, c + 1 from x order by a
    select a, c + 1 as k from x order by k
    select k from (select a as k, b from x where b > 'b1') s order by k limit 7
    select d::text from x order by d
    select count(*) from (select a from x order by a limit 10) s
    select max(k) from (select a as k from x limit 10) s
    select * from x order by a + 0
    select * from x order by -a
";

/// With sorts of a part of the keys, a server's plans are others.
const SETTINGS: &str = "set enable_seqscan = off; set enable_bitmapscan = off; \
    set enable_indexonlyscan = off; set enable_incremental_sort = off; \
    set max_parallel_workers_per_gather = 0;";

#[test]
fn ordered_scans_are_shown_as_a_server_shows_them() {
    let Some(bin) = servers().pop() else { return };
    let server = Server::start(&bin, &[]);
    server.script("postgres", EXPLAINED, false);
    let queries: Vec<&str> = SHOWN.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let shown = |sql: &&str| {
        let output = server.sql("postgres", &format!("{SETTINGS} explain (costs off) {sql}"));
        let output = String::from_utf8(output).expect("UTF-8");
        let lines = output.lines().filter(|line| line.trim() != "Disabled: true");
        lines.map(str::to_owned).collect::<Vec<String>>()
    };
    let expected: Vec<Vec<String>> = queries.iter().map(shown).collect();
    let stopped = server.stop();
    runtime().block_on(async {
        let session =
            open_on(stopped.data(), "postgres", &[], &[("max_parallel_workers_per_gather", "0")]);
        let mut session = session.await.expect("a session");
        Compared::force(&mut session, WAYS[1].1).await;
        // One read at a time costs as much as it costs a server.
        assert_eq!(run(&mut session, "set effective_io_concurrency = 1").await, "SET");
        let mut wrong = Vec::new();
        for (sql, expected) in queries.iter().zip(&expected) {
            let found = lines_of(&mut session, sql).await;
            if found != *expected {
                let (found, expected) = (found.join("\n"), expected.join("\n"));
                wrong.push(format!("{sql}\n{found}\n-- expected\n{expected}\n"));
            }
        }
        assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), queries.len(), wrong.join("\n"));
        costs_decide(&mut session).await;
        // Which rows a limit returns doesn't depend on what is done with them.
        let limited =
            run(&mut session, "select a from (select a from x limit 3) s order by a desc");
        assert_eq!(limited.await, "3|2|1");
    });
}

async fn costs_decide(session: &mut Session) {
    Compared::force(session, ["on", "on", "on"]).await;
    // The table is in the order of a and f, and not in that of b and c.
    let cases = [
        ("4", "select * from x order by a", "Index Scan using x_a"),
        ("4", "select * from x order by b, c", "Index Scan using x_bc"),
        ("20", "select * from x order by b, c", "Seq Scan"),
        ("20", "select * from x order by b, c limit 3", "Index Scan using x_bc"),
        (
            "20",
            "select * from x order by b desc, c desc limit 90",
            "Index Scan Backward using x_bc",
        ),
        ("20", "select * from x order by b, c limit 19000", "Seq Scan"),
        (
            "20",
            "select * from x where c = 3 order by a desc limit 2",
            "Index Scan Backward using x_a",
        ),
        ("4", "select * from x where a = 7 order by b, c limit 1", "Index Scan using x_a"),
    ];
    for (cost, sql, node) in cases {
        assert_eq!(run(session, &format!("set random_page_cost = {cost}")).await, "SET");
        let lines = lines_of(session, sql).await;
        assert!(lines.iter().any(|line| line.contains(node)), "{cost}: {sql}: {lines:?}");
    }
    assert_eq!(run(session, "set random_page_cost = 20").await, "SET");
    // The costs of the others are those with a sort, unless they give the order.
    let verbose = "explain (verbose, costs off)";
    let text = run(session, &format!("{verbose} select * from x order by b, c")).await;
    assert!(text.contains("Unused Index: x_bc: its estimated cost is "), "{text}");
    assert!(!text.contains("Unused Index: x_a:"), "{text}");
    let text = run(session, &format!("{verbose} select * from x order by b, c limit 3")).await;
    assert!(!text.contains("Unused Index"), "{text}");
    assert_eq!(run(session, "reset random_page_cost").await, "RESET");
    let text = run(session, &format!("{verbose} select * from x where c > 3 order by a")).await;
    for line in ["x_bc: its estimated cost", "x_d: no condition that it can be searched for"] {
        assert!(text.contains(&format!("Unused Index: {line}")), "{text}");
    }
    assert!(!text.contains("Unused Index: x_a:"), "{text}");
}

/// A table in random order, of which each block has 20 rows.
const SHUFFLED: &str = "
    create table shuffled (a int, b int, c text);
    insert into shuffled select i, i % 10, repeat('x', 350) from generate_series(1, 12000) i
        order by md5(i::text);
    create index shuffled_a on shuffled (a);
    vacuum analyze shuffled;
    checkpoint;
";

/// Queries that need few pages, with the number of rows that they look at.
const LIMITED: [(&str, u64); 8] = [
    ("select * from shuffled order by a limit 1", 1),
    ("select * from shuffled order by a desc limit 1", 1),
    ("select * from shuffled order by a limit 100", 100),
    ("select * from shuffled order by a desc limit 100", 100),
    ("select * from shuffled where a > 5000 order by a limit 60 offset 40", 100),
    ("select * from shuffled where b = 7 order by a limit 1", 7),
    ("select * from shuffled where b = 7 order by a limit 13", 127),
    ("select c || 'y' from shuffled where b <> 3 order by a desc limit 100", 111),
];

/// The root, and the leaves of at most 127 rows: one, or two if they begin at the end of one.
const INDEX_PAGES: u64 = 4;

/// The buffers that a query accesses: hits and reads.
async fn buffers(session: &mut Session, sql: &str) -> [u64; 2] {
    let options = "explain (analyze, buffers, costs off, timing off, summary off)";
    let text = run(session, &format!("{options} {sql}")).await;
    assert!(text.contains("using shuffled_a"), "{text}");
    let line = text.split('|').find_map(|line| line.trim().strip_prefix("Buffers: shared"));
    let line = line.unwrap_or_else(|| panic!("{text}"));
    ["hit=", "read="].map(|label| {
        let found = line.split(' ').find_map(|word| word.strip_prefix(label));
        found.map_or(0, |count| count.parse().expect("a number"))
    })
}

async fn session_with(data: &Path, concurrency: &str) -> Session {
    let settings = [("effective_io_concurrency", concurrency)];
    let session = open_on(data.to_owned(), "postgres", &[], &settings).await;
    session.expect("a session")
}

#[test]
fn a_limit_needs_few_pages() {
    let Some(bin) = servers().pop() else { return };
    let server = Server::start(&bin, &[]);
    server.script("postgres", SHUFFLED, false);
    let stopped = server.stop();
    let data = stopped.data();
    runtime().block_on(async {
        let mut plain = session_with(&data, "0").await;
        for (sql, rows) in LIMITED {
            let [hits, reads] = buffers(&mut plain, sql).await;
            let needed = hits + reads;
            assert!(needed >= rows && needed <= rows + INDEX_PAGES, "{sql}: {needed}");
            // Cold: the pool of a new engine is empty.
            let mut ahead = session_with(&data, "16").await;
            let [hits, reads] = buffers(&mut ahead, sql).await;
            assert!(reads > 0 && reads <= 2 * needed, "{sql}: {reads} reads, not {needed}");
            assert!(hits + reads <= 2 * needed, "{sql}: {hits} hits, {reads} reads");
            // Cached.
            let [hits, reads] = buffers(&mut ahead, sql).await;
            assert_eq!(reads, 0, "{sql}");
            assert!(100 * hits <= 102 * needed, "{sql}: {hits} hits, not {needed}");
        }
    });
}
