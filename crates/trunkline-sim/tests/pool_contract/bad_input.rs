//! Read streams over bad files: files that are truncated during read-ahead or lack a segment, and
//! storage errors at every block of a read.
//!
//! The stream must return the error when the consumer reaches the affected block. All other blocks
//! must still be returned, and no pages may remain pinned afterwards.

use trunkline_engine::pool::ReadError;
use trunkline_engine::read_stream::StreamOptions;
use trunkline_engine::storage::StorageError;
use trunkline_format::{BLOCK_SIZE, BlockNo, SEGMENT_BLOCKS};
use trunkline_sim::matrix::Needs;
use trunkline_sim::matrix::cluster::{check, check_simulated};
use trunkline_sim::matrix::page;

const ALL: [BlockNo; 16] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15];

/// Stream options for all four combinations of order and full read-ahead, each with several values
/// of concurrency and combine limit.
fn every_kind() -> impl Iterator<Item = StreamOptions> {
    [(0, 16), (1, 4), (2, 4), (16, 16), (16, 1)].into_iter().flat_map(|(concurrency, combine)| {
        [(false, false), (true, false), (false, true), (true, true)].map(|(full, unordered)| {
            StreamOptions { concurrency, combine, full, unordered, ..StreamOptions::default() }
        })
    })
}

/// The relation is truncated after the stream has started. All blocks that still exist must be
/// returned. For each of the other blocks, the stream must return either the page, if it was read
/// before the truncation, or an error that contains the block number.
#[test]
fn a_stream_reports_blocks_truncated_during_read_ahead() {
    check(Needs { seeds: 3, ..Needs::one_session() }, |cluster| {
        for options in every_kind() {
            cluster.set_blocks(0, 10);
            (0..16).for_each(|block| cluster.put(0, block, &page(0, block, 0, 0)));
            cluster.pool.evict_all();
            let mut backend = cluster.backend();
            let mut stream = cluster.stream(&backend, &ALL, options);
            let (mut good, mut bad) = (Vec::new(), Vec::new());
            for turn in 0.. {
                if turn == 3 {
                    cluster.set_blocks(0, 8);
                }
                match stream.next(&mut backend) {
                    Ok(None) => break,
                    Ok(Some(found)) => good.push(found.block),
                    Err(error) => {
                        let ReadError::Short { location, bytes } = error else { panic!("{error}") };
                        let block = location.block().expect("a block");
                        assert_eq!(bytes, 0);
                        bad.push(block);
                    }
                }
            }
            assert!(bad.iter().all(|&block| block >= 8), "{bad:?}");
            assert!((0..8).all(|block| good.contains(&block)), "{good:?}");
            let mut seen = [good, bad].concat();
            if !options.unordered {
                assert!(seen.len() == 16);
            }
            seen.sort_unstable();
            assert_eq!(seen, ALL);
            drop(stream);
            assert_eq!(backend.pins(), 0);
        }
    });
}

/// The file ends in the middle of a block. All blocks before that one must be returned. Reading the
/// incomplete block must report a short read, and reading any block after it must report that 0
/// bytes were read.
#[test]
fn pg_22_a_file_that_ends_within_a_block() {
    check(Needs { seeds: 3, ..Needs::one_session() }, |cluster| {
        cluster.create(2, 3);
        let mut bytes: Vec<u8> = (0..3).flat_map(|block| page(2, block, 0, 0)).collect();
        bytes.truncate(2 * BLOCK_SIZE + 100);
        cluster.write_segment(2, 0, &bytes);
        for options in every_kind() {
            cluster.pool.evict_all();
            let mut backend = cluster.backend();
            let source = trunkline_engine::read_stream::BlockRange::new(0..4);
            let mut stream = trunkline_engine::read_stream::ReadStream::new(
                &backend,
                &cluster.relation(2),
                source,
                options,
            );
            let (mut good, mut errors) = (0, Vec::new());
            loop {
                match stream.next(&mut backend) {
                    Ok(None) => break,
                    Ok(Some(_)) => good += 1,
                    Err(error) => errors.push(error.to_string()),
                }
            }
            assert_eq!((good, errors.len()), (2, 2), "{errors:?}");
            errors.sort();
            assert!(errors[0].starts_with("could not read block 2 of file"), "{errors:?}");
            assert!(errors[0].ends_with("read only 100 of 8192 bytes"), "{errors:?}");
            assert!(errors[1].ends_with("read only 0 of 8192 bytes"), "{errors:?}");
            drop(stream);
            assert_eq!(backend.pins(), 0);
        }
    });
}

/// The relation has three segments, and the second one is missing. Blocks in the third segment must
/// still be readable. (The segment files are shorter than 1 GiB, because we need only the blocks we
/// read.)
#[test]
fn a_segment_is_missing_in_the_middle() {
    check(Needs { seeds: 3, ..Needs::one_session() }, |cluster| {
        let third = 2 * SEGMENT_BLOCKS;
        let bytes: Vec<u8> = (third..third + 3).flat_map(|block| page(0, block, 0, 0)).collect();
        cluster.write_segment(0, 2, &bytes);
        let list = [14, 15, SEGMENT_BLOCKS, SEGMENT_BLOCKS + 1, third, third + 1, third + 2, 3];
        for options in every_kind() {
            cluster.pool.evict_all();
            let mut backend = cluster.backend();
            let mut stream = cluster.stream(&backend, &list, options);
            let (mut good, mut missing) = (Vec::new(), 0);
            loop {
                match stream.next(&mut backend) {
                    Ok(None) => break,
                    Ok(Some(found)) => good.push(found.block),
                    Err(error) => {
                        let ReadError::Storage(StorageError::SegmentMissing { location }) = error
                        else {
                            panic!("{error}")
                        };
                        assert!(location.path().ends_with("base/5/16384.1"));
                        let beyond = [SEGMENT_BLOCKS, SEGMENT_BLOCKS + 1].map(Some);
                        assert!(beyond.contains(&location.block()));
                        missing += 1;
                    }
                }
            }
            good.sort_unstable();
            assert_eq!((good, missing), (vec![3, 14, 15, third, third + 1, third + 2], 2));
            drop(stream);
            let error = backend.read(&cluster.relation(0), SEGMENT_BLOCKS).map(drop);
            assert!(error.is_err());
            assert_eq!(backend.pins(), 0);
        }
    });
}

/// Only blocks of the same segment are combined, because a vectored read can't span files.
#[test]
fn a_read_ends_at_the_end_of_its_segment() {
    check_simulated(Needs { seeds: 2, ..Needs::one_session() }, |cluster| {
        // A simulated file of 1 GiB would be too large, so the first segment ends early.
        cluster.probe.record();
        let mut backend = cluster.backend();
        let list = [SEGMENT_BLOCKS - 2, SEGMENT_BLOCKS - 1, SEGMENT_BLOCKS, SEGMENT_BLOCKS + 1];
        cluster.write_segment(0, 1, &[page(0, list[2], 0, 0), page(0, list[3], 0, 0)].concat());
        let options = StreamOptions { full: true, ..StreamOptions::default() };
        let mut stream = cluster.stream(&backend, &list, options);
        for block in list {
            match stream.next(&mut backend) {
                Ok(found) => assert_eq!(found.expect("a page").block, block),
                Err(error) => {
                    assert_eq!(error.block(), Some(block), "{error}");
                    assert!(block < SEGMENT_BLOCKS);
                }
            }
        }
        drop(stream);
        // The engine retries short reads block by block.
        let reads = cluster.reads();
        assert_eq!(reads[0], (SEGMENT_BLOCKS - 2, 2));
        assert!(reads.contains(&(0, 2)), "offsets restart in the second segment: {reads:?}");
    });
}

/// One block can't be read. The error must be reported only for that block, even if the I/O
/// included others. The message must contain the block number and the text for the errno.
#[test]
fn pg_25_and_26_a_storage_error_affects_only_its_block() {
    check(Needs { seeds: 3, ..Needs::one_session() }, |cluster| {
        for (errno, text) in [(5, "Input/output error"), (30, "Read-only file system")] {
            for options in every_kind() {
                cluster.pool.evict_all();
                cluster.fail(5, errno);
                let mut backend = cluster.backend();
                for _ in 0..2 {
                    let mut stream = cluster.stream(&backend, &ALL, options);
                    let seen = cluster.drain(&mut backend, &mut stream);
                    let errors: Vec<_> = seen.iter().filter_map(|it| it.as_ref().err()).collect();
                    assert_eq!((seen.len(), errors.len()), (16, 1), "{seen:?}, {options:?}");
                    assert!(errors[0].starts_with("could not read block 5 of file"), "{errors:?}");
                    assert!(errors[0].contains(text), "{errors:?}");
                    if !options.unordered {
                        assert!(seen[5].is_err());
                    }
                }
                // Once the storage recovers, the block must be readable: a failed read leaves no
                // invalid buffer behind.
                cluster.probe.keep_results();
                cluster.read_ok(&mut backend, 5);
                assert_eq!(backend.pins(), 0);
            }
        }
    });
}

/// After a short read, the engine reads the rest of the blocks. These must be verified like all
/// others, so a damaged page among them must be found.
#[test]
fn pg_23_and_24_short_reads_are_continued() {
    check(Needs { seeds: 3, ..Needs::one_session() }, |cluster| {
        for keep in [1, 2] {
            for options in every_kind() {
                cluster.pool.evict_all();
                cluster.damage(6, trunkline_sim::matrix::Damage::Checksum);
                cluster.probe.change_results(move |_, raw| raw.min(keep * BLOCK_SIZE as i32));
                let mut backend = cluster.backend();
                let mut stream = cluster.stream(&backend, &ALL, options);
                let seen = cluster.drain(&mut backend, &mut stream);
                let good = seen.iter().filter(|found| found.is_ok()).count();
                assert_eq!((seen.len(), good), (16, 15), "{seen:?}, {options:?}");
                let wanted = "invalid page in block 6";
                assert!(seen.iter().any(|it| it.as_ref().is_err_and(|it| it.starts_with(wanted))));
                cluster.probe.keep_results();
            }
        }
    });
}

/// Blocks past the end and missing relations must be errors, not panics.
#[test]
fn missing_blocks_and_relations_are_errors() {
    check(Needs::one_session(), |cluster| {
        let mut backend = cluster.backend();
        let error = backend.read(&cluster.relation(0), 16).map(drop).expect_err("past the end");
        assert!(
            matches!(error, ReadError::Short { bytes: 0, .. }) && error.block() == Some(16),
            "{error}"
        );
        for block in [SEGMENT_BLOCKS, BlockNo::MAX - 1, BlockNo::MAX] {
            let error =
                backend.read(&cluster.relation(0), block).map(drop).expect_err("no such block");
            assert!(matches!(error, ReadError::Storage(_)), "{error}");
            assert!(error.to_string().contains("16384"), "{error}");
        }
        assert!(backend.read(&cluster.relation(7), 0).is_err());
        assert_eq!(backend.pins(), 0);
        cluster.read_ok(&mut backend, 15);
    });
}

/// A block source may return any number, including `InvalidBlockNumber` (the largest one).
#[test]
fn a_stream_accepts_any_block_number() {
    check(Needs::one_session(), |cluster| {
        for options in every_kind() {
            let mut backend = cluster.backend();
            let list = [BlockNo::MAX - 1, BlockNo::MAX, 0, 1];
            let mut stream = cluster.stream(&backend, &list, options);
            let seen = cluster.drain(&mut backend, &mut stream);
            assert_eq!(seen.iter().filter(|found| found.is_ok()).count(), 2, "{seen:?}");
            assert_eq!(seen.len(), 4);
        }
    });
}
