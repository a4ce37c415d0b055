//! Logs of real servers with an image of every page after every change, which `verify --wal` compares
//! with what our redo makes of the records.
//!
//! Each log begins with a script that makes every operation once, and goes on with random statements of
//! three sessions, so that rows are locked by several transactions, and settings are random as well. We
//! print the seed, and for each server how many pages were compared, and which operations never were.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use serde_json::Value;
use trunkline_aio::facade::random::Rng;
use trunkline_format::Lsn;
use trunkline_format::wal::{
    LogChunk, LogEvent, LogIdentity, LogReader, RECORD_HEADER_SIZE, SegmentSize, record_crc,
};

use crate::binary::run;
use crate::differential::seeds;
use crate::server::{Server, Stopped, servers};
use crate::values::pick;
use crate::wal::segments;

/// Every operation of the managers that redo has rules for.
const EVERYTHING: &str = include_str!("../../../trunkline-format/testdata/redo.sql");

/// Operations of all versions that change pages.
const OPERATIONS: &str = "Heap/INSERT Heap/INSERT+INIT Heap/DELETE Heap/UPDATE Heap/UPDATE+INIT \
    Heap/HOT_UPDATE Heap/HEAP_CONFIRM Heap/LOCK Heap/INPLACE Heap2/MULTI_INSERT \
    Heap2/MULTI_INSERT+INIT Heap2/LOCK_UPDATED Btree/INSERT_LEAF Btree/INSERT_UPPER \
    Btree/INSERT_META Btree/SPLIT_L Btree/SPLIT_R Btree/INSERT_POST Btree/DEDUP Btree/DELETE \
    Btree/UNLINK_PAGE Btree/UNLINK_PAGE_META Btree/NEWROOT Btree/MARK_PAGE_HALFDEAD Btree/VACUUM \
    Btree/META_CLEANUP Sequence/LOG";

/// Those of some versions.
fn operations(major: u32) -> impl Iterator<Item = &'static str> {
    let pruning = match major {
        ..=16 => "Heap2/PRUNE Heap2/VACUUM Heap2/FREEZE_PAGE",
        _ => "Heap2/PRUNE_ON_ACCESS Heap2/PRUNE_VACUUM_SCAN Heap2/PRUNE_VACUUM_CLEANUP",
    };
    let visible = if major < 19 { "Heap2/VISIBLE" } else { "" };
    [OPERATIONS, pruning, visible].into_iter().flat_map(str::split_ascii_whitespace)
}

/// Tables for all sessions. Index pages have only a few entries, so they are split and deleted.
const TABLES: &str = "
create table a (id int primary key, n int, v text) with (fillfactor = 70);
create index on a (n);
create table b (id int, k text, p int) with (autovacuum_enabled = off);
create index on b (k);
create index on b (p);
alter table b alter k set storage plain;
create table c (id serial primary key, a int references a, v text, e int[]);
alter table c alter v set storage external;
create index on c using gin (e);
create index on c using brin (a);
create index on c using hash (a);
create sequence numbers;
insert into a select i, 0, repeat('a', i) from generate_series(1, 300) i;
";

/// A random statement. It may fail.
fn statement(rng: &mut Rng) -> String {
    let (id, span) = (rng.below(400), 1 + rng.below(60));
    let some = format!("id between {id} and {}", id + span);
    let lock = pick(rng, &["share", "key share", "update", "no key update", "share skip locked"]);
    let key = format!("lpad((i % {})::text, 4, '0') || repeat('k', 400)", 1 + rng.below(300));
    match rng.below(24) {
        0 | 1 => format!(
            "insert into a select i, 0, repeat('b', i % 300) from generate_series({id}, {}) i on conflict do nothing",
            id + span
        ),
        2 | 3 => format!(
            "insert into a values ({id}, 1, 'c') on conflict (id) do update set n = a.n + 1"
        ),
        4 | 5 => format!("update a set v = v || 'x' where {some}"),
        6 => format!("update a set n = n + 1 where {some}"),
        7 => format!("update a set id = id + 1000 where {some}"),
        8 => format!("delete from a where {some}"),
        9 => format!(
            "begin; select count(*) from (select 1 from a where {some} order by id for {lock}) q; update a set n = n + 1 where id = {id}; commit"
        ),
        10 => format!(
            "begin; update a set v = 'y' where {some}; savepoint s; delete from a where {some}; rollback to s; select count(*) from (select 1 from a where {some} for {lock}) q; commit"
        ),
        11 => format!(
            "begin; select count(*) from (select 1 from a where {some} order by id for {lock}) q; rollback"
        ),
        12 | 13 => {
            format!("insert into b select i, {key}, i from generate_series({id}, {}) i", id + span)
        }
        14 => format!("delete from b where id % {} = 0", 1 + rng.below(5)),
        15 => format!("update b set p = p + 1 where {some}"),
        16 => format!(
            "insert into c (a, v, e) select id, repeat('toast', 600), array[id, n] from a where {some}"
        ),
        17 => format!("update c set v = v || 'z' where {some}"),
        18 => format!("delete from c where {some}"),
        19 => format!("vacuum {} {}", pick(rng, &["", "(freeze)"]), pick(rng, &["a", "b", "c"])),
        20 => "select count(nextval('numbers')) from generate_series(1, 40)".to_owned(),
        21 => format!(
            "copy b from program 'seq {id} {} | sed s/$/,copied,1/' with (format csv)",
            id + 3 * span
        ),
        22 => pick(
            rng,
            &[
                "truncate c",
                "reindex table a",
                "cluster a using a_pkey",
                "vacuum full b",
                "checkpoint",
                "analyze",
            ],
        )
        .to_string(),
        _ => format!(
            "begin; create table f (x int, y text); copy f from program 'seq 1 {span} | sed s/$/,f/' with (format csv, freeze); delete from f where x = 1; drop table f; commit"
        ),
    }
}

fn session(rng: &mut Rng) -> String {
    let mut sql = String::new();
    for _ in 0..80 {
        let _ = writeln!(sql, "{};", statement(rng));
    }
    sql
}

/// A cluster that was stopped at once, with a log that contains images of all changes.
fn cluster(bin: &Path, seed: u64) -> (Stopped, u32) {
    println!("TRUNKLINE_SEED={seed} ({})", bin.display());
    let mut rng = Rng::new(seed);
    let settings = [
        ("wal_consistency_checking", "all"),
        ("wal_keep_size", "4GB"),
        ("max_prepared_transactions", "5"),
        ("wal_compression", pick(&mut rng, &["off", "on"])),
        ("wal_log_hints", pick(&mut rng, &["off", "on"])),
        ("full_page_writes", pick(&mut rng, &["off", "on", "on"])),
        ("autovacuum", pick(&mut rng, &["off", "on"])),
        ("deadlock_timeout", "10ms"),
    ];
    let server = Server::start(bin, &settings);
    server.script("postgres", EVERYTHING, false);
    server.script("postgres", TABLES, false);
    let sessions: Vec<_> = (0..3)
        .map(|number| {
            let file = server.home().join(format!("session-{number}.sql"));
            fs::write(&file, session(&mut rng)).expect("written");
            let mut psql = server.psql("postgres");
            // Deadlocks and conflicts are part of the load.
            psql.args(["-v", "ON_ERROR_STOP=0", "-o", "/dev/null", "-f"]).arg(&file);
            psql.stderr(std::process::Stdio::null()).spawn().expect("runs")
        })
        .collect();
    for mut session in sessions {
        let status = session.wait().expect("ended");
        assert!(status.success(), "seed {seed}: {status}");
    }
    let major = server.major();
    if major > 14 {
        server.script("postgres", "create database copied strategy wal_log;", false);
    }
    (server.stop_at_once(), major)
}

#[test]
fn redo_makes_the_pages_of_servers() {
    for bin in servers() {
        let mut compared: BTreeMap<String, u64> = BTreeMap::new();
        let (mut logs, mut version) = (0, 0);
        for seed in seeds() {
            let (stopped, major) = cluster(&bin, seed);
            version = major;
            let (code, out, err) = run(&stopped.data(), &["verify", "--wal", "--json"]);
            assert_eq!(code, 0, "seed {seed}: {out}{err}");
            assert!(err.contains("log ends at"), "{err}");
            let report: Value = serde_json::from_str(&out).expect("json");
            assert_eq!(report["findings_total"], 0);
            for line in report["operations"].as_array().expect("a list") {
                let name = line["operation"].as_str().expect("text").to_owned();
                *compared.entry(name).or_default() += line["compared"].as_u64().expect("a number");
            }
            logs += 1;
        }
        let never: Vec<_> = operations(version)
            .filter(|name| compared.get(*name).is_none_or(|count| *count == 0))
            .collect();
        let pages: u64 = compared.values().sum();
        let never = if never.is_empty() { "none".to_owned() } else { never.join(" ") };
        println!("compared redo: {pages} pages in {logs} logs of {version}, never: {never}");
        assert!(pages > logs * 3000 && never == "none", "{compared:?}");
    }
}

/// Finds the insertion of a table's only row in a segment, and changes the row in its image. Returns the
/// record's position.
fn change_an_image(segment: &Path) -> Option<Lsn> {
    let mut bytes = fs::read(segment).expect("read");
    let start = Lsn(u64::from_le_bytes(*bytes[8..].first_chunk()?));
    let segment_size = SegmentSize::new(bytes.len() as u32)?;
    let log = LogIdentity { segment_size, system_identifier: None };
    let mut reader = LogReader::new(log, start);
    let chunk = LogChunk { start, bytes: &bytes };
    let found = loop {
        let LogEvent::Record(found) = reader.next(&chunk)? else { return None };
        let length = found.record.header().length as usize;
        // A record on one page isn't interrupted by a page header.
        let is_on_one_page = found.start.0 / 8192 == (found.start.0 + length as u64) / 8192;
        let header = found.record.header();
        let is_insert = (header.manager, header.operation()) == (10, 0x80) && is_on_one_page;
        let image = found.record.block(0).and_then(|block| block.image);
        // A page header, one line pointer, and a row of one integer at the end of the page.
        if let Some(image) = image.filter(|image| is_insert && image.stored().len() == 60) {
            let (at, image) = ((found.start.0 - start.0) as usize, image.stored());
            let in_chunk = image.as_ptr().addr() - bytes.as_ptr().addr();
            break (found.start, at, length, in_chunk + image.len() - 8);
        }
    };
    let (position, at, length, changed) = found;
    bytes[changed] ^= 1;
    let crc = record_crc(&bytes[at..at + length]);
    bytes[at + RECORD_HEADER_SIZE - 4..][..4].copy_from_slice(&crc.to_le_bytes());
    fs::write(segment, bytes).expect("written");
    Some(position)
}

#[test]
fn a_page_that_differs_from_its_image_is_a_finding() {
    let Some(bin) = servers().into_iter().next() else { return };
    let settings = [("wal_consistency_checking", "all"), ("wal_keep_size", "1GB")];
    let server = Server::start(&bin, &settings);
    server.script("postgres", "create table one (id int); insert into one values (7);", false);
    let stopped = server.stop();
    let data = stopped.data();
    let position = segments(&data).iter().find_map(|segment| change_an_image(segment));
    let position = position.expect("the insertion").to_string();
    let (code, out, err) = run(&data, &["verify", "--wal"]);
    assert_eq!(code, 1, "{err}");
    let finding = out.lines().next().expect("a line");
    assert!(
        finding.starts_with(&format!("{position} Heap/INSERT+INIT, reference 0, ")),
        "{finding}"
    );
    assert!(
        finding.contains(" block 0: page differs from the image in the record at"),
        "{finding}"
    );
    assert!(out.contains("Different pages:                 1\n"), "{out}");
    let (code, _, err) = run(&data, &["verify", "--wal", "--rows"]);
    assert_eq!(code, 2, "{err}");
}
