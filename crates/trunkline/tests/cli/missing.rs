//! `verify` on backups that consist of valid pages only, but not of all pages: missing files and
//! directories, and files cut off at a page boundary. `pg_checksums` accepts all of them.

use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;
use trunkline_format::page_checksum;

use crate::copy::{copy_of, fixtures};
use crate::{json, run};

/// The offset of a row in its page, from its line pointer.
fn row_offset(page: &[u8; 8192], item: usize) -> usize {
    let pointer = page[24 + 4 * (item - 1)..].first_chunk().expect("a line pointer");
    (u32::from_le_bytes(*pointer) & 0x7FFF) as usize
}

/// A copy of a fixture to damage.
pub(crate) struct Copy {
    _home: TempDir,
    data: PathBuf,
}

impl Copy {
    pub(crate) fn of(fixture: &Path) -> Copy {
        let (home, data) = copy_of(fixture);
        Copy { _home: home, data }
    }

    pub(crate) fn run(&self, args: &[&str]) -> (i32, String, String) {
        let data = self.data.to_string_lossy().into_owned();
        run(args.iter().copied().chain(["-D", data.as_str()]))
    }

    /// A relation's file, relative to the data directory.
    pub(crate) fn file(&self, database: &str, name: &str) -> String {
        let (_, out, _) = self.run(&["tables", "-d", database, "--all", "--json"]);
        let listed = json(&out);
        let mut tables = listed["relations"].as_array().expect("relations").iter();
        let table = tables.find(|table| table["name"] == name);
        table.expect(name)["file"].as_str().expect("a file").to_owned()
    }

    pub(crate) fn path(&self, file: &str) -> PathBuf {
        self.data.join(file)
    }

    pub(crate) fn blocks(&self, file: &str) -> u64 {
        fs::metadata(self.path(file)).expect("a file").len() / 8192
    }

    /// Cuts a file off after `blocks` blocks.
    pub(crate) fn cut(&self, file: &str, blocks: u64) {
        let file = fs::OpenOptions::new().write(true).open(self.path(file)).expect("opened");
        file.set_len(blocks * 8192).expect("cut");
    }

    /// Changes a page of a file. The page remains valid.
    pub(crate) fn edit(&self, file: &str, block: u32, change: impl FnOnce(&mut [u8; 8192])) {
        let mut bytes = fs::read(self.path(file)).expect("read");
        let page = bytes[block as usize * 8192..].first_chunk_mut().expect("a page");
        change(page);
        let checksum = page_checksum(page, block);
        page[8..10].copy_from_slice(&checksum.to_le_bytes());
        fs::write(self.path(file), bytes).expect("written");
    }

    /// The block and the line pointer of a relation's row in `pg_class`.
    fn class_row(&self, database: &str, relation: &str) -> (u32, usize) {
        let args =
            ["copy", "-d", database, "pg_catalog.pg_class", "--ctid", "--columns", "relname"];
        let (_, rows, _) = self.run(&args);
        let row = rows.lines().find(|row| row.ends_with(&format!("\t{relation}"))).expect("a row");
        let (block, item) = row[1..].split_once(',').expect("a ctid");
        let item = item.split_once(')').expect("a ctid").0.parse().expect("an item");
        (block.parse().expect("a block"), item)
    }

    /// Removes the row of a relation from `pg_class` in `bench`, by its line pointer.
    fn lose_class_row(&self, relation: &str) {
        let class = self.file("bench", "pg_class");
        let (block, item) = self.class_row("bench", relation);
        self.edit(&class, block, |page| page[24 + 4 * (item - 1)..][..4].fill(0));
    }

    /// Damages the row of a table in `pg_class`: it gets an unknown kind. The page remains valid.
    pub(crate) fn damage_class_row(&self, database: &str, table: &str) {
        let (block, item) = self.class_row(database, table);
        self.edit(&self.file(database, "pg_class"), block, |page| {
            let offset = row_offset(page, item);
            let row = &mut page[offset..];
            // The persistence and the kind of a table.
            let kind = row.windows(2).skip(100).position(|bytes| bytes == b"pr").expect("a table");
            row[100 + kind + 1] = b'?';
        });
    }

    /// Damages a row: its values begin beyond its end.
    pub(crate) fn damage_row(&self, file: &str, block: u32, item: usize) {
        self.edit(file, block, |page| {
            let offset = row_offset(page, item);
            page[offset + 22] = 248;
        });
    }

    /// Returns the findings of `verify`, and its whole report. Checks that `--files-only`, like
    /// `pg_checksums`, doesn't find anything.
    pub(crate) fn findings(&self) -> (Vec<String>, String) {
        let (code, out, err) = self.run(&["verify"]);
        let found: Vec<String> =
            out.lines().take_while(|line| !line.is_empty()).map(str::to_owned).collect();
        assert_eq!((code, err.as_str()), (1, ""), "{out}");
        let (code, pages, err) = self.run(&["verify", "--files-only"]);
        assert_eq!(code, 0, "{pages}{err}");
        assert!(pages.contains("Relations in the catalogs:       not compared\n"), "{pages}");
        (found, out)
    }

    /// Damages the copy, checks the findings, and restores the files.
    fn case(&self, files: &[&str], damage: impl FnOnce(), expected: &[String]) {
        let before: Vec<_> = files.iter().map(|file| fs::read(self.path(file)).ok()).collect();
        damage();
        let (found, out) = self.findings();
        assert_eq!(found.len(), expected.len(), "{found:#?} {out}");
        for (found, expected) in found.iter().zip(expected) {
            assert!(found.starts_with(expected), "{found:#?}\n{expected}");
        }
        for (file, bytes) in files.iter().zip(before) {
            match bytes {
                Some(bytes) => fs::write(self.path(file), bytes).expect("written"),
                None => drop(fs::remove_file(self.path(file))),
            }
        }
    }

    /// Writes a visibility map of `maps` pages with a bit set for the first block of the last page.
    fn set_last_map_page(&self, map: &str, maps: u32) {
        let first = fs::read(self.path(map)).expect("a map");
        let mut bytes = Vec::new();
        for block in 0..maps {
            let mut page: [u8; 8192] = *first.first_chunk().expect("a page");
            page[24..].fill(0);
            if block + 1 == maps {
                page[24] = 1;
            }
            let checksum = page_checksum(&page, block);
            page[8..10].copy_from_slice(&checksum.to_le_bytes());
            bytes.extend(page);
        }
        fs::write(self.path(map), bytes).expect("written");
    }
}

#[test]
fn valid_clusters_have_no_findings() {
    for fixture in fixtures() {
        let data = fixture.join("data").to_string_lossy().into_owned();
        let (code, out, err) = run(["verify", "-D", &data]);
        assert_eq!((code, err.as_str()), (0, ""), "{data}: {out}");
        assert!(out.starts_with("Verification completed\n"), "{out}");
        let (_, out, _) = run(["verify", "--json", "-D", &data]);
        let catalogs = &json(&out)["catalogs"];
        let number = |name: &str| catalogs[name].as_u64().expect("a number");
        // Five databases.
        assert!(number("relations") > 1000, "{catalogs}");
        assert!(number("lengths_unproven") < number("relations") / 10, "{catalogs}");
        assert_eq!(catalogs["skipped"], serde_json::json!([]));
    }
}

#[test]
fn missing_files_are_found() {
    for fixture in fixtures() {
        let copy = Copy::of(&fixture);
        let table = copy.file("bench", "pgbench_branches");
        let missing = "is missing, but the catalog refers to it";
        copy.case(
            &[&table],
            || fs::remove_file(copy.path(&table)).expect("removed"),
            &[format!("bench.public.pgbench_branches: {table}: {missing}")],
        );
        a_missing_table_is_named(&copy, &table);
        let (code, _, _) = copy.run(&["verify"]);
        assert_eq!(code, 0);
        // A catalog without which we don't know anything about the database.
        let class = copy.file("bench", "pg_class");
        let bytes = fs::read(copy.path(&class)).expect("read");
        fs::remove_file(copy.path(&class)).expect("removed");
        let (found, out) = copy.findings();
        assert_eq!(found, [format!("bench.pg_catalog.pg_class: {class}: {missing}")], "{out}");
        assert!(out.contains("\nNot compared: bench: "), "{out}");
        let (code, out, err) = copy.run(&["verify", "--rows"]);
        let note = "trunkline: note: bench: contents not checked: pg_class: could not open file \"";
        assert!(code == 1 && err.contains(note), "{out}{err}");
        let (code, out, err) = copy.run(&["tables", "-d", "bench"]);
        assert_eq!((code, out.as_str()), (1, ""), "{err}");
        assert!(err.starts_with("trunkline: error: ") && err.lines().count() == 1, "{err}");
        fs::write(copy.path(&class), &bytes[..0]).expect("written");
        let (code, out, err) = copy.run(&["tables", "-d", "bench"]);
        assert!(code != 0 && out.is_empty() && !err.contains("warning: "), "{code} {err}");
        assert_eq!(copy.run(&["verify"]).0, 1);
        fs::write(copy.path(&class), &bytes).expect("written");
        // The whole database.
        let directory = Path::new(&class).parent().expect("a directory").display().to_string();
        fs::rename(copy.path(&directory), copy.path("elsewhere")).expect("moved");
        let (found, out) = copy.findings();
        assert_eq!(found, [format!("bench: {directory}: {missing}")], "{out}");
        assert!(out.contains("\nNot compared: bench: "), "{out}");
        a_missing_database_has_no_size(&copy);
        // A link that the catalog doesn't know changes nothing about that.
        let link = copy.path("pg_tblspc/99999");
        std::os::unix::fs::symlink(copy.path("nowhere"), &link).expect("linked");
        a_missing_database_has_no_size(&copy);
        fs::remove_file(link).expect("removed");
        fs::rename(copy.path("elsewhere"), copy.path(&directory)).expect("moved");
        // The map of the shared catalogs.
        fs::remove_file(copy.path("global/pg_filenode.map")).expect("removed");
        let (found, out) = copy.findings();
        assert_eq!(found, [format!("global/pg_filenode.map: {missing}")], "{out}");
        assert!(out.contains("\nNot compared: all databases: "), "{out}");
    }
}

/// The messages about a table without its file say what a server would say.
fn a_missing_table_is_named(copy: &Copy, file: &str) {
    let away = copy.path("elsewhere");
    fs::rename(copy.path(file), &away).expect("moved");
    let (code, _, err) = copy.run(&["copy", "-d", "bench", "public.pgbench_branches"]);
    let path = copy.path(file).display().to_string();
    let expected = format!(
        "trunkline: error: public.pgbench_branches: could not open file \"{path}\": No such file or \
         directory\ntrunkline: hint: restore the file, or use --keep-going to leave out what was in it\n"
    );
    assert_eq!((code, err), (1, expected));
    let (code, out, _) = copy.run(&["tables", "-d", "bench"]);
    let line = out.lines().find(|line| line.contains(" pgbench_branches ")).expect("listed");
    assert!(code == 1 && line.contains("  missing  "), "{code} {out}");
    fs::rename(away, copy.path(file)).expect("moved");
    assert_eq!(copy.run(&["tables", "-d", "bench"]).0, 0);
}

/// A database without its directory must not look like a small one.
fn a_missing_database_has_no_size(copy: &Copy) {
    let (code, out, err) = copy.run(&["tables"]);
    let line = out.lines().find(|line| line.starts_with("bench ")).expect("listed");
    assert!(line.contains("  missing") && (code, &*err) == (1, ""), "{code} {out}{err}");
    let (_, out, _) = copy.run(&["tables", "--json"]);
    let databases = json(&out)["databases"].clone();
    let mut databases = databases.as_array().expect("databases").iter();
    let bench = databases.find(|line| line["name"] == "bench").expect("listed");
    assert!(bench["bytes"].is_null() && bench["incomplete"] == true, "{bench}");
}

/// A base backup contains only the init forks of unlogged relations.
#[test]
fn unlogged_relations_of_a_base_backup_are_not_missing() {
    let Some(fixture) = fixtures().pop() else { return };
    let copy = Copy::of(&fixture);
    let file = copy.file("fixture", "unl");
    fs::remove_file(copy.path(&file)).expect("removed");
    let unlogged = |args: &[&str]| {
        let (code, out, err) = copy.run(&[&["tables", "-d", "fixture"], args].concat());
        let line = out.lines().find(|line| line.contains(" unl ")).expect("listed");
        (code, line.contains("  missing  "), err)
    };
    assert_eq!(unlogged(&[]), (1, true, String::new()));
    let page = ["inspect", "page", "-d", "fixture", "s1.unl"];
    assert_eq!(copy.run(&page).0, 1);
    fs::write(copy.path("backup_label"), "").expect("written");
    let (code, is_missing, err) = unlogged(&["--force-unclean"]);
    assert!(code == 0 && !is_missing, "{code} {err}");
    assert_eq!(copy.run(&[&page[..], &["--force-unclean"]].concat()).0, 3);
}

/// Nothing proves the length of a hash index, but `pg_class` says how long it was.
#[test]
fn a_relation_that_was_longer_is_a_warning() {
    for fixture in fixtures() {
        let copy = Copy::of(&fixture);
        let file = copy.file("fixture", "bt_h");
        let blocks = copy.blocks(&file);
        copy.cut(&file, 2);
        let (code, out, err) = copy.run(&["verify"]);
        let text = format!("relation has 2 blocks, but had {blocks} at its last VACUUM or ANALYZE");
        let warning =
            format!("trunkline: warning: fixture.s1.bt_h: {file}: {text}; pages at its end ");
        assert!(err.starts_with(&warning) && err.lines().count() == 1, "{err}");
        assert!(code == 0 && out.contains("Lengths doubtful:                1\n"), "{out}");
        let (code, out, _) = copy.run(&["verify", "--json"]);
        let catalogs = &json(&out)["catalogs"];
        let expected = serde_json::json!([{
            "relation": "fixture.s1.bt_h", "file": file, "blocks": 2, "relpages": blocks,
        }]);
        assert_eq!((code, &catalogs["lengths_doubtful"]), (0, &expected));
        let unproven = catalogs["relations_unproven"].as_array().expect("names");
        assert!(unproven.contains(&"fixture.s1.bt_h".into()), "{unproven:?}");
        assert_eq!(catalogs["lengths_unproven"], unproven.len());
        // We don't compare lengths if the files contradict each other.
        fs::write(copy.path("backup_label"), "").expect("written");
        let (_, out, err) = copy.run(&["verify", "--force-unclean"]);
        assert!(!err.contains(&text) && !out.contains("no index refers"), "{out}{err}");
    }
}

#[test]
fn files_cut_off_at_a_page_border_are_found() {
    for fixture in fixtures() {
        let copy = Copy::of(&fixture);
        let table = copy.file("bench", "pgbench_accounts");
        let blocks = copy.blocks(&table);
        // Both the index and the visibility map prove the length. Without the map, the index alone
        // must be sufficient.
        let map = format!("{table}_vm");
        let by_index = format!(
            "index bench.public.pgbench_accounts_pkey has an entry for row ({},",
            blocks - 1
        );
        for (left, has_map) in
            [(blocks - 1, true), (blocks / 2, true), (0, true), (blocks - 1, false), (0, false)]
        {
            let proof = if has_map { "" } else { &by_index };
            let expected = format!(
                "bench.public.pgbench_accounts: {table}: relation has {left} blocks, expected at \
                 least {blocks}: {proof}"
            );
            let damage = || {
                copy.cut(&table, left);
                if !has_map {
                    fs::remove_file(copy.path(&map)).expect("removed");
                }
            };
            copy.case(&[&table, &map], damage, &[expected]);
        }
        // Its index: the last page has a left sibling or a parent.
        let index = copy.file("bench", "pgbench_accounts_pkey");
        let blocks = copy.blocks(&index);
        let name = "bench.public.pgbench_accounts_pkey";
        for left in [blocks - 1, blocks / 2] {
            let expected =
                format!("{name}: {index}: relation has {left} blocks, expected at least ");
            copy.case(&[&index], || copy.cut(&index, left), &[expected]);
        }
        let expected = format!(
            "{name}: {index}: relation has 0 blocks, expected at least 1: a B-tree begins with a \
             metapage"
        );
        copy.case(&[&index], || copy.cut(&index, 0), &[expected]);
    }
}

/// If a catalog has lost its last pages, any number of objects may be missing. We must not go on with
/// the others, and not look for the cause anywhere else.
#[test]
fn a_catalog_cut_off_at_a_page_border_is_one_error() {
    for fixture in fixtures() {
        let copy = Copy::of(&fixture);
        let class = copy.blocks(&copy.file("bench", "pg_class"));
        for (catalog, left) in [
            ("pg_class", class - 1),
            ("pg_class", 3),
            ("pg_class", 0),
            ("pg_attribute", 10),
            ("pg_type", 1),
            ("pg_namespace", 0),
            ("pg_index", 1),
            ("pg_am", 0),
            ("pg_opclass", 1),
            ("pg_database", 0),
            ("pg_tablespace", 0),
        ] {
            a_short_catalog_is_one_error(&copy, catalog, left);
        }
    }
}

/// Leaves `left` blocks of a catalog, and restores them at the end.
fn a_short_catalog_is_one_error(copy: &Copy, catalog: &str, left: u64) {
    let file = copy.file("bench", catalog);
    let blocks = copy.blocks(&file);
    let path = copy.path(&file).display().to_string();
    let short = format!("has {left} blocks, expected at least {blocks}: index {catalog}_");
    let expected = format!("file \"{path}\" ({catalog}) {short}");
    let finding = format!("relation {short}");
    lost_pages_are_one_error(copy, (catalog, &file), || copy.cut(&file, left), &expected, &finding);
}

/// Damages a catalog, and restores it at the end. Checks the error and the finding of `verify`.
pub(crate) fn lost_pages_are_one_error(
    copy: &Copy,
    (catalog, file): (&str, &str),
    damage: impl FnOnce(),
    expected: &str,
    finding: &str,
) {
    let (bytes, blocks) = (fs::read(copy.path(file)).expect("read"), copy.blocks(file));
    damage();
    let table = "public.pgbench_branches";
    for args in [
        &["tables", "-d", "bench"][..],
        &["copy", "-d", "bench", table],
        &["inspect", "tuple", "-d", "bench", table, "0,1"],
        &["verify", "-d", "bench", table],
        &["prewarm", "-d", "bench", table],
    ] {
        let (code, out, err) = copy.run(args);
        assert_eq!((code, out.as_str()), (1, ""), "{args:?}: {err}");
        assert!(err.starts_with(&format!("trunkline: error: {expected}")), "{args:?}: {err}");
        let hint = "trunkline: hint: restore the file, or its index if only that is damaged; copy \
                    --keep-going copies what the rest of it describes\n";
        assert!(err.ends_with(hint) && err.lines().count() == 2, "{args:?}: {err}");
    }
    let (found, out) = copy.findings();
    let is_shared = file.starts_with("global/");
    let database = if is_shared { "" } else { "bench." };
    let finding = format!("{database}pg_catalog.{catalog}: {file}: {finding}");
    assert!(found.len() == 1 && found[0].starts_with(&finding), "{found:#?}\n{finding}");
    let skipped = if is_shared { "all databases" } else { "bench" };
    assert!(out.contains(&format!("\nNot compared: {skipped}: {expected}")), "{out}");
    // The files of a database can be found without its catalogs.
    if !is_shared {
        let (code, out, err) = copy.run(&["verify", "-d", "bench"]);
        assert!(code == 1 && out.contains(&finding), "{code} {out}{err}");
        let (code, out, err) = copy.run(&["prewarm", "-d", "bench"]);
        assert_eq!((code, err.as_str()), (0, ""), "{out}");
    }
    // The rest can be rescued. Whatever is missing in it must not be reported as well.
    let (code, _, err) = copy.run(&["copy", "-d", "bench", table, "--keep-going"]);
    assert!(code == 1 && err.matches(expected).count() == 1, "{code} {err}");
    assert!(!err.contains("do not match") && !err.contains("could not find the file"), "{err}");
    if copy.blocks(file) + 1 >= blocks && blocks > 1 {
        assert!(err.contains(&format!("warning: catalog of bench: {expected}")), "{err}");
    }
    // The files of a copy made while the server was running contradict each other.
    fs::write(copy.path("backup_label"), "").expect("written");
    let (_, _, err) = copy.run(&["tables", "-d", "bench", "--force-unclean"]);
    assert!(!err.contains(expected), "{err}");
    fs::remove_file(copy.path("backup_label")).expect("removed");
    fs::write(copy.path(file), bytes).expect("written");
}

/// Some catalogs are read only for the values of some types, or for sequences.
#[test]
fn a_short_catalog_matters_only_where_it_is_needed() {
    let Some(fixture) = fixtures().pop() else { return };
    let copy = Copy::of(&fixture);
    let functions = copy.file("bench", "pg_proc");
    copy.cut(&functions, copy.blocks(&functions) - 1);
    let hint = "hint: restore the file, or leave out the columns that need it with --columns\n";
    for args in [&[][..], &["--keep-going"]] {
        let args = [&["copy", "-d", "bench", "pg_catalog.pg_am"], args].concat();
        let (code, out, err) = copy.run(&args);
        assert!(code == 1 && out.is_empty() && err.ends_with(hint), "{code} {err}");
        let (code, out, err) = copy.run(&[&args[..], &["--columns", "amname"]].concat());
        assert!((code, &*err) == (0, "") && out.contains("heap\n"), "{code} {out}{err}");
    }
    copy.cut(&copy.file("fixture", "pg_sequence"), 0);
    let output = tempfile::tempdir().expect("a directory");
    let output = output.path().join("out").display().to_string();
    let args = ["copy", "-d", "fixture", "-n", "s1", "-o", &output, "--keep-going"];
    let (code, _, err) = copy.run(&args);
    let short = "(pg_sequence) has 0 blocks, expected at least 1: ";
    assert!(code == 1 && err.contains(short), "{code} {err}");
    assert!(err.contains("it has no row in pg_sequence"), "{err}");
    assert!(!err.contains("no sequence is restored"), "{err}");
}

/// We don't look for every row of `pg_class` that its index refers to, so if only one row is lost, the
/// first sign may be that a catalog has no file.
#[test]
fn a_catalog_without_its_row_is_skipped() {
    let Some(fixture) = fixtures().pop() else { return };
    let copy = Copy::of(&fixture);
    copy.lose_class_row("pg_inherits");
    let (code, out, err) = copy.run(&["tables", "-d", "bench"]);
    let warning = "trunkline: warning: catalog of bench: could not find the file of pg_inherits ";
    assert!(code == 1 && err.contains(warning), "{code} {out}{err}");
    assert!(out.contains(" pgbench_accounts "), "{out}");
    let (_, out, _) = copy.run(&["verify"]);
    assert!(out.starts_with("bench: could not find the file of pg_inherits in "), "{out}");
}

/// A mapped catalog doesn't need the row of its index. That it has lost pages must be noticed even if
/// that row is missing as well.
#[test]
fn a_mapped_catalog_without_the_row_of_its_index_is_short() {
    let Some(fixture) = fixtures().pop() else { return };
    let copy = Copy::of(&fixture);
    let file = copy.file("bench", "pg_type");
    copy.lose_class_row("pg_type_oid_index");
    copy.cut(&file, copy.blocks(&file) - 1);
    let (code, out, err) = copy.run(&["tables", "-d", "bench"]);
    let short = "trunkline: error: file \"";
    assert!(code == 1 && out.is_empty() && err.contains(short), "{code} {out}{err}");
    assert!(err.contains(" (pg_type) has "), "{err}");
}

/// If a catalog is damaged, we must report that even if its own pages are not verified, because then
/// we don't know the indexes that would prove the length of a table.
#[test]
fn damaged_catalogs_outside_the_scope_are_found() {
    let Some(fixture) = fixtures().pop() else { return };
    let copy = Copy::of(&fixture);
    let index = copy.file("bench", "pg_index");
    let mut bytes = fs::read(copy.path(&index)).expect("read");
    bytes[8191] ^= 1;
    fs::write(copy.path(&index), bytes).expect("written");
    for args in [&["verify", "-d", "bench", "public.pgbench_accounts"][..], &["verify"]] {
        let (code, out, err) = copy.run(args);
        assert_eq!(code, 1, "{out}{err}");
        let found = out.lines().filter(|line| line.contains(&format!("{index}: block 0: ")));
        assert_eq!(found.count(), 1, "{args:?}: {out}");
        assert!(out.contains("\nNot compared: bench: "), "{out}");
    }
}

/// A visibility map with bits for blocks that the table doesn't have.
#[test]
fn a_visibility_map_longer_than_its_table_is_found() {
    let Some(fixture) = fixtures().pop() else { return };
    let copy = Copy::of(&fixture);
    let table = copy.file("bench", "pgbench_branches");
    let map = format!("{table}_vm");
    let blocks = copy.blocks(&table);
    let of_table = format!("bench.public.pgbench_branches: {table}: relation has {blocks} blocks");
    copy.case(
        &[&map],
        || copy.set_last_map_page(&map, 3),
        &[format!(
            "{of_table}, expected at least 65345: the visibility map has a bit set for block 65344"
        )],
    );
    // A page without bits may have been left behind by a crash.
    let mut longer = fs::read(copy.path(&map)).expect("read");
    longer.resize(longer.len() + 8192, 0);
    fs::write(copy.path(&map), longer).expect("written");
    assert_eq!(copy.run(&["verify"]).0, 0);
}

/// A table that is slightly longer than 1 GiB loses its second segment.
#[test]
fn a_missing_second_segment_is_found() {
    let Some(fixture) = fixtures().pop() else { return };
    let copy = Copy::of(&fixture);
    let table = copy.file("bench", "pgbench_branches");
    let second = format!("{table}.1");
    // All other pages are new. That's valid anywhere in a table.
    copy.cut(&table, 131_072);
    fs::write(copy.path(&second), [0; 8192 * 5]).expect("written");
    // The fifth page of the map begins with block 130,688 in the first segment.
    let map = format!("{table}_vm");
    copy.set_last_map_page(&map, 5);
    let mut bytes = fs::read(copy.path(&map)).expect("read");
    let page: &mut [u8; 8192] = bytes.last_chunk_mut().expect("a page");
    page[24 + (131_072 - 130_688) / 4] = 1 << 4;
    let checksum = page_checksum(page, 4);
    page[8..10].copy_from_slice(&checksum.to_le_bytes());
    fs::write(copy.path(&map), bytes).expect("written");
    let (code, out, err) = copy.run(&["verify"]);
    assert_eq!(code, 0, "{out}{err}");
    fs::remove_file(copy.path(&second)).expect("removed");
    let (found, _) = copy.findings();
    let expected = format!(
        "bench.public.pgbench_branches: {second}: relation has 131072 blocks, expected at least \
         131075: the visibility map has a bit set for block 131074"
    );
    assert_eq!(found, [expected]);
}

/// If the file of a TOAST table is missing, all values in it have the same problem.
#[test]
fn values_of_a_missing_toast_file_are_a_few_lines() {
    let Some(fixture) = fixtures().pop() else { return };
    let copy = Copy::of(&fixture);
    // The TOAST table of pg_rewrite.
    fs::remove_file(copy.path(&copy.file("fixture", "pg_toast_2618"))).expect("removed");
    let (code, out, err) = copy.run(&["verify", "--rows", "fixture.pg_catalog.pg_rewrite"]);
    let lines: Vec<&str> = out.lines().filter(|line| line.contains(" in TOAST: ")).collect();
    assert!(code == 1 && lines.len() == 3, "{out}{err}");
    assert!(lines.iter().any(|line| line.ends_with(" more like this)")), "{out}");
    let note = "pg_rewrite: not checked for orphaned TOAST values: could not open file \"";
    assert!(err.contains(note), "{err}");
}

/// If half of a table is missing, half of the entries of its index point to rows that don't exist.
#[test]
fn many_problems_of_one_index_are_a_few_lines() {
    let Some(fixture) = fixtures().pop() else { return };
    let copy = Copy::of(&fixture);
    let table = copy.file("bench", "pgbench_accounts");
    let (code, out, _) = copy.run(&["verify", "--indexes", "bench.public.pgbench_accounts"]);
    assert_eq!(code, 0, "{out}");
    copy.cut(&table, copy.blocks(&table) / 2);
    let args = ["verify", "--indexes", "bench.public.pgbench_accounts"];
    let (code, out, _) = copy.run(&args);
    assert_eq!(code, 1, "{out}");
    let lines: Vec<&str> =
        out.lines().filter(|line| line.contains(": entry points to row (")).collect();
    assert_eq!(lines.len(), 3, "{out}");
    let more = out.split_once(" (and ").and_then(|(_, rest)| rest.split_once(" more like this)"));
    let more: u64 = more.expect("a count").0.parse().expect("a number");
    assert!(more > 10_000, "{out}");
    let (_, out, _) = copy.run(&[&args[..], &["--json"]].concat());
    let contents = &json(&out)["contents"];
    assert_eq!(contents["findings"].as_array().expect("findings").len(), 3, "{out}");
    let findings = contents["findings"].as_array().expect("findings");
    let counts: Vec<u64> = findings.iter().filter_map(|finding| finding["more"].as_u64()).collect();
    assert_eq!((counts, &contents["findings_omitted"]), (vec![more], &0.into()), "{out}");
}

/// Whichever command notices that a table's file is missing, it's the table that is damaged.
#[test]
fn a_missing_file_of_a_named_table_is_a_finding() {
    for fixture in fixtures() {
        let copy = Copy::of(&fixture);
        let file = copy.file("bench", "pgbench_branches");
        fs::remove_file(copy.path(&file)).expect("removed");
        let path = copy.path(&file).display().to_string();
        let expected = format!("could not open file \"{path}\": No such file or directory\n");
        for args in [
            &["copy"][..],
            &["inspect", "page"],
            &["inspect", "tuple"],
            &["prewarm"],
            &["prewarm", "--mode", "read"],
        ] {
            let mut args = [args, &["-d", "bench", "public.pgbench_branches"]].concat();
            args.extend(args.contains(&"tuple").then_some("0,1"));
            let (code, out, err) = copy.run(&args);
            assert!((code, &*out) == (1, "") && err.contains(&expected), "{args:?}: {code} {err}");
        }
        // The other forks can still be read.
        let map = ["prewarm", "-d", "bench", "public.pgbench_branches", "--fork", "vm"];
        let (code, _, err) = copy.run(&map);
        assert_eq!(code, 0, "{err}");
        // Given by number, it may as well be a mistake.
        let (code, _, err) = copy.run(&["prewarm", file.strip_prefix("base/").expect("a file")]);
        assert!(code == 2 && err.contains("does not exist for relation"), "{err}");
    }
}
