//! Compares TOAST values with the servers' output.

use crate::fixtures::fixtures;
use crate::jobs::METHODS;
use crate::tables::{Cluster, in_every_way, instance, printed};
use trunkline_aio::facade::Arc;
use trunkline_engine::btree::BtreeError;
use trunkline_engine::catalog::{ColumnInfo, Database, RelationInfo};
use trunkline_engine::heap::{HeapScan, ScanOptions, ToastBatch, ToastReader};
use trunkline_engine::read_stream::StreamOptions;
use trunkline_format::Oid;
use trunkline_format::deform::{Attribute, columns};
use trunkline_format::varlena::Varlena;

const BYTEA: Oid = Oid(17);
const TEXT: Oid = Oid(25);

/// Formats a value as `COPY` does. We only support two types, which are easy to print.
fn text_of(column: &ColumnInfo, value: &[u8]) -> Option<Vec<u8>> {
    match column.type_oid {
        TEXT => Some(value.to_vec()),
        BYTEA => {
            let digits: String = value.iter().map(|byte| format!("{byte:02x}")).collect();
            Some(format!("\\\\x{digits}").into_bytes())
        }
        _ => None,
    }
}

/// Compares a table's TOAST values with the lines of the server's output. Returns the number of
/// values.
fn check(
    cluster: &mut Cluster,
    database: &Database,
    table: &RelationInfo,
    lines: &[Vec<u8>],
) -> usize {
    let files = database.table_files(table).expect("files");
    let Some(toast) = files.toast else { return 0 };
    let columns_of: Vec<&ColumnInfo> = database.columns(table).expect("columns").iter().collect();
    let attributes: Vec<Attribute> = columns_of.iter().map(|column| column.attribute).collect();
    let (relation, transactions) = (files.rows, cluster.transactions());
    let (backend, options) = (&mut cluster.backend, ScanOptions::default());
    let mut scan = HeapScan::of_table(backend, &relation, &transactions, options).expect("a table");
    let mut reader = ToastReader::new(backend, toast, &transactions, StreamOptions::default());
    let (mut batch, mut line, mut compared) = (ToastBatch::new(), 0, 0);
    while let Some(page) = scan.next_page(backend).expect("reads") {
        batch.clear();
        let mut wanted = Vec::new();
        for row in page.rows() {
            let row = row.expect("sound");
            for (at, column) in columns(&row.tuple, &attributes).enumerate() {
                let Some(datum) = column.expect("sound").value() else { continue };
                if attributes[at].len == -1
                    && !columns_of[at].dropped
                    && let Varlena::External(pointer) = Varlena::parse(datum).expect("sound")
                {
                    wanted.push((line, at, batch.push(pointer)));
                }
            }
            line += 1;
        }
        reader.fetch(backend, &mut batch).expect("not cancelled");
        for (line, at, number) in wanted {
            let value = batch.value(number).expect("fetched").expect("sound");
            let Some(text) = text_of(columns_of[at], value) else { continue };
            let field = columns_of[..at].iter().filter(|column| !column.dropped).count();
            let field = lines[line].split(|&byte| byte == b'\t').nth(1 + field);
            assert!(field == Some(&text[..]), "line {line}, column {at}");
            compared += 1;
        }
    }
    drop((scan, reader));
    assert_eq!((backend.pins(), line), (0, lines.len()));
    compared
}

/// TOAST values match the server's output.
#[test]
fn toast_values_equal_those_of_the_server() {
    in_every_way(|major, data, cluster| {
        let database = cluster.database("fixture");
        let compared: usize = printed(data, &database)
            .iter()
            .map(|(_, table, lines)| check(cluster, &database, table, lines))
            .sum();
        assert!(compared >= 10, "pg{major}: {compared} values");
    });
}

/// A search for many keys must find the same rows as searching for each key separately. This must
/// be true even if the entries for one key fill several leaves, or if those leaves only just fit in
/// the pool.
#[test]
fn a_search_for_many_keys_equals_single_searches() {
    for (major, data) in fixtures() {
        for (method, buffers) in [(METHODS[0], 16), (METHODS[1], 256), (METHODS[2], 16)] {
            let aio = instance(method);
            let mut cluster = Cluster::open(&aio, &data, false, buffers);
            let database = cluster.database("fixture");
            for name in ["s1.bt_id", "s1.bt_dup", "s1.bt_nodd", "s1.btdel_i", "s1.btempty_pkey"] {
                let relation = database.resolve(name.as_bytes()).expect("an index");
                let row = database.index(relation.oid).expect("a row");
                let index = database.btree(row).expect("a B-tree");
                let keys: Vec<[u8; 4]> = (-10..9100_i32).step_by(3).map(i32::to_le_bytes).collect();
                let mut keys: Vec<&[u8]> = keys.iter().map(<[u8; 4]>::as_slice).collect();
                keys.dedup();
                let mut found = vec![Vec::new(); keys.len()];
                let backend = &mut cluster.backend;
                let mut each = |key: usize, row: Result<_, &_>| {
                    let row = row.map_err(|error: &Arc<BtreeError>| error.to_string());
                    found[key].push(row.expect("sound"));
                    true
                };
                let options = StreamOptions::default();
                index.find_many(backend, options, &keys, &mut each).expect("not cancelled");
                for (key, found) in keys.iter().zip(found) {
                    let mut rows = Vec::new();
                    let key: &[Option<&[u8]>] = &[Some(key)];
                    let mut scan = index.scan(backend, key, key).expect("reads");
                    while scan.next_page(backend, &mut rows).expect("reads") {}
                    assert_eq!(found, rows, "pg{major} {name} {key:?}");
                }
                assert_eq!(backend.pins(), 0);
            }
        }
    }
}
