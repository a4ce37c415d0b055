//! The functions on a data directory created by PostgreSQL, if `TRUNKLINE_FIXTURE_DIR` is set.

use std::path::PathBuf;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type, UInt32Type};
use arrow_array::{
    ArrayRef, BinaryViewArray, Int32Array, Int64Array, StringViewArray, UInt32Array,
};
use trunkline_engine::Engine;
use trunkline_engine::pool::Tally;
use trunkline_engine::settings::Settings;
use trunkline_sql::SqlState;
use trunkline_sql::functions::{Argument, ServerFunctions};

use super::ServerView;
use crate::scan::{Cancellation, PageCounter};

/// A view of each fixture, with its engine.
#[expect(clippy::disallowed_methods, reason = "a test has no main that could pass this down")]
fn views() -> Vec<ServerView> {
    let Some(directory) = std::env::var_os("TRUNKLINE_FIXTURE_DIR").map(PathBuf::from) else {
        println!("skipped: no fixture");
        return Vec::new();
    };
    let found = (15..=19).map(|major| directory.join(format!("shop{major}/data")));
    let found = found.filter(|data| data.is_dir());
    let view = |data: PathBuf| {
        let mut settings = Settings::default();
        settings.set("shared_buffers", "8MB").expect("a setting");
        let engine = Engine::open(&settings).expect("an engine");
        let cluster = engine.cluster(data).expect("a cluster");
        let database = Arc::clone(cluster.database("shop").expect("a database").catalog());
        let cancellation = Cancellation::default();
        ServerView::new(engine, Arc::new(settings), database, cancellation, 42, None)
    };
    found.map(view).collect()
}

fn oid_of(view: &ServerView, name: &str) -> u32 {
    view.database.resolve(name.as_bytes()).expect("a relation").oid.0
}

fn constant(array: impl arrow_array::Array + 'static) -> Argument {
    Argument::constant(Arc::new(array))
}

fn int(column: &ArrayRef, row: usize) -> i64 {
    match column.as_primitive_opt::<Int32Type>() {
        Some(column) => column.value(row).into(),
        None => column.as_primitive::<Int64Type>().value(row),
    }
}

/// Nothing that a function held is held any longer.
fn check_idle(view: &ServerView) {
    assert_eq!(view.engine.pool().permits(), 0);
    assert!(view.engine.pool().rows().iter().all(|buffer| buffer.pins == 0));
}

/// The biggest table whose pages fit into the pool.
fn table(view: &ServerView) -> (u32, i64) {
    let fits = view.stored_relations().filter_map(|(relation, files)| {
        let blocks = files.blocks().ok().filter(|blocks| (4..400).contains(blocks))?;
        Some((relation.oid.0, i64::from(blocks)))
    });
    fits.max_by_key(|(_, blocks)| *blocks).expect("a table")
}

#[test]
fn a_prewarmed_relation_is_in_the_pool_until_it_is_evicted() {
    for view in views() {
        let (oid, blocks) = table(&view);
        let relation = constant(UInt32Array::from(vec![oid]));
        let loaded = view.values("pg_prewarm", std::slice::from_ref(&relation), 1).expect("loaded");
        assert_eq!(int(&loaded, 0), blocks);
        let number = view.database.relation(trunkline_format::Oid(oid)).expect("a relation");
        let number = view.database.files(number).expect("files").locator().relfilenode;
        let in_pool = |view: &ServerView| {
            let buffers = view.rows("pg_buffercache_pages", &[], 0).expect("buffers");
            assert_eq!(buffers.len(), 9);
            assert_eq!(buffers[0].len(), view.engine.pool().buffers() as usize);
            let files = buffers[1].as_primitive::<UInt32Type>();
            files.iter().filter(|found| *found == Some(number)).count() as i64
        };
        assert_eq!(in_pool(&view), blocks);
        let residency = view.rows("trunkline_residency", &[], 0).expect("residency");
        let rows = residency[0].as_primitive::<UInt32Type>().iter();
        let row = rows.zip(0..).find(|(found, _)| *found == Some(oid)).expect("the relation").1;
        assert_eq!((int(&residency[4], row), int(&residency[5], row)), (blocks, blocks));
        check_idle(&view);
        let arguments = [relation];
        let evicted = view.rows("pg_buffercache_evict_relation", &arguments, 0).expect("evicted");
        assert!(int(&evicted[0], 0) >= blocks && int(&evicted[2], 0) == 0);
        assert_eq!(in_pool(&view), 0);
        let again = view.rows("pg_buffercache_evict_relation", &arguments, 0).expect("evicted");
        assert_eq!(int(&again[0], 0), 0);
    }
}

#[test]
fn page_cache_modes_load_the_blocks_that_are_asked_for() {
    for view in views() {
        let (oid, blocks) = table(&view);
        for mode in ["read", "prefetch"] {
            let arguments = [
                constant(UInt32Array::from(vec![oid])),
                constant(StringViewArray::from_iter_values([mode])),
                constant(StringViewArray::from_iter_values(["main"])),
                constant(Int64Array::from(vec![1])),
                constant(Int64Array::from(vec![blocks - 2])),
            ];
            let loaded = view.values("pg_prewarm", &arguments, 1).expect("loaded");
            assert_eq!(int(&loaded, 0), blocks - 2, "{mode}");
        }
        let wrong = |mode: &str, fork: &str| {
            let arguments = [
                constant(UInt32Array::from(vec![oid])),
                constant(StringViewArray::from_iter_values([mode])),
                constant(StringViewArray::from_iter_values([fork])),
            ];
            let error = view.values("pg_prewarm", &arguments, 1).expect_err("refused");
            (error.code(), error.message().to_owned())
        };
        let code = SqlState::INVALID_PARAMETER_VALUE;
        assert_eq!(wrong("warm", "main"), (code, "invalid prewarm type".to_owned()));
        assert_eq!(wrong("read", "base"), (code, "invalid fork name".to_owned()));
        let message = "fork \"init\" does not exist for this relation".to_owned();
        assert_eq!(wrong("buffer", "init"), (code, message));
    }
}

/// An `int4[]` as it is stored.
fn int4_array(elements: &[i32]) -> Argument {
    let header = [1, 0, 23, elements.len() as i32, 1];
    let payload = header.iter().chain(elements).flat_map(|word| word.to_le_bytes());
    // Elements begin at a multiple of 8 with the varlena header, which is the case here.
    let payload: Vec<u8> = payload.collect();
    constant(BinaryViewArray::from_iter_values([payload]))
}

#[test]
fn a_block_stream_returns_the_blocks_in_the_order_given() {
    for view in views() {
        let (oid, blocks) = table(&view);
        let relation = || constant(UInt32Array::from(vec![oid]));
        // As in the thread that introduced the function: runs that overlap.
        let wanted: Vec<i32> =
            (0..blocks as i32 - 3).flat_map(|i| (0..4).map(move |j| i + j)).collect();
        let arguments = [relation(), int4_array(&wanted)];
        let rows = view.rows("read_stream_for_blocks", &arguments, 0).expect("rows");
        let places: Vec<i32> = rows[0].as_primitive::<Int32Type>().values().to_vec();
        assert_eq!(places, (0..wanted.len() as i32).collect::<Vec<_>>());
        assert_eq!(rows[1].as_primitive::<Int32Type>().values().to_vec(), wanted);
        let buffers: &Int32Array = rows[2].as_primitive();
        let buffers_max = view.engine.pool().buffers() as i32;
        assert!(buffers.values().iter().all(|buffer| (1..=buffers_max).contains(buffer)));
        check_idle(&view);
        // Each node of a plan counts what its own functions have read.
        let (one, other) = (PageCounter::default(), PageCounter::default());
        let (counting, _idle) = (view.counting(one.clone()), view.counting(other.clone()));
        counting.rows("read_stream_for_blocks", &arguments, 0).expect("rows");
        assert_ne!(one.total(), Tally::default());
        assert_eq!(other.total(), Tally::default());
        for outside in [-1, blocks as i32] {
            let arguments = [relation(), int4_array(&[0, outside])];
            let error = view.rows("read_stream_for_blocks", &arguments, 0).expect_err("refused");
            assert_eq!(error.code(), SqlState::INVALID_PARAMETER_VALUE);
        }
        view.cancellation.cancel();
        let error = view.rows("read_stream_for_blocks", &arguments, 0).expect_err("cancelled");
        assert_eq!(error.code(), SqlState::QUERY_CANCELED);
        check_idle(&view);
    }
}

#[test]
fn statistics_are_counted_and_reset() {
    for view in views() {
        let (oid, blocks) = table(&view);
        let relation = constant(UInt32Array::from(vec![oid]));
        let reset = |target: &str| {
            let target = constant(StringViewArray::from_iter_values([target]));
            view.values("pg_stat_reset_shared", &[target], 1).map(|_| ())
        };
        let reads = |view: &ServerView| {
            let rows = view.rows("pg_stat_get_io", &[], 0).expect("rows");
            let columns = match view.database.version().major() {
                16 | 17 => 18,
                _ => 20,
            };
            assert_eq!(rows.len(), columns);
            let reads = rows[3].as_primitive::<Int64Type>();
            (reads.iter().flatten().sum::<i64>(), rows[columns - 1].null_count())
        };
        reset("io").expect("reset");
        assert_eq!(reads(&view), (0, 0));
        view.values("pg_prewarm", &[relation], 1).expect("loaded");
        let (count, _) = reads(&view);
        assert!(count > 0 && count <= blocks, "{count}");
        let totals = view.rows("trunkline_io_relations", &[], 0).expect("rows");
        let oids = totals[3].as_primitive::<UInt32Type>().iter();
        assert!(oids.flatten().any(|found| found == oid));
        let histogram = view.rows("trunkline_io_histogram", &[], 0).expect("rows");
        assert!(!histogram[0].is_empty());
        let error = reset("cache").expect_err("refused");
        assert_eq!(error.message(), "unrecognized reset target: \"cache\"");
    }
}

#[test]
fn the_method_in_force_and_idle_handles_are_shown() {
    for view in views() {
        assert!(oid_of(&view, "pg_class") == 1259);
        let method = view.rows("trunkline_io_method", &[], 0).expect("rows");
        assert_eq!(method[0].len(), method[1].len());
        assert!(!method[0].is_empty());
        let aios = view.rows("pg_get_aios", &[], 0).expect("rows");
        assert_eq!((aios.len(), aios[0].len()), (15, 0));
    }
}
