//! Compares table scans with the servers' output, with every I/O method, buffered and direct, in
//! small and large pools.

use std::path::Path;

use crate::fixtures::fixtures;
use crate::jobs::METHODS;
use crate::tables::{Cluster, in_every_way, instance, printed};
use trunkline_engine::catalog::{Database, RelationInfo};
use trunkline_engine::heap::{HeapScan, RowFilter, ScanOptions};
use trunkline_format::transam::RowState;

/// The TIDs of the rows that a scan returns, in order.
fn places(
    cluster: &mut Cluster,
    database: &Database,
    table: &RelationInfo,
    rows: RowFilter,
) -> Vec<(String, RowState)> {
    let relation = database.table_files(table).expect("files").rows;
    let options = ScanOptions { rows, ..ScanOptions::default() };
    let transactions = cluster.transactions();
    let scan = HeapScan::of_table(&cluster.backend, &relation, &transactions, options);
    let (mut scan, mut places) = (scan.expect("a table"), Vec::new());
    while let Some(page) = scan.next_page(&mut cluster.backend).expect("reads") {
        assert_eq!(page.len(), page.rows().count());
        assert_eq!(page.len(), page.count_rows().expect("sound"));
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

fn check(cluster: &mut Cluster, data: &Path, name: &str) {
    let database = cluster.database(name);
    for (name, table, lines) in printed(data, &database) {
        let ctid = |line: &Vec<u8>| {
            let ctid = line.split(|&byte| byte == b'\t').next().unwrap_or_default();
            String::from_utf8_lossy(ctid).into_owned()
        };
        let wanted: Vec<String> = lines.iter().map(ctid).collect();
        let visible = places(cluster, &database, table, RowFilter::Visible);
        assert!(visible.iter().all(|(_, state)| *state == RowState::Live));
        let found: Vec<String> = visible.into_iter().map(|(place, _)| place).collect();
        assert_eq!(found, wanted, "{name}");
        let (live, others): (Vec<_>, Vec<_>) = places(cluster, &database, table, RowFilter::All)
            .into_iter()
            .partition(|(_, state)| *state == RowState::Live);
        assert_eq!(live.into_iter().map(|(place, _)| place).collect::<Vec<_>>(), wanted);
        // Pages that are marked all-visible have no dead rows.
        let dead = places(cluster, &database, table, RowFilter::Dead);
        let expected = others.into_iter().filter(|(_, state)| *state == RowState::Dead);
        assert_eq!(dead, expected.collect::<Vec<_>>(), "{name}");
    }
}

/// A scan finds the rows that the server printed, in the same order.
#[test]
fn a_scan_finds_the_rows_that_the_server_sees() {
    in_every_way(|_, data, cluster| {
        check(cluster, data, "fixture");
        check(cluster, data, "bench");
    });
}

/// Counts tuples that a server no longer returns, by their state.
#[test]
fn states_of_all_versions() {
    use RowState::{Aborted, Dead, InDoubt, Live};
    for (major, data) in fixtures() {
        let aio = instance(METHODS[0]);
        let mut cluster = Cluster::open(&aio, &data, false, 64);
        let database = cluster.database("fixture");
        let mut states = |name: &str| {
            let table = database.resolve(name.as_bytes()).expect("a table");
            let all = places(&mut cluster, &database, table, RowFilter::All);
            [Live, Dead, Aborted, InDoubt]
                .map(|state| all.iter().filter(|(_, found)| *found == state).count())
        };
        // A prepared transaction inserted two tuples, which are in doubt. The rows it deleted are
        // still live.
        assert_eq!(states("s1.mvcc"), [18, 8, 6, 2], "pg{major}");
        assert_eq!(states("s1.nohint"), [4, 1, 1, 0], "pg{major}");
    }
}
