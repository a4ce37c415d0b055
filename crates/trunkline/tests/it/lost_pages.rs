//! Catalogs that have lost pages: pages overwritten with zeros, and what is still checked without
//! the pages that are lost.

use std::fs;

use crate::copy::fixtures;
use crate::json;
use crate::missing::{Copy, lost_pages_are_one_error};

/// A page of zeros is valid, but no index has an entry for a row on a new page.
#[test]
fn a_zeroed_page_of_a_catalog_is_one_error() {
    for fixture in fixtures() {
        let copy = Copy::of(&fixture);
        let class = copy.blocks(&copy.file("bench", "pg_class"));
        for (catalog, block) in [
            ("pg_class", 0),
            ("pg_class", 1),
            ("pg_attribute", 10),
            ("pg_type", 1),
            ("pg_am", 0),
            ("pg_database", 0),
        ] {
            let file = copy.file("bench", catalog);
            let path = copy.path(&file).display().to_string();
            let expected = format!(
                "block {block} of file \"{path}\" ({catalog}) is a new page, expected rows: index \
                 {catalog}_"
            );
            let damage = || {
                let mut bytes = fs::read(copy.path(&file)).expect("read");
                bytes[block as usize * 8192..][..8192].fill(0);
                fs::write(copy.path(&file), bytes).expect("written");
            };
            let finding = format!("block {block}: line pointer ");
            lost_pages_are_one_error(&copy, (catalog, &file), damage, &expected, &finding);
        }
        // No index has an entry for a page that is really new.
        let file = copy.file("bench", "pg_class");
        copy.cut(&file, class + 1);
        let (code, out, err) = copy.run(&["verify"]);
        assert_eq!((code, err.as_str()), (0, ""), "{out}");
    }
}

/// Tables that the rest of the catalog describes are checked, and not blamed for what is missing.
#[test]
fn tables_are_checked_despite_a_short_catalog() {
    for fixture in fixtures() {
        let copy = Copy::of(&fixture);
        let contents = |database: &str| {
            let (code, out, err) = copy.run(&["verify", "--rows", "-d", database, "--json"]);
            let report = json(&out);
            (code, report["contents"].clone(), err)
        };
        for (database, catalog, lost) in [
            ("fixture", "pg_class", 1),
            ("fixture", "pg_attribute", 1),
            ("fixture", "pg_attribute", 10),
            ("fixture", "pg_type", 1),
            ("fixture", "pg_enum", 1),
            ("fixture", "pg_index", 1),
            ("fixture", "pg_opclass", 1),
        ] {
            let all = contents(database).1["tables"].as_u64().expect("a number");
            let file = copy.file(database, catalog);
            let bytes = fs::read(copy.path(&file)).expect("read");
            copy.cut(&file, copy.blocks(&file) - lost);
            let (code, report, err) = contents(database);
            let tables = report["tables"].as_u64().expect("a number");
            assert!(code == 1 && tables > all / 2, "{catalog}: {tables} of {all} {err}");
            // The visibility map of the catalog itself may have bits for the lost pages.
            let itself = format!("{database}.pg_catalog.{catalog}");
            let mut findings = report["findings"].as_array().expect("a list").iter();
            assert!(findings.all(|it| it["relation"] == *itself), "{catalog} {report}");
            let note = format!("{database}: contents not all checked: file ");
            assert_eq!(err.matches(&note).count(), 1, "{catalog}: {err}");
            fs::write(copy.path(&file), bytes).expect("written");
        }
    }
}
