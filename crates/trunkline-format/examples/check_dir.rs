//! Checks every relation file below a cluster's directory: `check_dir <data directory> [-v]`.
//!
//! For each kind of page, prints how many good, new and bad pages were found. With `-v`, also
//! prints every bad page. This only reads the directory, but you must not run it while a server is
//! running on the directory.

use std::collections::BTreeMap;
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use trunkline_format::{
    BLOCK_SIZE, CheckOptions, ControlFile, PageBytes, PageKind, RelationFile, Verdict, check_page,
};

#[derive(Default)]
struct Counts {
    good: u64,
    with_items: u64,
    new: u64,
    bad: u64,
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let root = PathBuf::from(args.next().ok_or("usage: check_dir <data directory> [-v]")?);
    let verbose = args.next().is_some_and(|arg| arg == "-v");
    let control = ControlFile::parse(&fs::read(root.join("global/pg_control"))?)?;
    println!("{}, {}, checksums {}", control.version, control.state, control.checksums());

    let mut counts = BTreeMap::new();
    for directory in ["global", "base", "pg_tblspc"] {
        walk(&root.join(directory), control.checksums(), verbose, &mut counts)?;
    }
    for (kind, Counts { good, with_items, new, bad }) in counts {
        println!("{kind:14} {good:7} good ({with_items} with items), {new} new, {bad} bad");
    }
    Ok(())
}

fn walk(
    directory: &Path,
    checksums: bool,
    verbose: bool,
    counts: &mut BTreeMap<String, Counts>,
) -> Result<(), Box<dyn Error>> {
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        if path.is_dir() {
            walk(&path, checksums, verbose, counts)?;
            continue;
        }
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or("");
        let Some(file) = RelationFile::parse(name) else { continue };
        let bytes = fs::read(&path)?;
        let (pages, rest): (&[PageBytes], _) = bytes.as_chunks::<BLOCK_SIZE>();
        if !rest.is_empty() {
            println!("{}: {} bytes behind the last page", path.display(), rest.len());
        }
        let options = CheckOptions { checksums, fork: file.fork };
        for (block, page) in (file.first_block().unwrap_or(0)..).zip(pages) {
            let kind = PageKind::of(page, file.fork);
            let counts = counts.entry(format!("{kind:?} {}", file.fork)).or_default();
            match check_page(page, block, &options) {
                Verdict::Good => {
                    counts.good += 1;
                    counts.with_items += u64::from(kind.has_line_pointers(page));
                }
                Verdict::New => counts.new += 1,
                Verdict::Bad(finding) => {
                    counts.bad += 1;
                    if verbose {
                        println!("{} block {block}: {finding}", path.display());
                    }
                }
            }
        }
    }
    Ok(())
}
