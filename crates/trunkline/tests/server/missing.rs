//! `verify` compares the files of a cluster with its catalogs. It must not report anything about a
//! cluster with every kind of relation that a server may leave behind, and it must find every file
//! and page that is missing.
//!
//! ```text
//!   failed CREATE INDEX CONCURRENTLY, truncated tables, unlogged tables after a crash,
//!   empty indexes of every access method, prepared transactions, temporary tables …
//! ```

use std::fs;
use std::path::Path;

use crate::binary::run;
use crate::server::{Server, servers};

/// Relations of every kind, with and without rows.
const RELATIONS: &str = "
create table rows (i int primary key, t text, p point, a int[], r int4range);
insert into rows select i, 'row ' || i, point(i, i), array[i], int4range(i, i + 9)
  from generate_series(1, 3000) i;
create index on rows using hash (i);
create index on rows using gist (p);
create index on rows using spgist (r);
create index on rows using gin (a);
create index on rows using brin (i);
create table none (like rows including all);
create table bare as select i from generate_series(1, 999) i;
create unlogged table fleeting (like rows including all);
insert into fleeting select * from rows;
create unlogged table fleeting_bare (t text);
create sequence numbers;
create view seen as select * from rows;
create materialized view kept as select * from rows with data;
create materialized view unfilled as select * from rows with no data;
create type pair as (a int, b int);
create table parts (i int, t text) partition by range (i);
create table part1 partition of parts for values from (0) to (100);
create table part2 partition of parts for values from (100) to (200) partition by list (i);
create index on parts (i);
create table long (t text);
alter table long alter t set storage external;
insert into long select repeat('x', 100000) from generate_series(1, 9);
";

/// Makes some tables shorter.
const SHRUNK: &[&str] = &[
    "create table cut as select i, i % 10 as j, repeat('x', 300) as t from generate_series(1, 9000) i",
    "create index cut_i on cut (i)",
    "create index cut_j on cut (j)",
    "vacuum (freeze) cut",
    "delete from cut where i > 100",
    "vacuum cut",
    "create table emptied as select i from generate_series(1, 9000) i",
    "create index on emptied (i)",
    "vacuum emptied",
    "delete from emptied",
    "vacuum emptied",
    "truncate kept_rows",
    "create table dead as select i from generate_series(1, 9000) i",
    "create index on dead (i)",
    "delete from dead where i > 50",
    "vacuum (index_cleanup off) dead",
    "vacuum full rows",
    "reindex table rows",
    "alter table bare set unlogged",
    "alter table fleeting_bare set logged",
    // An invalid index of a TOAST table, as a crash in REINDEX CONCURRENTLY leaves it, is not rebuilt.
    "create table stale (t text)",
    "alter table stale alter t set storage external",
    "insert into stale select repeat('x', 50000) from generate_series(1, 50)",
    "update pg_index set indisvalid = false where indrelid = (select reltoastrelid from pg_class \
     where relname = 'stale')",
    "truncate stale",
    // In 17.10, a row that is inserted between the rows of a posting list gets an entry with the key
    // of another row, if the keys compare as equal. These keys differ in trailing blanks. (amcheck
    // reports such rows as not indexed. 15.20 doesn't deduplicate such an index.)
    "create table blanks (k bpchar)",
    "create index blanks_k on blanks (k)",
    "insert into blanks select '' from generate_series(1, 9000)",
    "delete from blanks where ctid > '(2,0)' and ctid < '(20,0)' and ctid::text ~ '[13579].$'",
    "vacuum blanks",
    "insert into blanks select ' ' from generate_series(1, 900)",
];

fn filled(bin: &Path) -> Server {
    let server = Server::start(bin, &[]);
    server.sql("postgres", "create database latin encoding 'LATIN1' locale 'C' template template0");
    server.sql("postgres", "create tablespace here location ''");
    server.sql("postgres", "create database there tablespace here");
    for database in ["postgres", "latin", "there"] {
        server.script(database, RELATIONS, false);
        server.sql(database, "create table kept_rows as select i from generate_series(1, 99) i");
        for statement in SHRUNK {
            server.sql(database, statement);
        }
        // All of its pages are in the visibility map, but no index refers to them.
        server.sql(database, "create table seen_all as select generate_series(1, 9) i");
        server.sql(database, "vacuum (freeze) seen_all");
        let method = "create access method other type table handler heap_tableam_handler";
        server.sql(database, method);
        server.sql(database, "create table odd using other as select 1 as i");
        server.sql(database, "create table moved tablespace here as select 1 as i");
        // The build of these indexes fails, so they remain without any entries, and the index of
        // the unlogged table without an init fork.
        for kind in ["", "unlogged "] {
            let table = format!("twice{}", kind.trim());
            let rows = "select 1 as i from generate_series(1, 2)";
            server.sql(database, &format!("create {kind}table {table} as {rows}"));
            let index = format!("create unique index concurrently on {table} (i);");
            server.script(database, &index, true);
        }
        let prepared = format!(
            "begin; drop table long; create table new as select 1 as i; truncate rows;
             prepare transaction '{database}';"
        );
        server.script(database, &prepared, false);
    }
    server
}

#[test]
fn a_valid_cluster_has_no_findings() {
    for bin in servers() {
        let mut server = filled(&bin);
        let major = server.major();
        // After a crash, the server resets unlogged relations to their init forks.
        server.crash();
        server.restart();
        let whole = "select count(*) from pg_class where relkind in ('r', 'i', 'S', 't', 'm')";
        let expected: u64 = ["postgres", "latin", "there", "template1"]
            .iter()
            .map(|database| {
                let text = String::from_utf8(server.sql(database, whole)).expect("text");
                text.trim().parse::<u64>().expect("a number")
            })
            .sum();
        let shared = server.sql("postgres", &format!("{whole} and relisshared"));
        let shared: u64 =
            String::from_utf8(shared).expect("text").trim().parse().expect("a number");
        let stopped = server.stop();
        let (code, out, err) = run(&stopped.data(), &["verify", "--json"]);
        assert_eq!((code, err.as_str()), (0, ""), "{major}: {out}");
        let report: serde_json::Value = serde_json::from_str(&out).expect("JSON");
        let compared = report["catalogs"]["relations"].as_u64().expect("a number");
        // We can't connect to template0, but it has about the same relations as template1.
        let template = compared - (expected - 3 * shared);
        assert!(
            (200..500).contains(&template),
            "{major}: {compared} of {expected}, {shared} shared"
        );
        let (code, out, err) = run(&stopped.data(), &["verify", "-d", "latin"]);
        assert_eq!((code, err.as_str()), (0, ""), "{major}: {out}");
        let deep = ["verify", "-d", "latin", "public.blanks", "--deep"];
        let (code, out, err) = run(&stopped.data(), &deep);
        assert_eq!((code, err.as_str()), (0, ""), "{major}: {out}");
        for (table, unproven) in [("public.seen_all", 1), ("public.cut", 0)] {
            let (code, out, err) =
                run(&stopped.data(), &["verify", "--json", "-d", "latin", table]);
            assert_eq!((code, err.as_str()), (0, ""), "{major}: {out}");
            let report: serde_json::Value = serde_json::from_str(&out).expect("JSON");
            assert_eq!(report["catalogs"]["lengths_unproven"], unproven, "{table}: {out}");
        }
    }
}

#[test]
fn what_is_missing_is_found() {
    for bin in servers() {
        let server = filled(&bin);
        let major = server.major();
        let path = |name: &str| {
            let sql = format!("select pg_relation_filepath('{name}')");
            String::from_utf8(server.sql("postgres", &sql)).expect("text").trim().to_owned()
        };
        let names = ["kept", "fleeting", "cut", "numbers", "none_a_idx", "moved", "odd"];
        let files = names.map(path);
        let stopped = server.stop();
        let [kept, fleeting, cut, numbers, gin, moved, odd] = files;
        let remove = |file: &str| fs::remove_file(stopped.data().join(file)).expect("removed");
        let cut_to = |file: &str, blocks: u64| {
            let path = stopped.data().join(file);
            let file = fs::OpenOptions::new().write(true).open(path).expect("opened");
            file.set_len(blocks * 8192).expect("cut");
        };
        let missing = "is missing, but the catalog refers to it";
        remove(&kept);
        // Only its access method knows which files this table must have.
        remove(&odd);
        remove(&format!("{fleeting}_init"));
        cut_to(&cut, 1);
        cut_to(&numbers, 0);
        cut_to(&gin, 1);
        let space = Path::new(&moved).parent().expect("a directory").display().to_string();
        fs::remove_dir_all(stopped.data().join(&space)).expect("removed");
        let (code, out, err) = run(&stopped.data(), &["verify"]);
        assert_eq!(code, 1, "{major}: {out}{err}");
        let found: Vec<&str> = out.lines().take_while(|line| !line.is_empty()).collect();
        for line in [
            format!("postgres.public.kept: {kept}: {missing}"),
            format!("postgres.public.fleeting: {fleeting}_init: {missing}"),
            format!("{space}: is missing, but the catalog refers to a relation in it"),
            format!("postgres.public.cut: {cut}: relation has 1 blocks, expected at least "),
            format!(
                "postgres.public.numbers: {numbers}: relation has 0 blocks, expected at least 1: a \
                 sequence has one page"
            ),
            format!(
                "postgres.public.none_a_idx: {gin}: relation has 1 blocks, expected at least 2: a \
                 GIN index begins with a metapage and a root"
            ),
        ] {
            let matching = found.iter().filter(|found| found.starts_with(&line)).count();
            assert_eq!(matching, 1, "{major}: {line}\n{found:#?}");
        }
        assert_eq!(found.len(), 6, "{major}: {found:#?}");
        let (_, out, _) = run(&stopped.data(), &["tables", "-d", "postgres"]);
        for (name, is_missing) in [("kept", true), ("odd", false)] {
            let begin = format!("public  {name} ");
            let line = out.lines().find(|line| line.starts_with(&begin)).expect("listed");
            assert_eq!(line.contains("missing"), is_missing, "{major}: {line}");
        }
    }
}
