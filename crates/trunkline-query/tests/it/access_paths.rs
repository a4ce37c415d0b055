//! Access paths: whichever way a scan gets to its rows, they are the same rows.
//!
//! Each random predicate is evaluated with a sequential scan, an index scan and a bitmap scan, each of
//! which is forced by settings as on a server, and with the path that is chosen. `TRUNKLINE_SEED` is the
//! first seed, and `TRUNKLINE_QUERIES` the number of predicates for each directory. `cargo xtask soak
//! access-paths` runs more of them, and needs the line that each test prints.

use std::fs;
use std::path::Path;

use trunkline_aio::facade::env;
use trunkline_aio::facade::random::Rng;
use trunkline_engine::datadir::{DataDir, OpenOptions};
use trunkline_format::{BLOCK_SIZE, PageBytes, page_checksum};
use trunkline_query::Session;

use crate::cluster::{fixtures, runtime};
use crate::compared_counts::print_counts;
use crate::index_pages::IndexPages;
use crate::server::{Server, servers};
use crate::sessions::{open_in, open_on, run};

/// How many predicates CI evaluates for each directory.
const PREDICATES: usize = 60;

/// The settings that force a path, with what a plan must contain for the path to be used.
pub(crate) const PATHS: [(&str, [&str; 3], &str); 4] = [
    ("sequential", ["on", "off", "off"], "Seq Scan"),
    ("index", ["off", "on", "off"], "Index Scan"),
    ("bitmap", ["off", "off", "on"], "Bitmap Heap Scan"),
    ("chosen", ["on", "on", "on"], ""),
];

/// A column with its type, and values that conditions compare it with.
#[derive(Clone)]
pub(crate) struct Column {
    pub(crate) name: String,
    pub(crate) type_name: String,
    pub(crate) values: Vec<String>,
}

/// A table with columns that have indexes.
pub(crate) struct Table {
    pub(crate) name: String,
    pub(crate) columns: Vec<Column>,
}

impl Table {
    /// Some predicates.
    pub(crate) fn predicates(&self, seed: u64, count: usize) -> Vec<String> {
        let mut generator = Predicates { rng: Rng::new(seed), table: self };
        (0..count).map(|_| generator.predicate(2)).collect()
    }
}

pub(crate) fn number(name: &str, default: usize) -> usize {
    env::var(name).map_or(default, |text| {
        text.to_string_lossy().parse().unwrap_or_else(|_| panic!("{name} is not a number"))
    })
}

/// Makes predicates.
pub(crate) struct Predicates<'t> {
    pub(crate) rng: Rng,
    pub(crate) table: &'t Table,
}

impl Predicates<'_> {
    pub(crate) fn pick<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        let at = self.rng.below(all.len() as u64) as usize;
        all.get(at).expect("not empty")
    }

    fn column(&mut self) -> usize {
        self.rng.below(self.table.columns.len() as u64) as usize
    }

    fn value(&mut self, column: &Column) -> String {
        let value = self.pick(&column.values).clone();
        format!("'{}'::{}", value.replace('\'', "''"), column.type_name)
    }

    /// An integer of another type than the column's, often one that the column can't hold.
    fn other_integer(&mut self, column: &Column) -> Option<String> {
        let others: &[&str] = match &*column.type_name {
            "int2" => &["int4", "int8"],
            "int4" => &["int2", "int8"],
            "int8" => &["int2", "int4"],
            _ => return None,
        };
        let other = *self.pick(others);
        let extremes: &[&str] = match other {
            "int2" => &["-32768", "32767", "7", "0"],
            "int4" => &["-2147483648", "2147483647", "40000", "11"],
            _ => &["-3000000000", "3000000000", "9223372036854775807", "13"],
        };
        let value = *self.pick(extremes);
        Some(format!("'{value}'::{other}"))
    }

    fn atom(&mut self) -> String {
        let table = self.table;
        let at = self.column();
        let column = table.columns.get(at).expect("a column");
        let name = &column.name;
        let operator = *self.pick(&["<", "<=", "=", "=", "=", ">=", ">"]);
        match self.rng.below(12) {
            0 => format!("{name} is null"),
            1 => format!("{name} is not null"),
            2 => {
                let (low, high) = (self.value(column), self.value(column));
                format!("{name} between {low} and {high}")
            }
            3 | 4 => {
                let values: Vec<String> =
                    (0..1 + self.rng.below(4)).map(|_| self.value(column)).collect();
                format!("{name} in ({})", values.join(", "))
            }
            5 => format!("{} {operator} {name}", self.value(column)),
            6 => match self.other_integer(column) {
                Some(value) => format!("{name} {operator} {value}"),
                None => format!("{name} {operator} {}", self.value(column)),
            },
            7 if table.columns.len() > at + 1 => {
                let second = table.columns.get(at + 1).expect("a column");
                let (one, other) = (self.value(column), self.value(second));
                let operator = if operator == "=" { "<" } else { operator };
                format!("({name}, {}) {operator} ({one}, {other})", second.name)
            }
            8 => format!("{name} = any (array[null, {}])", self.value(column)),
            9 => format!("not {name} {operator} {}", self.value(column)),
            _ => format!("{name} {operator} {}", self.value(column)),
        }
    }

    pub(crate) fn predicate(&mut self, depth: u32) -> String {
        match self.rng.below(6) {
            0 if depth > 0 => {
                format!("({} or {})", self.predicate(depth - 1), self.predicate(depth - 1))
            }
            1 | 2 if depth > 0 => {
                format!("({} and {})", self.predicate(depth - 1), self.predicate(depth - 1))
            }
            _ => self.atom(),
        }
    }
}

/// The rows of a query, sorted, by each path, and how often each forced path was used.
#[derive(Default)]
pub(crate) struct Compared {
    used: [usize; 4],
    /// Predicates that are never true, so that nothing is scanned.
    empty: usize,
}

impl Compared {
    /// Forces a path. Index-only scans are tested on their own, and may only be chosen here.
    pub(crate) async fn force(session: &mut Session, values: [&str; 3]) {
        let names = ["enable_seqscan", "enable_indexscan", "enable_bitmapscan"];
        let index_only = if values == ["on"; 3] { "on" } else { "off" };
        let settings = names.into_iter().zip(values).chain([("enable_indexonlyscan", index_only)]);
        for (name, value) in settings {
            assert_eq!(run(session, &format!("set {name} = {value}")).await, "SET");
        }
    }

    /// Compares the paths for a query that returns `key` of the rows for which a predicate is true.
    async fn compare(
        &mut self,
        session: &mut Session,
        (key, table, predicate): (&str, &str, &str),
    ) -> Vec<String> {
        let sql = format!("select {key} from {table} where {predicate}");
        let mut expected: Option<Vec<String>> = None;
        for (number, (name, values, node)) in PATHS.into_iter().enumerate() {
            Self::force(session, values).await;
            let found = run(session, &sql).await;
            let mut found: Vec<String> = found.split('|').map(str::to_owned).collect();
            found.sort_unstable();
            let plan = run(session, &format!("explain {sql}")).await;
            if plan.contains(node) {
                self.used[number] += 1;
            }
            self.empty += usize::from(number == 0 && plan.contains("One-Time Filter: false"));
            match &expected {
                None => expected = Some(found),
                Some(expected) => {
                    assert_eq!(&found, expected, "the {name} path of {sql}");
                }
            }
        }
        expected.expect("a sequential scan")
    }

    /// Every path was used for a good part of the predicates.
    fn check(&self, what: &str, predicates: usize) {
        let [sequential, index, bitmap, _] = self.used;
        let empty = self.empty;
        let counts = [
            (predicates, "predicates"),
            (PATHS.len() * predicates, "results"),
            (index, "index scans"),
            (bitmap, "bitmap scans"),
        ];
        print_counts(what, &counts);
        assert!(sequential + empty == predicates, "{sequential} and {empty} of {predicates}");
        assert!(empty * 10 <= predicates, "{empty} of {predicates} are never true");
        assert!(index * 2 > predicates, "{index} index scans of {predicates}");
        assert!(bitmap * 2 > predicates, "{bitmap} bitmap scans of {predicates}");
    }
}

/// Columns of catalogs with indexes, and their types.
const CATALOGS: &[(&str, &[(&str, &str)])] = &[
    ("pg_attribute", &[("attrelid", "oid"), ("attnum", "int2"), ("attname", "name")]),
    ("pg_class", &[("oid", "oid"), ("relname", "name"), ("relnamespace", "oid")]),
    (
        "pg_depend",
        &[
            ("classid", "oid"),
            ("objid", "oid"),
            ("objsubid", "int4"),
            ("refclassid", "oid"),
            ("refobjid", "oid"),
            ("refobjsubid", "int4"),
        ],
    ),
    (
        "pg_amop",
        &[
            ("amopfamily", "oid"),
            ("amoplefttype", "oid"),
            ("amoprighttype", "oid"),
            ("amopstrategy", "int2"),
            ("amopopr", "oid"),
            ("amoppurpose", "\"char\""),
        ],
    ),
    ("pg_proc", &[("proname", "name"), ("pronamespace", "oid"), ("oid", "oid")]),
];

/// Some values of each column.
async fn with_values(session: &mut Session, name: &str, columns: &[(&str, &str)]) -> Table {
    let mut found = Vec::new();
    for &(column, type_name) in columns {
        let sql = format!("select distinct {column}::text from {name} where {column} is not null");
        let values = run(session, &sql).await;
        let mut values: Vec<String> = values.split('|').map(str::to_owned).collect();
        values.sort_unstable();
        let step = (values.len() / 40).max(1);
        let values = values.into_iter().step_by(step).collect();
        found.push(Column { name: column.to_owned(), type_name: type_name.to_owned(), values });
    }
    Table { name: name.to_owned(), columns: found }
}

#[test]
fn every_path_gives_the_rows_of_a_sequential_scan() {
    let count = number("TRUNKLINE_QUERIES", PREDICATES);
    for (data, seed) in fixtures().into_iter().zip(number("TRUNKLINE_SEED", 1) as u64..) {
        runtime().block_on(async {
            let session = open_on(data.clone(), "fixture", &[], &[]).await;
            let mut session = session.expect("a session");
            let mut compared = Compared::default();
            for &(name, columns) in CATALOGS {
                let table = with_values(&mut session, name, columns).await;
                let mut predicates = Predicates { rng: Rng::new(seed), table: &table };
                for _ in 0..count.div_ceil(CATALOGS.len()) {
                    let predicate = predicates.predicate(2);
                    let found =
                        compared.compare(&mut session, ("ctid", &table.name, &predicate)).await;
                    let is_row = |line: &String| line.is_empty() || line.starts_with('(');
                    assert!(found.iter().all(is_row), "{predicate}: {found:?}");
                }
            }
            compared.check("catalogs", count.div_ceil(CATALOGS.len()) * CATALOGS.len());
        });
    }
}

/// The types of the generated table, and how row number `i` gets a value of each. Some values occur
/// often, and each column has nulls.
pub(crate) const TYPES: &[(&str, &str)] = &[
    ("int2", "(i * 37 % 400 - 200)::int2"),
    ("int4", "i * 7919 % 1000 - 500"),
    ("int8", "(i * 104729 % 5000)::int8 * 1000000 - 2000000000"),
    ("float4", "(i % 200 / 10.0)::float4"),
    (
        "float8",
        "case i % 50 when 0 then 'NaN' when 1 then '-0' else (i % 300 / 7.0)::text end::float8",
    ),
    ("numeric", "(i * 31 % 700)::numeric / 8"),
    ("text", "'t' || i * 17 % 350"),
    ("varchar(20)", "chr(65 + i % 26) || i % 40"),
    ("bpchar(6)", "('p' || i % 90)::bpchar(6)"),
    ("name", "('n' || i * 13 % 222)::name"),
    ("\"char\"", "chr(65 + i % 40)::\"char\""),
    ("bool", "i % 3 = 0"),
    ("bytea", "decode(lpad(to_hex(i * 11 % 500), 4, '0'), 'hex')"),
    ("date", "'2020-01-01'::date + i * 3 % 600"),
    ("timestamp", "'2020-01-01'::timestamp + (i * 5 % 900) * interval '7 hours'"),
    ("timestamptz", "'2020-01-01 00:00+00'::timestamptz + (i % 800) * interval '1 hour'"),
    ("time", "'00:00'::time + (i % 100) * interval '10 minutes'"),
    ("timetz", "('10:00:00+0' || i % 10)::timetz"),
    ("interval", "(i % 40) * interval '1 day' + (i % 3) * interval '1 month'"),
    ("uuid", "md5((i % 333)::text)::uuid"),
    ("oid", "(i * 19 % 450)::oid"),
    ("inet", "('10.0.' || i % 20 || '.' || i % 7 || '/' || 24 + i % 9)::inet"),
    ("macaddr", "('08:00:2b:01:02:' || lpad(to_hex(i % 99), 2, '0'))::macaddr"),
    ("macaddr8", "('08:00:2b:01:02:03:04:' || lpad(to_hex(i % 77), 2, '0'))::macaddr8"),
    ("bit(8)", "(i % 120)::bit(8)"),
    ("varbit", "(i % 60)::bit(6)::varbit"),
    ("money", "(i % 170)::money"),
    ("pg_lsn", "('0/' || to_hex(i % 260))::pg_lsn"),
    ("xid8", "(i % 140)::text::xid8"),
];

/// A row of the generated table that there are many copies of, until they are deleted. Each index has whole
/// pages of them, which `VACUUM` deletes.
const COPIED: usize = 777;

/// The commands that make the table. Rows are deleted before and after `VACUUM`, and some are moved.
pub(crate) fn commands() -> String {
    let column = |at: usize| format!("c{at}");
    let columns: Vec<String> =
        TYPES.iter().enumerate().map(|(at, (ty, _))| format!("{} {ty}", column(at))).collect();
    let values: Vec<String> = (TYPES.iter().enumerate())
        .map(|(at, (_, value))| format!("case when i % {} <> 0 then {value} end", 11 + at))
        .collect();
    let mut sql = format!("create table keys (id int, {});\n", columns.join(", "));
    let insert = format!("insert into keys select i, {} from generate_series", values.join(", "));
    sql.push_str(&format!("{insert}(1, 2500) i;\n"));
    sql.push_str(&format!(
        "insert into keys select 10000 + copy, {} \
         from (select {COPIED} i, copy from generate_series(1, 4000) copy) s;\n",
        values.join(", ")
    ));
    for at in 0..TYPES.len() {
        let order = ["", " desc", " nulls first", " desc nulls last"][at % 4];
        match at % 3 {
            0 => sql.push_str(&format!("create index i{at} on keys (c{at}{order});\n")),
            1 => {
                let next = (at + 1) % TYPES.len();
                sql.push_str(&format!("create index i{at} on keys (c{at}{order}, c{next});\n"));
            }
            _ => {
                sql.push_str(&format!("create index i{at} on keys (c{at}{order}) include (id);\n"))
            }
        }
    }
    sql.push_str("create index three on keys (c11, c1 desc, c6);\n");
    sql.push_str("delete from keys where id > 10000;\n");
    sql.push_str("delete from keys where c1 between -100 and -20 and id % 4 <> 0;\nvacuum keys;\n");
    sql.push_str(&format!("{insert}(2501, 2700) i;\n"));
    sql.push_str("update keys set id = id where id % 9 = 0;\n");
    sql.push_str("update keys set c1 = c1 + 1, c6 = c6 || 'x' where id % 23 = 0;\n");
    sql.push_str("delete from keys where id % 17 = 0;\nanalyze keys;\ncheckpoint;\n");
    sql
}

/// What the server returns for each predicate: the ids of the rows, in order.
fn answers(server: &Server, predicates: &[String]) -> Vec<Vec<String>> {
    let selects = predicates.iter().map(|predicate| {
        format!(
            "select coalesce(string_agg(id::text, '|' order by id::text collate \"C\"), '') from keys where {predicate};\n"
        )
    });
    let output = server.script("postgres", &selects.collect::<String>(), false);
    let output = String::from_utf8(output).expect("UTF-8");
    output.lines().map(|line| line.split('|').map(str::to_owned).collect()).collect()
}

/// Makes the table, and finds some values of each column.
pub(crate) fn generated_table(server: &Server) -> Table {
    server.script("postgres", &commands(), false);
    let mut columns = Vec::new();
    for (at, (type_name, _)) in TYPES.iter().enumerate() {
        let sql = format!(
            "select v from (select distinct c{at}::text v from keys where c{at} is not null) s order by md5(v) limit 30"
        );
        let values = String::from_utf8(server.sql("postgres", &sql)).expect("UTF-8");
        let values = values.lines().map(str::to_owned).collect();
        columns.push(Column { name: format!("c{at}"), type_name: (*type_name).to_owned(), values });
    }
    Table { name: "keys".to_owned(), columns }
}

fn compare_with_server(bin: &Path, seed: u64, count: usize) {
    let server = Server::start(bin, &[]);
    let table = generated_table(&server);
    let predicates = table.predicates(seed, count);
    let expected = answers(&server, &predicates);
    assert_eq!(expected.len(), predicates.len());
    let pages = IndexPages::of(&server, &table.name);
    let stopped = server.stop();
    pages.check(&stopped.data());
    runtime().block_on(async {
        let session = open_on(stopped.data(), "postgres", &[], &[]).await;
        let mut session = session.expect("a session");
        let mut compared = Compared::default();
        for (predicate, expected) in predicates.iter().zip(&expected) {
            let found = compared.compare(&mut session, ("id", &table.name, predicate)).await;
            assert_eq!(&found, expected, "{predicate}");
        }
        compared.check("paths", count);
    });
}

#[test]
fn every_path_gives_the_rows_of_a_server() {
    let (seed, count) =
        (number("TRUNKLINE_SEED", 1) as u64, number("TRUNKLINE_QUERIES", PREDICATES));
    for (bin, seed) in servers().iter().zip(seed..) {
        compare_with_server(bin, seed, count);
    }
}

/// Tables whose scans are explained.
pub(crate) const EXPLAINED: &str = "
    create table x (a int, b text, c bigint, d varchar(10), e date, f numeric, g float4);
    insert into x select i, 'b' || i % 100, i % 50, 'd' || i, '2020-01-01'::date + i, i / 4.0, i
        from generate_series(1, 20000) i;
    create index x_a on x (a);
    create index x_bc on x (b, c);
    create index x_d on x (d);
    create index x_e on x (e desc);
    create index x_f on x (f);
    create index x_g on x (g);
    create table y (a int primary key, b int[], c int, d int);
    insert into y select i, array[i], i % 10, i from generate_series(1, 20000) i;
    create index y_b on y (b);
    create index y_hash on y using hash (c);
    create index y_partial on y (c) where d > 5;
    create index y_expression on y ((c + d));
    create table wide (a int, b text);
    insert into wide select i % 10, repeat(md5(i::text), 30) from generate_series(1, 8000) i;
    create index wide_a on wide (a);
    vacuum analyze x, y, wide;
    checkpoint;
";

/// Conditions for which the server and we print the same lines with the same path forced.
const CONDITIONS: &str = "
    a = 5
    a > 5 and a <= 9
    a in (1, 2, 3)
    a between 3 and 7 and f < 3
    b = 'b7'
    b = 'b7' and c > 3
    b in ('b1', 'b''2') and c = 4
    d = 'd77'
    e >= '2030-01-01'
    f < 3.5
    g = '7.5'::real
    a is null
    a = 5 and lower(b) = 'x'
    a = 5 and c + a > 3
";

/// A condition that a server prints in two ways, while our bitmaps print what the index is searched for.
const COMMUTED: &str = "5 > a";

/// Conditions for bitmaps of several indexes.
const COMBINED: &str = "
    a = 5 or b = 'b7'
    (a = 5 or b = 'b7') and g > 2
    a < 3 or f > 4999 or e = '2020-01-05'
";

pub(crate) async fn lines_of(session: &mut Session, sql: &str) -> Vec<String> {
    let text = run(session, &format!("explain (costs off) {sql}")).await;
    text.split('|').map(str::to_owned).collect()
}

#[test]
fn plans_are_shown_as_a_server_shows_them() {
    let Some(bin) = servers().pop() else { return };
    let server = Server::start(&bin, &[]);
    server.script("postgres", EXPLAINED, false);
    let shown = |[seqscan, indexscan, bitmapscan]: [&str; 3], sql: &str| {
        let script = format!(
            "set enable_seqscan = {seqscan}; set enable_indexscan = {indexscan}; \
             set enable_bitmapscan = {bitmapscan}; set enable_indexonlyscan = off; \
             explain (costs off) {sql}"
        );
        let output = String::from_utf8(server.sql("postgres", &script)).expect("UTF-8");
        output.lines().map(str::to_owned).collect::<Vec<String>>()
    };
    let queries = |conditions: &'static str| {
        let lines = conditions.lines().map(str::trim).filter(|line| !line.is_empty());
        lines.map(|line| format!("select * from x where {line}"))
    };
    let mut expected = Vec::new();
    for (_, forced, node) in [PATHS[1], PATHS[2]] {
        for sql in queries(CONDITIONS) {
            expected.push((forced, sql.clone(), shown(forced, &sql)));
            assert!(expected.last().is_some_and(|(.., lines)| lines[0].contains(node)), "{sql}");
        }
    }
    for sql in queries(COMMUTED) {
        expected.push((PATHS[1].1, sql.clone(), shown(PATHS[1].1, &sql)));
    }
    for sql in queries(COMBINED) {
        expected.push((PATHS[2].1, sql.clone(), shown(PATHS[2].1, &sql)));
    }
    let stopped = server.stop();
    runtime().block_on(async {
        let session = open_on(stopped.data(), "postgres", &[], &[]).await;
        let mut session = session.expect("a session");
        let mut wrong = Vec::new();
        // One read at a time costs as much as it costs a server, and a server doesn't know where pages
        // are.
        assert_eq!(run(&mut session, "set effective_io_concurrency = 1").await, "SET");
        assert_eq!(run(&mut session, "set measured_page_costs = off").await, "SET");
        for (forced, sql, expected) in &expected {
            Compared::force(&mut session, *forced).await;
            let found = lines_of(&mut session, sql).await;
            if found != *expected {
                wrong.push(format!(
                    "{sql}\n{}\n-- expected\n{}\n",
                    found.join("\n"),
                    expected.join("\n")
                ));
            }
        }
        assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), expected.len(), wrong.join("\n"));
        assert_eq!(run(&mut session, "reset effective_io_concurrency").await, "RESET");
        choices_depend_on_selectivity(&mut session).await;
        unused_indexes_have_reasons(&mut session).await;
        counts_are_shown(&mut session).await;
    });
}

async fn choices_depend_on_selectivity(session: &mut Session) {
    Compared::force(session, ["on", "on", "on"]).await;
    let cases = [
        ("a = 5", "Index Scan using x_a"),
        ("a > 19990", "Index Scan using x_a"),
        ("a > 10", "Seq Scan"),
        ("b = 'b7'", "Bitmap Heap Scan"),
        ("b > 'a'", "Seq Scan"),
        ("d = 'd77'", "Index Scan using x_d"),
        ("c = 3", "Bitmap Heap Scan"),
        ("c > 3", "Seq Scan"),
    ];
    for (condition, node) in cases {
        let lines = lines_of(session, &format!("select * from x where {condition}")).await;
        assert!(lines.iter().any(|line| line.contains(node)), "{condition}: {lines:?}");
    }
    // With a limit, the first rows that an index leads to are enough.
    let limited = lines_of(session, "select * from x where a > 10000 limit 1").await;
    assert!(!limited.join("\n").contains("Bitmap"), "{limited:?}");
    for (limit, node) in [("", "Bitmap Heap Scan"), (" limit 1", "Index Scan using x_bc")] {
        let lines = lines_of(session, &format!("select * from x where b = 'b7'{limit}")).await;
        assert!(lines.iter().any(|line| line.contains(node)), "{limit}: {lines:?}");
    }
    // A disabled path is used if there is no other.
    Compared::force(session, ["off", "on", "on"]).await;
    let lines = lines_of(session, "select * from x where c + a > 3").await;
    assert!(lines[0].contains("Seq Scan"), "{lines:?}");
}

async fn unused_indexes_have_reasons(session: &mut Session) {
    Compared::force(session, ["on", "on", "on"]).await;
    let sql = "explain (verbose, costs off) select d from y where a > 3 and b = '{1}' and c = 1";
    let text = run(session, sql).await;
    for line in [
        "Unused Index: y_pkey: its estimated cost is ",
        "Unused Index: y_b: its first column has an operator class that is not supported",
        "Unused Index: y_hash: its access method is hash",
        "Unused Index: y_partial: it is partial",
        "Unused Index: y_expression: its first column is an expression",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
    let text = run(session, "explain (verbose, costs off) select d from y where d = 1").await;
    assert!(
        text.contains("Unused Index: y_pkey: no condition that it can be searched for"),
        "{text}"
    );
    // Indexes of a bitmap are used, wherever in the condition they are.
    let sql = "explain (verbose, costs off) select d from x where a = 5 or b = 'b7'";
    let text = run(session, sql).await;
    for index in ["x_a", "x_bc"] {
        assert!(text.contains(&format!("Bitmap Index Scan on {index}")), "{text}");
        assert!(!text.contains(&format!("Unused Index: {index}:")), "{text}");
    }
    assert!(text.contains("Unused Index: x_d: no condition that it can be searched for"), "{text}");
    let sql = "explain (verbose, costs off) select d from x where a > 5 or b > 'a'";
    let text = run(session, sql).await;
    assert!(
        text.contains("Seq Scan") && text.contains("Unused Index: x_a: its estimated"),
        "{text}"
    );
}

/// Rows and pages of bitmaps, exact and lossy.
async fn counts_are_shown(session: &mut Session) {
    Compared::force(session, ["off", "off", "on"]).await;
    let options = "explain (analyze, costs off, timing off, summary off, buffers off)";
    let sql = format!("{options} select * from x where a <= 5000 and c <> 3");
    let text = run(session, &sql).await;
    let expected = "Bitmap Heap Scan on x (actual rows=4900.00 loops=1)|  Recheck Cond: (a <= 5000)\
                    |  Filter: (c <> 3)|  Rows Removed by Filter: 100|  Heap Blocks: exact=";
    assert!(text.starts_with(expected), "{text}");
    let index = "|  ->  Bitmap Index Scan on x_a (actual rows=5000.00 loops=1)\
                 |        Index Cond: (a <= 5000)";
    assert!(text.ends_with(index), "{text}");
    assert_eq!(run(session, "set work_mem = '64kB'").await, "SET");
    // 64 kB are enough for about 670 pages, and there are 1,000. Of a lossy one, all rows are rechecked.
    let rows = run(session, "select count(b) from wide where a = 3").await;
    let text = run(session, &format!("{options} select * from wide where a = 3")).await;
    assert_eq!(run(session, "reset work_mem").await, "RESET");
    assert_eq!(rows, "800");
    assert!(text.contains("actual rows=800.00") && text.contains(" lossy="), "{text}");
    assert!(text.contains("Rows Removed by Index Recheck: "), "{text}");
    // An OR of many arms needs memory for two bitmaps at a time.
    assert_eq!(run(session, "set work_mem = '256kB'").await, "SET");
    let arms: Vec<String> =
        (0..60).map(|at| format!("f = {} or a = {}", at * 80, at * 300)).collect();
    let sql = format!("{options} select * from x where {}", arms.join(" or "));
    let text = run(session, &sql).await;
    assert_eq!(run(session, "reset work_mem").await, "RESET");
    assert!(text.contains("Heap Blocks: exact=") && !text.contains("lossy="), "{text}");
}

/// A table with an index.
const INDEXED: &str = "
    create table t (a int primary key, b text);
    insert into t select i, 'b' from generate_series(1, 20000) i;
    vacuum analyze t;
    checkpoint;
";

/// In a cluster that has crashed, a row may be in the table, and its entry not in the index.
#[test]
fn indexes_of_a_crashed_cluster_are_not_used() {
    let Some(bin) = servers().pop() else { return };
    let server = Server::start(&bin, &[]);
    server.script("postgres", INDEXED, false);
    let stopped = server.stop_at_once();
    let options = OpenOptions { force_unclean: true, ..OpenOptions::default() };
    runtime().block_on(async {
        let dir = DataDir::open(&stopped.data(), options).expect("a data directory");
        let mut session = open_in(dir, "postgres", &[], &[]).await;
        Compared::force(&mut session, ["off", "on", "on"]).await;
        let sql = "select b from t where a = 42";
        let text = run(&mut session, &format!("explain (verbose, costs off) {sql}")).await;
        let why = "Unused Index: t_pkey: the cluster was not shut down cleanly";
        assert!(text.contains("Seq Scan") && text.contains(why), "{text}");
        assert_eq!(run(&mut session, sql).await, "b");
    });
}

#[test]
fn a_damaged_index_is_an_error_and_the_table_can_be_read_without_it() {
    let Some(bin) = servers().pop() else { return };
    let server = Server::start(&bin, &[]);
    server.script("postgres", INDEXED, false);
    let file = server.sql("postgres", "select pg_relation_filepath('t_pkey')");
    let file = String::from_utf8(file).expect("UTF-8");
    let stopped = server.stop();
    let path = stopped.data().join(file.trim());
    let mut bytes = fs::read(&path).expect("read");
    // Two entries of the first leaf, exchanged.
    let page: &mut PageBytes = bytes[BLOCK_SIZE..].first_chunk_mut().expect("a page");
    let (five, six) = (24 + 4 * 4, 24 + 4 * 5);
    for at in 0..4 {
        page.swap(five + at, six + at);
    }
    let checksum = page_checksum(page, 1);
    page[8..10].copy_from_slice(&checksum.to_le_bytes());
    let damaged = bytes.clone();
    fs::write(&path, bytes).expect("written");
    let found = counts_by_path(&stopped.data());
    for found in &found[1..] {
        assert!(found.starts_with("XX002 ") && found.contains("block 1"), "{found}");
    }
    assert_eq!(found[0], "300");
    // An index without its root, or without any page, doesn't have all rows either.
    for blocks in [0, 1, 2] {
        fs::write(&path, &damaged[..blocks * BLOCK_SIZE]).expect("written");
        let found = counts_by_path(&stopped.data());
        assert!(found[1..].iter().all(|found| found.starts_with("XX")), "{blocks}: {found:?}");
        assert_eq!(found[0], "300");
    }
}

/// What each forced path returns for the same rows of a table of which an index is damaged.
fn counts_by_path(data: &Path) -> Vec<String> {
    runtime().block_on(async {
        let session = open_on(data.to_owned(), "postgres", &[], &[]).await;
        let mut session = session.expect("a session");
        let sql = "select count(b) from t where a between 1 and 300";
        let mut counts = Vec::new();
        for (_, forced, _) in &PATHS[..3] {
            Compared::force(&mut session, *forced).await;
            counts.push(run(&mut session, sql).await);
        }
        counts
    })
}
