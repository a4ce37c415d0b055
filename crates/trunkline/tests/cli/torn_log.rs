//! Where a log may end with a torn record: only where a crash can have left it.

use std::fs;
use std::path::{Path, PathBuf};

use crate::recover::{crashed, crashed_with};
use crate::{json, run};

/// Size of the only segment.
const SEGMENT_SIZE: u64 = 1 << 20;

/// A crashed cluster.
struct Crashed {
    home: tempfile::TempDir,
    data: PathBuf,
    segment: PathBuf,
    /// Where in the segment the first and the last record begin.
    records: (usize, usize),
}

impl Crashed {
    fn new() -> Crashed {
        let home = tempfile::tempdir().expect("a folder");
        let data = home.path().join("data");
        crashed(&data);
        let segment = data.join("pg_wal/000000010000000000000001");
        let (code, out, err) = run(["inspect", "wal", "--json", "-D", &data.display().to_string()]);
        assert_eq!(code, 0, "{err}");
        assert!(!err.contains("as a crash can leave it"), "{err}");
        let place = |line: Option<&str>| {
            let lsn = json(line.expect("a record"))["lsn"].as_str().expect("a place").to_owned();
            let (_, low) = lsn.split_once('/').expect("an LSN");
            (u64::from_str_radix(low, 16).expect("digits") % SEGMENT_SIZE) as usize
        };
        let records = (place(out.lines().next()), place(out.lines().last()));
        assert!(records.0 < records.1);
        Crashed { home, data, segment, records }
    }

    /// Flips a bit of the log.
    fn flip(&self, at: usize) {
        let mut bytes = fs::read(&self.segment).expect("read");
        bytes[at] ^= 1;
        fs::write(&self.segment, bytes).expect("written");
    }

    /// Runs a command, and checks whether it takes the end of the log for what a crash has left.
    fn check(&self, args: &[&str], is_torn: bool) {
        let (code, out, err) = run(args);
        assert_eq!(code, i32::from(!is_torn), "{args:?}: {out}{err}");
        let text = "as a crash can leave it\n";
        assert_eq!(err.contains("note: log ends at") && err.contains(text), is_torn, "{err}");
        assert_eq!(err.contains("error: log ends at"), !is_torn, "{err}");
    }

    fn check_cluster(&self, is_torn: bool) {
        let data = self.data.display().to_string();
        self.check(&["inspect", "wal", "-D", &data], is_torn);
        self.check(&["verify", "--wal", "-D", &data], is_torn);
    }
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}

#[test]
fn a_crash_can_leave_a_torn_record_at_the_end() {
    let crashed = Crashed::new();
    crashed.flip(crashed.records.1 + 24);
    crashed.check_cluster(true);
    let data = shown(&crashed.data);
    let (code, _, err) = run(["verify", "--files-only", "-D", &data]);
    assert_eq!(code, 0, "replay accepts it too: {err}");
    // Nothing says that these files are of a cluster that has crashed.
    crashed.check(&["inspect", "wal", &shown(&crashed.segment)], false);
    crashed.check(&["inspect", "wal", &shown(&crashed.data.join("pg_wal"))], false);
    // The log must reach the end that the user names.
    let (code, _, err) = run(["inspect", "wal", "-D", &data, "--to", "0/1F0000"]);
    assert!(code == 1 && err.contains("--to is 0/001F0000"), "{code}: {err}");
    // A backup was copied, with all of its log.
    fs::write(crashed.data.join("backup_label"), "").expect("written");
    crashed.check_cluster(false);
}

#[test]
fn archives_come_before_pg_wal_and_have_no_torn_records() {
    let crashed = Crashed::new();
    let archive = crashed.home.path().join("archive");
    fs::create_dir(&archive).expect("made");
    let archived = archive.join(crashed.segment.file_name().expect("a name"));
    let (data, folder) = (shown(&crashed.data), shown(&archive));
    let args = ["inspect", "wal", "-D", &data, "--wal", &folder];
    let all = run(["inspect", "wal", "-D", &data]).1;
    fs::copy(&crashed.segment, &archived).expect("copied");
    crashed.flip(crashed.records.1 + 24);
    assert_ne!(run(["inspect", "wal", "-D", &data]).1, all);
    let (code, out, err) = run(args);
    assert_eq!((code, &out), (0, &all), "{err}");
    // Without a replay, there are no newer names, but the archive is read all the same.
    let (code, out, err) = run(args.iter().chain(&["--no-replay"]));
    assert_eq!((code, out), (0, all), "{err}");
    let (code, _, err) = run(args.iter().chain(&["--no-replay", "--allow-incomplete"]));
    assert!(code == 2 && err.contains("--allow-incomplete can't be used with"), "{err}");
    fs::copy(&crashed.segment, &archived).expect("copied");
    crashed.check(&args, false);
    // The files that are named are all that is read.
    let (code, _, err) = run(args.iter().chain(&[&*folder]));
    assert!(code == 2 && err.contains("--wal DIR can't be used with FILE or DIR"), "{err}");
}

#[test]
fn other_damage_is_no_torn_record() {
    // The checkpoint is complete before the control file names it.
    let crashed = Crashed::new();
    crashed.flip(crashed.records.0 + 24);
    crashed.check_cluster(false);
    // So is the header of a page, whose magic is wrong.
    let crashed = Crashed::new();
    crashed.flip(crashed.records.1 / 8192 * 8192);
    crashed.check_cluster(false);
    // The log goes on behind the record.
    let crashed = Crashed::new();
    let mut later = fs::read(&crashed.segment).expect("read");
    let address = u64::from_le_bytes(*later[8..].first_chunk().expect("a header"));
    later[8..16].copy_from_slice(&(address + SEGMENT_SIZE).to_le_bytes());
    fs::write(crashed.segment.with_file_name("000000010000000000000002"), later).expect("written");
    crashed.flip(crashed.records.1 + 24);
    crashed.check_cluster(false);
    // A server that stops leaves no torn record.
    let crashed = Crashed::new();
    assert_eq!(run(["recover", &shown(&crashed.data)]).0, 0);
    crashed.flip(crashed.records.1 + 24);
    crashed.check_cluster(false);
}

#[test]
fn the_log_does_not_end_at_a_segment_that_is_missing_before_others() {
    let home = tempfile::tempdir().expect("a folder");
    let data = home.path().join("data");
    // The log ends in its second segment.
    crashed_with(&data, 20_000);
    let name = |number: u32| format!("0000000100000000{number:08X}");
    let segment = |number: u32| data.join("pg_wal").join(name(number));
    let removed = (2..).take_while(|number| fs::remove_file(segment(*number)).is_ok()).count();
    assert!(removed > 0, "the log has one segment");
    let shown = shown(&data);
    let commands = [
        &["inspect", "wal", "-D", &shown][..],
        &["verify", "--wal", "-D", &shown],
        &["verify", "--files-only", "-D", &shown],
    ];
    let missing = format!("there is no segment {}, which contains 0/00200", name(2));
    for (args, is_replay) in commands.iter().zip([false, false, true]) {
        let (code, _, err) = run(*args);
        assert_eq!(code, 0, "{args:?}: {err}");
        // A replay doesn't say why the log ends if that is usual.
        let last = format!("; the last segment is {}", name(1));
        assert_eq!(err.contains(&missing) && err.contains(&last), !is_replay, "{args:?}: {err}");
    }
    // The next file is an old one that a server has kept for later, so there was one before it.
    fs::copy(segment(1), segment(3)).expect("copied");
    let neighbours = format!("; there are {} before it and {} behind it", name(1), name(3));
    for (args, expected) in commands.iter().zip([1, 1, 3]) {
        let (code, _, err) = run(*args);
        assert_eq!(code, expected, "{args:?}: {err}");
        assert!(err.contains(&missing) && err.contains(&neighbours), "{args:?}: {err}");
    }
}
