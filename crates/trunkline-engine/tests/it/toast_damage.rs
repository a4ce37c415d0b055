//! Damages the TOAST tables of real clusters. First we test each kind of damage that is reported as
//! a separate error, and then random damage. We recompute the page checksums, to simulate damage
//! that was already there when the server wrote the page.

use std::fs;
use std::path::Path;

use trunkline_aio::MethodKind;
use trunkline_aio::facade::Arc;
use trunkline_aio::facade::random::Rng;
use trunkline_engine::btree::Index;
use trunkline_engine::heap::{HeapScan, ScanOptions, ToastBatch, ToastReader, ToastTable};
use trunkline_engine::pool::{BackendType, Pool};
use trunkline_engine::read_stream::StreamOptions;
use trunkline_engine::storage::{Layout, OpenFiles, RelationLocator, Storage};
use trunkline_engine::transactions::Transactions;
use trunkline_format::deform::columns;
use trunkline_format::page::line_pointer;
use trunkline_format::varlena::{ToastPointer, Varlena};
use trunkline_format::{BLOCK_SIZE, ControlFile, Fork, Oid, PageBytes, heap_rows};

use crate::crafted::{flip, seal};
use crate::fixtures::fixtures;
use crate::tables::{Cluster, instance};

/// The TOAST table of one fixture table, with its pages in memory.
struct Sample {
    oid: Oid,
    control: ControlFile,
    heap: Vec<PageBytes>,
    index: Vec<PageBytes>,
    /// The values that the table's rows refer to, with their bytes.
    values: Vec<(ToastPointer, Vec<u8>)>,
}

/// A chunk in the pages.
#[derive(Clone, Copy)]
struct FoundChunk {
    block: usize,
    item: u16,
    /// The offset of the tuple's data within its page.
    data: usize,
}

fn pages(path: &Path) -> Vec<PageBytes> {
    let bytes = fs::read(path).expect("read");
    let (pages, rest) = bytes.as_chunks::<BLOCK_SIZE>();
    assert!(rest.is_empty());
    pages.to_vec()
}

impl Sample {
    fn of(data: &Path, name: &str) -> Self {
        let aio = instance(MethodKind::Sync);
        let mut cluster = Cluster::open(&aio, data, false, 256);
        let database = cluster.database("fixture");
        let table = database.resolve(name.as_bytes()).expect("a table");
        let files = database.table_files(table).expect("files");
        let toast = files.toast.expect("a TOAST table");
        let attributes: Vec<_> =
            database.columns(table).expect("columns").iter().map(|it| it.attribute).collect();
        let (transactions, backend) = (cluster.transactions(), &mut cluster.backend);
        let options = ScanOptions::default();
        let scan = HeapScan::of_table(backend, &files.rows, &transactions, options);
        let (mut scan, mut batch) = (scan.expect("a table"), ToastBatch::new());
        let mut pointers = Vec::new();
        while let Some(page) = scan.next_page(backend).expect("reads") {
            for row in page.rows() {
                for column in columns(&row.expect("sound").tuple, &attributes) {
                    if let Some(datum) = column.expect("sound").value()
                        && let Ok(Varlena::External(pointer)) = Varlena::parse(datum)
                        && pointer.toast_relation == toast.oid
                    {
                        batch.push(pointer);
                        pointers.push(pointer);
                    }
                }
            }
        }
        let (heap, index) = (pages(&toast.heap.path(0)), pages(&toast.index.relation().path(0)));
        let oid = toast.oid;
        let options = StreamOptions::default();
        let mut reader = ToastReader::new(backend, toast, &transactions, options);
        reader.fetch(backend, &mut batch).expect("not cancelled");
        let value = |(number, pointer)| {
            (pointer, batch.value(number).expect("fetched").expect("sound").to_vec())
        };
        let values: Vec<_> = pointers.into_iter().enumerate().map(value).collect();
        assert!(values.len() >= 4);
        let control = fs::read(data.join("global/pg_control")).expect("read");
        let control = ControlFile::parse(&control).expect("a control file");
        Self { oid, control, heap, index, values }
    }

    /// Fetches all values from these pages. For each of them, returns either the value or its
    /// error.
    fn fetch(
        &self,
        heap: &[PageBytes],
        index: &[PageBytes],
        pointers: &[ToastPointer],
    ) -> Vec<Result<Vec<u8>, String>> {
        let root = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a directory");
        fs::create_dir_all(root.path().join("base/5")).expect("made");
        fs::write(root.path().join("base/5/1"), heap.concat()).expect("written");
        fs::write(root.path().join("base/5/2"), index.concat()).expect("written");
        // A commit log in which all transactions are in progress.
        fs::create_dir(root.path().join("pg_xact")).expect("made");
        fs::write(root.path().join("pg_xact/0000"), [0; BLOCK_SIZE]).expect("written");
        let aio = crate::jobs::instance(MethodKind::Sync);
        let files = OpenFiles::kernel(&aio, 8);
        let storage = Storage::new(root.path(), Layout::of(&self.control), &files, false);
        let relation = |relfilenode| {
            let locator = RelationLocator { tablespace: Oid(1663), database: Oid(5), relfilenode };
            storage.relation(locator, Fork::Main)
        };
        let transactions = Arc::new(Transactions::new(&self.control, &storage));
        let pool = Pool::new(&aio, 16).expect("a pool");
        let mut backend = pool.backend(BackendType::Client).expect("a session");
        let index = Index::of_toast(relation(2));
        let table = ToastTable { oid: self.oid, heap: relation(1), index };
        let mut reader = ToastReader::new(&backend, table, &transactions, StreamOptions::default());
        let mut batch = ToastBatch::new();
        pointers.iter().for_each(|pointer| {
            batch.push(*pointer);
        });
        reader.fetch(&mut backend, &mut batch).expect("not cancelled");
        drop(reader);
        assert_eq!(backend.pins(), 0);
        let value = |number| match batch.value(number).expect("fetched") {
            Ok(value) => Ok(value.to_vec()),
            Err(error) => {
                assert_eq!(error.value_id, pointers[number].value_id);
                Err(error.to_string().replace(&*root.path().to_string_lossy(), "DIR"))
            }
        };
        (0..pointers.len()).map(value).collect()
    }

    fn pointers(&self) -> Vec<ToastPointer> {
        self.values.iter().map(|(pointer, _)| *pointer).collect()
    }

    /// Returns the first tuple version of a chunk.
    fn chunk(&self, pointer: ToastPointer, chunk: u32) -> FoundChunk {
        let key = [pointer.value_id, chunk].map(u32::to_le_bytes).concat();
        for (block, page) in self.heap.iter().enumerate() {
            for tuple in heap_rows(page) {
                let tuple = tuple.expect("sound");
                if tuple.data()[..8] == key {
                    let pointer = line_pointer(page, tuple.item()).expect("an item");
                    let data = usize::from(pointer.offset) + usize::from(tuple.hoff());
                    return FoundChunk { block, item: tuple.item(), data };
                }
            }
        }
        unreachable!("no chunk {chunk} of {pointer:?}");
    }

    /// Makes a copy of the TOAST table and damages it by calling `damage`. Fetching the victim's
    /// value must then fail with an error that ends with `text`.
    #[track_caller]
    fn check(&self, victim: usize, damage: impl FnOnce(&mut [PageBytes]), text: &str) {
        let mut heap = self.heap.clone();
        damage(&mut heap);
        (0..).zip(&mut heap).for_each(|(block, page)| seal(page, block));
        let found = self.fetch(&heap, &self.index, &self.pointers());
        for (number, (found, (pointer, value))) in found.iter().zip(&self.values).enumerate() {
            if number == victim {
                let prefix = format!(
                    "TOAST value {} of TOAST table {}: ",
                    pointer.value_id, pointer.toast_relation
                );
                let error = found.as_ref().expect_err(text);
                let rest = error.strip_prefix(&prefix).expect("its names");
                assert!(rest.contains(text), "{error}");
            } else {
                assert!(found.as_ref() == Ok(value), "value {number} is as it was");
            }
        }
    }
}

/// Returns the first compressed value or, if `compressed` is false, the first uncompressed value
/// with enough chunks.
fn choose(sample: &Sample, compressed: bool) -> (usize, ToastPointer) {
    let fits = |pointer: &ToastPointer| {
        pointer.method.is_some() == compressed && (compressed || pointer.stored_size > 3 * 1996)
    };
    let at = sample.values.iter().position(|(pointer, _)| fits(pointer)).expect("such a value");
    (at, sample.values[at].0)
}

#[test]
fn every_kind_of_damage_is_reported() {
    for (_, data) in fixtures() {
        let sample = Sample::of(&data, "s1.toast");
        let (victim, pointer) = choose(&sample, false);
        let chunks = pointer.stored_size.div_ceil(1996);
        let (first, second) = (sample.chunk(pointer, 0), sample.chunk(pointer, 1));
        let at = format!("({},{})", second.block, second.item);
        let put = |at: usize, bytes: Vec<u8>| {
            move |heap: &mut [PageBytes]| {
                heap[second.block][at..at + bytes.len()].copy_from_slice(&bytes);
            }
        };
        let word = |word: u32| word.to_le_bytes().to_vec();
        let line = 24 + usize::from(second.item - 1) * 4;
        let check = |damage: &dyn Fn(&mut [PageBytes]), text: &str| {
            sample.check(victim, damage, text);
        };
        let missing = format!("chunk 1 of {chunks} is missing");
        check(&put(line, word(0)), &missing);
        check(&put(second.data, word(1)), &missing);
        check(
            &put(second.data + 4, word(77)),
            &format!("chunk 77 found at {at}, expected 0 to {}", chunks - 1),
        );
        check(&put(second.data + 4, word(u32::MAX)), "chunk -1 found at");
        check(&put(second.data + 4, word(0)), "chunk 0 exists twice, again at");
        check(
            &put(second.data + 8, word((1995 + 4) << 2)),
            &format!("chunk 1 at {at} has 1995 bytes, expected 1996"),
        );
        check(
            &put(second.data + 8, word((1996 + 4) << 2 | 2)),
            &format!("the chunk at {at} is itself compressed or stored elsewhere"),
        );
        check(
            &put(second.data + 8, word(40_000 << 2)),
            "column 3 at byte 8: a value of 40000 bytes",
        );
        check(&put(line, word(8188 | 1 << 15 | 2000 << 17)), "does not fit into its item or page");
        // We must ignore a chunk if the transaction that inserted it was aborted.
        let aborted = |heap: &mut [PageBytes]| {
            let page = &mut heap[first.block];
            page[10] &= !4;
            let header = first.data - 24;
            page[header + 21] = page[header + 21] & !0x03 | 0x02;
        };
        check(&aborted, &format!("chunk 0 of {chunks} is missing"));
    }
}

#[test]
fn compressed_values_must_match_their_pointers() {
    for (_, data) in fixtures() {
        let sample = Sample::of(&data, "s1.toast");
        let (victim, pointer) = choose(&sample, true);
        let first = sample.chunk(pointer, 0);
        let raw = pointer.raw_size;
        sample.check(
            victim,
            |heap| heap[first.block][first.data + 12] ^= 1,
            &format!("it has {} bytes uncompressed, expected {raw}", raw ^ 1),
        );
        sample.check(
            victim,
            |heap| heap[first.block][first.data + 15] |= 0x80,
            "compression method",
        );
    }
}

/// Tests pointers to missing values, pages that can't be read, and a file that isn't an index.
#[test]
fn missing_values_are_errors() {
    for (_, data) in fixtures() {
        let sample = Sample::of(&data, "s1.toast");
        let (_, pointer) = choose(&sample, false);
        let fetch = |pointers: &[ToastPointer], index: &[PageBytes]| {
            sample.fetch(&sample.heap, index, pointers)
        };
        let oid = sample.oid;
        let elsewhere = ToastPointer { toast_relation: Oid(7), ..pointer };
        let missing = ToastPointer { value_id: 1, ..pointer };
        let large = ToastPointer { stored_size: 0x3FFF_FFFF, raw_size: 0x3FFF_FFFF, ..pointer };
        let small = ToastPointer { stored_size: 1996, raw_size: 1996, ..pointer };
        let found = fetch(&[elsewhere, missing, large, small, pointer], &sample.index);
        let ends = |at: usize, text: &str| {
            let error = found[at].as_ref().expect_err(text);
            assert!(error.ends_with(text), "{error}");
        };
        ends(0, &format!("the table's TOAST table is {oid}"));
        ends(1, &format!("chunk 0 of {} is missing", pointer.stored_size.div_ceil(1996)));
        ends(2, &format!("of {} is missing", 0x3FFF_FFFF_u32.div_ceil(1996)));
        ends(3, "expected 0 to 0");
        assert!(found[4].is_ok(), "the other values are available");

        let mut index = sample.index.clone();
        index[0] = [0; BLOCK_SIZE];
        let found = fetch(&[pointer], &index);
        let error = found[0].as_ref().expect_err("no index");
        assert!(error.contains("block 0 of file \"DIR/base/5/2\": "), "{error}");

        let mut heap = sample.heap.clone();
        let block = sample.chunk(pointer, 0).block;
        heap[block][5000] ^= 1;
        let found = sample.fetch(&heap, &sample.index, &sample.pointers());
        let text = format!("invalid page in block {block} of file \"DIR/base/5/1\": checksum");
        let broken =
            found.iter().filter(|value| matches!(value, Err(error) if error.contains(&text)));
        assert!(broken.count() >= 1);
        assert!(found.iter().any(Result::is_ok), "pages without damage give their values");
    }
}

/// With random damage in both files, fetching a value may return the correct value, a different
/// value, or an error. It must never panic or loop forever.
#[test]
fn random_damage() {
    let Some((_, data)) = fixtures().pop() else { return };
    let seed = 0x70A57;
    let mut random = Rng::new(seed);
    let sample = Sample::of(&data, "s1.toast");
    let (mut same, mut other, mut errors) = (0, 0, 0);
    for _ in 0..200 {
        let (mut heap, mut index) = (sample.heap.clone(), sample.index.clone());
        let of_index = random.below(3) == 0;
        let pages = if of_index { &mut index } else { &mut heap };
        for (block, page) in (0..).zip(pages) {
            let count = random.below(4);
            let anywhere = random.below(2) == 0;
            flip(page, block, count, anywhere, &mut random);
        }
        let found = sample.fetch(&heap, &index, &sample.pointers());
        for (found, (_, value)) in found.iter().zip(&sample.values) {
            match found {
                Ok(found) if found == value => same += 1,
                Ok(_) => other += 1,
                Err(_) => errors += 1,
            }
        }
    }
    println!("seed {seed:#x}: {same} values as they were, {other} others, {errors} errors");
    assert!(same > 0 && other > 0 && errors > 0);
}
