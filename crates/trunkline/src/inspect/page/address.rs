//! **Page address**: the segment file of a page, and its block number in the relation.
//!
//! For example, block 131072 of `base/5/16384` is the first block of `base/5/16384.1`.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use trunkline_format::segment::segment_of;
use trunkline_format::{
    BLOCK_SIZE, BlockNo, Fork, PageBytes, RelationFile, SEGMENT_BLOCKS, TempRelationFile,
};

use crate::exit::{Failure, message};

/// The segment file of a page, and its block number in the relation.
#[derive(Debug)]
pub(super) struct PageAddress {
    pub(super) path: PathBuf,
    pub(super) fork: Fork,
    pub(super) segment: u32,
    pub(super) block: BlockNo,
}

impl PageAddress {
    /// Determines the segment file and the block within it. If the user gives us the relation's
    /// first segment, but the block is in a later one, we open that later segment instead.
    pub(super) fn find(file: &Path, block: Option<BlockNo>) -> Result<PageAddress, Failure> {
        let name = file.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let parsed = RelationFile::parse(name)
            .or_else(|| TempRelationFile::parse(name).map(|temporary| temporary.file));
        if parsed.is_none() {
            let text = "does not have the name of a relation file; assuming the first segment of \
                        a main fork";
            message("warning", format_args!("\"{}\" {text}", file.display()));
        }
        let (fork, named) = parsed.map_or((Fork::Main, 0), |parsed| (parsed.fork, parsed.segment));
        let first = named * SEGMENT_BLOCKS;
        let block = block.unwrap_or(first);
        let (segment, _) = segment_of(block);
        let path = if segment == named || parsed.is_none() {
            file.to_owned()
        } else if named == 0 {
            file.with_file_name(format!("{name}.{segment}"))
        } else {
            let last = first.saturating_add(SEGMENT_BLOCKS - 1);
            return Err(Failure::usage(format_args!(
                "block {block} is not in \"{}\", expected {first} to {last}",
                file.display()
            ))
            .with_hint("block numbers count across all segments of a relation"));
        };
        Ok(PageAddress { path, fork, segment: if parsed.is_none() { 0 } else { segment }, block })
    }

    /// Reads the page with a plain pread(2). We don't take any locks, so we may see a torn page if
    /// a server is running.
    pub(super) fn read(&self) -> Result<Box<PageBytes>, Failure> {
        let path = self.path.display();
        let failed = |operation: &str, error: io::Error| {
            Failure::cannot_run(format_args!("could not {operation} \"{path}\": {error}"))
        };
        let metadata = match std::fs::metadata(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound && self.is_past_the_end() => {
                return Err(Failure::usage(format_args!(
                    "block {} is past the end of the relation: \"{path}\" does not exist",
                    self.block
                )));
            }
            found => found.map_err(|error| failed("open file", error))?,
        };
        if !metadata.is_file() {
            return Err(Failure::cannot_run(format_args!("\"{path}\" is not a regular file")));
        }
        let file = File::open(&self.path).map_err(|e| failed("open file", e))?;
        let first = self.segment * SEGMENT_BLOCKS;
        let offset = u64::from(self.block - first) * BLOCK_SIZE as u64;
        let mut page = Box::new([0; BLOCK_SIZE]);
        match file.read_exact_at(&mut page[..], offset) {
            Ok(()) => Ok(page),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                let (bytes, expected) = (metadata.len(), offset + BLOCK_SIZE as u64);
                let found = format!("{bytes} bytes found, at least {expected} expected");
                let block = self.block;
                Err(if bytes > offset {
                    Failure::findings(format_args!("block {block} of \"{path}\" is torn: {found}"))
                } else {
                    let text = format!("block {block} is past the end of \"{path}\": {found}");
                    Failure::usage(text).with_hint(blocks_hint(first, bytes))
                })
            }
            Err(error) => Err(failed("read", error)),
        }
    }

    /// Whether the relation exists but ends before this segment. It ends at the first segment that
    /// is missing.
    fn is_past_the_end(&self) -> bool {
        self.segment > 0 && self.path.with_extension("").is_file()
    }
}

/// Returns a hint that lists the blocks the file contains. It's easy to confuse a block number in
/// the relation with one counted from the start of the segment.
fn blocks_hint(first: BlockNo, bytes: u64) -> String {
    match bytes / BLOCK_SIZE as u64 {
        0 => "the file does not contain a complete block".to_owned(),
        blocks => {
            format!("the file contains blocks {first} to {}", u64::from(first) + blocks - 1)
        }
    }
}
