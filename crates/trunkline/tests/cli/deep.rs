//! `verify --deep`, and the `inspect` commands that need a catalog, on real clusters.

use std::path::Path;

use serde_json::Value;
use trunkline_format::page_checksum;

use crate::copy::{copy_of, fixtures};
use crate::{json, run};

fn on(data: &Path, args: &[&str]) -> (i32, String, String) {
    let data = data.to_string_lossy().into_owned();
    run(args.iter().copied().chain(["-D", data.as_str()]))
}

/// Runs a command that must succeed and returns its standard output.
fn good(data: &Path, args: &[&str]) -> String {
    let (code, out, err) = on(data, args);
    assert_eq!((code, err.as_str()), (0, ""), "{args:?} of {}: {out}", data.display());
    out
}

#[test]
fn the_contents_of_a_cluster_are_verified() {
    for fixture in fixtures() {
        let data = fixture.join("data");
        let (code, out, err) = on(&data, &["verify", "--deep", "-j", "2"]);
        assert_eq!(code, 0, "{out}{err}");
        assert_eq!(
            err,
            "trunkline: note: fixture.s1.bt: index bt_h is not checked: access method hash\n"
        );
        assert!(out.contains("Verification of contents completed\nTables:      "), "{out}");
        let named = good(&data, &["verify", "-d", "bench", "public.pgbench_tellers", "--rows"]);
        assert!(named.contains("Tables:                          1\n"), "{named}");
        assert!(named.contains("Visible rows:                    20\n"), "{named}");
        assert!(named.contains("B-tree indexes:                  0\n"), "{named}");
    }
}

#[test]
fn a_row_that_differs_from_its_index_entry_is_found() {
    let Some(fixture) = fixtures().pop() else { return };
    let (_home, data) = copy_of(&fixture);
    let tables = json(&good(&data, &["tables", "-d", "bench", "--json"]));
    let tables = tables["relations"].as_array().expect("relations").clone();
    let table = tables.iter().find(|table| table["name"] == "pgbench_branches").expect("a table");
    let file = data.join(table["file"].as_str().expect("a file"));
    let out = good(
        &data,
        &["inspect", "tuple", "-d", "bench", "public.pgbench_branches", "0,1", "--json"],
    );
    assert_eq!(json(&out)["columns"][0]["value"], "1", "{out}");
    // Change the key of the first row of pgbench_branches.
    let mut bytes = std::fs::read(&file).expect("read");
    let first = usize::from(u16::from_le_bytes([bytes[24], bytes[25]]) & 0x7FFF);
    bytes[first + 24] = 77;
    let page = bytes.first_chunk_mut().expect("a page");
    let checksum = page_checksum(page, 0);
    page[8..10].copy_from_slice(&checksum.to_le_bytes());
    std::fs::write(&file, &bytes).expect("written");
    assert_eq!(on(&data, &["verify"]).0, 0);
    let args = ["verify", "-d", "bench", "public.pgbench_branches_pkey", "--indexes"];
    let (code, out, _) = on(&data, &args);
    assert_eq!(code, 1, "{out}");
    let text = "block 0: line pointer 1: row's key differs from that of its entry in index \
                pgbench_branches_pkey for line pointer 1\n";
    assert!(out.contains(text) && out.contains("bench.public.pgbench_branches: base/"), "{out}");
    let (code, out, _) = on(&data, &[&args[..], &["--json"]].concat());
    let report = json(&out);
    assert_eq!((code, &report["contents"]["findings"][0]["line_pointer"]), (1, &Value::from(1)));
    assert_eq!(report["contents"]["findings"][0]["kind"], "heap_and_index");
}

/// One row of `pg_class` is damaged, so only that row's table must be missing.
#[test]
fn a_damaged_catalog_row_hides_only_its_table() {
    let Some(fixture) = fixtures().pop() else { return };
    let (_home, data) = copy_of(&fixture);
    let whole = good(&data, &["copy", "-d", "bench", "public.pgbench_tellers"]);
    let tables = json(&good(&data, &["tables", "-d", "bench", "--all", "--json"]));
    let tables = tables["relations"].as_array().expect("relations").clone();
    let table = tables.iter().find(|table| table["name"] == "pg_class").expect("a table");
    let file = data.join(table["file"].as_str().expect("a file"));
    let mut bytes = std::fs::read(&file).expect("read");
    let pages: &mut [[u8; 8192]] = bytes.as_chunks_mut().0;
    for (block, page) in (0_u32..).zip(pages) {
        let name = b"pgbench_branches\0";
        let found: Vec<usize> =
            (24..8192 - 150).filter(|&at| page[at..].starts_with(name)).collect();
        for at in found {
            // relpersistence and relkind follow the 64 bytes of relname.
            let kind = (at + 64..at + 150).find(|&at| page[at..].starts_with(b"pr"));
            page[kind.expect("persistence and kind") + 1] = b'?';
        }
        let checksum = page_checksum(page, block);
        page[8..10].copy_from_slice(&checksum.to_le_bytes());
    }
    std::fs::write(&file, &bytes).expect("written");
    let args = ["copy", "-d", "bench", "public.pgbench_tellers", "--keep-going"];
    let (code, out, err) = on(&data, &args[..4]);
    assert_eq!((code, out.as_str()), (1, ""), "{err}");
    assert!(err.contains(", line pointer ") && err.contains("hint: use --keep-going"), "{err}");
    let (code, out, err) = on(&data, &args);
    assert_eq!((code, out), (1, whole), "{err}");
    let place = format!("of file \"{}\": ", file.display());
    let named =
        |err: &str| err.contains("warning: catalog of bench: block ") && err.contains(&place);
    assert!(named(&err) && err.contains("relkind"), "{err}");
    let (code, out, err) = on(&data, &["tables", "-d", "bench"]);
    assert!(out.contains("pgbench_tellers") && !out.contains("pgbench_branches "), "{out}");
    assert!(code == 1 && named(&err), "{code} {err}");
    let (code, out, err) = on(&data, &["verify", "--deep", "-d", "bench"]);
    assert!(code == 1 && out.contains("line pointer ") && out.contains("relkind"), "{out}{err}");
    assert!(out.contains("Visible rows:                    2"), "the others: {out}");
}

#[test]
fn relations_are_inspected_by_name() {
    for fixture in fixtures() {
        let data = fixture.join("data");
        let out = good(&data, &["inspect", "tuple", "-d", "fixture", "s1.toast", "(0,2)"]);
        for text in ["state     live\n", " not compressed\n", "2500 bytes uncompressed", "mmmm"] {
            assert!(out.contains(text), "{text}: {out}");
        }
        let out =
            good(&data, &["inspect", "tuple", "-d", "fixture", "s1.toast", "(0,2)", "--json"]);
        let row = json(&out);
        let stored = row["columns"][1]["stored"].as_str().expect("text");
        let value = stored.split(' ').nth(2).expect("a number");
        let out = good(&data, &["inspect", "toast", "-d", "fixture", "s1.toast", value]);
        assert!(out.contains("bytes     9600 in live chunks\n"), "{out}");

        let key = "public.pgbench_accounts_pkey";
        let tree = json(&good(&data, &["inspect", "btree", "-d", "bench", key, "--json"]));
        let leaves = tree["levels"].as_array().expect("levels").last().expect("leaves").clone();
        assert_eq!((&tree["level"], &leaves["rows"]), (&Value::from(2), &Value::from(200_000)));
        let first = leaves["first"].to_string();
        let out = good(&data, &["inspect", "btree", "-d", "bench", key, &first]);
        assert!(out.contains("flags     leaf\n") && out.contains(" (0,1)      1\n"), "{out}");
        assert!(
            good(&data, &["inspect", "btree", "-d", "bench", key, "0"]).contains("version      4")
        );

        let out = good(&data, &["inspect", "clog"]);
        assert!(out.contains("aborted        ") && out.contains("in progress    1\n"), "{out}");
        let out = good(&data, &["inspect", "clog", "2", "3"]);
        assert!(out.contains("pg_xact/0000"), "{out}");
        let out = good(&data, &["inspect", "clog", "2", "3", "--json"]);
        let xids: Vec<Value> = out.lines().map(|line| json(line)["xid"].clone()).collect();
        assert_eq!(xids, [2, 3]);
        let out = good(&data, &["inspect", "multixact", "1"]);
        assert!(out.contains("committed") || out.contains("in progress"), "{out}");
        let (code, out, err) = on(&data, &["inspect", "multixact", "1", "4000000000"]);
        assert_eq!(code, 1, "one of them is not there");
        assert!(out.lines().count() >= 2 && err.contains("multixact 4000000000"), "{out}{err}");
        // A table without lines would look like an answer.
        for command in ["clog", "multixact"] {
            let (code, out, err) = on(&data, &["inspect", command, "999999999"]);
            assert_eq!((code, &*out), (1, ""), "{err}");
            assert!(err.contains("does not exist yet"), "{err}");
        }
        assert!(good(&data, &["inspect", "multixact"]).contains("next member"));
        assert!(good(&data, &["inspect", "relmap"]).contains("1262  "));
        let out = good(&data, &["inspect", "relmap", "-d", "bench"]);
        assert!(out.contains("pg_catalog.pg_class\n"), "{out}");
    }
}

#[test]
fn inspect_errors_name_what_is_wrong() {
    let Some(fixture) = fixtures().pop() else { return };
    let data = fixture.join("data");
    for (args, code, text) in [
        (
            &["tuple", "-d", "bench", "public.pgbench_tellers", "0,999"][..],
            2,
            "line pointer 999 does not exist",
        ),
        (
            &["tuple", "-d", "bench", "public.pgbench_tellers", "9,1"][..],
            2,
            "block 9 is past the end",
        ),
        (
            &["tuple", "-d", "bench", "public.pgbench_tellers", "x"][..],
            2,
            "expected (block,line pointer)",
        ),
        (&["tuple", "-d", "bench", "public.nothing", "0,1"][..], 2, "does not exist"),
        (&["btree", "-d", "bench", "public.pgbench_tellers"][..], 2, "is not a B-tree index"),
        (
            &["btree", "-d", "fixture", "s1.bt_h"][..],
            2,
            "is not a B-tree index: its access method is \"hash\"",
        ),
        (&["btree", "-d", "bench", "public.pgbench_tellers_pkey", "77"][..], 2, "past the end"),
        (&["toast", "-d", "bench", "public.pgbench_tellers", "1"][..], 2, "has no TOAST table"),
        (&["page", "-d", "fixture", "s1.vw"][..], 2, "hint: name the tables that the view reads"),
    ] {
        let (found, out, err) = on(&data, &[&["inspect"][..], args].concat());
        assert_eq!((found, out.as_str()), (code, ""), "{args:?}: {err}");
        assert!(err.contains(text), "{args:?}: {err}");
    }
}
