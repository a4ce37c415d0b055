//! Pages of a directory that is read through its log: what the scan of the files must leave out, and
//! what isn't in the files.

use std::collections::BTreeMap;

use trunkline_aio::facade::Arc;
use trunkline_format::{BLOCK_SIZE, BlockNo, Fork, PageBytes, SEGMENT_BLOCKS};

use crate::datadir::{FileEntry, fork_lengths, fork_of};
use crate::replay::{ForkKey, PageRedoError, PageSource, Replay};

/// The pages of a replay.
#[derive(Debug, Clone)]
pub(super) struct ReplayedPages {
    replay: Arc<Replay>,
    /// The lengths of all forks as of the end of the log.
    lengths: Arc<BTreeMap<ForkKey, BlockNo>>,
}

/// A page as of the end of the log, or why there is none.
pub(super) type Built = Result<Box<PageBytes>, PageRedoError>;

impl ReplayedPages {
    /// `files` are those as of the end of the log.
    pub(super) fn new(replay: &Arc<Replay>, files: &[FileEntry]) -> Self {
        Self { replay: Arc::clone(replay), lengths: Arc::new(fork_lengths(files)) }
    }

    /// Whether the contents of a file on disk mean anything.
    pub(super) fn is_read(&self, file: &FileEntry) -> bool {
        let (relation, fork) = fork_of(file);
        let has_init = || self.lengths.contains_key(&(relation, Fork::Init));
        self.lengths.contains_key(&(relation, fork)) && (fork != Fork::Main || !has_init())
    }

    /// Replaces pages of a file by those of the log. Bit n of `bad` says whether page n is invalid; it
    /// is set again by `check` for those that are replaced.
    pub(super) fn replace(
        &self,
        file: &FileEntry,
        first: BlockNo,
        pages: &[u8],
        bad: u128,
        check: impl Fn(&PageBytes, BlockNo) -> bool,
    ) -> Replaced {
        let key = fork_of(file);
        let length = self.lengths.get(&key).copied().unwrap_or_default();
        let mut replaced = Replaced { pages: None, bad, failed: Vec::new() };
        let count = (pages.len() / BLOCK_SIZE) as u32;
        let count = count.min(length.saturating_sub(first));
        let mut at = 0;
        while at < count {
            let block = first + at;
            if let PageSource::File { blocks } = self.replay.source(&key, block) {
                let end = at.saturating_add(blocks).min(count);
                self.check_positions(pages, (at, end), first, &mut replaced);
                at = end;
                continue;
            }
            let all = replaced.pages.get_or_insert_with(|| pages.to_vec());
            let Some(page) = all.as_chunks_mut::<BLOCK_SIZE>().0.get_mut(at as usize) else {
                break;
            };
            let built = self.replay.build(&key, block, || Ok(Some(Box::new(*page))));
            replaced.bad &= !(1 << at);
            match built {
                Ok(built) => {
                    *page = *built;
                    if !check(page, block) {
                        replaced.bad |= 1 << at;
                    }
                }
                Err(error) => {
                    // Nothing is known about the page, so it must not be looked at.
                    page.fill(0);
                    replaced.failed.push((block, error));
                }
            }
            at += 1;
        }
        // What is behind the end is not part of the relation.
        if (count as usize) < pages.len() / BLOCK_SIZE {
            let all = replaced.pages.get_or_insert_with(|| pages.to_vec());
            all.truncate(count as usize * BLOCK_SIZE);
            replaced.bad &= (1_u128 << count) - 1;
        }
        replaced
    }

    /// Finds pages of the file that are newer than the log.
    fn check_positions(
        &self,
        pages: &[u8],
        (from, to): (u32, u32),
        first: BlockNo,
        replaced: &mut Replaced,
    ) {
        for at in from..to {
            let page = pages.as_chunks::<BLOCK_SIZE>().0.get(at as usize);
            // A damaged page is reported as such.
            let is_good = replaced.bad >> at & 1 == 0;
            let Some(page) = page.filter(|_| is_good) else { continue };
            if let Err(error) = self.replay.check_position(page) {
                replaced.failed.push((first + at, error));
                let all = replaced.pages.get_or_insert_with(|| pages.to_vec());
                if let Some(page) = all.as_chunks_mut::<BLOCK_SIZE>().0.get_mut(at as usize) {
                    page.fill(0);
                }
            }
        }
    }

    /// Calls `each` for every page that is behind the end of its file on disk.
    pub(super) fn behind_files(
        &self,
        on_disk: &[FileEntry],
        wanted: &[FileEntry],
        mut each: impl FnMut(&FileEntry, BlockNo, Built),
    ) {
        let in_files = fork_lengths(on_disk);
        for file in wanted.iter().filter(|file| self.is_read(file)) {
            let key = fork_of(file);
            let in_file = in_files.get(&key).copied().unwrap_or_default();
            let first = file.segment.saturating_mul(SEGMENT_BLOCKS);
            for block in first.max(in_file)..first.saturating_add(file.blocks()) {
                each(file, block, self.replay.build(&key, block, || Ok(None)));
            }
            if file.segment == 0
                && let Some((block, error)) =
                    self.replay.impossible(&key, in_files.get(&key).copied())
            {
                each(file, block, Err(error));
            }
        }
    }
}

/// Pages of which some were replaced.
pub(super) struct Replaced {
    /// `None` if they are all as they were.
    pub(super) pages: Option<Vec<u8>>,
    pub(super) bad: u128,
    pub(super) failed: Vec<(BlockNo, PageRedoError)>,
}
