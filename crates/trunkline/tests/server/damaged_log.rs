//! Crashed directories whose log has valid records that can't be true, or doesn't belong to the files.
//! Each spoils only the relation or page that it is about, by name.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use trunkline_format::segment::RelationFile;
use trunkline_format::wal::{
    LogChunk, LogEvent, LogIdentity, LogReader, LogRecord, RECORD_HEADER_SIZE, SegmentSize,
    record_crc,
};
use trunkline_format::{BLOCK_SIZE, Lsn, PageHeader, page_checksum};

use crate::binary::run;
use crate::server::{Server, servers, succeed};
use crate::wal::segments;

const TABLES: &str = "
create table grown (i int); insert into grown select generate_series(1, 1000);
create table still (i int); insert into still select generate_series(1, 1000);
create table changed (i int); insert into changed select generate_series(1, 1000);
create table words (w text[]); create index on words using gin (w);
vacuum grown, still, changed;
checkpoint;
insert into words values ('{a}');
insert into words values ('{b}');
insert into words values ('{c}');
delete from changed where i = 7;
delete from changed where i = 8;
delete from changed where i = 9;
insert into grown values (2000);
insert into grown values (2001);
insert into grown values (2002);
";

/// Heap, and its operations.
const HEAP: u8 = 10;
const INSERT: u8 = 0x00;
const DELETE: u8 = 0x10;

/// Generic, and the place of a record's manager.
const GENERIC: u8 = 20;
const MANAGER: usize = 17;

/// Changes the last record of `operation` without an image, which is on one page of the log. `place`
/// says where in the record, and `value` what is written there. The CRC is made right again.
fn plant(data: &Path, operation: u8, relation: u32, place: &Place, value: &[u8]) {
    let mut planted = 0;
    for segment in segments(data) {
        let mut bytes = fs::read(&segment).expect("read");
        let Some(start) = bytes[8..].first_chunk().map(|place| Lsn(u64::from_le_bytes(*place)))
        else {
            continue;
        };
        let segment_size = SegmentSize::new(bytes.len() as u32).expect("a size");
        let log = LogIdentity { segment_size, system_identifier: None };
        let (mut reader, mut last) = (LogReader::new(log, start), None);
        let chunk = LogChunk { start, bytes: &bytes };
        while let Some(LogEvent::Record(found)) = reader.next(&chunk) {
            let header = found.record.header();
            let length = header.length as usize;
            let is_on_one_page = found.start.0 / 8192 == (found.start.0 + length as u64) / 8192;
            let is_wanted = header.manager == HEAP && header.operation() & 0x70 == operation;
            let is_of_it = found.record.block(0).is_some_and(|block| {
                block.relation.number == relation && block.image.is_none() && !block.will_init
            });
            if is_on_one_page && is_wanted && is_of_it {
                let at = (found.start.0 - start.0) as usize;
                last = Some((at, length, place(&found, &bytes[at..at + length])));
            }
        }
        if let Some((at, length, inside)) = last {
            bytes[at + inside..][..value.len()].copy_from_slice(value);
            let crc = record_crc(&bytes[at..at + length]);
            bytes[at + RECORD_HEADER_SIZE - 4..][..4].copy_from_slice(&crc.to_le_bytes());
            fs::write(&segment, bytes).expect("written");
            planted += 1;
        }
    }
    assert_eq!(planted, 1, "records that were changed");
}

/// Finds a place in the bytes of a record.
type Place = dyn Fn(&LogRecord<'_>, &[u8]) -> usize;

/// The block number of reference 0: it follows the relation.
fn block_number(found: &LogRecord<'_>, bytes: &[u8]) -> usize {
    let relation = found.record.block(0).expect("a block").relation;
    let numbers = [relation.tablespace.0, relation.database.0, relation.number];
    let wanted: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
    bytes.windows(12).position(|window| window == wanted).expect("a relation") + 12
}

/// The line pointer of a deletion, behind the transaction. The main data is the end of a record, unless
/// the old row follows it.
fn deleted_item(_: &LogRecord<'_>, bytes: &[u8]) -> usize {
    bytes.len() - 8 + 4
}

struct Crashed {
    directory: PathBuf,
    numbers: Vec<(&'static str, u32)>,
    rows: Vec<(&'static str, Vec<u8>)>,
}

impl Crashed {
    fn copy(&self, name: &str) -> PathBuf {
        let to = self.directory.with_file_name(name);
        succeed(Command::new("cp").arg("-a").arg(&self.directory).arg(&to));
        to
    }

    fn number(&self, table: &str) -> u32 {
        self.numbers.iter().find(|(name, _)| *name == table).expect("a table").1
    }

    /// Reads all tables. That of `bad` fails with `expected`; all others are as the server has them.
    fn check(&self, data: &Path, bad: &str, expected: &[&str]) {
        for (table, rows) in &self.rows {
            let (code, out, err) = run(data, &["copy", "-d", "postgres", table]);
            if *table == bad {
                assert_ne!(code, 0, "{table}: {err}");
                expected.iter().for_each(|part| assert!(err.contains(part), "{part:?} in {err}"));
                continue;
            }
            assert_eq!(code, 0, "{table}: {err}");
            let count = |bytes: &[u8]| bytes.iter().filter(|&&byte| byte == b'\n').count();
            assert_eq!(count(out.as_bytes()), count(rows), "{table}");
        }
        let (code, out, err) = run(data, &["tables", "-d", "postgres"]);
        assert_eq!(code, 0, "{out}{err}");
        let (code, out, err) = run(data, &["verify", "--json"]);
        assert_eq!(code, 1, "{out}{err}");
        // The GIN index, for whose records we have no rules, is no finding.
        assert!(out.contains("Gin/UPDATE_META_PAGE"), "{out}");
        let found = out.matches("\"not_replayed\"").count();
        assert_eq!(found, 1, "{out}");
        expected.iter().for_each(|part| assert!(out.contains(part), "{part:?} in {out}"));
    }
}

#[test]
fn records_that_cannot_be_true_spoil_only_what_they_are_about() {
    for bin in servers() {
        let mut server = Server::start(&bin, &[("autovacuum", "off")]);
        server.script("postgres", TABLES, false);
        let number = |table: &'static str| {
            let query = format!("select pg_relation_filenode('{table}')");
            let number = String::from_utf8(server.sql("postgres", &query)).expect("text");
            (table, number.trim().parse().expect("a number"))
        };
        let numbers: Vec<_> = ["grown", "still", "changed"].map(number).to_vec();
        let rows = |table: &&'static str| {
            (*table, server.sql("postgres", &format!("copy {table} to stdout")))
        };
        let rows = ["grown", "still", "changed"].iter().map(rows).collect();
        let database = String::from_utf8(
            server.sql("postgres", "select oid from pg_database where datname = 'postgres'"),
        );
        let database = database.expect("text").trim().to_owned();
        server.halt("immediate");
        let directory = server.home().join("crashed");
        succeed(Command::new("cp").arg("-a").arg(server.data()).arg(&directory));
        let crashed = Crashed { directory, numbers, rows };

        // A block far behind the end: neither the relation nor the scratch file becomes that long.
        let data = crashed.copy("far");
        let block = 4_000_000_000_u32;
        plant(&data, INSERT, crashed.number("grown"), &block_number, &block.to_le_bytes());
        crashed.check(&data, "grown", &["names block 4000000000 of a relation of ", "impossible"]);

        // The rows on all other blocks are copied, and without --keep-going before the error.
        for options in [&["--keep-going"][..], &[]] {
            let copy = [&["copy", "-d", "postgres", "grown"], options].concat();
            let (code, out, err) = run(&data, &copy);
            assert_eq!((code, out.lines().count()), (1, 1002), "{err}");
        }

        // A row that doesn't exist.
        let data = crashed.copy("item");
        plant(&data, DELETE, crashed.number("changed"), &deleted_item, &2000_u16.to_le_bytes());
        crashed.check(&data, "changed", &["Heap/DELETE", "does not fit to the page"]);

        // A record of an index method in a table, for which we have no rule, is no index that is not checked.
        let data = crashed.copy("manager");
        plant(&data, DELETE, crashed.number("changed"), &|_, _| MANAGER, &[GENERIC]);
        crashed.check(&data, "changed", &["is Generic/Generic, for which we have no rule"]);

        // A page that is newer than the log, and not in it.
        let data = crashed.copy("newer");
        let relfilenode = crashed.number("still");
        let name = RelationFile { relfilenode, fork: trunkline_format::Fork::Main, segment: 0 };
        let path = data.join("base").join(database).join(name.to_string());
        let mut bytes = fs::read(&path).expect("read");
        let page: &mut [u8; BLOCK_SIZE] = bytes[BLOCK_SIZE..].first_chunk_mut().expect("block 1");
        page[..8].copy_from_slice(&[0xAB, 0, 0, 0, 0x80, 0x77, 0x66, 0x55]);
        if PageHeader::parse(page).checksum != 0 {
            let checksum = page_checksum(page, 1);
            page[8..10].copy_from_slice(&checksum.to_le_bytes());
        }
        fs::write(&path, bytes).expect("written");
        crashed.check(&data, "still", &["has the position AB/55667780, but the log ends at"]);
        let (code, _, err) = run(&data, &["copy", "-d", "postgres", "still", "--no-replay"]);
        assert_eq!(code, 0, "{err}");
        drop(server);
    }
}
