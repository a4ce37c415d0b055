//! Writes tables for the server to read, and reads the server's tables; compares them byte for
//! byte.

use std::fs;
use trunkline_format::{
    BLOCK_SIZE, CheckOptions, Fork, HeapPageBuilder, PageBytes, PageVerdict, TupleBuilder, Verdict,
    check_page, heap_rows, page, verify_page,
};
use trunkline_sample::{FixedColumn, PageSum, push_account, sum_int4};

use crate::server::Server;

const COLUMNS: &str = "(small int2, flag bool, number int4, words text, big int8, ratio float8, \
                       padded char(5), plain text)";

/// The rows of the table above, both as `COPY` lines and as tuples.
fn rows() -> Vec<(String, TupleBuilder)> {
    let mut rows = Vec::new();
    for length in [0, 1, 2, 3, 125, 126, 127, 128, 129, 1000, 1500, 1900] {
        for nulls in [0, 0x01, 0x08, 0x52, 0x80, 0xFF] {
            let number = length - 500;
            let words = "w".repeat(length as usize);
            let mut row = TupleBuilder::new();
            let mut line = Vec::new();
            for column in 0..8 {
                if nulls >> column & 1 == 1 {
                    row.null();
                    line.push("\\N".to_owned());
                    continue;
                }
                match column {
                    0 => row.int2(number as i16),
                    1 => row.bool(length % 2 == 0),
                    2 => row.int4(number * 1000),
                    3 => row.text(&words),
                    4 => row.int8(i64::from(number) << 33),
                    5 => row.float8(f64::from(length) / 8.0),
                    6 => row.bpchar("é", 5),
                    _ => row.text_unpacked("plain"),
                };
                line.push(match column {
                    0 => number.to_string(),
                    1 => (length % 2 == 0).to_string(),
                    2 => (number * 1000).to_string(),
                    3 => words.clone(),
                    4 => (i64::from(number) << 33).to_string(),
                    5 => (f64::from(length) / 8.0).to_string(),
                    6 => "é".to_owned(),
                    _ => "plain".to_owned(),
                });
            }
            rows.push((line.join("\t") + "\n", row));
        }
    }
    rows
}

/// Fills pages with rows, each page as full as the server would make it.
fn pages(rows: &[(String, TupleBuilder)]) -> Vec<PageBytes> {
    let mut pages = Vec::new();
    let mut page = HeapPageBuilder::new(0);
    for (_, row) in rows {
        if page.push(&row.tuple()).is_err() {
            pages.push(page.finish(true));
            page = HeapPageBuilder::new(pages.len() as u32);
            page.push(&row.tuple()).expect("room");
        }
    }
    pages.push(page.finish(true));
    pages
}

fn read(path: &std::path::Path) -> Vec<PageBytes> {
    let bytes = fs::read(path).expect("read");
    let (pages, rest) = bytes.as_chunks::<BLOCK_SIZE>();
    assert!(rest.is_empty());
    pages.to_vec()
}

/// Clears the page fields that differ between servers: LSN, checksum, flags, xids, command IDs and
/// hint bits.
fn timeless(page: &PageBytes) -> PageBytes {
    let mut bare = *page;
    bare[..12].fill(0);
    for (_, pointer) in page::line_pointers(page) {
        let start = usize::from(pointer.offset);
        bare[start..start + 12].fill(0);
        bare[start + 21] &= 0x20;
    }
    bare
}

fn assert_sound(pages: &[PageBytes]) {
    let options = CheckOptions { checksums: true, fork: Fork::Main };
    for (block, page) in (0..).zip(pages) {
        assert_eq!(check_page(page, block, &options), Verdict::Good, "block {block}");
        assert_eq!(verify_page(page, block, true), PageVerdict::Good, "block {block}");
    }
}

#[test]
fn tables_of_all_types() {
    let Some(mut server) = Server::new() else { return };
    let rows = rows();
    server.start();
    server.sql(&format!(
        "create table ours {COLUMNS}; create table theirs {COLUMNS};
         alter table ours alter plain set storage plain;
         alter table theirs alter plain set storage plain"
    ));
    // We can't use INSERT, because it forms tuples by the types' storage rather than the columns'.
    let lines: String = rows.iter().map(|(line, _)| line.as_str()).collect();
    let file = server.file("lines", lines.as_bytes());
    server.sql(&format!("copy theirs from '{}'", file.display()));
    let (ours, theirs) = (server.path("ours"), server.path("theirs"));
    server.stop();

    let made = pages(&rows);
    let found = read(&theirs);
    assert_sound(&found);
    assert_eq!(made.len(), found.len());
    assert!(made.len() > 2);
    for (block, (made, found)) in made.iter().zip(&found).enumerate() {
        assert!(timeless(made) == timeless(found), "block {block}");
    }
    let tuples = |pages: &[PageBytes]| -> usize {
        pages.iter().flat_map(heap_rows).map(|tuple| tuple.expect("sound").data().len()).sum()
    };
    assert_eq!(tuples(&made), tuples(&found));

    fs::write(&ours, made.as_flattened()).expect("written");
    server.start();
    let count = server.sql("select count(*) from ours");
    assert_eq!(count.trim(), rows.len().to_string());
    for (a, b) in [("ours", "theirs"), ("theirs", "ours")] {
        let differ = server.sql(&format!("select * from {a} except all select * from {b}"));
        assert_eq!(differ, "");
    }
    let one = server.sql("select * from ours where number = -497000 limit 1");
    assert_eq!(one, "-497|f|-497000|www|-4269197492224|0.375|é    |plain\n");
}

/// pgbench's accounts table: compares every page with the server's, and then runs updates and
/// compares our sum of `abalance` with the server's.
#[test]
fn accounts_of_pgbench() {
    let Some(mut server) = Server::new() else { return };
    server.start();
    server.pgbench(&["-i", "-q", "-s", "1"]);
    let path = server.path("pgbench_accounts");
    server.stop();
    let found = read(&path);
    assert_sound(&found);
    assert_eq!(found.len(), 100_000_usize.div_ceil(61));
    let mut aids = 1..=100_000;
    for (block, found) in found.iter().enumerate() {
        let mut builder = HeapPageBuilder::new(block as u32);
        for aid in aids.by_ref().take(61) {
            push_account(&mut builder, aid, 1, 0).expect("room");
        }
        assert!(timeless(&builder.finish(true)) == timeless(found), "block {block}");
    }

    let check = |exact: bool| {
        let mut total = PageSum::default();
        read(&path).iter().for_each(|page| total.add(&sum_int4(page, FixedColumn::ABALANCE)));
        assert_eq!((total.corrupt, total.elsewhere, total.is_exact()), (None, 0, exact));
        total
    };
    server.start();
    server.pgbench(&["-n", "-t", "500", "-c", "2"]);
    server.sql("begin; delete from pgbench_accounts where aid between 1 and 100; rollback");
    server.sql("delete from pgbench_accounts where aid between 201 and 300");
    server.sql("update pgbench_accounts set abalance = null where aid between 301 and 310");
    server.stop();
    assert!(check(false).in_doubt >= 100, "no query has set hint bits since");

    // A scan sets hint bits.
    server.start();
    let sum = server.sql("select sum(abalance), count(*), count(abalance) from pgbench_accounts");
    server.stop();
    let total = check(true);
    let said = format!("{}|{}|{}\n", total.sum, total.rows, total.rows - total.nulls);
    assert_eq!(said, sum);
    assert_eq!((total.rows, total.nulls), (99_900, 10));
}
