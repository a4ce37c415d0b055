//! The scratch file: pages that were built from the log of a cluster ([`crate::replay`]).
//!
//! It is outside of the data directory and has no name, so it goes with the process. Pages are added in
//! the order in which they are built, so the file is as long as what was asked for, whatever block
//! numbers the log names.

use std::fs::File as StdFile;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use trunkline_aio::File;
use trunkline_aio::facade::hash::Map;
use trunkline_aio::facade::{Arc, Mutex};
use trunkline_format::{BLOCK_SIZE, BlockNo, PageBytes};

use super::file_system::FileSystem;
use super::locator::RelationLocator;
use crate::replay::{ForkKey, Replay};
use crate::scratch_file;

/// The most blocks of which a location says that they are built, so that they are read together.
const RUN_MAX: u32 = 128;

/// The pages that were built, and what is known about the files.
pub(super) struct BuiltPages {
    replay: Arc<Replay>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    scratch: Option<Scratch>,
    /// Where each page is in the scratch file, in blocks.
    built: Map<(ForkKey, BlockNo), u64>,
    /// Whether relations have an `_init` fork.
    unlogged: Map<RelationLocator, bool>,
    /// The lengths of the files of forks that the log changes, in blocks.
    in_files: Map<ForkKey, BlockNo>,
}

/// The scratch file: for writing pages, and for reading them through an I/O instance.
#[derive(Clone)]
struct Scratch {
    writing: Arc<StdFile>,
    reading: File,
    /// Its length in blocks.
    blocks: u64,
}

/// A page in the scratch file.
pub(super) struct BuiltPage {
    pub(super) file: File,
    pub(super) offset: u64,
    /// The number of pages that were built, from this one on.
    pub(super) run: u32,
}

impl BuiltPages {
    pub(super) fn new(replay: Arc<Replay>) -> Self {
        Self { replay, state: Mutex::default() }
    }

    pub(super) fn replay(&self) -> &Replay {
        &self.replay
    }

    /// A page, if it was built.
    pub(super) fn find(&self, key: &ForkKey, block: BlockNo) -> Option<BuiltPage> {
        let state = self.state.lock();
        let place = |ahead: u32| state.built.get(&(*key, block.saturating_add(ahead))).copied();
        let first = place(0)?;
        let follows = |ahead: &u32| place(*ahead) == Some(first + u64::from(*ahead));
        let run = 1 + (1..RUN_MAX).take_while(follows).count() as u32;
        let file = state.scratch.as_ref()?.reading.clone();
        Some(BuiltPage { file, offset: first * BLOCK_SIZE as u64, run })
    }

    /// Whether a page was built.
    pub(super) fn is_built(&self, key: &ForkKey, block: BlockNo) -> bool {
        self.state.lock().built.contains_key(&(*key, block))
    }

    /// Keeps a page, unless another thread has built it meanwhile.
    pub(super) fn keep(
        &self,
        key: &ForkKey,
        block: BlockNo,
        page: &PageBytes,
        system: &dyn FileSystem,
    ) -> io::Result<()> {
        let (writing, place) = {
            let mut state = self.state.lock();
            if state.built.contains_key(&(*key, block)) {
                return Ok(());
            }
            let mut scratch = match state.scratch.take() {
                Some(scratch) => scratch,
                None => self.create(system)?,
            };
            let place = scratch.blocks;
            scratch.blocks += 1;
            let writing = Arc::clone(&scratch.writing);
            state.scratch = Some(scratch);
            (writing, place)
        };
        writing.write_all_at(page, place * BLOCK_SIZE as u64)?;
        self.state.lock().built.insert((*key, block), place);
        Ok(())
    }

    /// Creates the scratch file.
    fn create(&self, system: &dyn FileSystem) -> io::Result<Scratch> {
        // The pages are in memory while they are written, so direct I/O would gain nothing.
        let open = |path: &Path| system.open(path, false);
        let (writing, reading) = scratch_file::create_twice(self.replay.scratch(), open)?;
        Ok(Scratch { writing: Arc::new(writing), reading, blocks: 0 })
    }

    /// Whether a relation has an `_init` fork, if that is known.
    pub(super) fn is_unlogged(&self, locator: RelationLocator) -> Option<bool> {
        self.state.lock().unlogged.get(&locator).copied()
    }

    pub(super) fn set_unlogged(&self, locator: RelationLocator, is_unlogged: bool) {
        self.state.lock().unlogged.insert(locator, is_unlogged);
    }

    /// The length of a fork's file, if it is known. It doesn't change.
    pub(super) fn in_file(&self, key: &ForkKey) -> Option<BlockNo> {
        self.state.lock().in_files.get(key).copied()
    }

    pub(super) fn set_in_file(&self, key: &ForkKey, blocks: BlockNo) {
        self.state.lock().in_files.insert(*key, blocks);
    }
}
