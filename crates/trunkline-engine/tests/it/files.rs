//! Tests of the relation file listing, and of the problems it reports.

use std::fs;

use trunkline_engine::datadir::FileList;
use trunkline_format::{Fork, Oid};

use crate::child;
use crate::fake::{Fake, SEGMENT_BYTES};

fn list(fake: &Fake) -> FileList {
    fake.open().expect("opened").relation_files()
}

/// The listed files' paths, relative to the data directory.
fn names(fake: &Fake, list: &FileList) -> Vec<String> {
    let relative = |path: &std::path::Path| {
        path.strip_prefix(&fake.path).expect("inside").to_string_lossy().into_owned()
    };
    list.files.iter().map(|file| relative(&file.path)).collect()
}

/// The problems, with `DIR` in place of the directory's path.
fn problems(fake: &Fake, list: &FileList) -> Vec<String> {
    let directory = format!("{}/", fake.path.display());
    list.problems.iter().map(|problem| problem.to_string().replace(&directory, "")).collect()
}

#[test]
fn files_of_all_kinds() {
    let fake = Fake::new();
    let version = "pg_tblspc/16500/PG_18_202506291";
    fs::create_dir_all(fake.at(&format!("{version}/5"))).expect("made");
    fs::create_dir_all(fake.at("pg_tblspc/16500/PG_17_202406281/5")).expect("made");
    for name in ["global/1262", "global/1262_fsm", "base/1/112", "base/5/16384", "base/5/9999_vm"] {
        fake.sparse(name, 8192);
    }
    fake.sparse("base/5/16384_init", 0);
    fake.sparse("base/5/16384_fsm", 3 * 8192);
    fake.sparse(&format!("{version}/5/16600"), 8192);
    fake.sparse("pg_tblspc/16500/PG_17_202406281/5/16601", 8192);
    for skipped in [
        "global/pg_filenode.map",
        "global/pg_internal.init",
        "base/5/pg_internal.init.1234",
        "base/5/pgsql_tmp123.0",
        "base/5/t3_16700",
        "base/5/t3_16700_fsm",
        "base/5/.DS_Store",
    ] {
        fake.sparse(skipped, 8192);
    }
    fs::create_dir(fake.at("base/pgsql_tmp")).expect("made");

    let list = list(&fake);
    assert_eq!(problems(&fake, &list), [""; 0]);
    assert_eq!(
        names(&fake, &list),
        [
            "global/1262",
            "global/1262_fsm",
            "base/1/112",
            "base/5/9999_vm",
            "base/5/16384",
            "base/5/16384_fsm",
            "base/5/16384_init",
            "pg_tblspc/16500/PG_18_202506291/5/16600",
        ]
    );
    assert_eq!(list.blocks(), 9);
    assert_eq!(list.bytes(), 9 * 8192);
    let last = list.files.last().expect("files");
    assert_eq!((last.tablespace, last.database, last.relfilenode), (Oid(16500), Oid(5), 16600));
    assert_eq!((last.fork, last.segment, last.first_block()), (Fork::Main, 0, Some(0)));
    assert_eq!((list.files[0].tablespace, list.files[0].database), (Oid(1664), Oid(0)));
    assert_eq!(list.tablespaces.len(), 1);
    assert_eq!(list.tablespaces[0].target, None);
}

#[test]
fn tablespace_behind_a_link() {
    let fake = Fake::new();
    let target = fake.path.with_file_name("elsewhere");
    fs::create_dir_all(target.join("PG_18_202506291/5")).expect("made");
    fs::write(target.join("PG_18_202506291/5/16600"), [0; 8192]).expect("written");
    fake.link(&target, "pg_tblspc/16500");
    fs::create_dir_all(fake.path.with_file_name("other/PG_17_202406281/5")).expect("made");
    fake.link("../../other", "pg_tblspc/16501");
    fake.link("/nowhere/at/all", "pg_tblspc/16502");

    let list = list(&fake);
    assert_eq!(names(&fake, &list), ["pg_tblspc/16500/PG_18_202506291/5/16600"]);
    assert_eq!(list.tablespaces.len(), 1);
    assert_eq!(list.tablespaces[0].target.as_deref(), Some(&*target));
    let text = "is not a tablespace of this cluster: it has no directory PG_18_202506291";
    let dangling = "points to \"/nowhere/at/all\", which does not exist; skipped";
    assert_eq!(
        problems(&fake, &list),
        [format!("pg_tblspc/16501: {text}"), format!("pg_tblspc/16502: {dangling}")]
    );
}

#[test]
fn links_elsewhere_are_reported() {
    let fake = Fake::new();
    fake.sparse("base/5/16384", 8192);
    fake.link("16384", "base/5/16385");
    fake.link("5", "base/6");
    fs::rename(fake.at("global"), fake.at("moved")).expect("moved");
    fs::create_dir(fake.at("global")).expect("made");
    fs::rename(fake.at("moved/pg_control"), fake.at("global/pg_control")).expect("moved");
    fs::create_dir_all(fake.at("pg_tblspc/16500")).expect("made");
    fake.link("/", "pg_tblspc/16500/PG_18_202506291");

    let list = list(&fake);
    assert_eq!(names(&fake, &list), ["base/5/16384"]);
    let text = "is a symbolic link, expected a file or directory of the cluster; not followed";
    assert_eq!(
        problems(&fake, &list),
        [
            format!("base/6: {text}"),
            format!("base/5/16385: {text}"),
            "pg_tblspc/16500: is not a tablespace of this cluster: it has no directory \
             PG_18_202506291"
                .to_owned(),
        ]
    );
    assert!(list.problems.iter().all(|problem| problem.kind.is_finding()));
}

#[test]
fn sizes() {
    let fake = Fake::new();
    fake.sparse("base/5/100", 8192 + 100);
    // A valid fork: full segments, then a partial one, then empty ones left behind by a truncation.
    fake.sparse("base/5/200", SEGMENT_BYTES);
    fake.sparse("base/5/200.1", 8192);
    fake.sparse("base/5/200.2", 0);
    fake.sparse("base/5/200.3", 0);
    // Invalid forks: a short segment in the middle, a missing segment, and a missing first segment.
    fake.sparse("base/5/300", SEGMENT_BYTES - 8192);
    fake.sparse("base/5/300.1", 8192);
    fake.sparse("base/5/400", SEGMENT_BYTES);
    fake.sparse("base/5/400.2", 8192);
    fake.sparse("base/5/500_fsm", SEGMENT_BYTES);
    fake.sparse("base/5/500.1", 8192);
    fake.sparse("base/5/600", SEGMENT_BYTES + 8192);

    let list = list(&fake);
    assert_eq!(
        problems(&fake, &list),
        [
            "base/5/100: size 8292 is not a multiple of 8192: block 1 of the file has 100 bytes",
            "base/5/300: segment has 131071 blocks, expected 131072, since segment 1 has blocks",
            "base/5/400.1: segment is missing, while segment 2 exists",
            "base/5/500: segment is missing, while segment 1 exists",
            "base/5/600: size 1073750016 is more than a segment holds, expected at most 1073741824",
        ]
    );
    let block_counts: Vec<u32> = list.files.iter().map(|file| file.blocks()).collect();
    assert_eq!(block_counts, [1, 131_072, 1, 0, 0, 131_071, 1, 131_072, 1, 1, 131_072, 131_072]);
    assert_eq!(list.files[2].first_block(), Some(131_072));
}

#[test]
fn names_that_are_not_relation_files_are_ignored() {
    let fake = Fake::new();
    fake.sparse("base/5/16384.bak", 8192);
    fake.sparse("base/5/016384", 8192);
    fake.sparse("base/5/16384.0", 8192);
    fake.sparse("base/stray", 8192);
    fs::create_dir(fake.at("base/05")).expect("made");
    fs::create_dir(fake.at("base/5/999")).expect("made");
    fake.pipe("base/5/1000");

    let list = list(&fake);
    assert!(list.files.is_empty());
    let text = "does not have a name that PostgreSQL uses here; skipped";
    assert_eq!(
        problems(&fake, &list),
        [
            format!("base/05: {text}"),
            format!("base/stray: {text}"),
            format!("base/5/016384: {text}"),
            "base/5/1000: is not a regular file; skipped".to_owned(),
            format!("base/5/16384.0: {text}"),
            format!("base/5/16384.bak: {text}"),
            "base/5/999: is not a regular file; skipped".to_owned(),
        ]
    );
    assert_eq!(list.problems.iter().filter(|problem| problem.kind.is_finding()).count(), 2);
}

#[test]
fn missing_directories() {
    let fake = Fake::new();
    fs::remove_dir(fake.at("pg_tblspc")).expect("removed");
    let list = list(&fake);
    assert_eq!(
        problems(&fake, &list),
        ["pg_tblspc: could not be read: No such file or directory (os error 2)"]
    );
}

#[test]
fn permission_denied() {
    if child::is_root() {
        return child::as_unprivileged_user("files::permission_denied");
    }
    let fake = Fake::new();
    fake.sparse("base/1/112", 8192);
    fake.sparse("base/5/16384", 8192);
    child::set_mode(&fake.at("base/1"), 0);
    let list = list(&fake);
    child::set_mode(&fake.at("base/1"), 0o700);
    assert_eq!(names(&fake, &list), ["base/5/16384"]);
    assert_eq!(
        problems(&fake, &list),
        ["base/1: could not be read: Permission denied (os error 13)"]
    );
}

#[test]
fn five_thousand_files_and_few_descriptors() {
    if !child::is_child() {
        return child::with_files_max(32, "files::five_thousand_files_and_few_descriptors");
    }
    let fake = Fake::new();
    for number in 0..5000 {
        fake.sparse(&format!("base/5/{}", 16384 + number), 0);
    }
    let list = list(&fake);
    assert_eq!((list.files.len(), list.problems.len()), (5000, 0));
    assert_eq!(names(&fake, &list)[4999], "base/5/21383");
}
