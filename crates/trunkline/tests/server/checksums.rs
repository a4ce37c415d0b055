//! Random databases, whose data checksums `pg_checksums` and `verify --files-only` check. Both must
//! scan the same number of files and blocks, and must find the same damaged blocks.

use std::collections::BTreeSet;
use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use trunkline_aio::facade::random::Rng;

use crate::binary::run;
use crate::differential::{random_database, seeds};
use crate::server::servers;

/// Number of blocks to damage.
const DAMAGED: usize = 8;

/// What a program found: the numbers of files and blocks that it scanned, and the damaged blocks.
#[derive(Debug, PartialEq, Eq)]
struct Checked {
    files: u64,
    blocks: u64,
    damaged: BTreeSet<(PathBuf, u64)>,
}

/// The result of the server's program.
fn of_server(program: &Path, data: &Path) -> Checked {
    let mut command = Command::new(program);
    command.env("LC_ALL", "C").current_dir("/").args(["--check", "-D"]).arg(data);
    let output = command.output().expect("runs");
    let text = String::from_utf8(output.stdout).expect("text");
    let number = |name: &str| -> u64 {
        let line = text.lines().find_map(|line| line.strip_prefix(name)).expect(name);
        line.trim().parse().expect("a number")
    };
    // pg_checksums: error: checksum verification failed in file "FILE", block 7: calculated ...
    let damaged = String::from_utf8(output.stderr).expect("text");
    let damaged = damaged.lines().filter_map(|line| {
        let (_, rest) = line.split_once("checksum verification failed in file \"")?;
        let (file, rest) = rest.split_once("\", block ")?;
        let (block, _) = rest.split_once(':')?;
        let file = Path::new(file).strip_prefix(data).expect("below the data directory");
        Some((file.to_owned(), block.parse().expect("a number")))
    });
    let damaged: BTreeSet<_> = damaged.collect();
    assert_eq!(number("Bad checksums:"), damaged.len() as u64, "{text}");
    assert_eq!(output.status.success(), damaged.is_empty(), "{text}");
    Checked { files: number("Files scanned:"), blocks: number("Blocks scanned:"), damaged }
}

/// Our result. A server counts blocks from the start of a segment file, and we from the start of the
/// relation, so this is only for relations of one segment.
fn ours(data: &Path) -> Checked {
    let (code, out, err) = run(data, &["verify", "--files-only", "--json"]);
    let report: Value = serde_json::from_str(&out).expect(&err);
    let number = |name: &str| report[name].as_u64().expect(name);
    let found = report["findings"].as_array().expect("findings").iter();
    let damaged: BTreeSet<_> = found
        .map(|finding| {
            let file = PathBuf::from(finding["file"].as_str().expect("a file"));
            (file, finding["block"].as_u64().expect("a block"))
        })
        .collect();
    assert_eq!(code, i32::from(!damaged.is_empty()), "{err}");
    Checked { files: number("files_scanned"), blocks: number("blocks_scanned"), damaged }
}

/// The relation files of the default tablespace.
fn files(data: &Path) -> Vec<PathBuf> {
    let below = |directory: &Path| -> Vec<PathBuf> {
        let entries = fs::read_dir(directory).expect("read");
        let mut paths: Vec<_> = entries.map(|entry| entry.expect("an entry").path()).collect();
        paths.sort();
        paths
    };
    let databases = below(&data.join("base")).into_iter().filter(|path| path.is_dir());
    let is_numbered = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        name.starts_with(|first: char| first.is_ascii_digit())
    };
    databases.flat_map(|path| below(&path)).filter(is_numbered).collect()
}

/// Flips one bit in each of [`DAMAGED`] pages, outside of their headers. Neither program checks a
/// new page, so these are left out.
fn damage(data: &Path, rng: &mut Rng) -> BTreeSet<(PathBuf, u64)> {
    let files = files(data);
    let mut damaged = BTreeSet::new();
    while damaged.len() < DAMAGED {
        let path = &files[rng.below(files.len() as u64) as usize];
        let file = OpenOptions::new().read(true).write(true).open(path).expect("opened");
        let blocks = file.metadata().expect("a length").len() / 8192;
        if blocks == 0 {
            continue;
        }
        let block = rng.below(blocks);
        let mut page = [0; 8192];
        file.read_exact_at(&mut page, block * 8192).expect("read");
        let name = path.strip_prefix(data).expect("below").to_owned();
        if page[14..16] != [0, 0] && damaged.insert((name, block)) {
            let at = 24 + rng.below(8192 - 24);
            let flipped = page[at as usize] ^ 1 << rng.below(8);
            file.write_all_at(&[flipped], block * 8192 + at).expect("written");
        }
    }
    damaged
}

#[test]
fn checksums_are_checked_as_by_the_server() {
    for bin in servers() {
        let program = bin.join("pg_checksums");
        if !program.is_file() {
            println!("skipped: no pg_checksums in {}", bin.display());
            continue;
        }
        for seed in seeds() {
            println!("TRUNKLINE_SEED={seed} ({})", bin.display());
            let mut rng = Rng::new(seed);
            let (stopped, _) = random_database(&bin, &mut rng);
            let data = stopped.data();
            let theirs = of_server(&program, &data);
            assert_eq!(ours(&data), theirs, "seed {seed}");
            assert!(theirs.damaged.is_empty() && theirs.blocks > 1000, "seed {seed}: {theirs:?}");
            let damaged = damage(&data, &mut rng);
            let theirs = of_server(&program, &data);
            assert_eq!(theirs.damaged, damaged, "seed {seed}");
            assert_eq!(ours(&data), theirs, "seed {seed}");
        }
    }
}
