//! Clusters whose commit log or multixacts are missing or short. A server refuses to read the rows
//! that need these files, so we must neither leave them out silently nor call them damaged.
//!
//! ```text
//!   rows without hint bits ──▶ stop ──▶ next transaction into file 0001 ──▶ remove or cut 0000
//!                                                        trunkline ── the same error? ── server
//! ```
//!
//! To start, a server needs the page of its next transaction. We therefore use `pg_resetwal` to move
//! the next transaction into another file. If a server comes without `pg_resetwal`, we can't compare
//! our error with its own.

use std::fs;
use std::os::unix::fs::{MetadataExt, chown};
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::binary::run;
use crate::server::{INITDB, Server, servers};

/// Creates tables, and freezes everything in them and in the catalogs.
const FROZEN: &str = "
create table kept (a int);
insert into kept select generate_series(1, 10);
create table fresh (a int);
create table long (a int, t text);
alter table long alter t set storage external;
create table many (a int primary key, b int);
insert into many values (1, 1), (2, 2), (3, 3);
vacuum (freeze);
\\c template1
vacuum (freeze);
";

/// Tables that need rows of the catalogs: a type with its function, and a TOAST table.
const TYPED: &str = "
create table typed (c citext);
insert into typed values ('Name');
create table lost (a int, t text);
alter table lost alter t set storage external;
insert into lost select i, repeat('x', 5000) from generate_series(1, 3) i;
";

/// Adds rows that no server reads, except those of `long` itself. The first update of `many` creates
/// the first multixact. The second update creates another one, which records where the first one
/// ends.
const UNREAD: &str = "
insert into fresh select generate_series(1, 1000);
insert into long select i, repeat('x', 5000) from generate_series(1, 3) i;
select count(a) from long;
begin; select 1 from many where a = 1 for key share; prepare transaction 'one';
update many set b = 11 where a = 1;
commit prepared 'one';
begin; select 1 from many where a = 2 for key share; prepare transaction 'two';
update many set b = 12 where a = 2;
commit prepared 'two';
";

/// The directories whose first files are damaged, each with a table that needs the file.
const DIRECTORIES: [(&str, &str); 3] =
    [("pg_xact", "fresh"), ("pg_multixact/offsets", "many"), ("pg_multixact/members", "many")];

/// Returns the name of a file of the server, with its directory. Since PostgreSQL 19, the names of
/// members' files are longer.
fn segment(server: &Server, directory: &str, number: u32) -> String {
    match directory == "pg_multixact/members" && server.major() >= 19 {
        true => format!("{directory}/{number:015X}"),
        false => format!("{directory}/{number:04X}"),
    }
}

fn start(bin: &Path) -> Server {
    let server = Server::start(bin, &[]);
    server.script("postgres", FROZEN, false);
    server.script("postgres", UNREAD, false);
    server
}

fn copy(data: &Path, table: &str, args: &[&str]) -> (i32, String, String) {
    let table = format!("postgres.public.{table}");
    run(data, &[&["copy", table.as_str()], args].concat())
}

/// Returns the exit code and the JSON report of `verify`.
fn report(data: &Path, args: &[&str]) -> (i32, Value) {
    let (code, out, err) = run(data, &[&["verify", "--json"], args].concat());
    assert!(!out.is_empty(), "{err}");
    (code, serde_json::from_str(&out).expect(&out))
}

/// Returns the exit code of `verify` and the findings in its JSON report.
fn verify(data: &Path, args: &[&str]) -> (i32, Vec<Value>) {
    let (code, report) = report(data, args);
    (code, report["contents"]["findings"].as_array().expect("findings").clone())
}

/// Copies a directory, preserving the owners of the files. Replaces any earlier copy.
fn replace(from: &Path, to: &Path) {
    let _ = fs::remove_dir_all(to);
    let copied = Command::new("cp").arg("-a").arg(from).arg(to).status().expect("runs");
    assert!(copied.success());
}

/// Writes a file of zeros that belongs to the server's user.
fn zeros(data: &Path, name: &str) {
    let (path, owner) = (data.join(name), fs::metadata(data).expect("there"));
    fs::write(&path, vec![0; 32 * 8192]).expect("written");
    chown(&path, Some(owner.uid()), Some(owner.gid())).expect("given away");
}

/// Changes the next transaction, multixact and member so that they are at the beginning of file 0001.
fn leave_the_first_files(server: &Server) {
    let mut reset = server.command("pg_resetwal");
    reset.args(["-x", "1048576", "-m", "65536,1", "-O", "52352", "-D"]).arg(server.data());
    let output = reset.output().expect("runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    for (directory, _) in DIRECTORIES {
        zeros(&server.data(), &segment(server, directory, 1));
    }
}

/// Removes a file, or truncates it to 64 bytes. Returns the end of our message about it.
fn damage(data: &Path, file: &str, cut: bool) -> String {
    let path = data.join(file);
    let shown = path.display().to_string();
    if cut {
        fs::File::options().write(true).open(path).expect("opened").set_len(64).expect("cut");
        return format!("could not read from file \"{shown}\" at offset 0: read 64 of 8192 bytes");
    }
    fs::remove_file(path).expect("removed");
    format!("could not open file \"{shown}\": No such file or directory")
}

/// Extracts the number from `could not access status of transaction NUMBER`. In PostgreSQL 19, the
/// detail has it: `Could not access commit status of transaction NUMBER.`
fn transaction(error: &str) -> u32 {
    let (_, rest) = error.split_once("ould not access ").expect(error);
    let mut numbers = rest.split(|c: char| !c.is_ascii_digit()).filter(|it| !it.is_empty());
    numbers.next().expect(error).parse().expect(error)
}

#[test]
fn rows_that_need_a_missing_file_are_errors() {
    for bin in servers() {
        let mut server = start(&bin);
        server.halt("fast");
        let restarts = server.has("pg_resetwal");
        if restarts {
            leave_the_first_files(&server);
        }
        let (data, pristine) = (server.data(), server.home().join("pristine"));
        replace(&data, &pristine);
        assert_eq!(copy(&data, "fresh", &[]).1.lines().count(), 1000);
        assert_eq!(verify(&data, &["--deep"]), (0, vec![]));
        for (directory, table) in DIRECTORIES {
            let file = &segment(&server, directory, 0);
            for cut in [false, true] {
                replace(&pristine, &data);
                let fault = damage(&data, file, cut);
                let id = rows_are_refused(&data, table, &fault);
                one_finding(&data, file, table, &fault);
                inspect_says_so(&data, file, id, &fault);
                if restarts {
                    server.run();
                    let sql = format!("select count(*) from {table}");
                    let theirs = server.error("postgres", &sql);
                    // Without the first letter: in PostgreSQL 19, this is the message itself.
                    let detail = match cut {
                        false => format!("ould not open file \"{file}\": No such file or "),
                        true => format!("ould not read from file \"{file}\" at offset 0: "),
                    };
                    assert_eq!(transaction(&theirs), id, "{theirs}");
                    assert!(theirs.contains(&detail), "{theirs}");
                    server.halt("immediate");
                }
            }
        }
    }
}

/// Checks that `copy` stops at the first row, or leaves out the rows and reports that. Returns the
/// transaction or multixact in the error.
fn rows_are_refused(data: &Path, table: &str, fault: &str) -> u32 {
    let (code, out, err) = copy(data, table, &[]);
    assert_eq!((code, out.as_str()), (3, ""), "{err}");
    let start = format!("trunkline: error: public.{table}: row in block 0, line pointer 1 of file");
    assert!(err.starts_with(&start) && err.contains(fault), "{err}");
    assert!(err.contains("hint: restore the file, or use --keep-going"), "{err}");
    let id = transaction(&err);

    let (code, out, err) = copy(data, table, &["--keep-going"]);
    let rows = if table == "fresh" { 1000 } else { 2 };
    let text = format!("rows left out because their visibility is unknown: {rows}; the first: ");
    assert!(code == 1 && err.contains(&text) && err.contains(fault), "{code}: {err}");
    assert_eq!(err.lines().count(), 1, "{err}");
    // The new versions of the updated rows don't need a multixact.
    assert_eq!(out.lines().count(), if table == "fresh" { 0 } else { 3 }, "{out}");

    let (code, out, err) = copy(data, "kept", &[]);
    assert_eq!((code, out.lines().count(), err.as_str()), (0, 10, ""));
    id
}

/// Checks that there is exactly one finding for the file, and no finding for any of the rows.
fn one_finding(data: &Path, file: &str, table: &str, fault: &str) {
    let name = format!("public.{table}");
    for args in [&["--deep"][..], &["-d", "postgres", name.as_str(), "--rows"]] {
        let (code, findings) = verify(data, args);
        assert_eq!((code, findings.len()), (1, 1), "{findings:#?}");
        let finding = &findings[0];
        assert_eq!((&finding["kind"], &finding["file"]), (&"status_file".into(), &file.into()));
        let text = finding["text"].as_str().expect("a text");
        assert!(text.contains(fault), "{text}");
        if args.len() > 1 {
            let rows = if table == "fresh" { 1000 } else { 2 };
            let rows = format!("; {rows} rows were not checked, the first is (0,1) of postgres");
            assert!(text.contains(&format!("{rows}.{name}")), "{text}");
        }
    }
}

fn inspect_says_so(data: &Path, file: &str, id: u32, fault: &str) {
    let id = id.to_string();
    let command = if file.starts_with("pg_xact") { "clog" } else { "multixact" };
    let (code, out, err) = run(data, &["inspect", command, &id]);
    assert!(code == 1 && format!("{out}{err}").contains(fault), "{code}: {out}{err}");
    if command == "clog" {
        let (code, out, err) = run(data, &["inspect", "clog"]);
        // This message is about the newest transaction, which is on another page.
        assert!(code == 1 && err.contains(&format!("/{file}\"")), "{code}: {err}");
        assert!(!out.contains("unknown        0\n"), "{out}");
        assert!(out.contains("committed      0\n"), "{out}");
    }
}

/// The rows are known to be visible. The chunks of their TOAST values have no hint bits, because a
/// server never sets any, but a server doesn't ask the commit log about chunks either.
#[test]
fn values_of_visible_rows_need_no_commit_log() {
    for bin in servers() {
        let server = start(&bin);
        let wanted = server.sql("postgres", "copy long to stdout");
        let stopped = server.stop();
        let data = stopped.data();
        damage(&data, "pg_xact/0000", false);
        let wanted = String::from_utf8(wanted).expect("text");
        assert_eq!(wanted.lines().count(), 3);
        assert_eq!(copy(&data, "long", &[]), (0, wanted, "".into()));
        let (code, findings) = verify(&data, &["-d", "postgres", "public.long", "--rows"]);
        assert_eq!((code, findings.len()), (1, 1), "{findings:#?}");
        let text = findings[0]["text"].as_str().expect("a text");
        // The chunks as rows of the TOAST table: each value has three of them.
        assert!(text.contains("; 9 rows were not checked, "), "{text}");
    }
}

/// Changes a function of `citext` and the TOAST table of `lost` in the catalogs. No server reads the
/// changed rows.
const CHANGED: &str = "
update pg_proc set proname = proname where proname = 'citextout';
update pg_class set relname = relname
  where oid = (select reltoastrelid from pg_class where relname = 'lost');
";

/// If only an output function is unknown, only the columns that need it can't be copied.
#[test]
fn an_unknown_function_refuses_only_its_own_type() {
    for bin in servers() {
        let server = Server::start(&bin, &[]);
        server.script("postgres", &["create extension citext;\n", TYPED, FROZEN].concat(), false);
        let function = "update pg_proc set proname = proname where proname = 'citextout'";
        server.sql("postgres", function);
        let stopped = server.stop();
        let data = stopped.data();
        let fault = damage(&data, "pg_xact/0000", false);
        let (code, out, err) = copy(&data, "typed", &[]);
        assert_eq!((code, out.as_str()), (3, ""), "{err}");
        let text = "column \"c\" of relation public.typed cannot be printed: ";
        assert!(err.contains(text) && err.contains(&fault), "{err}");
        assert!(err.contains("hint: restore the file, or name the other columns"), "{err}");
        let (code, out, err) = copy(&data, "lost", &[]);
        assert_eq!((code, out.lines().count(), err.as_str()), (0, 3, ""));
    }
}

/// If rows of the catalogs are unknown, they are the only ones that we report. The tables they
/// describe, and the values in those tables, are not damaged.
#[test]
fn unknown_rows_of_catalogs_are_the_only_ones_reported() {
    for bin in servers() {
        let server = Server::start(&bin, &[]);
        server.script("postgres", &["create extension citext;\n", TYPED, FROZEN].concat(), false);
        server.script("postgres", CHANGED, false);
        let stopped = server.stop();
        let data = stopped.data();
        let fault = damage(&data, "pg_xact/0000", false);
        let (code, out, err) = copy(&data, "typed", &[]);
        assert_eq!((code, out.as_str()), (3, ""), "{err}");
        assert!(err.contains(&fault) && err.contains("hint: restore the file"), "{err}");

        let left_out = "catalog of postgres: rows left out because their visibility is unknown: 4;";
        let (code, out, err) = copy(&data, "typed", &["--keep-going"]);
        assert_eq!((code, out.as_str()), (2, ""), "{err}");
        assert!(err.contains(left_out) && err.contains(&fault), "{err}");
        assert!(err.contains("only the extension that defines it can print it"), "{err}");

        let (code, out, err) = copy(&data, "lost", &["--keep-going"]);
        assert_eq!((code, out.as_str()), (1, ""), "{err}");
        let values = err.matches("column \"t\": in TOAST, but the catalogs do not describe TOAST ");
        assert_eq!(values.count(), 3, "{err}");
        assert!(err.contains(left_out) && !err.contains("invalid row"), "{err}");

        let (code, report) = report(&data, &["-d", "postgres", "public.lost", "--rows"]);
        let contents = &report["contents"];
        let findings = contents["findings"].as_array().expect("findings");
        assert_eq!((code, findings.len()), (1, 1), "{findings:#?}");
        assert_eq!(findings[0]["kind"], "status_file");
        let skipped = contents["skipped"].to_string();
        assert!(skipped.contains("values in TOAST are not checked: the catalogs "), "{skipped}");
        one_finding_in_all_parts(&data, &fault);
    }
}

/// Checks that `verify` reports the file once, whether it only compares the files with the catalogs
/// or also checks their rows.
fn one_finding_in_all_parts(data: &Path, fault: &str) {
    for args in [&[][..], &["-d", "postgres"], &["--deep"]] {
        let (code, report) = report(data, args);
        let parts = [&report["findings"], &report["contents"]["findings"]];
        let findings: Vec<&Value> =
            parts.into_iter().filter_map(Value::as_array).flatten().collect();
        assert_eq!((code, findings.len()), (1, 1), "{args:?}: {findings:#?}");
        let text = findings[0]["text"].as_str().expect("a text");
        assert!(findings[0]["kind"] == "status_file" && text.contains(fault), "{args:?}: {text}");
    }
}

/// After a restart, a server treats a sub-committed transaction as aborted, because it no longer
/// knows the transaction's parent.
#[test]
fn sub_committed_transactions_are_not_visible() {
    for bin in servers() {
        let mut server = start(&bin);
        let xid = server.sql("postgres", "select xmin from fresh limit 1");
        // The server has set hint bits on the rows that it has read, so we need other rows.
        server.sql("postgres", "create table later (a int)");
        server.sql("postgres", "insert into later values (1)");
        server.halt("fast");
        let xid: u32 = String::from_utf8(xid).expect("text").trim().parse().expect("a number");
        let data = server.data();
        let mut log = fs::read(data.join("pg_xact/0000")).expect("read");
        // The last transaction inserted into `later`.
        let later =
            (xid..xid + 100).rev().find(|xid| log[*xid as usize / 4] >> (xid % 4 * 2) & 3 > 0);
        let later = later.expect("a transaction");
        log[later as usize / 4] |= 3 << (later % 4 * 2);
        fs::write(data.join("pg_xact/0000"), log).expect("written");
        let (code, out, _) = run(&data, &["inspect", "clog", &later.to_string()]);
        assert!(code == 0 && out.contains("sub-committed"), "{out}");
        assert_eq!(copy(&data, "later", &[]), (0, String::new(), String::new()));
        server.run();
        assert_eq!(server.sql("postgres", "select count(*) from later"), b"0\n");
    }
}

/// VACUUM removes files if no row can refer to their transactions any more.
#[test]
fn clusters_with_truncated_files_are_read() {
    for bin in servers() {
        let mut server = start(&bin);
        if !server.has("pg_resetwal") {
            continue;
        }
        server.halt("fast");
        leave_the_first_files(&server);
        server.run();
        let all = "update pg_database set datallowconn = true where datname = 'template0'";
        server.sql("postgres", all);
        for database in ["template0", "template1", "postgres"] {
            server.sql(database, "vacuum (freeze)");
        }
        server.sql("postgres", "checkpoint");
        server.script("postgres", UNREAD, false);
        server.halt("fast");
        let data = server.data();
        assert!(!data.join("pg_xact/0000").exists(), "it was truncated");
        assert_eq!(verify(&data, &["--deep"]), (0, vec![]));
        let (code, _, err) = run(&data, &["inspect", "clog"]);
        assert_eq!((code, err.as_str()), (0, ""));
        let tables = ["fresh", "long", "many", "kept"];
        let found = tables.map(|table| copy(&data, table, &[]));
        server.run();
        for (table, found) in tables.into_iter().zip(found) {
            let expected = server.sql("postgres", &format!("copy {table} to stdout"));
            let expected = String::from_utf8(expected).expect("text");
            assert_eq!(found, (0, expected, String::new()), "{table}");
        }
    }
}

/// `pg_upgrade` moves the files of the old cluster into the new one, which has never been started.
#[test]
fn clusters_after_pg_upgrade_are_read() {
    for bin in servers() {
        let mut server = start(&bin);
        if !server.has("pg_upgrade") {
            continue;
        }
        let new = server.home().join("new");
        server.halt("fast");
        let mut initdb = server.command("initdb");
        initdb.args(INITDB).arg("-D").arg(&new);
        let mut upgrade = server.command("pg_upgrade");
        upgrade.current_dir(server.home()).args(["-U", "postgres", "-b"]).arg(&bin);
        upgrade.arg("-B").arg(&bin).arg("-d").arg(server.data()).arg("-D").arg(&new);
        for mut command in [initdb, upgrade] {
            let output = command.output().expect("runs");
            let text = [output.stdout, output.stderr].concat();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&text));
        }
        assert_eq!(verify(&new, &["--deep"]), (0, vec![]));
        let (code, _, err) = run(&new, &["inspect", "clog"]);
        assert_eq!((code, err.as_str()), (0, ""));
        for (table, rows) in [("fresh", 1000), ("long", 3), ("many", 3), ("kept", 10)] {
            let (code, out, err) = copy(&new, table, &[]);
            assert_eq!((code, out.lines().count(), err.as_str()), (0, rows, ""), "{table}");
        }
    }
}
