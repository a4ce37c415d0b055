//! Compares `verify --deep` with `amcheck`. Both must accept a valid cluster. Both must report
//! duplicate keys, missing index entries, and TOAST values that aren't referenced by any row.
//!
//! ```text
//!   unique in name only:    create index, duplicates, update pg_index set indisunique
//!   leftover TOAST values:  delete, and vacuum full while a prepared transaction may see the rows
//! ```
//! amcheck only checks uniqueness in version 17 and later.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::server::{Server, servers};

const TABLES: &str = "
create table keys (id int primary key, name text, code numeric, tags int[], doc jsonb, pad text);
insert into keys
  select i, 'name ' || i, i, array[i, i % 7], jsonb_build_object('a', i), repeat('x', i % 50)
  from generate_series(1, 5000) i;
create unique index by_name on keys (name);
create unique index by_code on keys (code) include (pad);
create unique index by_tags on keys (tags);
create unique index by_doc on keys (doc);
create unique index by_part on keys (id) where id % 2 = 0;
create unique index by_lower on keys (lower(name), (id + 1));
-- Every version has its entries.
update keys set pad = pad || 'y', code = code + 0.5 where id % 3 = 0;
update keys set code = code - 0.5, name = name || ' ' where id % 6 = 0;
delete from keys where id % 10 = 0;
insert into keys select i, 'name ' || i, i, array[i], jsonb_build_object('b', i), ''
  from generate_series(10, 5000, 10) i;
create table nulls (a int, b int);
insert into nulls select null, i % 5 from generate_series(1, 100) i;
create unique index by_a on nulls (a, b);
create table long (id int primary key, t text);
alter table long alter t set storage external;
insert into long select i, repeat(chr(65 + i), 9000) from generate_series(1, 20) i;
create table other (a int);
";

/// Tables with duplicate keys. We know the order of the index entries only for the first three
/// tables.
const DUPLICATES: &[(&str, &str)] = &[
    ("plain", "i"),
    ("exact", "i::numeric"),
    ("texts", "'text ' || i"),
    ("lists", "array[i]"),
    ("trees", "jsonb_build_object('a', i)"),
];

fn verified(data: &Path) -> (i32, Value) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_trunkline"));
    command.env_remove("PGDATA").env_remove("PGDATABASE").current_dir("/").arg("-D").arg(data);
    command.args(["verify", "--deep", "-d", "postgres", "--json"]);
    let output = command.output().expect("runs");
    let text = String::from_utf8_lossy(&output.stdout);
    let report = serde_json::from_str(&text).expect("JSON");
    (output.status.code().expect("a code"), report)
}

fn findings(report: &Value) -> Vec<String> {
    let all = report["contents"]["findings"].as_array().expect("findings");
    all.iter().map(|it| format!("{} {}", it["relation"], it["text"])).collect()
}

/// amcheck's findings for every B-tree, including uniqueness from version 17 on.
fn amcheck(server: &Server) -> String {
    let unique = if server.major() >= 17 { ", one.indisunique" } else { "" };
    let check = format!(
        "do $$ declare one record; begin
         for one in select i.indexrelid, i.indisunique from pg_index i join pg_class c
           on c.oid = i.indexrelid where c.relam = 403 and c.relpersistence = 'p' loop
           begin
             perform bt_index_check(one.indexrelid::regclass, true{unique});
           exception when others then
             insert into said values (one.indexrelid::regclass::text || ': ' || sqlerrm);
           end;
         end loop; end $$"
    );
    server.sql("postgres", "create table if not exists said (t text); truncate said");
    server.sql("postgres", &check);
    let said = server.sql("postgres", "select t from said order by t");
    String::from_utf8(said).expect("text")
}

#[test]
fn both_accept_a_valid_cluster() {
    for bin in servers() {
        let server = Server::start(&bin, &[]);
        server.sql("postgres", "create extension amcheck");
        server.script("postgres", TABLES, false);
        assert_eq!(amcheck(&server), "");
        let major = server.major();
        let stopped = server.stop();
        let (code, report) = verified(&stopped.data());
        assert_eq!((code, findings(&report)), (0, Vec::new()), "{major}");
        assert_eq!(report["contents"]["long_values_without_rows"], Value::Array(vec![]));
    }
}

#[test]
fn both_find_duplicates() {
    for bin in servers() {
        let server = Server::start(&bin, &[]);
        server.sql("postgres", "create extension amcheck");
        for (name, key) in DUPLICATES {
            let script = format!(
                "create table {name} as select {key} as a from generate_series(1, 900) i;
                 insert into {name} select a from {name} order by a limit 3;
                 insert into {name} values (null), (null);
                 create index {name}_a on {name} (a);
                 update pg_index set indisunique = true where indexrelid = '{name}_a'::regclass;"
            );
            server.script("postgres", &script, false);
        }
        let said = amcheck(&server);
        let major = server.major();
        let stopped = server.stop();
        let (code, report) = verified(&stopped.data());
        let found = findings(&report);
        let expected = 3 * DUPLICATES.len();
        assert_eq!((code, found.len()), (1, expected), "{major}: {found:#?}");
        for (name, _) in DUPLICATES {
            let text = format!("row has the same key in unique index {name}_a as row (");
            assert_eq!(found.iter().filter(|line| line.contains(&text)).count(), 3, "{found:#?}");
            let theirs = said.lines().any(|line| {
                line.contains(&format!("{name}_a")) && line.contains("uniqueness is violated")
            });
            assert_eq!(theirs, major >= 17, "{major}: {name}: {said}");
        }
        assert_eq!(report["contents"]["findings"][0]["kind"], "not_unique");
    }
}

/// Rows inserted before the index was ready have no index entries.
#[test]
fn both_find_missing_entries() {
    for bin in servers() {
        let server = Server::start(&bin, &[]);
        server.sql("postgres", "create extension amcheck");
        let of_index = "where indexrelid = 'gaps_a'::regclass";
        let script = format!(
            "create table gaps (a int); create index gaps_a on gaps (a);
             insert into gaps select generate_series(1, 1000);
             update pg_index set indisready = false {of_index};
             insert into gaps values (77);
             update pg_index set indisready = true {of_index};"
        );
        server.script("postgres", &script, false);
        let said = amcheck(&server);
        assert!(said.contains("gaps") && said.contains("lacks matching index tuple"), "{said}");
        let stopped = server.stop();
        let (code, report) = verified(&stopped.data());
        let found = findings(&report);
        assert_eq!((code, found.len()), (1, 1), "{found:#?}");
        assert!(found[0].contains("row is visible, but index gaps_a has no entry"), "{found:#?}");
    }
}

/// If a prepared transaction may still see deleted rows, a table rewrite has to copy them together
/// with their TOAST values. When these rows are vacuumed later, the TOAST values are left behind.
#[test]
fn toast_values_left_by_a_rewrite_are_a_note() {
    for bin in servers() {
        let server = Server::start(&bin, &[]);
        server.script("postgres", TABLES, false);
        let script = "
            begin; insert into other values (1); prepare transaction 'old';
            delete from long where id in (3, 5);
            vacuum full long;
            commit prepared 'old';
            vacuum long;
        ";
        server.script("postgres", script, false);
        let count = "select count(distinct chunk_id), count(*), min(chunk_id) from %s \
                     where chunk_id not in (select pg_column_toast_chunk_id(t) from long)";
        let toast = server
            .sql("postgres", "select reltoastrelid::regclass from pg_class where relname = 'long'");
        let toast = String::from_utf8(toast).expect("text");
        // `pg_column_toast_chunk_id` exists only in version 17 and later.
        let said = (server.major() >= 17)
            .then(|| server.sql("postgres", &count.replace("%s", toast.trim())));
        let major = server.major();
        let stopped = server.stop();
        let (code, report) = verified(&stopped.data());
        assert_eq!((code, findings(&report)), (0, Vec::new()), "{major}");
        let orphans = &report["contents"]["long_values_without_rows"];
        let Some([one]) = orphans.as_array().map(Vec::as_slice) else { panic!("{orphans}") };
        assert_eq!(one["relation"], "postgres.public.long");
        let found = format!("{}\t{}\t{}\n", one["values"], one["chunks"], one["first_value"]);
        if let Some(said) = said {
            assert_eq!(found.as_bytes(), said, "{major}");
        }
        assert_eq!(
            (&one["values"], &one["chunks"]),
            (&Value::from(2), &Value::from(10)),
            "{major}"
        );
    }
}
