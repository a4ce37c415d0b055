//! Catalogs that have lost pages or have damaged ones: what is reported, and what is still checked
//! without them.

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

/// Damage that was found in a catalog before the lost pages is reported, too.
#[test]
fn other_damage_is_found_beside_lost_pages() {
    for fixture in fixtures() {
        let copy = Copy::of(&fixture);
        let (class, attribute) =
            (copy.file("bench", "pg_class"), copy.file("bench", "pg_attribute"));
        copy.damage_class_row("bench", "pgbench_history");
        let mut bytes = fs::read(copy.path(&attribute)).expect("read");
        bytes[10 * 8192..][..8192].fill(0);
        fs::write(copy.path(&attribute), bytes).expect("written");
        let (found, out) = copy.findings();
        for expected in [
            format!("bench: {class}: block "),
            format!("bench.pg_catalog.pg_attribute: {attribute}: block 10: "),
        ] {
            assert!(found.iter().any(|line| line.starts_with(&expected)), "{expected}\n{found:#?}");
        }
        assert!(found.len() == 2 && out.matches("\nNot compared: bench: ").count() == 1, "{out}");
    }
}

/// If a shared catalog has lost pages, the databases that it still names are looked at, too.
#[test]
fn damage_in_a_database_is_found_beside_a_short_shared_catalog() {
    for fixture in fixtures() {
        let copy = Copy::of(&fixture);
        let class = copy.file("bench", "pg_class");
        let tablespaces = copy.file("bench", "pg_tablespace");
        copy.damage_class_row("bench", "pgbench_history");
        copy.cut(&tablespaces, 0);
        let (found, out) = copy.findings();
        for expected in [
            format!("bench: {class}: block "),
            format!("pg_catalog.pg_tablespace: {tablespaces}: "),
        ] {
            assert!(found.iter().any(|line| line.starts_with(&expected)), "{expected}\n{found:#?}");
        }
        let note = "\nNot compared: all databases: ";
        assert!(found.len() == 2 && out.matches(note).count() == 1, "{out}");
    }
}

/// With `zero_damaged_pages`, a damaged page of a catalog must not look like one that is lost.
#[test]
fn a_damaged_page_is_not_a_lost_page() {
    for fixture in fixtures() {
        let copy = Copy::of(&fixture);
        let class = copy.file("bench", "pg_class");
        let mut bytes = fs::read(copy.path(&class)).expect("read");
        bytes[8192 + 12..][..4].fill(0xFF);
        fs::write(copy.path(&class), bytes).expect("written");
        for args in [
            &["tables", "-d", "bench"][..],
            &["copy", "-d", "bench", "pg_catalog.pg_am", "--keep-going"],
        ] {
            let found = copy.run(args);
            let (_, out, err) = &found;
            assert!(
                !out.is_empty() && err.contains("invalid page in block 1 of"),
                "{args:?}: {err}"
            );
            assert_eq!(copy.run(&[args, &["-c", "zero_damaged_pages=on"]].concat()), found);
        }
    }
}

/// An unknown label is a damaged value, unless the labels themselves are damaged.
#[test]
fn damage_in_other_catalogs_does_not_hide_an_unknown_label() {
    for fixture in fixtures() {
        let copy = Copy::of(&fixture);
        let labels = copy.run(&[
            "copy",
            "-d",
            "fixture",
            "pg_catalog.pg_enum",
            "--columns",
            "oid,enumlabel",
        ]);
        let happy = labels.1.lines().find_map(|row| row.strip_suffix("\thappy")).expect("a label");
        let happy = happy.parse::<u32>().expect("an OID").to_le_bytes();
        let file = copy.file("fixture", "ty");
        copy.edit(&file, 0, |page| {
            let mut words = page.as_chunks_mut::<4>().0.iter_mut();
            *words.find(|word| **word == happy).expect("a value") = [1, 0, 0, 0];
        });
        let findings = || {
            let (_, out, err) = copy.run(&["verify", "--rows", "-d", "fixture", "--json"]);
            let report = json(&out);
            let findings = report["contents"]["findings"].as_array().expect(&err).clone();
            findings.into_iter().filter(|it| it["relation"] == "fixture.s1.ty").collect::<Vec<_>>()
        };
        let found = findings();
        assert!(
            found.len() == 1 && found[0].to_string().contains("column \\\"md\\\""),
            "{found:#?}"
        );
        copy.damage_class_row("fixture", "bt");
        assert_eq!(findings(), found);
        let labels = copy.file("fixture", "pg_enum");
        copy.damage_row(&labels, 0, 1);
        assert_eq!(findings(), [serde_json::Value::Null; 0]);
    }
}

/// A damaged catalog does not show how many tables it described.
#[test]
fn the_report_of_a_copy_says_that_more_may_be_missing() {
    for fixture in fixtures() {
        let copy = Copy::of(&fixture);
        copy.cut(&copy.file("bench", "pg_class"), 3);
        let home = tempfile::tempdir().expect("a directory");
        let run = |name: &str, more: &[&str]| {
            let output = home.path().join(name).display().to_string();
            let args = ["copy", "-d", "bench", "--all", "--keep-going", "-o", &output];
            copy.run(&[&args, more].concat())
        };
        let (code, out, err) = run("text", &[]);
        let expected = "Left out:      0 tables; there may be more, because catalogs are damaged\n";
        assert!(code == 1 && out.contains(expected), "{out}{err}");
        let report = json(&run("json", &["--json"]).1);
        assert_eq!(
            (&report["may_lack_tables"], &report["complete"]),
            (&true.into(), &false.into())
        );
    }
}
