//! The relation files of a directory as they are at the end of its log: what a server would find after
//! recovery.
//!
//! Files that the log has removed are gone, those that it has created or extended are there, and the
//! main fork of an unlogged relation is as long as its `_init` fork. Only lengths differ from the files
//! on disk; no reader opens files by this list.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use trunkline_format::segment::RelationFile;
use trunkline_format::wal::RelFileLocator;
use trunkline_format::{BLOCK_SIZE, BlockNo, Fork, Oid, SEGMENT_BLOCKS};

use super::files::{FileEntry, FileList, database_directory};
use crate::replay::{ForkKey, Replay};

/// Where relations are.
pub(super) struct Places<'p> {
    pub(super) root: &'p Path,
    pub(super) moved: &'p [(Oid, std::path::PathBuf)],
    /// The name of the folder inside each tablespace.
    pub(super) version: &'p str,
}

/// The fork that a file belongs to.
pub(crate) fn fork_of(file: &FileEntry) -> ForkKey {
    let FileEntry { tablespace, database, relfilenode: number, fork, .. } = *file;
    (RelFileLocator { tablespace, database, number }, fork)
}

/// The lengths of all forks in blocks, as far as their segments follow each other.
pub(crate) fn fork_lengths(files: &[FileEntry]) -> BTreeMap<ForkKey, BlockNo> {
    let mut lengths: BTreeMap<ForkKey, BlockNo> = BTreeMap::new();
    for file in files {
        let length = lengths.entry(fork_of(file)).or_default();
        if file.segment.checked_mul(SEGMENT_BLOCKS) == Some(*length) {
            *length = length.saturating_add(file.blocks());
        }
    }
    lengths
}

/// Changes a list of the files on disk into one of the files as of the end of the log.
pub(super) fn replay_list(list: &mut FileList, replay: &Replay, places: &Places<'_>) {
    let on_disk = fork_lengths(&list.files);
    let mut wanted: BTreeMap<ForkKey, Option<BlockNo>> = BTreeMap::new();
    for key in on_disk.keys().chain(replay.changed_forks()) {
        let in_file = on_disk.get(key).copied();
        wanted.insert(*key, replay.length(key, in_file));
    }
    // After a recovery, unlogged relations are copies of their _init forks, and have no maps.
    let init = wanted.iter().filter(|((_, fork), length)| *fork == Fork::Init && length.is_some());
    let init: Vec<(RelFileLocator, Option<BlockNo>)> =
        init.map(|((relation, _), length)| (*relation, *length)).collect();
    for (relation, length) in init {
        wanted.insert((relation, Fork::Main), length);
        for map in [Fork::Vm, Fork::Fsm] {
            wanted.entry((relation, map)).and_modify(|length| *length = None);
        }
    }
    let is_changed = |key: &ForkKey| {
        let wanted = wanted.get(key).copied().flatten();
        wanted != on_disk.get(key).copied()
    };
    list.files.retain(|file| !is_changed(&fork_of(file)));
    for (key, length) in &wanted {
        if let Some(length) = length.filter(|_| is_changed(key)) {
            list.files.extend(segments(key, length, places));
        }
    }
    list.files.sort_by_key(|file| {
        let FileEntry { tablespace, database, relfilenode, fork, segment, .. } = *file;
        (tablespace, database, relfilenode, Fork::ALL.iter().position(|it| *it == fork), segment)
    });
}

/// The segments of a fork.
fn segments(key: &ForkKey, length: BlockNo, places: &Places<'_>) -> Vec<FileEntry> {
    let (RelFileLocator { tablespace, database, number: relfilenode }, fork) = *key;
    let place = (tablespace, database);
    let folder = database_directory(places.root, places.moved, places.version, place);
    let device = std::fs::metadata(&folder).map_or(0, |metadata| metadata.dev());
    (0..=length.saturating_sub(1) / SEGMENT_BLOCKS)
        .map(|segment| {
            let path = folder.join(RelationFile { relfilenode, fork, segment }.to_string());
            let blocks = (length - segment * SEGMENT_BLOCKS).min(SEGMENT_BLOCKS);
            let bytes = u64::from(blocks) * BLOCK_SIZE as u64;
            FileEntry { path, tablespace, database, relfilenode, fork, segment, bytes, device }
        })
        .collect()
}
