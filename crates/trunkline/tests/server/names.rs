//! Tests relation names on the command line with real clusters: how the names are listed, and which
//! errors we report for names we can't use. If a command can't read a certain kind of relation, its
//! error must include the relation's name.

use std::fs;
use std::path::Path;

use crate::binary::run;
use crate::server::{Server, Stopped, servers};

/// Objects of every kind.
const OBJECTS: &str = "
create schema app;
create table app.item (id int primary key, name text);
insert into app.item select i, 'item ' || i from generate_series(1, 1000) i;
create table app.\"Item 2\" (a int);
create view app.items as select * from app.item;
create type app.pair as (a int, b int);
create sequence app.counter;
create table app.parts (a int) partition by range (a);
create table app.none (a int) partition by range (a);
create table app.part partition of app.parts for values from (0) to (10);
create foreign data wrapper wrapper;
create server remote foreign data wrapper wrapper;
create foreign table app.far (a int) server remote;
create access method other type table handler heap_tableam_handler;
create table app.others (a int) using other;
create materialized view app.empty as select 1 with no data;
analyze app.item;
create database gone;
update pg_database set datconnlimit = -2 where datname = 'gone';
";

/// The cells of the line starting with `beginning`.
fn line<'t>(table: &'t str, beginning: &[&str]) -> Option<Vec<&'t str>> {
    let mut lines = table.lines().map(|line| {
        line.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).collect::<Vec<_>>()
    });
    lines.find(|cells| cells.starts_with(beginning))
}

#[test]
fn names_on_the_command_line() {
    for bin in servers() {
        let server = Server::start(&bin, &[]);
        server.sql("postgres", "create database names");
        server.script("names", OBJECTS, false);
        let size = server.sql("names", "select pg_table_size('app.item')");
        let size: u64 = String::from_utf8(size).expect("text").trim().parse().expect("a number");
        let file = server.sql("names", "select pg_relation_filepath('app.item')");
        let file = String::from_utf8(file).expect("text").trim().to_owned();
        let pretty = "select relname || '|' || pg_size_pretty(pg_table_size(oid)) from pg_class \
                      where relnamespace = 'app'::regnamespace and relfilenode <> 0";
        let pretty = String::from_utf8(server.sql("names", pretty)).expect("text");
        let stopped = server.stop();
        listed(&stopped, size, &file);
        sizes_are_printed_as_by_the_server(&stopped, &pretty);
        pages_by_name(&stopped, &file);
        refused(&stopped);
        accepted(&stopped);
        damaged(&stopped, &file);
    }
}

/// A tablespace that is moved after the server has stopped.
#[test]
fn a_moved_tablespace_is_read_from_its_new_place() {
    for bin in servers() {
        let server = Server::start(&bin, &[]);
        let [old, new] = ["space", "moved"].map(|name| server.home().join(name));
        server.make_directory(&old);
        let space = format!("create tablespace space location '{}'", old.display());
        server.sql("postgres", &space);
        let table = "create table t tablespace space as select i from generate_series(1, 99) i";
        server.sql("postgres", table);
        server.sql("postgres", "create database inside tablespace space");
        let stopped = server.stop();
        let good = |options: &[&str]| {
            let verified = run(&stopped.data(), &[options, &["verify"]].concat());
            let copied =
                run(&stopped.data(), &[options, &["copy", "-d", "postgres", "t"]].concat());
            let inside =
                run(&stopped.data(), &[options, &["copy", "-d", "inside", "pg_class"]].concat());
            let listed = run(&stopped.data(), &[options, &["tables", "-d", "postgres"]].concat());
            [verified.0, copied.0, inside.0].iter().all(|&code| code == 0)
                && copied.1.lines().count() == 99
                && inside.1.lines().count() > 300
                && !listed.1.contains("missing")
        };
        assert!(good(&[]));
        never_written(&stopped, &old, &[]);
        fs::rename(&old, &new).expect("moved");
        assert!(!good(&[]));
        let mapping = format!("{}={}", old.display(), new.display());
        assert!(good(&["-T", &mapping]));
        never_written(&stopped, &new, &["-T", &mapping]);
        let (_, out, _) = run(&stopped.data(), &["tables", "-d", "postgres", "-T", &mapping]);
        assert!(out.contains(&format!("  {}/PG_", new.display())), "{out}");
        let class = run(&stopped.data(), &["tables", "-d", "inside", "--all", "-T", &mapping]).1;
        let class = line(&class, &["pg_catalog", "pg_statistic"]).expect("listed")[5].to_owned();
        fs::write(&class, [1; 8192]).expect("written");
        let (code, out, _) = run(&stopped.data(), &["verify", "-T", &mapping]);
        let expected = format!("inside.pg_catalog.pg_statistic: {class}: block 0: ");
        // The file has also lost its other pages, which is another finding.
        assert!(code == 1 && out.lines().any(|line| line.starts_with(&expected)), "{out}");
        let to_nothing = format!("{}=/elsewhere", old.display());
        for (mapping, expected) in [
            (&*to_nothing, "could not open directory \"/elsewhere\": No such file or directory"),
            ("/nowhere=/elsewhere", "has no tablespace whose link points to \"/nowhere\""),
            ("nowhere=/elsewhere", "expected OLDDIR=NEWDIR, both of them absolute paths"),
            ("/nowhere", "expected OLDDIR=NEWDIR; to leave tables out of a copy"),
        ] {
            let (code, _, err) = run(&stopped.data(), &["verify", "-T", mapping]);
            assert!(code >= 2 && err.contains(expected), "{err}");
        }
    }
}

/// `copy` refuses to write into a tablespace of the cluster, no matter which path we use to get
/// there.
fn never_written(stopped: &Stopped, space: &Path, options: &[&str]) {
    let home = tempfile::tempdir().expect("a directory");
    let link = home.path().join("link");
    std::os::unix::fs::symlink(space, &link).expect("linked");
    let names = || {
        let entries = fs::read_dir(space).expect("a directory");
        entries.map(|entry| entry.expect("an entry").file_name()).collect::<Vec<_>>()
    };
    let before = names();
    let inside = [space.join("t.copy"), space.join("new/t.copy"), link.join("t.copy"), link];
    for path in inside {
        let path = path.to_string_lossy();
        for what in [&["t"][..], &["--all"]] {
            let args = [options, &["copy", "-d", "postgres", "-o", &path], what].concat();
            let (code, out, err) = run(&stopped.data(), &args);
            let refused = format!("\"{path}\" is inside the data directory or a tablespace");
            assert!(code == 2 && out.is_empty() && err.contains(&refused), "{code} {err}");
        }
    }
    assert_eq!(names(), before);
}

fn listed(stopped: &Stopped, size: u64, file: &str) {
    let (code, out, err) = run(&stopped.data(), &["tables"]);
    assert_eq!((code, err.as_str()), (0, ""));
    let gone = line(&out, &["gone"]).expect("listed");
    assert_eq!(gone.last(), Some(&"invalid: DROP DATABASE was interrupted"), "{out}");
    assert!(
        line(&out, &["template0"]).is_some_and(|it| it.ends_with(&["template, no connections"]))
    );

    let (code, out, err) = run(&stopped.data(), &["tables", "-d", "names"]);
    assert_eq!((code, err.as_str()), (0, ""));
    let kind = |name: &str| line(&out, &["app", name]).map(|cells| cells[2]);
    for (name, expected) in [
        ("item", Some("table")),
        ("Item 2", Some("table")),
        ("items", Some("view")),
        ("counter", Some("sequence")),
        ("parts", Some("partitioned table")),
        ("far", Some("foreign table")),
        ("empty", Some("materialized view")),
        ("item_pkey", None),
        ("pair", None),
    ] {
        assert_eq!(kind(name), expected, "{name}: {out}");
    }
    let item = line(&out, &["app", "item"]).expect("listed");
    assert_eq!((item[3], item[5], item[6]), ("1000", file, "permanent"), "{out}");
    let (_, out, _) = run(&stopped.data(), &["tables", "-d", "names", "--all"]);
    for (schema, name) in [("app", "item_pkey"), ("app", "pair"), ("pg_catalog", "pg_class")] {
        assert!(line(&out, &[schema, name]).is_some(), "{name}: {out}");
    }
    let (_, out, _) = run(&stopped.data(), &["tables", "-d", "names", "--json"]);
    let listed: serde_json::Value = serde_json::from_str(&out).expect("JSON");
    let relations = listed["relations"].as_array().expect("a list");
    let item = relations.iter().find(|relation| relation["name"] == "item").expect("listed");
    assert_eq!((&item["bytes"], &item["rows"]), (&size.into(), &1000.0.into()), "{item}");
    assert_eq!((&listed["schema"], &listed["database"]), (&1.into(), &"names".into()));
    // The database does not allow connections, but its files can be read.
    assert_eq!(run(&stopped.data(), &["tables", "-d", "template0"]).0, 0);
}

fn sizes_are_printed_as_by_the_server(stopped: &Stopped, expected: &str) {
    let (_, out, _) = run(&stopped.data(), &["tables", "-d", "names", "--all"]);
    assert!(expected.lines().count() > 5, "{expected}");
    for expected in expected.lines() {
        let (name, size) = expected.split_once('|').expect("two columns");
        let cells = line(&out, &["app", name]).expect("listed");
        assert!(cells.contains(&size), "{expected}: {cells:?}");
    }
}

/// `inspect page` takes names as its siblings do, and finds the same page as by the file.
fn pages_by_name(stopped: &Stopped, file: &str) {
    let inspect = |args: &[&str]| {
        let (code, out, err) = run(&stopped.data(), &[&["inspect", "page"], args].concat());
        assert_eq!((code, err.as_str()), (0, ""), "{args:?}");
        out
    };
    let expected = inspect(&[file, "2"]);
    assert!(expected.contains("block     2 (main fork, segment 0)\n"), "{expected}");
    assert_eq!(inspect(&["-d", "names", "app.item", "2"]), expected);
    assert_eq!(inspect(&["names.app.item", "2"]), expected);
    let map = inspect(&["names.app.item", "--fork", "fsm"]);
    assert!(map.contains("block     0 (fsm fork, segment 0)\n"), "{map}");
    assert!(inspect(&["-d", "names", "app.item_pkey", "1"]).contains("kind      btree\n"));
    let (code, _, err) = run(&stopped.data(), &["inspect", "page", "-d", "names", "app.items"]);
    assert_eq!(code, 2);
    assert!(err.starts_with("trunkline: error: app.items is a view: it stores no rows\n"), "{err}");
    let (code, _, err) =
        run(&stopped.data(), &["inspect", "page", "-d", "names", "app.item", "99999"]);
    assert_eq!(code, 2);
    assert!(err.contains("block 99999 is past the end of "), "{err}");
}

fn refused(stopped: &Stopped) {
    let all = ["copy", "verify", "prewarm"].as_slice();
    for (commands, name, expected) in [
        (all, "app.itemm", "relation app.itemm does not exist in database \"names\""),
        (all, "ap.item", "schema \"ap\" does not exist in database \"names\""),
        (all, "other.app.item", "other.app.item is not in database \"names\""),
        (all, "app.Item 2", "relation app.\"item 2\" does not exist in database \"names\""),
        (all, "app.\"Item", "invalid name \"app.\"Item\": unterminated quoted identifier"),
        (all, "app.items", "app.items is a view: it stores no rows"),
        (all, "app.pair", "app.pair is a composite type: it stores no rows"),
        (all, "app.far", "app.far is a foreign table: its rows are on another server"),
        (&["copy"], "app.item_pkey", "app.item_pkey is an index, not a table"),
        (&["copy"], "app.others", "app.others uses access method \"other\""),
    ] {
        for command in commands {
            let (code, out, err) = run(&stopped.data(), &[command, "-d", "names", name]);
            assert_eq!((code, out.as_str()), (2, ""), "{command} {name}: {err}");
            let expected = format!("trunkline: error: {expected}");
            assert!(err.starts_with(&expected), "{command} {name}: {err}");
        }
    }
    for (database, expected) in [
        ("gone", "database \"gone\" is invalid\ntrunkline: hint: DROP DATABASE was interrupted"),
        ("nam", "database \"nam\" does not exist\ntrunkline: hint: perhaps you meant names\n"),
        ("NAMES", "database \"NAMES\" does not exist\ntrunkline: hint: perhaps you meant names\n"),
        ("", "database \"\" does not exist\n"),
    ] {
        for args in [&["tables"][..], &["verify"], &["prewarm"], &["copy", "app.item"]] {
            let args: Vec<&str> = args.iter().copied().chain(["-d", database]).collect();
            let (code, out, err) = run(&stopped.data(), &args);
            assert_eq!((code, out.as_str()), (2, ""), "{args:?}: {err}");
            assert!(err.starts_with(&format!("trunkline: error: {expected}")), "{args:?}: {err}");
        }
    }
    let hint = run(&stopped.data(), &["prewarm", "-d", "names", "item"]).2;
    assert!(hint.ends_with("trunkline: hint: perhaps you meant app.item\n"), "{hint}");
}

fn accepted(stopped: &Stopped) {
    for (name, files) in [
        // The table itself with its visibility map and free space map, its index, and its TOAST
        // table with the TOAST index.
        ("app.item", 4),
        ("names.app.\"Item 2\"", 1),
        ("app.parts", 1),
        ("app.counter", 1),
        ("app.others", 1),
        ("pg_database", 5),
    ] {
        let (code, out, err) = run(&stopped.data(), &["verify", "-d", "names", name]);
        assert_eq!((code, err.as_str()), (0, ""), "{name}: {out}");
        let scanned = out.lines().find_map(|line| line.strip_prefix("Files scanned:"));
        let scanned: u64 = scanned.expect("counted").trim().parse().expect("a number");
        assert!(scanned >= files, "{name}: {out}");
        let (code, out, err) = run(&stopped.data(), &["prewarm", "-d", "names", name]);
        assert_eq!((code, err.as_str()), (0, ""), "{name}: {out}");
        assert!(out.starts_with("Relation forks:   1\n"), "{name}: {out}");
    }
    let (code, out, err) =
        run(&stopped.data(), &["sum", "-d", "names", "app.item", "--offset", "0"]);
    assert_eq!((code, err.as_str()), (0, ""));
    assert!(out.starts_with("Sum:      500500\nRows:     1000\n"), "{out}");
    let blocks = |args: &[&str]| {
        let (code, out, err) = run(&stopped.data(), args);
        assert_eq!((code, err.as_str()), (0, ""), "{args:?}: {out}");
        let line = out.lines().find_map(|line| line.strip_prefix("Blocks scanned:"));
        line.expect("counted").trim().parse::<u64>().expect("a number")
    };
    let everything = blocks(&["verify"]);
    let database = blocks(&["verify", "-d", "names"]);
    assert!(database > 300 && database < everything / 2, "{database} of {everything}");
    let (code, out, _) = run(&stopped.data(), &["prewarm", "-d", "names"]);
    assert!(code == 0 && out.contains(&format!("Blocks prewarmed: {database}\n")), "{out}");
}

/// Findings include relation names if the catalog can be read.
fn damaged(stopped: &Stopped, file: &str) {
    let flip = |path: &Path| {
        let mut bytes = fs::read(path).expect("read");
        bytes[8000] ^= 1;
        fs::write(path, bytes).expect("written");
    };
    let path = stopped.data().join(file);
    flip(&path);
    let (code, out, err) = run(&stopped.data(), &["verify"]);
    assert_eq!((code, err.as_str()), (1, ""), "{out}");
    assert!(out.starts_with(&format!("names.app.item: {file}: block 0: checksum ")), "{out}");
    let (code, out, _) = run(&stopped.data(), &["verify", "-d", "names", "app.item", "--json"]);
    let report: serde_json::Value = serde_json::from_str(&out).expect("JSON");
    assert_eq!((code, &report["findings"][0]["relation"]), (1, &"names.app.item".into()), "{out}");
    // Damage in other relations is not reported.
    assert_eq!(run(&stopped.data(), &["verify", "-d", "names", "app.\"Item 2\""]).0, 0);

    fs::remove_file(&path).expect("removed");
    let (code, out, _) = run(&stopped.data(), &["verify", "-d", "names", "app.item"]);
    let missing = format!("names.app.item: {file}: is missing, but the catalog refers to it\n");
    assert_eq!((code, out.starts_with(&missing)), (1, true), "{out}");
    let (_, out, _) = run(&stopped.data(), &["tables", "-d", "names"]);
    let item = line(&out, &["app", "item"]).expect("listed");
    assert_eq!((item[4], item[5]), ("missing", file), "{out}");

    // Damage the catalog itself. We then can't find names for relations in the damaged rows, but we
    // must find them for all others.
    let class = run(&stopped.data(), &["tables", "-d", "names", "--all"]).1;
    let class = line(&class, &["pg_catalog", "pg_class"]).expect("listed")[5].to_owned();
    flip(&stopped.data().join(&class));
    let (code, out, err) = run(&stopped.data(), &["verify"]);
    assert_eq!(code, 1, "{err}");
    assert!(out.contains(&format!("{class}: block 0: checksum ")), "{out}");
    let (code, out, err) = run(&stopped.data(), &["tables", "-d", "names", "--all"]);
    assert_eq!(code, 1, "{out}{err}");
    assert!(err.starts_with("trunkline: warning: ") && err.contains(&class), "{err}");
    assert!(line(&out, &["pg_catalog", "pg_class"]).is_some(), "{out}");
    let (code, _, err) = run(&stopped.data(), &["tables", "-d", "postgres"]);
    assert_eq!((code, err.as_str()), (0, ""));
}
