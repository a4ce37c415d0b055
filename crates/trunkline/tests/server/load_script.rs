//! `load.sql`, which `copy` writes beside the copies of several tables, is run by psql: the loaded
//! database must contain what was copied.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::server::{Server, Stopped, servers};

/// One object of every kind that the script treats in its own way.
const OBJECTS: &str = r#"
create schema "App 2";
create schema "two
lines";
create role later;
create type "App 2".mood as enum ('sad', 'happy');
alter type "App 2".mood add value 'so-so' before 'happy';
alter type "App 2".mood add value 'it''s' before 'sad';
create domain code as varchar(5) check (value <> 'zzz');
create domain class_name as regclass;
create type "App 2".pair as (a numeric(6,2), m "App 2".mood, "order" code[], c regclass);
create type "two
lines".size as enum ('small', 'large');
create type span as range (subtype = float8);
create table audit (c regclass, cs regclass[], p regproc, pp regprocedure, r regrole, n regnamespace,
    ty regtype, d class_name, ds class_name[], acl aclitem, acls aclitem[], tree pg_node_tree);
create table "App 2"."order" (
    "user" int not null, v varchar(20), c char(3), n numeric(10,-2), f bit(3), vb bit varying,
    t time(2) with time zone, ts timestamp(0), iv interval hour to second(1), d code,
    m "App 2".mood, ms "App 2".mood[], p "App 2".pair, s span, sm span_multirange, j jsonb,
    b bytea, ch "char", na name, o oid, bp bpchar, i interval, mo money, r int4range,
    si information_schema.sql_identifier, da date, dc code[], x float8, y float4);
insert into "App 2"."order" values
    (1, E'tab\t\\', 'ab', 1200, '101', '1', '12:00:00.126+02', '2024-02-29 1:02:03', '1:02:03.45',
    'x', 'so-so', '{sad,it''s}', '(1.5,happy,"{a}",pg_class)', '[1,2)', '{[1,2),[3,4)}', '{"a": 1}',
    '\x00ff', 'c', 'n', 7, 'pad  ', '-1 days +02:03:04', '-1234.56', '[1,5]', 'name',
    '0044-03-15 BC', '{a,"b,c"}', 0.1::float8 + 0.2::float8, 1.0 / 3);
insert into "App 2"."order" values (2);
create table zebra ();
create function twice(i int) returns int language sql as 'select i * 2';
create table defaults (i int default twice(2));
insert into audit select 'zebra', '{zebra,pg_class}', 'twice', 'twice(int)', 'later', '"App 2"',
    '"App 2".mood', 'zebra', '{zebra}', 'later=r/later', '{later=r/later}', adbin from pg_attrdef
    where adrelid = 'defaults'::regclass;
create table dropped (a int, b int, c text);
alter table dropped drop column b;
insert into dropped values (1, E'two\nlines, "quoted"'), (2, ''), (3, null), (4, '\.'), (5, '\N');
create table none ();
insert into none default values;
insert into none default values;
create table gen (a int, b int not null generated always as (a * 2) stored, c text);
insert into gen values (1, default, 'x');
create table rows_of (d dropped, n int);
insert into rows_of values (row(1, 'x'), 1);
create table parts (id int, t text) partition by list (id);
create table part_1 partition of parts for values in (1);
create table part_2 partition of parts for values in (2);
insert into parts values (1, 'one'), (2, 'two');
create table parent (id int);
create table child (more text) inherits (parent);
insert into parent values (1);
insert into child values (2, 'x');
create materialized view seen as select id, t || '!' as t from parts;
create sequence light;
create type light as enum ('red');
create table crossing as select light 'red' as l;
create unlogged table quick as select 1 as one;
create table "odd
name's $check0$ ~" ("a
b" int);
insert into "odd
name's $check0$ ~" values (1);
create table "two
lines"."three
lines" (s "two
lines".size);
insert into "two
lines"."three
lines" values ('small');
create table serials (
    id serial, big bigint generated always as identity (start with 10 increment by 5));
insert into serials select from generate_series(1, 3);
create sequence "App 2"."down" as smallint increment -1 minvalue -5 maxvalue -1 cycle cache 3;
select nextval('"App 2"."down"');
create sequence unused start 17;
create table loose as select i, md5(i::text) as t from generate_series(1, 5000) i;
alter database postgres set extra_float_digits = 0;
"#;

/// The user's tables, as conditions on `pg_class` and `pg_namespace`.
const USER_TABLES: &str = "pg_class c join pg_namespace n on n.oid = relnamespace
    and relkind in ('r', 'm') and nspname !~ '^(pg_|information_schema)'";

/// Names and types of all columns except generated ones. Types that can't be loaded become text.
fn columns() -> String {
    format!(
        "select attrelid::regclass, attname,
            case when relname = 'audit' or attname in ('s', 'sm') and relname = 'order'
                or relname = 'rows_of' and attname = 'd'
                then 'text' else format_type(atttypid, atttypmod) end
        from pg_attribute a join {USER_TABLES} on c.oid = attrelid where attnum > 0
            and not attisdropped and attgenerated = '' order by attrelid::regclass::text, attnum"
    )
}

const SEQUENCES: &str = "select schemaname, sequencename, data_type, start_value, min_value,
    max_value, increment_by, cycle, cache_size, last_value from pg_sequences order by 1, 2";

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).expect("UTF-8")
}

/// Copies into `directory`. Returns the exit code and standard error.
fn copy(stopped: &Stopped, directory: &Path, args: &[&str]) -> (Option<i32>, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_trunkline"));
    command.env_remove("PGDATA").env("PGDATABASE", "postgres").current_dir("/");
    command.args(["copy", "-D"]).arg(stopped.data()).args(args).arg("-o").arg(directory);
    said(command.output().expect("runs"))
}

fn said(output: Output) -> (Option<i32>, String) {
    (output.status.code(), text(output.stderr))
}

/// Loads a directory into a new database, as a user would whose psqlrc file turns AUTOCOMMIT off.
fn load(server: &Server, database: &str, directory: &Path) -> (Option<i32>, String) {
    server.sql("postgres", &format!("create database {database} encoding 'UTF8'"));
    let mut psql = server.psql(database);
    said(run_script(&mut psql, directory))
}

fn run_script(psql: &mut Command, directory: &Path) -> Output {
    let args = ["-v", "AUTOCOMMIT=off", "-f", "load.sql"];
    psql.current_dir(directory).args(args).output().expect("runs")
}

/// What a database contains: the rows of each table, the columns, and the sequences.
fn contents(server: &Server, database: &str) -> Vec<String> {
    let ask = |sql: &str| text(server.sql(database, sql));
    // One COPY command for each table, separated by a character that no name contains.
    let commands = format!(
        "select string_agg(format('copy (select %s from only %s) to stdout',
            (select string_agg(quote_ident(attname), ',' order by attnum) from pg_attribute
            where attrelid = c.oid and attnum > 0 and not attisdropped and attgenerated = ''),
            c.oid::regclass), E'\\x01' order by c.oid::regclass::text) from {USER_TABLES}"
    );
    let commands = ask(&commands);
    let commands = commands.trim_end_matches('\n').split('\u{1}');
    let rows = commands.map(|command| format!("{command}: {}", ask(command)));
    rows.chain([ask(&columns()), ask(SEQUENCES)]).collect()
}

/// A directory that doesn't exist yet.
fn place() -> (tempfile::TempDir, PathBuf) {
    let home = tempfile::tempdir().expect("a directory");
    let path = home.path().join("out");
    (home, path)
}

#[test]
fn a_copied_database_is_loaded_into_a_server() {
    let formats: [&[&str]; 4] = [
        &[],
        &["--format", "csv", "--header"],
        &["--delimiter", "'", "--null", "\\ "],
        &["--format=csv", "--delimiter=\u{1}", "--null=NULL", "--intervalstyle=sql_standard"],
    ];
    for bin in servers() {
        let server = Server::start(&bin, &[]);
        server.script("postgres", OBJECTS, false);
        let expected = contents(&server, "postgres");
        assert!(expected.len() > 15, "{} tables", expected.len());
        let stopped = server.stop();
        let target = Server::start(&bin, &[]);
        for (number, format) in formats.into_iter().enumerate() {
            let (_home, path) = place();
            let all = [&["--all"][..], format].concat();
            assert_eq!(copy(&stopped, &path, &all), (Some(0), String::new()), "{format:?}");
            let script = fs::read_to_string(path.join("load.sql")).expect("a script");
            assert!(script.contains("    -- \"b\" int4 is generated, and left out\n"), "{script}");
            assert!(script.contains(" -- public.span\n"), "{script}");
            // A resumed copy writes the same script, with the rows that it finds in the files.
            let copies = fs::read_dir(&path).expect("a directory").flatten();
            let lost = copies.map(|it| it.path()).find(|it| it.to_string_lossy().contains("loose"));
            fs::remove_file(lost.expect("a copy")).expect("removed");
            assert_eq!(copy(&stopped, &path, &all), (Some(0), String::new()));
            let resumed = fs::read_to_string(path.join("load.sql")).expect("a script");
            assert_eq!(resumed, script, "{format:?}");
            let database = format!("d{number}");
            let loaded = load(&target, &database, &path);
            assert_eq!(loaded, (Some(0), String::new()), "{format:?}: {script}");
            for (found, expected) in contents(&target, &database).iter().zip(&expected) {
                assert_eq!(found, expected, "{format:?}");
            }
        }
        what_fails(&stopped, &target);
    }
}

/// Loads that must fail, and say why.
fn what_fails(stopped: &Stopped, target: &Server) {
    let (_home, path) = place();
    let args = ["-t", "loose", "-t", "serials", "-t", "parts", "pg_catalog.pg_class"];
    assert_eq!(copy(stopped, &path, &args), (Some(0), String::new()));
    let script = fs::read_to_string(path.join("load.sql")).expect("a script");
    assert!(script.contains("-- Left out: pg_catalog.pg_class is a system catalog\n"), "{script}");
    // Tables that can't be counted, as on a full disk, count as not loaded.
    let uncounted: Vec<&str> = script.lines().filter(|it| !it.starts_with("UPDATE")).collect();
    fs::write(path.join("load.sql"), uncounted.join("\n")).expect("written");
    let (code, text) = load(target, "uncounted", &path);
    assert_eq!(code, Some(3), "{text}");
    assert!(text.contains("\"public\".\"loose\" has 0 of 5000, "), "{text}");
    fs::write(path.join("load.sql"), script).expect("written");
    // A table whose file has lost a row, and one with a value that its type refuses.
    let change = |name: &str, change: &dyn Fn(String) -> String| {
        let file = path.join(name);
        let rows = fs::read_to_string(&file).expect("read");
        fs::write(file, change(rows)).expect("written");
    };
    change("public.loose.copy", &|rows| {
        rows.replacen("1\tc4ca4238a0b923820dcc509a6f75849b\n", "", 1)
    });
    change("public.part_1.copy", &|rows| rows.replace("1\tone", "x\tone"));
    let (code, text) = load(target, "short", &path);
    assert_eq!(code, Some(3), "{text}");
    let expected = "not all rows are loaded: \"public\".\"loose\" has 4999 of 5000, \
        \"public\".\"part_1\" has 0 of 1\n";
    assert!(text.contains("invalid input syntax for type integer: \"x\""), "{text}");
    assert!(text.contains(expected), "{text}");
    // The others are loaded.
    assert_eq!(target.sql("short", "select * from part_2"), b"2\ttwo\n");
    assert_eq!(target.sql("short", "select count(*) from serials"), b"3\n");
    // Again: nothing is loaded twice.
    let mut psql = target.psql("short");
    let (code, text) = said(run_script(&mut psql, &path));
    assert!(code == Some(3) && text.contains("already exists"), "{text}");
    assert_eq!(target.sql("short", "select count(*) from serials"), b"3\n");
    // In another directory: nothing is created.
    target.sql("postgres", "create database elsewhere");
    let mut psql = target.psql("elsewhere");
    let elsewhere = psql.arg("-f").arg(path.join("load.sql")).output().expect("runs");
    let (code, text) = said(elsewhere);
    assert!(code == Some(3) && text.contains("copy.manifest: No such file"), "{text}");
    assert_eq!(target.sql("elsewhere", "select to_regclass('public.serials') is null"), b"t\n");
}

/// Rows that a server would not accept again if the script restored `NOT NULL`.
#[test]
fn rows_that_violate_not_null_are_loaded() {
    let objects = "
        create table t (id int not null, v text not null);
        alter table t alter v set storage external;
        insert into t select i, repeat(md5(i::text), 100) from generate_series(1, 3) i;
        delete from t where id = 2;
        create table live (x int);
        insert into live values (null);
    ";
    for bin in servers() {
        let server = Server::start(&bin, &[]);
        server.script("postgres", objects, false);
        let toast = "select reltoastrelid::regclass from pg_class where relname = 't'";
        let toast = text(server.sql("postgres", toast));
        server.sql("postgres", &format!("vacuum {}", toast.trim()));
        if server.major() >= 18 {
            let unchecked = "alter table live add constraint c not null x not valid";
            server.sql("postgres", unchecked);
        }
        let stopped = server.stop();
        let target = Server::start(&bin, &[]);
        for (database, args) in
            [("visible", &["--all"][..]), ("dead", &["--all", "--rows", "dead", "--no-state"])]
        {
            let (_home, path) = place();
            let (code, text) = copy(&stopped, &path, args);
            assert_eq!(code, Some(0), "{text}");
            assert_eq!(load(&target, database, &path), (Some(0), String::new()), "{args:?}");
        }
        assert_eq!(target.sql("dead", "select id, v is null from t"), b"2\tt\n");
        assert_eq!(target.sql("visible", "select count(*) from live where x is null"), b"1\n");
        // With the state, the rows are for reading. No script claims to load them.
        let (_home, path) = place();
        let (code, text) = copy(&stopped, &path, &["--all", "--rows", "dead"]);
        assert_eq!(code, Some(0), "{text}");
        assert!(path.join("public.t.copy").exists() && !path.join("load.sql").exists());
    }
}

/// What can't be copied is left out, and everything else is copied and loaded. The script names what
/// is missing, and fails.
#[test]
fn a_script_says_at_its_end_what_was_not_copied() {
    // psql would run the command in the table's name.
    let objects = r#"create table t (id serial); insert into t select from generate_series(1, 3);
        create sequence lost;
        create table "it's \n :t `echo x`" as select 1 as one;
        create extension hstore;
        create table odd (r hstore);"#;
    for bin in servers() {
        let server = Server::start(&bin, &[]);
        server.script("postgres", objects, false);
        let files = "select pg_relation_filepath(oid) from pg_class where relname ~ '^(lost|it)'";
        let files = text(server.sql("postgres", files));
        let stopped = server.stop();
        assert_eq!(files.lines().count(), 2);
        files.lines().for_each(|it| fs::remove_file(stopped.data().join(it)).expect("removed"));
        let (_home, path) = place();
        let (code, text) = copy(&stopped, &path, &["--all", "--keep-going"]);
        assert_eq!(code, Some(1), "{text}");
        assert!(text.contains("error: sequence public.lost is not restored: "), "{text}");
        let script = fs::read_to_string(path.join("load.sql")).expect("a script");
        assert!(script.contains("-- Left out: sequence public.lost is not restored"), "{script}");
        let target = Server::start(&bin, &[]);
        let (code, said) = load(&target, "d", &path);
        assert_eq!(code, Some(3), "{said}");
        let lines: Vec<&str> = said.lines().collect();
        assert!(lines[0].starts_with("not copied: column \"r\" of relation public.odd"), "{said}");
        assert!(lines[1].starts_with("not copied: sequence public.lost is not restored"), "{said}");
        let damaged = r#"not copied: damaged rows of public."it's \n :t `echo x`""#;
        assert_eq!(lines[2], damaged, "{said}");
        let end = "ERROR:  loaded, but not everything was copied; see above";
        assert!(lines[3].ends_with(end), "{said}");
        assert_eq!(target.sql("d", "select nextval('t_id_seq'), count(*) from t"), b"4\t3\n");
        // Without a script, sequences are not read.
        let (_home, path) = place();
        let (_, text) = copy(&stopped, &path, &["--all", "--ctid", "--keep-going"]);
        assert!(!text.contains("sequence"), "{text}");
    }
}

/// Names and values in another encoding than that of the loading database.
#[test]
fn copies_of_another_encoding_are_converted() {
    let objects = "set client_encoding = 'UTF8';
        create type größe as enum ('süß'); create table tür (ö größe, n text);
        insert into tür values ('süß', 'é');";
    for bin in servers() {
        let server = Server::start(&bin, &[]);
        server.sql("postgres", "create database größe encoding 'LATIN1' template template0");
        server.script("größe", objects, false);
        let stopped = server.stop();
        let target = Server::start(&bin, &[]);
        let (_home, path) = place();
        let args = ["-d", "größe", "--all"];
        assert_eq!(copy(&stopped, &path, &args), (Some(0), String::new()));
        assert_eq!(load(&target, "d", &path), (Some(0), String::new()));
        assert_eq!(text(target.sql("d", "select * from tür")), "süß\té\n");
        // Only the last two parts of this name are in the encoding of the database.
        let one = path.join("one");
        assert_eq!(copy(&stopped, &one, &["größe.public.tür"]), (Some(0), String::new()));
        assert_eq!(fs::read(&one).expect("read"), b"s\xFC\xDF\t\xE9\n");
        // There is no conversion between these encodings, so nothing may be loaded.
        target.sql("postgres", "create database koi encoding 'KOI8R' template template0");
        let (code, said) = said(run_script(&mut target.psql("koi"), &path));
        assert!(code == Some(3) && said.contains("onversion between LATIN1"), "{code:?}: {said}");
        let tables = "select count(*) from pg_class where relnamespace = 'public'::regnamespace";
        assert_eq!(target.sql("koi", tables), b"0\n");
    }
}

/// A type that an extension put among the server's own is not in the loading server.
#[test]
fn extensions_in_pg_catalog_are_not_needed() {
    for bin in servers() {
        let server = Server::start(&bin, &[]);
        let objects = "create extension citext schema pg_catalog;
            create domain name_of as citext; create type pair as (c citext, n int);
            create table t (c citext, a citext[], d name_of, p pair);
            insert into t values ('A', '{B}', 'C', '(D,1)');";
        server.script("postgres", objects, false);
        let stopped = server.stop();
        let target = Server::start(&bin, &[]);
        let (_home, path) = place();
        assert_eq!(copy(&stopped, &path, &["--all"]), (Some(0), String::new()));
        assert_eq!(load(&target, "d", &path), (Some(0), String::new()));
        assert_eq!(target.sql("d", "select * from t"), b"A\t{B}\tC\t(D,1)\n");
    }
}
