//! `tables`: the order of the lists, and what is in the page cache.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Advice, fadvise};
use serde_json::Value;
use trunkline_aio::{Aio, Builder, MethodKind, OpenOptions, residency};

use crate::copy::{copy_of, fixtures};
use crate::{json, run, trunkline};

fn tables(data: &Path, args: &[&str]) -> String {
    let data = data.to_string_lossy().into_owned();
    let (code, out, err) = run(["tables", "-D", &data].iter().chain(args));
    assert_eq!((code, err.as_str()), (0, ""), "{args:?}: {out}");
    out
}

fn numbers(lines: &Value, key: &str) -> Vec<Option<u64>> {
    let number = |line: &Value| line[key].as_f64().map(|number| number as u64);
    lines.as_array().expect("a list").iter().map(number).collect()
}

#[test]
fn lists_are_sorted_from_the_largest_down() {
    for fixture in fixtures() {
        let data = fixture.join("data");
        let sorted = |args: &[&str], list: &str, key: &str| {
            let listed = json(&tables(&data, &[args, &["--json"]].concat()));
            let numbers = numbers(&listed[list], key);
            assert!(numbers.len() > 2 && numbers.is_sorted_by(|a, b| a >= b), "{numbers:?}");
        };
        sorted(&["--sort", "size"], "databases", "bytes");
        sorted(&["-d", "fixture", "--sort", "size"], "relations", "bytes");
        sorted(&["-d", "bench", "--all", "--sort=rows"], "relations", "rows");
        sorted(&["-d", "bench", "--all", "--cached", "--sort=cached"], "relations", "bytes_cached");
        let by_name = json(&tables(&data, &["-d", "bench", "--json"]));
        let names = by_name["relations"].as_array().expect("a list").iter();
        assert!(names.map(|line| line["name"].as_str().expect("a name")).is_sorted());
    }
}

#[test]
fn options_that_need_others_say_so() {
    let Some(fixture) = fixtures().pop() else { return };
    let data = fixture.join("data");
    let data = data.to_str().expect("text");
    for (args, expected) in [
        (&["--all"][..], "--all requires a database"),
        (&["--sort", "rows"], "databases have no number of rows"),
        (&["--sort", "cached"], "--sort cached requires --cached"),
    ] {
        let (code, _, err) = run(["tables", "-D", data].iter().chain(args));
        assert_eq!(code, 2);
        assert!(err.starts_with(&format!("trunkline: error: {expected}\n")), "{err}");
    }
}

#[test]
fn the_environment_names_the_database() {
    let Some(fixture) = fixtures().pop() else { return };
    let run = |args: &[&str]| {
        let mut command = trunkline();
        command.args(args).arg("-D").arg(fixture.join("data")).env("PGDATABASE", "bench");
        let output = command.output().expect("runs");
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
        assert_eq!(text(output.stderr), "", "{args:?}");
        text(output.stdout)
    };
    let blocks = |args: &[&str]| json(&run(args))["blocks_scanned"].as_u64().expect("a number");
    assert_eq!(json(&run(&["tables", "--json"]))["database"], "bench");
    assert_eq!(json(&run(&["tables", "--list", "--json"]))["command"], "tables");
    assert!(run(&["tables", "-l"]).contains("\nfixture "));
    assert_eq!(run(&["copy", "public.pgbench_branches"]).lines().count(), 2);
    assert!(run(&["copy", "fixture.s1.hot"]).lines().count() > 2);
    let table = blocks(&["verify", "--json", "public.pgbench_tellers"]);
    let database = blocks(&["verify", "--json", "-d", "bench"]);
    // The variable is where names are looked up. It does not restrict a command without names.
    let everything = blocks(&["verify", "--json"]);
    assert!(table < database && database < everything, "{table} {database} {everything}");
    let number = "1663/1/1259";
    assert!(run(&["prewarm", "pgbench_branches"]).starts_with("Relation forks:   1\n"));
    assert!(run(&["inspect", "page", "pgbench_branches"]).contains("kind      heap\n"));
    assert!(run(&["inspect", "page", number]).contains("kind      heap\n"));
    a_name_means_the_relation(&fixture);
    // The list itself doesn't show whose relations it contains.
    let mut command = trunkline();
    command.args(["tables", "-D"]).arg(fixture.join("data")).env("PGDATABASE", "bench");
    let err = String::from_utf8(command.output().expect("runs").stderr).expect("text");
    let note = "trunkline: note: PGDATABASE selects the database \"bench\"; --list lists all\n";
    assert_eq!(err, note);
}

/// A file or directory that happens to have the name of a relation is not decoded in its place.
fn a_name_means_the_relation(fixture: &Path) {
    let home = tempfile::tempdir().expect("a directory");
    fs::create_dir(home.path().join("pgbench_branches")).expect("made");
    for name in ["pgbench_tellers", "16384"] {
        fs::write(home.path().join(name), [0; 8192]).expect("written");
    }
    for (name, kind) in [
        ("pgbench_branches", "heap"),
        ("pgbench_tellers", "heap"),
        ("./pgbench_tellers", "new"),
        ("16384", "new"),
    ] {
        let mut command = trunkline();
        command.args(["inspect", "page", name, "-D"]).arg(fixture.join("data"));
        let output = command.env("PGDATABASE", "bench").current_dir(home.path()).output();
        let text = String::from_utf8(output.expect("runs").stdout).expect("text");
        assert!(text.contains(&format!("kind      {kind}\n")), "{name}: {text}");
    }
    // Without a data directory, no name can be looked up, so it must be a file.
    fs::write(home.path().join("copy.of.16384"), [0; 8192]).expect("written");
    for (name, database) in [("pgbench_tellers", "bench"), ("copy.of.16384", "")] {
        let mut command = trunkline();
        command.args(["inspect", "page", name]).env("PGDATABASE", database);
        let output = command.current_dir(home.path()).output().expect("runs");
        let text = String::from_utf8(output.stdout).expect("text");
        assert!(text.contains("kind      new\n"), "{name}: {text}");
    }
}

/// How many bytes of each relation file are cached.
fn cached(aio: &Aio, data: &Path) -> BTreeMap<PathBuf, u64> {
    let databases = fs::read_dir(data.join("base")).expect("a directory");
    let databases = databases.map(|entry| entry.expect("an entry").path());
    let mut found = BTreeMap::new();
    for directory in databases.chain([data.join("global")]) {
        for entry in fs::read_dir(directory).expect("a directory") {
            let path = entry.expect("an entry").path();
            let name = path.file_name().and_then(|name| name.to_str()).expect("a name");
            if name.starts_with(|first: char| first.is_ascii_digit()) {
                let file = aio.open(&path, OpenOptions::default()).expect("opened");
                let bytes = file.length().expect("a length");
                let cached = residency(&file).expect("measured").cached.min(bytes);
                found.insert(path, cached);
            }
        }
    }
    found
}

#[test]
fn the_page_cache_is_shown_by_relation_and_not_changed() {
    let Some(fixture) = fixtures().pop() else { return };
    let (_home, data) = copy_of(&fixture);
    let listed = |args: &[&str]| json(&tables(&data, &[args, &["--json"]].concat()));
    let before = listed(&["-d", "bench", "--all"]);
    let relation = |listed: &Value, name: &str| {
        let lines = listed["relations"].as_array().expect("a list").iter();
        lines.clone().find(|line| line["name"] == name).expect("listed").clone()
    };
    let path = |name| data.join(relation(&before, name)["file"].as_str().expect("a file"));
    let aio = Builder::new().method(MethodKind::Sync).start().expect("started");
    for path in cached(&aio, &data).keys() {
        let file = File::open(path).expect("opened");
        file.sync_all().expect("synced");
        fadvise(&file, 0, None, Advice::DontNeed).expect("advised");
    }
    let accounts = path("pgbench_accounts");
    let file = File::open(&accounts).expect("opened");
    fadvise(&file, 0, None, Advice::Random).expect("advised");
    for block in 0..5 {
        file.read_exact_at(&mut [0; 8192], block * 8192).expect("read");
    }
    let expected = cached(&aio, &data);
    let found = listed(&["-d", "bench", "--all", "--cached"]);
    assert_eq!(cached(&aio, &data), expected, "the command has changed what is cached");
    // These relations have no TOAST table.
    for name in ["pgbench_accounts", "pgbench_accounts_pkey", "pgbench_branches"] {
        let first = path(name).to_string_lossy().into_owned();
        let forks = ["", "_fsm", "_vm"].map(|fork| PathBuf::from(format!("{first}{fork}")));
        let sum = forks.iter().filter_map(|file| expected.get(file)).sum::<u64>();
        assert_eq!(relation(&found, name)["bytes_cached"], sum, "{name}");
    }
    assert!(relation(&found, "pgbench_accounts")["bytes_cached"].as_u64() >= Some(5 * 8192));
    assert_eq!(relation(&before, "pgbench_accounts").get("bytes_cached"), None);
    let text = tables(&data, &["-d", "bench", "--cached"]);
    assert!(text.lines().next().is_some_and(|line| line.contains("  cached  ")), "{text}");
}
