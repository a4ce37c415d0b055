//! Scans of tables against what servers printed of them, under every method, buffered and direct, in
//! pools of every size; and tables that are damaged.

use std::path::Path;

use crate::fixtures::fixtures;
use crate::jobs::METHODS;
use crate::tables::{Cluster, Found, expected, instance};
use trunkline_engine::heap::{HeapScan, RowFilter, ScanOptions};
use trunkline_format::transactions::RowState;

/// The places of the rows that a scan hands out, in its order.
fn places(cluster: &mut Cluster, table: &Found, rows: RowFilter) -> Vec<(String, RowState)> {
    let relation = cluster.relation(table.locator);
    let options = ScanOptions { rows, ..ScanOptions::default() };
    let scan = HeapScan::of_table(&cluster.backend, &relation, &cluster.transactions, options);
    let (mut scan, mut places) = (scan.expect("a table"), Vec::new());
    while let Some(page) = scan.next_page(&mut cluster.backend).expect("reads") {
        assert_eq!(page.len(), page.rows().count());
        for row in page.rows() {
            let row = row.expect("sound");
            assert_eq!((row.tid.block, row.tid.item), (page.block(), row.tuple.item()));
            places.push((row.tid.to_string(), row.state));
        }
    }
    drop(scan);
    assert_eq!(cluster.backend.pins(), 0);
    places
}

fn check(cluster: &mut Cluster, data: &Path, databases: &[&str]) {
    for database in databases {
        let mut compared = 0;
        for table in cluster.tables(database) {
            let Some(lines) = expected(data, database, &table) else { continue };
            let ctid = |line: &Vec<u8>| {
                let ctid = line.split(|&byte| byte == b'\t').next().unwrap_or_default();
                String::from_utf8_lossy(ctid).into_owned()
            };
            let wanted: Vec<String> = lines.iter().map(ctid).collect();
            let visible = places(cluster, &table, RowFilter::Visible);
            assert!(visible.iter().all(|(_, state)| *state == RowState::Live));
            let found: Vec<String> = visible.into_iter().map(|(place, _)| place).collect();
            assert_eq!(found, wanted, "{database}.{}.{}", table.schema, table.name);
            let all = places(cluster, &table, RowFilter::All).into_iter();
            let live = all.filter(|(_, state)| *state == RowState::Live);
            assert_eq!(live.map(|(place, _)| place).collect::<Vec<_>>(), wanted);
            compared += 1;
        }
        assert!(compared >= 4, "{compared} tables of {database}");
    }
}

/// The rows that a server printed are those that a scan finds, in its order.
#[test]
fn rows_are_those_that_the_server_sees() {
    for (_, data) in fixtures() {
        for method in METHODS {
            for direct in [false, true] {
                for buffers in [16, 16_384] {
                    let aio = instance(method);
                    let mut cluster = Cluster::open(&aio, &data, direct, buffers);
                    check(&mut cluster, &data, &["fixture", "bench"]);
                }
            }
        }
    }
}

/// Row versions that no server shows any more, by what became of them.
#[test]
fn states_of_all_versions() {
    use RowState::{Aborted, Dead, InDoubt, Live};
    for (major, data) in fixtures() {
        let aio = instance(METHODS[0]);
        let mut cluster = Cluster::open(&aio, &data, false, 64);
        let tables = cluster.tables("fixture");
        let mut states = |name: &str| {
            let table = tables.iter().find(|table| table.name == name).expect("a table");
            let all = places(&mut cluster, table, RowFilter::All);
            [Live, Dead, Aborted, InDoubt]
                .map(|state| all.iter().filter(|(_, found)| *found == state).count())
        };
        println!("pg{major}: {:?} {:?} {:?}", states("mvcc"), states("nohint"), states("mx"));
        // Two versions of a prepared transaction are in doubt; the rows that it deleted are live.
        assert_eq!(states("mvcc")[3], 2, "pg{major}");
        assert_eq!(states("nohint"), [4, 1, 1, 0], "pg{major}");
    }
}
