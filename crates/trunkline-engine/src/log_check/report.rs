//! What a check of a log has counted and found.

use std::collections::BTreeMap;
use std::fmt;

use trunkline_format::wal::redo::RedoError;
use trunkline_format::wal::{RelFileLocator, ResourceManager};
use trunkline_format::{BlockNo, Fork, Lsn};

/// The number of findings that are kept. More are only counted.
const FINDINGS_MAX: usize = 1000;

/// Counts of one operation of a resource manager.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct OperationCounts {
    /// Records.
    pub records: u64,
    /// Pages that were changed, and compared with an image.
    pub compared: u64,
    /// Pages that were changed without an image to compare with.
    pub uncompared: u64,
    /// Pages that an image has restored.
    pub restored: u64,
    /// Pages that were not known when the record changed them.
    pub without_base: u64,
    /// Pages for which we have no rule.
    pub not_supported: u64,
    /// Pages that are different, or to which the record couldn't be applied.
    pub different: u64,
}

impl OperationCounts {
    fn add(&mut self, counted: Counted) {
        let count = match counted {
            Counted::Record => &mut self.records,
            Counted::Same => &mut self.compared,
            Counted::Applied => &mut self.uncompared,
            Counted::Restored => &mut self.restored,
            Counted::WithoutBase => &mut self.without_base,
            Counted::NotSupported => &mut self.not_supported,
            Counted::Different => {
                self.compared += 1;
                &mut self.different
            }
            Counted::Unchanged => return,
        };
        *count += 1;
    }

    fn add_all(&mut self, other: &Self) {
        self.records += other.records;
        self.compared += other.compared;
        self.uncompared += other.uncompared;
        self.restored += other.restored;
        self.without_base += other.without_base;
        self.not_supported += other.not_supported;
        self.different += other.different;
    }
}

/// What has become of a page, or that a record was read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Counted {
    Record,
    Same,
    Applied,
    Restored,
    WithoutBase,
    NotSupported,
    Different,
    Unchanged,
}

/// The result of a check.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct LogReport {
    /// By resource manager and operation.
    pub operations: BTreeMap<(ResourceManager, &'static str), OperationCounts>,
    /// The first thousand findings, in the order of the log.
    pub findings: Vec<LogFinding>,
    /// The number of all findings.
    pub findings_total: u64,
    /// Bits of the visibility map that the server had cleared before their records came.
    pub bits_ahead: u64,
}

impl LogReport {
    pub(super) fn count(
        &mut self,
        manager: ResourceManager,
        operation: &'static str,
        counted: Counted,
    ) {
        self.operations.entry((manager, operation)).or_default().add(counted);
    }

    pub(super) fn find(&mut self, finding: LogFinding) {
        self.findings_total += 1;
        if self.findings.len() < FINDINGS_MAX {
            self.findings.push(finding);
        }
    }

    /// The counts of all operations together.
    pub fn total(&self) -> OperationCounts {
        let mut total = OperationCounts::default();
        self.operations.values().for_each(|counts| total.add_all(counts));
        total
    }
}

/// A page on which the log and our redo don't agree.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LogFinding {
    /// Where the record begins.
    pub position: Lsn,
    /// Its resource manager.
    pub manager: ResourceManager,
    /// The name of its operation.
    pub operation: &'static str,
    /// The number of the block reference.
    pub reference: u8,
    /// The relation.
    pub relation: RelFileLocator,
    /// The fork.
    pub fork: Fork,
    /// The block.
    pub block: BlockNo,
    /// What is wrong.
    pub kind: LogFindingKind,
}

/// What is wrong with a page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LogFindingKind {
    /// The page differs from the image in the record.
    Different {
        /// The first byte that differs.
        offset: usize,
        /// That byte after our redo.
        ours: u8,
        /// That byte in the image.
        theirs: u8,
    },
    /// The record can't be applied, or its image can't be restored.
    Redo(RedoError),
    /// An image has shown that the server had cleared a bit of the visibility map. The record sets it
    /// again, but no record has cleared it.
    MapBitNeverCleared,
}

impl fmt::Display for LogFindingKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Different { offset, ours, theirs } => write!(
                f,
                "page differs from the image in the record at byte {offset}: redo makes \
                 0x{ours:02X}, the image has 0x{theirs:02X}"
            ),
            Self::Redo(error) => error.fmt(f),
            Self::MapBitNeverCleared => {
                f.write_str("bit of the visibility map is set again, but no record has cleared it")
            }
        }
    }
}

/// Prints `0/015D2A48 Heap/INSERT, reference 0, 1663/5/16384 block 7: …`.
impl fmt::Display for LogFinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { position, manager, operation, reference, relation, fork, block, kind } = self;
        let fork = fork.suffix();
        write!(
            f,
            "{position} {manager}/{operation}, reference {reference}, {relation}{fork} block \
             {block}: {kind}"
        )
    }
}
