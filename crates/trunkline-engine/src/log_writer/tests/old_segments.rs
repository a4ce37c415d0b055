//! What checkpoints do with segments that redo doesn't need.

use super::*;

#[test]
fn old_segments_get_the_names_of_future_ones() {
    let (folder, aio) = (tempfile::tempdir().expect("a folder"), instance());
    let mut session = aio.session().expect("a session");
    let options = LogWriterOptions { min_wal_size: 3 << 20, ..options() };
    let log = open(&aio, folder.path(), options.clone());
    let mut inserter = Inserter::new(&log).expect("an inserter");
    let mut places = Vec::new();
    // Up to the middle of segment 5.
    while log.end() < Lsn(0x58_0000) {
        places.push(insert(&log, (&mut session, &mut inserter), 7, &[7; 12_000]));
    }
    log.flush(&mut session, log.end()).expect("durable");
    assert_eq!(segments(folder.path()), ["01", "02", "03", "04", "05"]);
    let redo = places.iter().find(|place| place.start >= Lsn(0x50_0000)).expect("one").start;
    let oldest = fs::read(folder.path().join("pg_wal/000000010000000000000001")).expect("read");
    log.recycle_before(redo).expect("recycled");
    assert_eq!(segments(folder.path()), ["05", "06", "07"], "as many as min_wal_size");
    let recycled = fs::read(folder.path().join("pg_wal/000000010000000000000006")).expect("read");
    assert!(recycled == oldest, "the oldest comes first, and keeps its contents");
    // The old records are not read, neither from the page where the log ends nor from later ones.
    let from = places.iter().filter(|place| place.start >= redo).count();
    let (found, end) = read(folder.path(), redo);
    assert_eq!((found.len(), end), (from, log.end()));
    while log.end() < Lsn(0x68_0000) {
        places.push(insert(&log, (&mut session, &mut inserter), 8, &[8; 11_111]));
    }
    log.flush(&mut session, log.end()).expect("durable");
    let from = places.iter().filter(|place| place.start >= redo).count();
    let (found, end) = read(folder.path(), redo);
    assert_eq!((found.len(), end), (from, log.end()));
    // A crash and a new start: the recycled segments behind the end go, since they could be taken for a gap later.
    let (last, end) = (places[places.len() - 1].start, log.end());
    drop((inserter, log));
    let log = open(&aio, folder.path(), LogWriterOptions { last, end, redo, ..options });
    assert_eq!(segments(folder.path()), ["05", "06"]);
    // A file of another length is not recycled.
    let short = folder.path().join("pg_wal/000000010000000000000005");
    fs::File::options().write(true).open(&short).and_then(|file| file.set_len(9)).expect("cut");
    log.recycle_before(last).expect("removed");
    assert_eq!(segments(folder.path()), ["06"]);
}

#[test]
fn the_newest_part_of_the_wal_is_kept() {
    let (folder, aio) = (tempfile::tempdir().expect("a folder"), instance());
    let mut session = aio.session().expect("a session");
    let options = LogWriterOptions { wal_keep_size: 2 << 20, min_wal_size: 8 << 20, ..options() };
    let log = open(&aio, folder.path(), options);
    let mut inserter = Inserter::new(&log).expect("an inserter");
    // Up to the middle of segment 6.
    while log.end() < Lsn(0x68_0000) {
        insert(&log, (&mut session, &mut inserter), 7, &[7; 12_000]);
    }
    log.flush(&mut session, log.end()).expect("durable");
    log.recycle_before(Lsn(0x38_0000)).expect("recycled");
    assert_eq!(segments(folder.path()), ["03", "04", "05", "06", "07", "08"], "redo needs more");
    // 2 MB before the end are in segment 4.
    log.recycle_before(log.end()).expect("recycled");
    assert_eq!(segments(folder.path()), ["04", "05", "06", "07", "08", "09"]);
    log.remove_before(log.end()).expect("nothing to do");
    assert_eq!(segments(folder.path())[0], "04", "a shutdown checkpoint keeps it, too");
}
