//! Records that are built from the parts of records of real servers. They must be equal to them, byte by byte.

use std::collections::BTreeSet;

use super::redo_images::LOGS;
use crate::control::PgVersion;
use crate::ids::{BLOCK_SIZE, Fork, Lsn, Oid, PageBytes};
use crate::page_builder::HeapPageBuilder;
use crate::test_data::XorShift;
use crate::tuple_builder::TupleBuilder;
use crate::wal::{
    ImageMode, ImagePolicy, LOG_PAGE_SIZE, LogPageHeader, NewBlock, NewRecord, NewRecordError,
    Record, RecordBuffer, RelFileLocator, record_crc,
};

const EMPTY: PageBytes = [0; BLOCK_SIZE];

/// Builds a record from the parts of another one. `None` if it has compressed images, which another
/// compressor makes differently.
fn rebuilt(record: &Record<'_>, buffer: &mut RecordBuffer) -> Option<Vec<u8>> {
    let header = record.header();
    let checks_redo = header.info & 0x02 != 0;
    let mut pages = Vec::new();
    for block in record.blocks() {
        let mut page = Box::new(EMPTY);
        if let Some(image) = block.image {
            if image.compression().is_some() {
                return None;
            }
            image.restore(&mut page).expect("sound");
        }
        pages.push(page);
    }
    let data: Vec<[&[u8]; 1]> =
        record.blocks().iter().map(|block| [block.data.unwrap_or_default()]).collect();
    let blocks = record.blocks().iter().zip(&pages).zip(&data);
    let blocks: Vec<NewBlock<'_>> = blocks
        .map(|((found, page), data)| NewBlock {
            id: found.id,
            relation: found.relation,
            fork: found.fork,
            block: found.block,
            page,
            image: match found.image {
                _ if found.will_init => ImageMode::WillInit,
                Some(image) if image.applies() => ImageMode::Always,
                _ => ImageMode::Never,
            },
            is_standard: found.image.is_some_and(|image| image.hole_length() > 0),
            keeps_data: found.data.is_some(),
            data,
        })
        .collect();
    let new = NewRecord {
        manager: header.manager,
        info: header.info & !0x02,
        xid: header.xid,
        blocks: &blocks,
        origin: record.origin(),
        top_xid: record.top_xid(),
        main_data: &[record.main_data()],
    };
    buffer.assemble(&new, &ImagePolicy { checks_redo, ..ImagePolicy::NONE }).expect("short enough");
    Some(buffer.seal(header.previous).to_vec())
}

#[test]
fn records_of_servers_are_built_from_their_parts() {
    let (mut kinds, mut buffer) = (BTreeSet::new(), RecordBuffer::default());
    let (mut equal, mut images, mut compressed) = (0, 0, 0);
    for log in &LOGS {
        log.read(|found| {
            let Some(built) = rebuilt(&found.record, &mut buffer) else {
                compressed += 1;
                return;
            };
            // The CRC covers every byte, so it says that all are equal.
            let header = found.record.header();
            assert_eq!(built.len(), header.length as usize, "{}", found.start);
            assert_eq!(record_crc(&built), header.crc, "{}", found.start);
            assert_eq!(Record::parse(&built).as_ref(), Ok(&found.record), "{}", found.start);
            kinds.insert((header.manager, header.operation()));
            images += found.record.blocks().iter().filter(|block| block.image.is_some()).count();
            equal += 1;
        });
    }
    assert!(equal > 5000 && images > 5000 && kinds.len() > 40, "{equal} {images} {}", kinds.len());
    assert!(compressed < equal / 10, "{compressed} of {equal}");
}

/// A heap page with some rows and this LSN.
fn heap_page(lsn: Lsn) -> Box<PageBytes> {
    let mut builder = HeapPageBuilder::new(0);
    let mut row = TupleBuilder::new();
    row.int4(1).text("the same text in each of the rows");
    for _ in 0..20 {
        builder.push(&row.tuple()).expect("room");
    }
    builder.lsn(lsn);
    Box::new(builder.finish(false))
}

fn heap_block(page: &PageBytes) -> NewBlock<'_> {
    let relation = RelFileLocator { tablespace: Oid(1663), database: Oid(5), number: 16384 };
    NewBlock {
        id: 0,
        relation,
        fork: Fork::Main,
        block: 3,
        page,
        image: ImageMode::IfNeeded,
        is_standard: true,
        keeps_data: false,
        data: &[b"two ", b"pieces"],
    }
}

fn heap_record<'a>(blocks: &'a [NewBlock<'a>]) -> NewRecord<'a> {
    let main_data: &[&[u8]] = &[&[7], &[0, 0]];
    NewRecord { blocks, ..NewRecord::plain(10, 0, 800, main_data) }
}

#[test]
fn a_page_older_than_redo_is_logged_as_an_image() {
    let page = heap_page(Lsn(1000));
    let blocks = [heap_block(&page)];
    let mut buffer = RecordBuffer::default();
    for (redo, full_page_writes, has_image) in
        [(999, true, false), (1000, true, true), (1001, true, true), (1001, false, false)]
    {
        let policy = ImagePolicy { redo: Lsn(redo), full_page_writes, ..ImagePolicy::NONE };
        buffer.assemble(&heap_record(&blocks), &policy).expect("short enough");
        let found = buffer.seal(Lsn(0x80)).to_vec();
        let found = Record::parse(&found).expect("sound");
        let block = found.block(0).expect("a block");
        assert_eq!(block.image.is_some(), has_image, "{redo}");
        assert_eq!(block.data.is_some(), !has_image, "{redo}");
        // A later checkpoint makes the image necessary, unless there are none at all.
        let expected = (!has_image && full_page_writes).then_some(Lsn(1000));
        assert_eq!(buffer.oldest_without_image(), expected, "{redo}");
        if let Some(image) = block.image {
            assert!(image.applies() && image.hole_length() > 5000);
            let mut restored = Box::new(EMPTY);
            image.restore(&mut restored).expect("sound");
            assert_eq!(restored, page);
        }
        assert_eq!(found.main_data(), [7, 0, 0]);
        assert_eq!(found.header().previous, Lsn(0x80));
    }
}

#[test]
fn data_and_image_are_both_logged_if_the_block_says_so() {
    let page = heap_page(Lsn(1000));
    let blocks = [NewBlock { keeps_data: true, ..heap_block(&page) }];
    let mut buffer = RecordBuffer::default();
    let policy = ImagePolicy { redo: Lsn(2000), full_page_writes: true, ..ImagePolicy::NONE };
    buffer.assemble(&heap_record(&blocks), &policy).expect("short enough");
    let found = Record::parse(buffer.seal(Lsn(0))).expect("sound");
    let block = found.block(0).expect("a block");
    assert_eq!(block.data, Some(&b"two pieces"[..]));
    assert!(block.image.is_some_and(|image| image.applies()));
}

#[test]
fn images_are_compressed_only_if_that_makes_them_shorter() {
    let mut noise = Box::new(EMPTY);
    let mut random = XorShift(42);
    noise.iter_mut().for_each(|byte| *byte = random.next() as u8);
    let (heap, mut buffer) = (heap_page(Lsn(0)), RecordBuffer::default());
    for (page, is_standard, is_compressed) in
        [(&heap, true, true), (&heap, false, true), (&noise, false, false)]
    {
        let blocks = [NewBlock { image: ImageMode::Always, is_standard, ..heap_block(page) }];
        let policy = ImagePolicy { compresses: true, ..ImagePolicy::NONE };
        buffer.assemble(&heap_record(&blocks), &policy).expect("short enough");
        let found = Record::parse(buffer.seal(Lsn(0))).expect("sound");
        let image = found.block(0).and_then(|block| block.image).expect("an image");
        assert_eq!(image.compression().is_some(), is_compressed);
        assert_eq!(image.hole_length() > 0, is_standard);
        let mut restored = Box::new(EMPTY);
        image.restore(&mut restored).expect("sound");
        assert_eq!(&restored, page);
    }
}

#[test]
fn the_next_record_does_not_see_the_one_before() {
    let page = heap_page(Lsn(1000));
    let (blocks, mut buffer) = ([heap_block(&page)], RecordBuffer::default());
    let policy = ImagePolicy { redo: Lsn(1), full_page_writes: true, ..ImagePolicy::NONE };
    buffer.assemble(&heap_record(&blocks), &policy).expect("short enough");
    assert!(buffer.oldest_without_image().is_some());
    let none = NewRecord { main_data: &[], ..heap_record(&[]) };
    buffer.assemble(&none, &policy).expect("short enough");
    assert_eq!(buffer.oldest_without_image(), None);
    assert_eq!(buffer.seal(Lsn(8)).len(), 24);
}

#[test]
fn what_a_record_cannot_say_is_refused() {
    let page = heap_page(Lsn(1));
    let mut buffer = RecordBuffer::default();
    let mut refusal = |blocks: &[NewBlock<'_>]| {
        let refused =
            buffer.assemble(&heap_record(blocks), &ImagePolicy::NONE).expect_err("impossible");
        assert_eq!(buffer.length(), 0);
        refused
    };
    let block = heap_block(&page);
    assert_eq!(refusal(&[block, block]), NewRecordError::BlockId { id: 0 });
    assert_eq!(refusal(&[NewBlock { id: 33, ..block }]), NewRecordError::BlockId { id: 33 });
    let long = [0; 40_000];
    let refused = refusal(&[NewBlock { data: &[&long, &long], ..block }]);
    assert_eq!(refused, NewRecordError::BlockData { id: 0, length: 80_000 });
}

#[test]
fn headers_of_pages_are_those_of_servers() {
    for log in &LOGS {
        let bytes = log.bytes();
        for page in bytes.chunks(LOG_PAGE_SIZE) {
            let Ok(header) = LogPageHeader::parse(page) else { continue };
            let mut written = page.to_vec();
            written[..header.size()].fill(0xFF);
            header.write(&mut written);
            // Up to 18, servers set a flag that has no meaning any more (`XLP_BKP_REMOVABLE`).
            let removable = if log.version == PgVersion::V19 { 0 } else { page[2] & 0x4 };
            written[2] |= removable;
            assert_eq!(written, page, "{}", header.address);
        }
    }
}

#[test]
fn flags_that_the_builder_sets_are_refused() {
    let mut buffer = RecordBuffer::default();
    for info in [0x02, 0x04, 0x88] {
        let record = NewRecord { info, ..heap_record(&[]) };
        let refused = buffer.assemble(&record, &ImagePolicy::NONE);
        assert_eq!(refused, Err(NewRecordError::Info { info }));
    }
}
