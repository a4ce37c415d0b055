//! Pages of a crashed directory, and the records of the log that are about them. The pages must be those
//! of the server that has recovered the original, and the records those of `pg_waldump`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::binary::run;
use crate::replay::{LOAD, copy, fingerprint};
use crate::server::{Server, servers};
use crate::wal::segments;

/// A page, and the arguments that name it.
struct Page {
    relation: &'static str,
    fork: &'static str,
    block: u32,
}

impl Page {
    fn arguments<'a>(&'a self, block: &'a str, options: &[&'a str]) -> Vec<&'a str> {
        let named =
            ["inspect", "page", "-d", "postgres", self.relation, block, "--fork", self.fork];
        [&named, options].concat()
    }
}

/// Pages of all kinds: built from an image, initialised, changed, not changed, of a map, of an unlogged
/// relation, and behind what was cut off.
const PAGES: [(&str, &str, u32); 14] = [
    ("kept", "main", 0),
    ("kept", "main", 30),
    ("kept_pkey", "main", 0),
    ("kept_pkey", "main", 1),
    ("kept_t_idx", "main", 2),
    ("cut", "main", 0),
    ("cut", "main", 100),
    ("cut", "vm", 0),
    ("cut_i_idx", "main", 1),
    ("made", "main", 3),
    ("emptied", "main", 0),
    ("long", "main", 0),
    ("made_id_seq", "main", 0),
    ("unlogged_pkey", "main", 0),
];

fn parse_lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).expect(line)).collect()
}

/// The positions of records that name a page, whatever else they do.
fn named(history: &[Value]) -> Vec<String> {
    let records = history.iter().filter(|record| !record["page"]["reference"].is_null());
    records.map(|record| record["lsn"].as_str().expect("a position").to_owned()).collect()
}

/// Those that `pg_waldump` prints. `relation` has three file numbers.
fn dumped(
    program: &Path,
    folder: &Path,
    from: &str,
    (relation, fork, block): (&str, &str, u32),
) -> Vec<String> {
    let mut command = Command::new(program);
    let (block, folder) = (block.to_string(), folder.display().to_string());
    let range = ["-p", &folder, "-s", from, "-R", relation, "-B", &block, "-F", fork];
    command.env("LC_ALL", "C").current_dir("/").args(range);
    let output = command.output().expect("runs");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let position = |line: &str| {
        let (_, rest) = line.split_once("lsn: ").expect("a position");
        rest.split(',').next().expect("a position").to_owned()
    };
    text.lines().map(position).collect()
}

/// Everything about a page except where it was found.
fn contents(report: &str) -> Value {
    let mut report: Value = serde_json::from_str(report).expect("JSON");
    let fields = report.as_object_mut().expect("an object");
    for place in ["file", "source"] {
        fields.remove(place);
    }
    report
}

/// The first position in a note such as `replayed 1.0 MB of log from 0/1 to 0/2 ...`.
fn start_of_replay(messages: &str) -> String {
    let (_, rest) = messages.split_once("of log from ").expect("a note");
    rest.split(' ').next().expect("a position").to_owned()
}

/// Compares the history of a page with what the log has. Returns the number of its records.
fn check_history(server: &Server, crashed: &Path, page: &Page, source: &Value) -> usize {
    let (relation, block) = (page.relation, page.block.to_string());
    let (code, out, err) = run(crashed, &page.arguments(&block, &["--history", "--json"]));
    assert_eq!(code, 0, "{relation}: {err}");
    let history = parse_lines(&out);
    let place = history.iter().find_map(|record| {
        let reference = record["page"]["reference"].as_u64()?;
        let blocks = record["blocks"].as_array()?;
        let block = blocks.iter().find(|block| block["id"] == reference)?;
        let numbers = format!("{}/{}/{}", block["tablespace"], block["database"], block["file"]);
        // The pages of an unlogged relation are those of its _init fork.
        Some((numbers, block["fork"].as_str()?.to_owned()))
    });
    // What rebuilds the page are the records that the page was built from.
    let marked: Vec<&Value> =
        history.iter().filter(|record| record["page"]["rebuilds"] == true).collect();
    assert_eq!(marked.len() as u64, source["records"].as_u64().unwrap_or(0), "{relation}");
    if let (Some(first), Some(last)) = (marked.first(), marked.last()) {
        assert_eq!((&first["lsn"], &last["lsn"]), (&source["first"], &source["last"]));
        let effect = &first["page"]["effects"][0];
        let is_from_scratch = effect == "image" || effect == "init";
        assert_eq!(is_from_scratch, source["requires_file"] == false, "{relation}: {first}");
        // Nothing behind it replaces the page again.
        for record in &marked[1..] {
            let effect = &record["page"]["effects"][0];
            assert!(effect == "change" || effect == "derived", "{relation}: {record}");
        }
    }
    // The text has the same records, with the same marks.
    let (code, out, err) = run(crashed, &page.arguments(&block, &["--history"]));
    assert_eq!(code, 0, "{relation}: {err}");
    assert_eq!(out.lines().count(), history.len(), "{relation}");
    for (line, record) in out.lines().zip(&history) {
        let mark = if record["page"]["rebuilds"] == true { "* rmgr: " } else { "  rmgr: " };
        assert!(line.starts_with(mark), "{line}");
        assert!(line.contains(&format!("lsn: {},", record["lsn"].as_str().expect("text"))));
    }
    let Some((numbers, fork)) = place else { return history.len() };
    let start = start_of_replay(&err);
    let wal = ["inspect", "wal", "--json", "--no-replay", "--from", &start, "--relation", &numbers];
    let (code, out, err) = run(crashed, &wal);
    assert_eq!(code, 0, "{err}");
    let is_of_page = |record: &&Value| {
        let mut blocks = record["blocks"].as_array().into_iter().flatten();
        blocks.any(|block| block["block"] == page.block && block["fork"] == *fork)
    };
    let all = parse_lines(&out);
    let expected = all.iter().filter(is_of_page).map(|it| it["lsn"].as_str().expect("text"));
    assert_eq!(named(&history), expected.collect::<Vec<_>>(), "{relation}");
    if server.has("pg_waldump") {
        let program = server.programs().join("pg_waldump");
        let folder = crashed.join("pg_wal");
        let expected = dumped(&program, &folder, &start, (&numbers, &fork, page.block));
        assert_eq!(named(&history), expected, "{relation}");
    }
    history.len()
}

#[test]
fn pages_of_a_crashed_directory_are_those_of_the_recovered_server() {
    for bin in servers() {
        let settings = [("checkpoint_timeout", "1h"), ("max_wal_size", "1GB")];
        let mut server = Server::start(&bin, &settings);
        server.script("postgres", LOAD, false);
        server.halt("immediate");
        let crashed = server.home().join("crashed");
        copy(&server.data(), &crashed);
        let before = fingerprint(&crashed);
        server.run();
        server.halt("fast");
        let recovered = server.data();
        let (mut built, mut unchanged, mut records) = (0, 0, 0);
        for (relation, fork, block) in PAGES {
            let page = Page { relation, fork, block };
            let number = block.to_string();
            let (code, found, err) = run(&crashed, &page.arguments(&number, &["--json"]));
            assert_eq!(code, 0, "{relation}: {err}");
            let (code, expected, err) = run(&recovered, &page.arguments(&number, &["--json"]));
            assert_eq!(code, 0, "{relation}: {err}");
            assert_eq!(contents(&found), contents(&expected), "{relation}, {fork} {block}");
            let source = serde_json::from_str::<Value>(&found).expect("JSON")["source"].clone();
            match source["from"].as_str() {
                Some("log") => built += 1,
                _ => unchanged += 1,
            }
            records += check_history(&server, &crashed, &page, &source);
        }
        assert!(built >= 10 && unchanged >= 2, "{built} {unchanged}");
        assert!(records > 200, "{records}");
        // As it lies, a page is another one, and says so.
        let kept = Page { relation: "made", fork: "main", block: 3 };
        let file = |options: &[&str]| run(&crashed, &kept.arguments("3", options));
        let (code, out, err) = file(&["--no-replay"]);
        let is_in_file = code == 0 && out.contains("\nsource    file\n");
        assert!(is_in_file || err.contains("is past the end"), "{code} {out}{err}");
        let (code, out, err) = file(&[]);
        assert_eq!(code, 0, "{err}");
        assert!(out.contains("\nsource    built from "), "{out}");
        assert_eq!(fingerprint(&crashed), before, "the directory has changed");
    }
}

const CHANGES: &str = "
create table filled (i int, t text) with (autovacuum_enabled = off);
insert into filled select i, repeat('x', 500) from generate_series(1, 1000) i;
vacuum filled;
checkpoint;
update filled set t = 'y' where i < 3;
create table other (t text);
insert into other select repeat(md5(i::text), 30) from generate_series(1, 3000) i;
delete from filled where i > 100;
vacuum filled;
create table dropped (i int);
insert into dropped values (1);
";

struct Cluster {
    data: PathBuf,
    filled: String,
    dropped: String,
    /// Blocks of `filled` before it was truncated.
    blocks: u32,
}

impl Cluster {
    fn make(server: &Server) -> Cluster {
        let text = |query: &str| {
            let bytes = server.sql("postgres", query);
            String::from_utf8(bytes).expect("text").trim().to_owned()
        };
        let (first, second) = CHANGES.split_once("delete").expect("two parts");
        server.script("postgres", first, false);
        let blocks = text("select pg_relation_size('filled') / 8192").parse().expect("a number");
        server.script("postgres", &format!("delete{second}"), false);
        let path = |name: &str| text(&format!("select pg_relation_filepath('{name}')"));
        let (filled, dropped) = (path("filled"), path("dropped"));
        server.sql("postgres", "drop table dropped");
        Cluster { data: server.data(), filled, dropped, blocks }
    }

    fn inspect(&self, arguments: &[&str]) -> (i32, String, String) {
        run(&self.data, &[&["inspect", "page"], arguments].concat())
    }

    /// The effects of each record on a page, and the messages.
    fn effects(&self, arguments: &[&str]) -> (i32, Vec<String>, String) {
        let (code, out, err) = self.inspect(&[arguments, &["--history", "--json"]].concat());
        let effects = parse_lines(&out).into_iter().map(|record| {
            let effects = record["page"]["effects"].as_array().expect("a list").clone();
            let effects: Vec<_> =
                effects.iter().map(|it| it.as_str().expect("a word").to_owned()).collect();
            effects.join("+")
        });
        (code, effects.collect(), err)
    }
}

#[test]
fn the_log_of_a_clean_cluster_has_histories_too() {
    let Some(bin) = servers().into_iter().next() else { return };
    let server = Server::start(&bin, &[("wal_keep_size", "1GB")]);
    let mut cluster = Cluster::make(&server);
    // While the server runs, only a path can be used, and the page is that of the file.
    let (code, out, err) = run(&cluster.data, &["inspect", "page", &cluster.filled, "--history"]);
    assert_eq!(code, 0, "{err}");
    assert!(out.contains(" FPW") && err.contains("a server is running"), "{out}{err}");
    let stopped = server.stop();
    cluster.data = stopped.data();
    let named = ["-d", "postgres", "filled"];
    let (code, effects, err) = cluster.effects(&[&named[..], &["0"]].concat());
    assert_eq!(code, 0, "{err}");
    // The database was a copy.
    assert_eq!(effects[..3], ["copied", "created", "init"], "{effects:?}");
    assert!(effects.iter().any(|effect| effect == "image"), "{effects:?}");
    assert!(err.contains("note") && err.contains("rebuild it"), "{err}");
    // What rebuilds it begins with the last image, and takes all later changes.
    let (_, out, _) = cluster.inspect(&[&named[..], &["0", "--history", "--json"]].concat());
    let marks: Vec<bool> =
        parse_lines(&out).iter().map(|record| record["page"]["rebuilds"] == true).collect();
    let image = effects.iter().rposition(|effect| effect == "image").expect("one");
    assert!(image + 1 < effects.len(), "{effects:?}");
    assert!(marks.iter().enumerate().all(|(at, mark)| *mark == (at >= image)), "{marks:?}");
    // The page is the same by any path.
    let path = cluster.data.join(&cluster.filled).display().to_string();
    for name in [&*cluster.filled, &*path, cluster.filled.strip_prefix("base/").expect("base")] {
        assert_eq!(cluster.effects(&[name]).1, effects, "{name}");
        let (code, out, err) = cluster.inspect(&[name]);
        assert!(code == 0 && out.contains("\nsource    file\n"), "{name}: {out}{err}");
    }
    // A block that was cut off, and one that never was.
    let last = (cluster.blocks - 1).to_string();
    let (code, effects, err) = cluster.effects(&[&named[..], &[&*last]].concat());
    assert_eq!(code, 0, "{err}");
    assert_eq!(effects.last().map(String::as_str), Some("cut_off"), "{effects:?}");
    assert!(err.contains("they do not rebuild it"), "{err}");
    let (code, _, err) = cluster.inspect(&[&named[..], &[&*last]].concat());
    assert!(code == 2 && err.contains("is past the end of"), "{code} {err}");
    let behind = cluster.blocks.to_string();
    let (_, effects, _) = cluster.effects(&[&named[..], &[&*behind]].concat());
    assert_eq!(effects, ["copied", "created", "cut_off"]);
    // A map page is changed by records that don't name it, and cleared by a truncation.
    let (_, effects, _) = cluster.effects(&[&named[..], &["--fork", "vm"]].concat());
    assert!(effects.iter().any(|effect| effect == "derived"), "{effects:?}");
    // A relation that the log has dropped: its file is gone, but its path still names it.
    let (code, effects, err) = cluster.effects(&[&cluster.dropped]);
    assert_eq!(code, 0, "{err}");
    assert_eq!(effects, ["copied", "created", "init", "removed"]);
    let (code, _, err) = cluster.effects(&["-d", "postgres", "dropped"]);
    assert!(code == 2 && err.contains("does not exist"), "{code} {err}");
    // An archive has more of it.
    let archive = cluster.data.parent().expect("a home").join("archive");
    fs::create_dir(&archive).expect("made");
    let (_, all, _) = cluster.effects(&named);
    let files = segments(&cluster.data);
    let is_old = |file: &&PathBuf| fs::metadata(file).is_ok();
    for file in files.iter().filter(is_old).take(files.len() / 2) {
        fs::rename(file, archive.join(file.file_name().expect("a name"))).expect("moved");
    }
    let (_, fewer, _) = cluster.effects(&named);
    assert!(fewer.len() < all.len(), "{fewer:?}");
    let archive = archive.display().to_string();
    let (code, found, err) = cluster.effects(&[&named[..], &["--wal", &archive]].concat());
    assert!(code == 0 && !err.contains("--wal is ignored"), "{code} {err}");
    assert_eq!(found, all);
    let (_, _, err) = cluster.inspect(&[&named[..], &["--wal", &archive]].concat());
    assert!(err.contains("--wal is ignored"), "{err}");
    // A file alone has no log.
    let copied = cluster.data.with_file_name("16384");
    fs::copy(cluster.data.join(&cluster.filled), &copied).expect("copied");
    let copied = copied.display().to_string();
    let (code, out, err) = cluster.inspect(&[&copied]);
    assert!(code == 0 && out.contains("\nsource    file\n"), "{out}{err}");
    for option in [&["--history"][..], &["--wal", &archive], &["--allow-incomplete"]] {
        let (code, _, err) = cluster.inspect(&[&[&*copied], option].concat());
        let text = "is not a relation file of a data directory";
        assert!(code == 2 && err.contains(text), "{option:?}: {code} {err}");
    }
}

#[test]
fn a_log_that_cannot_be_replayed_shows_what_it_has() {
    let Some(bin) = servers().into_iter().next() else { return };
    let server = Server::start(&bin, &[("checkpoint_timeout", "1h"), ("max_wal_size", "1GB")]);
    let cluster = Cluster::make(&server);
    let stopped = server.stop_at_once();
    let cluster = Cluster { data: stopped.data(), ..cluster };
    let filled = &*cluster.filled;
    let (code, whole, err) = cluster.effects(&[filled]);
    assert!(code == 0 && whole.len() > 3, "{whole:?}{err}");
    // Wherever links lead, the file is the same.
    let link = cluster.data.with_file_name("link");
    std::os::unix::fs::symlink(&cluster.data, &link).expect("linked");
    let through = link.join(filled).display().to_string();
    assert_eq!(cluster.effects(&[&through]).1, whole);
    // The dropped relation is an error by name, and its file may still be there.
    let (code, _, err) = cluster.inspect(&[&cluster.dropped]);
    assert!(code == 2 && err.contains("is removed by the log"), "{code} {err}");
    let (code, effects, err) = cluster.effects(&[&cluster.dropped]);
    assert_eq!(code, 0, "{err}");
    assert_eq!(effects, ["created", "init", "removed"]);
    let last = (cluster.blocks - 1).to_string();
    for (block, text) in [(&*last, "at the end of the log"), ("999999", "is past the end of")] {
        let (code, _, err) = cluster.inspect(&[filled, block]);
        assert!(code == 2 && err.contains(text), "{code} {err}");
    }
    let (code, _, err) = cluster.inspect(&[filled, "999999", "--history"]);
    assert!(code == 0 && err.contains("they do not rebuild it"), "{code} {err}");
    let (code, _, err) = cluster.inspect(&["global/1262", "999999", "--history"]);
    assert!(code == 2 && err.contains("is past the end of"), "{code} {err}");
    // The gap is behind the first changes of the page, and before the last ones.
    let (_, out, _) = cluster.inspect(&[filled, "--history", "--json"]);
    let records = parse_lines(&out);
    let number = |record: &Value| {
        let position = record["lsn"].as_str().expect("a position").replace("0/", "");
        u64::from_str_radix(&position, 16).expect("a number") >> 20
    };
    let numbers: Vec<u64> = records.iter().map(number).collect();
    let (first, last) = (numbers[0], numbers[numbers.len() - 1]);
    assert!(last > first + 1, "{numbers:?}");
    let missing = format!("00000001{:016X}", first + 1);
    fs::remove_file(cluster.data.join("pg_wal").join(&missing)).expect("removed");
    let (code, found, err) = cluster.effects(&[filled]);
    let expected = numbers.iter().take_while(|&&number| number == first).count();
    assert_eq!(code, 1, "{err}");
    assert_eq!(found, whole[..expected], "{err}");
    assert!(err.contains(&format!("there is no segment {missing}")), "{err}");
    let (code, _, err) = cluster.inspect(&[filled]);
    assert!(code == 3 && err.contains(&missing), "{code} {err}");
    let (code, out, err) = cluster.inspect(&[filled, "--no-replay"]);
    assert!(code == 0 && out.contains("\nsource    file\n"), "{out}{err}");
    let (code, found, err) = cluster.effects(&[filled, "--allow-incomplete"]);
    assert_eq!((code, found.len()), (0, expected), "{err}");
}

/// A file of a tablespace is outside of the data directory, and may have been moved.
#[test]
fn a_page_in_a_tablespace_is_found_by_its_path() {
    let Some(bin) = servers().into_iter().next() else { return };
    let server = Server::start(&bin, &[]);
    let [old, new] = ["space", "moved"].map(|name| server.home().join(name));
    server.make_directory(&old);
    server.sql("postgres", &format!("create tablespace space location '{}'", old.display()));
    server.sql("postgres", "create table t (i int) tablespace space");
    server.sql("postgres", "insert into t select generate_series(1, 10)");
    let path = server.sql("postgres", "select pg_relation_filepath('t')");
    let path = String::from_utf8(path).expect("text").trim().to_owned();
    let stopped = server.stop_at_once();
    let data = stopped.data();
    let below: PathBuf = Path::new(&path).components().skip(2).collect();
    let check = |path: &str, options: &[&str], expected: &str| {
        let (code, out, err) = run(&data, &[&["inspect", "page", path], options].concat());
        assert!(code == 0 && out.contains(expected), "{path}: {code} {out}{err}");
    };
    let direct = old.join(&below).display().to_string();
    for path in [&path, &direct] {
        check(path, &[], "\nsource    built from 10 records ");
        check(path, &["--history"], "INSERT+INIT off: 1");
    }
    fs::rename(&old, &new).expect("moved");
    let mapping = format!("{}={}", old.display(), new.display());
    let moved = new.join(&below).display().to_string();
    check(&moved, &["-T", &mapping], "\nsource    built from 10 records ");
}
