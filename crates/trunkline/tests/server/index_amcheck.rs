//! An index that our writer has made for the rows of a server's table replaces the server's own. amcheck finds nothing wrong with
//! it, searches through it find the rows, and the server goes on changing it.

use std::fs;
use std::path::Path;

use trunkline_aio::facade::random::{Rng, seed};
use trunkline_engine::btree::Index;
use trunkline_engine::btree_writer::{BtreeWriter, Inserted, Uniqueness};
use trunkline_engine::new_cluster::{self, NewClusterOptions};
use trunkline_engine::storage::RelationLocator;
use trunkline_engine::writable_cluster::{Durability, WritableCluster};
use trunkline_format::btree::{KeyColumn, KeyLayout, Order};
use trunkline_format::deform::Attribute;
use trunkline_format::page::is_new;
use trunkline_format::wal::SegmentSize;
use trunkline_format::{Align, BLOCK_SIZE, Lsn, Oid, PageBytes, Tid, TupleBuilder, set_checksum};

use crate::server::{Server, servers};
use crate::writer_process::options;

/// Names of 440 bytes that differ only at their ends, so that separators are long; each is there several times.
const TABLE: &str = "
create extension amcheck;
create table rows (name text, code int8, pad text);
insert into rows
  select case when i % 50 > 0 then repeat('k', 434) || lpad((i * 7919 % 3000 / 3)::text, 6, '0') end,
         case when i % 7 > 0 then i % 3 end, 'pad'
  from generate_series(1, 4000) i;
create index by_name on rows (name, code desc nulls last) include (pad);
";

const CHECK: &str = "select bt_index_parent_check('by_name', true, true)";

/// Sums that a server computes once from the table, and once through the index.
const SUMS: &str = "
select count(*), min(name), max(name), sum(code) from rows where name > repeat('k', 434) || '0005';
select count(*) from rows where name is null;
select string_agg(coalesce(code::text, '-'), '' order by name, code desc nulls last, ctid)
  from rows where name < repeat('k', 434) || '0002';
";

fn layout() -> KeyLayout {
    let text = Attribute { len: -1, align: Align::Int };
    let int8 = Attribute { len: 8, align: Align::Double };
    let column = |attribute, order, descending| KeyColumn {
        attribute,
        order,
        descending,
        nulls_first: false,
    };
    let columns = vec![
        column(text, Order::Bytes, false),
        column(int8, Order::Int8, true),
        column(text, Order::Bytes, false),
    ];
    KeyLayout::new(columns, 2)
}

/// Builds an index for rows in the output format of psql, in a cluster of its own. Returns its file.
fn build(rows: &str, folder: &Path, rng: &mut Rng) -> Vec<u8> {
    let data = folder.join("ours");
    let size = SegmentSize::new(1 << 20).expect("valid");
    new_cluster::create(&data, &NewClusterOptions::now(size, true)).expect("created");
    let mut cluster = WritableCluster::open(&data, &options(folder, 0), |_| {}).expect("opened");
    let mut session = cluster.session().expect("a session");
    let transaction = session.begin().expect("begun");
    let locator = RelationLocator { tablespace: Oid(1663), database: Oid(1), relfilenode: 20_000 };
    let relation = session.create(&transaction, locator).expect("created");
    let mut heap = session.heap(&transaction);
    let mut writer =
        BtreeWriter::create(&mut heap, Index::new(relation, layout()), true).expect("created");
    let mut lines: Vec<&str> = rows.lines().collect();
    for at in (1..lines.len()).rev() {
        lines.swap(at, rng.below(at as u64 + 1) as usize);
    }
    for line in lines {
        let mut fields = line.split('\t');
        let mut next = || fields.next().expect("a field");
        let row =
            Tid { block: next().parse().expect("a block"), item: next().parse().expect("an item") };
        let (name, code, pad) = (next(), next(), next());
        let mut tuple = TupleBuilder::new();
        match name {
            "" => tuple.null(),
            name => tuple.text(name),
        };
        match code {
            "" => tuple.null(),
            code => tuple.int8(code.parse().expect("a number")),
        };
        tuple.text(pad);
        let inserted = writer.insert(&mut heap, &tuple.tuple(), row, Uniqueness::NotChecked);
        assert!(matches!(inserted, Ok(Inserted::Done { .. })), "{inserted:?}");
    }
    session.commit(transaction, Durability::Now).expect("committed");
    drop((session, writer));
    cluster.close().expect("shut down");
    fs::read(data.join("base/1/20000")).expect("read")
}

/// Makes the pages those of a cluster whose WAL doesn't have their changes.
fn without_lsns(file: &mut [u8]) {
    for (block, page) in (0..).zip(file.chunks_exact_mut(BLOCK_SIZE)) {
        let page: &mut PageBytes = page.try_into().expect("a page");
        if !is_new(page) {
            trunkline_format::page::set_lsn(page, Lsn(0));
            set_checksum(page, block, true);
        }
    }
}

fn sums(server: &Server, settings: &str) -> String {
    let answer = server.script("postgres", &format!("{settings}{SUMS}"), false);
    String::from_utf8(answer).expect("text")
}

#[test]
fn amcheck_accepts_our_index_and_the_server_goes_on_with_it() {
    let seed = seed();
    println!("TRUNKLINE_SEED={seed}");
    for bin in servers() {
        let mut server = Server::start(&bin, &[]);
        server.script("postgres", TABLE, false);
        let text = |sql: &str| String::from_utf8(server.sql("postgres", sql)).expect("text");
        let query = "select split_part(trim(both '()' from ctid::text), ',', 1),
                     split_part(trim(both '()' from ctid::text), ',', 2), name, code, pad from rows";
        let (rows, expected) = (text(query), sums(&server, ""));
        let path = text("select pg_relation_filepath('by_name')");
        let path = server.data().join(path.trim());
        server.halt("fast");
        let folder = tempfile::tempdir().expect("a folder");
        let mut file = build(&rows, folder.path(), &mut Rng::new(seed));
        without_lsns(&mut file);
        fs::write(&path, &file).expect("written");
        server.run();
        server.sql("postgres", CHECK);
        let through_index = "set enable_seqscan = off; set enable_bitmapscan = off;";
        assert_eq!(sums(&server, through_index), expected);
        // Inserts, which also deduplicate, and deletes of most entries, after which pages are deleted.
        let changes = "
            insert into rows select name, code, 'more' from rows;
            delete from rows where code = 1 or name > repeat('k', 434) || '0007';
            vacuum rows;
            insert into rows select name, code, 'again' from rows;";
        server.script("postgres", changes, false);
        server.sql("postgres", CHECK);
        let through_table = "set enable_indexscan = off; set enable_indexonlyscan = off; set enable_bitmapscan = off;";
        assert_eq!(sums(&server, through_index), sums(&server, through_table));
    }
}
