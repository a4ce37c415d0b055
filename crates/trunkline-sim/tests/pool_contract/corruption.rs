//! Damaged pages: test_aio's cases 8, 17, 18 and 20.
//!
//! Case 19 creates a database from a damaged template. We have no counterpart for that.

use trunkline_aio::State;
use trunkline_aio::facade::Arc;
use trunkline_engine::pool::{Backend, Policy, ReadError};
use trunkline_engine::read_stream::StreamOptions;
use trunkline_format::BlockNo;
use trunkline_sim::matrix::Damage;
use trunkline_sim::matrix::cluster::check;
use trunkline_sim::matrix::{Cluster, Needs};

/// PostgreSQL's defaults: a damaged page is an error.
const STRICT: Policy = Policy { zero_damaged_pages: false, ignore_checksum_failure: false };
/// `zero_damaged_pages = on`.
const ZERO: Policy = Policy { zero_damaged_pages: true, ..STRICT };
/// `ignore_checksum_failure = on`.
const IGNORE: Policy = Policy { ignore_checksum_failure: true, ..STRICT };
const LAX: Policy = Policy { zero_damaged_pages: true, ignore_checksum_failure: true };

/// The result of reading a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Got {
    Page,
    /// All zeros, with a warning that says so.
    Zeroed,
    /// The page as it is on disk, with a warning.
    AsIs,
    Error,
}

/// Reads blocks through a stream, and returns the result for each block. Also checks that there is
/// exactly one warning for each page that was zeroed or returned in spite of its damage, and none
/// for any other page.
fn read_all(
    cluster: &Arc<Cluster>,
    backend: &mut Backend,
    blocks: &[BlockNo],
    options: StreamOptions,
) -> Vec<(BlockNo, Got)> {
    let mut stream = cluster.stream(backend, blocks, options);
    let mut got = Vec::new();
    loop {
        match stream.next(backend) {
            Ok(None) => break,
            Ok(Some(found)) => {
                let page = backend.read_lock(found.pin).expect("locks");
                let zeroed = page.iter().all(|&byte| byte == 0);
                let right = *page == trunkline_sim::matrix::page(0, found.block, 0, 0);
                got.push((
                    found.block,
                    match (zeroed, right) {
                        (true, _) => Got::Zeroed,
                        (_, true) => Got::Page,
                        _ => Got::AsIs,
                    },
                ));
            }
            Err(error) => {
                let block = check_error(&error);
                got.push((block, Got::Error));
            }
        }
    }
    let (warnings, lost) = backend.take_warnings();
    assert_eq!(lost, 0);
    for warning in &warnings {
        let text = warning.to_string();
        let block = warning.location.block().expect("a block");
        let wanted = format!("block {block} of file");
        assert!(text.contains(&wanted) && text.contains("16384"), "{text}");
        let expected = if warning.zeroed { Got::Zeroed } else { Got::AsIs };
        assert!(got.contains(&(block, expected)), "{text}, got {got:?}");
        assert!(!warning.verdict.is_valid());
    }
    let unsound = got.iter().filter(|(_, got)| matches!(got, Got::Zeroed | Got::AsIs)).count();
    assert_eq!(warnings.len(), unsound, "{got:?}");
    got.sort_by_key(|(block, _)| *block);
    got
}

/// Checks that a corruption error references the block and the file. Returns the block.
fn check_error(error: &ReadError) -> BlockNo {
    let ReadError::Corrupt { location, verdict } = error else { panic!("{error}") };
    let block = location.block().expect("a block");
    assert!(location.path().ends_with("base/5/16384"), "{error}");
    assert!(!verdict.is_valid());
    let text = error.to_string();
    assert!(text.starts_with(&format!("invalid page in block {block} of file")), "{text}");
    block
}

/// A page with an invalid header fails only its own block, in every kind of stream.
#[test]
fn pg_8_a_bad_header_is_an_error_with_block_and_file() {
    check(Needs::one_session(), |cluster| {
        cluster.damage(3, Damage::Header);
        let mut backend = cluster.backend();
        let error =
            backend.read(&cluster.relation(0), 3).map(drop).expect_err("the page is damaged");
        assert_eq!(check_error(&error), 3);
        assert_eq!(backend.pins(), 0);
        for unordered in [false, true] {
            for full in [false, true] {
                let options = StreamOptions { unordered, full, ..StreamOptions::default() };
                let got = read_all(cluster, &mut backend, &[1, 2, 3, 4, 5], options);
                let mut wanted = [1, 2, 3, 4, 5].map(|block| (block, Got::Page));
                wanted[2].1 = Got::Error;
                assert_eq!(got, wanted);
                cluster.pool.evict_all();
            }
        }
        assert_eq!(backend.pins(), 0);
        cluster.repair(3);
        cluster.read_ok(&mut backend, 3);
    });
}

/// Once a damaged page has been zeroed, every session sees zeros. Even if the page on disk is
/// repaired, its buffer still contains zeros until the page is evicted.
#[test]
fn pg_17_damaged_pages_are_zeroed() {
    check(Needs::one_session(), |cluster| {
        cluster.damage(2, Damage::Header);
        let mut backend = cluster.backend();
        backend.set_policy(ZERO);
        let pin = backend.read(&cluster.relation(0), 2).expect("zeroed");
        assert!(backend.read_lock(pin.page()).expect("locks").iter().all(|&byte| byte == 0));
        drop(pin);
        let (warnings, _) = backend.take_warnings();
        assert_eq!(warnings.len(), 1);
        assert!(warnings[0].zeroed && warnings[0].location.block() == Some(2));
        // The buffer now contains zeros for all sessions. After the page has been repaired on disk
        // and evicted from the pool, it must be readable again.
        backend.set_policy(STRICT);
        backend.read(&cluster.relation(0), 2).expect("a hit");
        cluster.repair(2);
        cluster.pool.evict_all();
        cluster.read_ok(&mut backend, 2);
        assert_eq!(backend.take_warnings().0.len(), 0);
        // If two of the four blocks in a read are damaged, both must be reported, each with its own
        // block number.
        cluster.damage(5, Damage::Both);
        cluster.damage(7, Damage::Header);
        let options = StreamOptions { full: true, combine: 4, ..StreamOptions::default() };
        cluster.probe.record();
        for (policy, bad) in [(STRICT, Got::Error), (ZERO, Got::Zeroed), (LAX, Got::Zeroed)] {
            cluster.pool.evict_all();
            backend.set_policy(policy);
            let got = read_all(cluster, &mut backend, &[4, 5, 6, 7], options);
            assert_eq!(got, [(4, Got::Page), (5, bad), (6, Got::Page), (7, bad)], "{policy:?}");
        }
        assert_eq!(cluster.reads(), [(4, 4); 3], "one read for each policy");
    });
}

/// Sessions that complete or join another session's read see the zeroed page, but only the issuer
/// gets the warning.
#[test]
fn pg_17_only_the_issuer_is_warned() {
    check(Needs::default(), |cluster| {
        cluster.damage(2, Damage::Header);
        let held = cluster.hold(2);
        let issuer = cluster.spawn("issuer", |cluster| {
            let mut backend = cluster.async_backend();
            backend.set_policy(ZERO);
            backend.read(&cluster.relation(0), 2).map(drop).expect("zeroed");
            backend.take_warnings().0.len()
        });
        held.wait();
        let joiners: Vec<_> = (0..3)
            .map(|_| {
                cluster.spawn("joiner", |cluster| {
                    let mut backend = cluster.backend();
                    let pin = backend.read(&cluster.relation(0), 2).expect("zeroed by the issuer");
                    let page = backend.read_lock(pin.page()).expect("locks");
                    assert!(page.iter().all(|&byte| byte == 0));
                    drop(page);
                    backend.take_warnings().0.len()
                })
            })
            .collect();
        cluster.wait_pins(2, 5);
        held.release();
        assert_eq!(issuer.join(), 1);
        joiners.into_iter().for_each(|joiner| assert_eq!(joiner.join(), 0));
    });
}

/// Another session may complete the I/O. It must apply the issuer's policy, not its own.
#[test]
fn pg_17_the_completer_judges_by_the_issuers_policy() {
    check(Needs::default(), |cluster| {
        for (issuer, completer, zeroed) in [(ZERO, STRICT, true), (STRICT, ZERO, false)] {
            cluster.pool.evict_all();
            cluster.damage(2, Damage::Both);
            let mut first = cluster.async_backend();
            first.set_policy(issuer);
            let mut started = cluster.start_read(&mut first, &[2]);
            let mut second = cluster.backend();
            second.set_policy(completer);
            // The second session gets the page in the state that the issuer's policy produced. If
            // the result was an error, the second session reads the page again, using its own
            // policy.
            let pin = second.read(&cluster.relation(0), 2).expect("one of the two policies zeroes");
            let page = second.read_lock(pin.page()).expect("locks");
            assert!(page.iter().all(|&byte| byte == 0));
            drop(page);
            drop(pin);
            assert_eq!(second.take_warnings().0.len(), usize::from(!zeroed));
            match started.next(&mut first) {
                // An earlier poll, which started the read, has already returned the result.
                Ok(None) => {}
                Ok(Some(_)) => {}
                Err(error) => assert_eq!((check_error(&error), zeroed), (2, false)),
            }
            assert!(first.take_warnings().0.len() <= usize::from(zeroed));
        }
    });
}

/// A checksum failure is counted for its relation. An invalid header with a valid checksum isn't a
/// checksum failure.
#[test]
fn pg_18_checksum_failures_are_counted_per_relation() {
    check(Needs::one_session(), |cluster| {
        cluster.create(1, 4);
        cluster.damage(3, Damage::Checksum);
        cluster.damage(4, Damage::Both);
        cluster.damage(5, Damage::Header);
        let mut backend = cluster.backend();
        cluster.read_ok(&mut backend, 1);
        backend.read(&cluster.relation(1), 1).map(drop).expect("reads");
        for block in [3, 4, 5] {
            let error = backend
                .read(&cluster.relation(0), block)
                .map(drop)
                .expect_err("the page is damaged");
            assert_eq!(check_error(&error), block);
        }
        let options = StreamOptions { full: true, ..StreamOptions::default() };
        read_all(cluster, &mut backend, &[2, 3, 4, 5, 6], options);
        drop(backend);
        let counts = cluster.pool.counts();
        let failures = |number: u32| -> u64 {
            let locator = cluster.relation(number).locator();
            let rows = counts.iter().filter(|(key, _)| key.relation == locator);
            rows.map(|(_, tally)| tally.checksum_failures).sum()
        };
        assert_eq!((failures(0), failures(1)), (4, 0), "blocks 3 and 4, twice each");
    });
}

/// Tests all four policies with each kind of damage. A page whose header is invalid must not be
/// returned even if checksum failures are ignored.
#[test]
fn pg_20_checksum_failures_are_ignored() {
    use Got::{AsIs, Error, Page, Zeroed};
    check(Needs::one_session(), |cluster| {
        cluster.damage(4, Damage::Checksum);
        cluster.damage(6, Damage::Header);
        cluster.damage(7, Damage::Both);
        let mut backend = cluster.backend();
        for (policy, wanted) in [
            (STRICT, [Error, Page, Error, Error]),
            (IGNORE, [AsIs, Page, Error, Error]),
            (ZERO, [Zeroed, Page, Zeroed, Zeroed]),
            (LAX, [AsIs, Page, Zeroed, Zeroed]),
        ] {
            for (full, unordered, combine) in
                [(true, false, 16), (false, false, 16), (true, true, 2), (true, false, 1)]
            {
                cluster.pool.evict_all();
                backend.set_policy(policy);
                let options =
                    StreamOptions { full, unordered, combine, ..StreamOptions::default() };
                let got = read_all(cluster, &mut backend, &[4, 5, 6, 7], options);
                let wanted = [4, 5, 6, 7].into_iter().zip(wanted).collect::<Vec<_>>();
                assert_eq!(got, wanted, "{policy:?}, {options:?}");
            }
        }
    });
}

/// A read may contain more damaged pages than its outcome has room for. Even then, each of the
/// damaged blocks must be reported.
#[test]
fn pg_20_every_page_of_a_large_read_is_reported() {
    check(Needs { buffers: 256, blocks: 128, seeds: 1, ..Needs::one_session() }, |cluster| {
        (0..128).for_each(|block| cluster.damage(block, Damage::Both));
        let mut backend = cluster.backend();
        let options = StreamOptions { full: true, combine: 128, ..StreamOptions::default() };
        let blocks: Vec<BlockNo> = (0..128).collect();
        let mut stream = cluster.stream(&backend, &blocks, options);
        for block in 0..128 {
            let error = stream.next(&mut backend).map(drop).expect_err("the page is damaged");
            assert_eq!(error.block(), Some(block), "{error}");
        }
        assert!(stream.next(&mut backend).expect("the end").is_none());
        drop(stream);
        assert_eq!(backend.pins(), 0);
    });
}

/// Three other sessions are waiting for the read of a page that turns out to be damaged. Each of
/// them must read the page again and receive an error for its own read.
#[test]
fn a_bad_page_is_an_error_for_each_of_four_waiters() {
    check(Needs::default(), |cluster| {
        cluster.damage(2, Damage::Checksum);
        let held = cluster.hold(2);
        let readers: Vec<_> = (0..4)
            .map(|at| {
                let reader = cluster.spawn("reader", |cluster| {
                    let mut backend = cluster.backend();
                    let error = backend.read(&cluster.relation(0), 2).map(drop).expect_err("bad");
                    assert_eq!((check_error(&error), backend.pins()), (2, 0));
                    assert_eq!(backend.take_warnings().0.len(), 0);
                });
                if at == 0 {
                    held.wait();
                }
                reader
            })
            .collect();
        cluster.wait_pins(2, 5);
        held.release();
        readers.into_iter().for_each(|reader| reader.join());
        assert_eq!(cluster.pins(2), 0);
        assert!(
            cluster.probe.transitions(State::CompletedLocal, State::Idle) >= 4,
            "each session has read"
        );
    });
}
