//! **Resource managers**: the parts of a server that write log records, and the names of their
//! operations.
//!
//! A record names its manager by a number. The upper four bits of its `info` say which operation
//! it logs; a few managers use some of the bits as flags. The names here are those of `pg_waldump`,
//! by which records are known everywhere. Extensions may use numbers from 128 on.
//!
//! Mirrors PostgreSQL's `access/rmgrlist.h` and the `*_xlog.h` header of each manager.

use std::fmt;

use crate::control::PgVersion;
use crate::ids::Lsn;
use crate::little_endian::read_at;

use super::record::{Record, RecordHeader};

/// Numbers of resource managers.
pub mod number {
    /// Checkpoints, images, and everything about the log itself.
    pub const XLOG: u8 = 0;
    /// Commit, abort, prepared transactions.
    pub const TRANSACTION: u8 = 1;
    /// Creation and truncation of relation files.
    pub const STORAGE: u8 = 2;
    /// The commit log.
    pub const CLOG: u8 = 3;
    /// Creation and removal of databases.
    pub const DATABASE: u8 = 4;
    /// Creation and removal of tablespaces.
    pub const TABLESPACE: u8 = 5;
    /// Multixacts.
    pub const MULTIXACT: u8 = 6;
    /// Relation maps.
    pub const RELMAP: u8 = 7;
    /// What a hot standby must know.
    pub const STANDBY: u8 = 8;
    /// More operations on heap pages.
    pub const HEAP2: u8 = 9;
    /// Heap pages.
    pub const HEAP: u8 = 10;
    /// B-tree indexes.
    pub const BTREE: u8 = 11;
    /// Hash indexes.
    pub const HASH: u8 = 12;
    /// GIN indexes.
    pub const GIN: u8 = 13;
    /// GiST indexes.
    pub const GIST: u8 = 14;
    /// Sequences.
    pub const SEQUENCE: u8 = 15;
    /// SP-GiST indexes.
    pub const SP_GIST: u8 = 16;
    /// BRIN indexes.
    pub const BRIN: u8 = 17;
    /// Commit timestamps.
    pub const COMMIT_TS: u8 = 18;
    /// Differences of any pages, for the index methods of extensions.
    pub const GENERIC: u8 = 20;
}

/// Operations of `XLOG` that our own clusters write.
pub mod xlog_operation {
    /// A checkpoint with nothing beside it.
    pub const CHECKPOINT_SHUTDOWN: u8 = 0x00;
    /// A checkpoint is complete.
    pub const CHECKPOINT_ONLINE: u8 = 0x10;
    /// A record without meaning.
    pub const NOOP: u8 = 0x20;
    /// OIDs below a number may be in use.
    pub const NEXT_OID: u8 = 0x30;
    /// An image of a page before its first change that is not logged.
    pub const FPI_FOR_HINT: u8 = 0xA0;
    /// Images of pages.
    pub const FPI: u8 = 0xB0;
    /// From 17: a checkpoint begins.
    pub const CHECKPOINT_REDO: u8 = 0xE0;
}

/// Operations of `MultiXact`.
pub mod multixact_operation {
    /// A page of offsets is filled with zeros.
    pub const ZERO_OFFSETS_PAGE: u8 = 0x00;
    /// A page of members is filled with zeros.
    pub const ZERO_MEMBERS_PAGE: u8 = 0x10;
    /// A multixact is created.
    pub const CREATE_ID: u8 = 0x20;
}

/// Operations of `Heap`.
pub mod heap_operation {
    /// Insert a tuple.
    pub const INSERT: u8 = 0x00;
    /// Delete a tuple.
    pub const DELETE: u8 = 0x10;
    /// Replace a tuple.
    pub const UPDATE: u8 = 0x20;
    /// `TRUNCATE`, for logical decoding.
    pub const TRUNCATE: u8 = 0x30;
    /// Replace a tuple on the same page, without index entries.
    pub const HOT_UPDATE: u8 = 0x40;
    /// Confirm a speculative insertion.
    pub const CONFIRM: u8 = 0x50;
    /// Lock a tuple.
    pub const LOCK: u8 = 0x60;
    /// A flag beside an operation of Heap or Heap2: block 0 is made from scratch (`XLOG_HEAP_INIT_PAGE`).
    pub const INITIALISE: u8 = 0x80;
}

/// Operations of `Heap2`.
pub mod heap2_operation {
    /// For logical decoding.
    pub const REWRITE: u8 = 0x00;
    /// A prune: line pointers are changed, and items moved. Since 17, this and the next two numbers stand for the same
    /// record, which also freezes rows; only the reason differs. This one is on-access pruning (`PRUNE_ON_ACCESS`).
    pub const PRUNE: u8 = 0x10;
    /// In 15 and 16, the second pass of `VACUUM`: dead line pointers become unused. Since 17, this number is
    /// [`PRUNE_VACUUM_SCAN`].
    pub const VACUUM: u8 = 0x20;
    /// In 15 and 16, rows are frozen. Since 17, this number is [`PRUNE_VACUUM_CLEANUP`].
    pub const FREEZE_PAGE: u8 = 0x30;
    /// Since 17: a prune record of the first pass of `VACUUM`.
    pub const PRUNE_VACUUM_SCAN: u8 = VACUUM;
    /// Since 17: a prune record of the second pass of `VACUUM`: dead line pointers become unused.
    pub const PRUNE_VACUUM_CLEANUP: u8 = FREEZE_PAGE;
    /// Until 18: set bits in the visibility map.
    pub const VISIBLE: u8 = 0x40;
    /// Insert several tuples into a page.
    pub const MULTI_INSERT: u8 = 0x50;
    /// Lock a version that was updated already.
    pub const LOCK_UPDATED: u8 = 0x60;
    /// For logical decoding.
    pub const NEW_CID: u8 = 0x70;
}

/// Operations of `Btree`.
pub mod btree_operation {
    /// Insert an entry on a leaf.
    pub const INSERT_LEAF: u8 = 0x00;
    /// Insert a downlink, which completes the split of a child.
    pub const INSERT_UPPER: u8 = 0x10;
    /// The same, and the fast root changes.
    pub const INSERT_META: u8 = 0x20;
    /// Split a page. The new entry goes to the left half.
    pub const SPLIT_LEFT: u8 = 0x30;
    /// Split a page. The new entry goes to the right half.
    pub const SPLIT_RIGHT: u8 = 0x40;
    /// Insert a row in the middle of a posting list.
    pub const INSERT_POST: u8 = 0x50;
    /// Merge entries into posting lists.
    pub const DEDUP: u8 = 0x60;
    /// Delete dead entries to make room.
    pub const DELETE: u8 = 0x70;
    /// Take a half-dead page out of the links of its level.
    pub const UNLINK_PAGE: u8 = 0x80;
    /// The same, and the fast root changes.
    pub const UNLINK_PAGE_META: u8 = 0x90;
    /// A new root, above the old one if there is one.
    pub const NEW_ROOT: u8 = 0xA0;
    /// Begin to delete a page.
    pub const MARK_PAGE_HALF_DEAD: u8 = 0xB0;
    /// Delete entries of rows that `VACUUM` has removed.
    pub const VACUUM: u8 = 0xC0;
    /// A deleted page is used again.
    pub const REUSE_PAGE: u8 = 0xD0;
    /// Write the metapage.
    pub const META_CLEANUP: u8 = 0xE0;
}

/// The first number that extensions may use.
const CUSTOM_MIN: u8 = 128;

/// `XLOG_SWITCH`: the rest of the segment is empty.
const SWITCH: u8 = 0x40;

/// `XLOG_OVERWRITE_CONTRECORD`.
const OVERWRITE_CONTRECORD: u8 = 0xD0;

/// The names of the built-in managers, by number.
const NAMES: [&str; 22] = [
    "XLOG",
    "Transaction",
    "Storage",
    "CLOG",
    "Database",
    "Tablespace",
    "MultiXact",
    "RelMap",
    "Standby",
    "Heap2",
    "Heap",
    "Btree",
    "Hash",
    "Gin",
    "Gist",
    "Sequence",
    "SPGist",
    "BRIN",
    "CommitTs",
    "ReplicationOrigin",
    "Generic",
    "LogicalMessage",
];

/// A resource manager.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ResourceManager(pub u8);

impl ResourceManager {
    /// All built-in managers.
    pub fn all() -> impl Iterator<Item = Self> {
        (0..NAMES.len() as u8).map(Self)
    }

    /// Whether a record may have this number.
    pub fn is_valid(self) -> bool {
        usize::from(self.0) < NAMES.len() || self.is_custom()
    }

    /// Whether its records change index pages, including those of extensions. Custom managers and Generic can also be those
    /// of a table access method.
    pub fn is_of_index_method(self) -> bool {
        use number::{BRIN, GENERIC, GIN, GIST, HASH, SP_GIST};
        self.is_custom() || matches!(self.0, HASH | GIN | GIST | SP_GIST | BRIN | GENERIC)
    }

    /// Whether it is the manager of an extension, whose operations we can't know.
    pub fn is_custom(self) -> bool {
        self.0 >= CUSTOM_MIN
    }

    /// Finds a manager by name, regardless of case, or a custom one such as `custom130`.
    pub fn find(name: &str) -> Option<Self> {
        let built_in = NAMES.iter().position(|known| known.eq_ignore_ascii_case(name));
        if let Some(number) = built_in {
            return Some(Self(number as u8));
        }
        let (word, number) = name.split_at_checked("custom".len())?;
        let number = number.parse::<u8>().ok().filter(|_| number.len() == 3)?;
        (word.eq_ignore_ascii_case("custom") && number >= CUSTOM_MIN).then_some(Self(number))
    }
}

/// Prints the manager's name. We can't know the names that extensions give to theirs.
impl fmt::Display for ResourceManager {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match NAMES.get(usize::from(self.0)) {
            Some(name) => f.pad(name),
            None => f.pad(&format!("custom{:03}", self.0)),
        }
    }
}

/// Whether a record switches to the next segment.
pub(super) fn is_switch(header: &RecordHeader) -> bool {
    header.manager == number::XLOG && header.operation() == SWITCH
}

/// The record that was cut off, if this record explains why.
pub(super) fn overwritten_record(record: &Record<'_>) -> Option<Lsn> {
    let header = record.header();
    let is_it = header.manager == number::XLOG && header.operation() == OVERWRITE_CONTRECORD;
    is_it.then(|| read_at(record.main_data(), 0).map(Lsn)).flatten()
}

/// The name of a record's operation, as `pg_waldump` prints it. `None` if this version has no such
/// operation.
pub fn operation_name(record: &RecordHeader, version: PgVersion) -> Option<&'static str> {
    let operation = record.operation();
    let name = |names: &[(u8, &'static str)], operation: u8| {
        names.iter().find(|(known, _)| *known == operation).map(|(_, name)| *name)
    };
    let since_17 = version >= PgVersion::V17;
    match record.manager {
        number::XLOG => name(&XLOG, operation).or_else(|| {
            let of_19 = if version >= PgVersion::V19 { name(&XLOG_19, operation) } else { None };
            of_19.or_else(|| since_17.then(|| name(&XLOG_17, operation)).flatten())
        }),
        // The highest bit says that the record has more parts.
        number::TRANSACTION => name(&TRANSACTION, operation & 0x70),
        number::STORAGE => name(&[(0x10, "CREATE"), (0x20, "TRUNCATE")], operation),
        number::CLOG | number::COMMIT_TS => {
            name(&[(0x00, "ZEROPAGE"), (0x10, "TRUNCATE")], operation)
        }
        number::DATABASE => name(&DATABASE, operation),
        number::TABLESPACE => name(&[(0x00, "CREATE"), (0x10, "DROP")], operation),
        number::MULTIXACT => name(&MULTIXACT, operation),
        number::RELMAP => name(&[(0x00, "UPDATE")], operation),
        number::STANDBY => name(&STANDBY, operation),
        number::HEAP2 if since_17 => name(&HEAP2, operation).or_else(|| name(&HEAP2_17, operation)),
        number::HEAP2 => name(&HEAP2, operation).or_else(|| name(&HEAP2_15, operation)),
        number::HEAP => name(&HEAP, operation),
        number::BTREE => name(&BTREE, operation),
        number::HASH => name(&HASH, operation),
        number::GIN => name(&GIN, operation),
        number::GIST if version >= PgVersion::V19 && operation == 0x70 => None,
        number::GIST => name(&GIST, operation),
        number::SEQUENCE => name(&[(0x00, "LOG")], operation),
        number::SP_GIST => name(&SPGIST, operation),
        number::BRIN => name(&BRIN, operation),
        19 => name(&[(0x00, "SET"), (0x10, "DROP")], operation),
        number::GENERIC => Some("Generic"),
        21 => name(&[(0x00, "MESSAGE")], operation),
        _ => None,
    }
}

type Names<const N: usize> = [(u8, &'static str); N];

const XLOG: Names<13> = [
    (0x00, "CHECKPOINT_SHUTDOWN"),
    (0x10, "CHECKPOINT_ONLINE"),
    (0x20, "NOOP"),
    (0x30, "NEXTOID"),
    (0x40, "SWITCH"),
    (0x50, "BACKUP_END"),
    (0x60, "PARAMETER_CHANGE"),
    (0x70, "RESTORE_POINT"),
    (0x80, "FPW_CHANGE"),
    (0x90, "END_OF_RECOVERY"),
    (0xA0, "FPI_FOR_HINT"),
    (0xB0, "FPI"),
    (0xD0, "OVERWRITE_CONTRECORD"),
];
const XLOG_17: Names<1> = [(0xE0, "CHECKPOINT_REDO")];
const XLOG_19: Names<2> = [(0xC0, "ASSIGN_LSN"), (0xF0, "LOGICAL_DECODING_STATUS_CHANGE")];
const TRANSACTION: Names<7> = [
    (0x00, "COMMIT"),
    (0x10, "PREPARE"),
    (0x20, "ABORT"),
    (0x30, "COMMIT_PREPARED"),
    (0x40, "ABORT_PREPARED"),
    (0x50, "ASSIGNMENT"),
    (0x60, "INVALIDATION"),
];
const DATABASE: Names<3> = [(0x00, "CREATE_FILE_COPY"), (0x10, "CREATE_WAL_LOG"), (0x20, "DROP")];
const MULTIXACT: Names<4> =
    [(0x00, "ZERO_OFF_PAGE"), (0x10, "ZERO_MEM_PAGE"), (0x20, "CREATE_ID"), (0x30, "TRUNCATE_ID")];
const STANDBY: Names<3> = [(0x00, "LOCK"), (0x10, "RUNNING_XACTS"), (0x20, "INVALIDATIONS")];
const HEAP2: Names<6> = [
    (0x00, "REWRITE"),
    (0x40, "VISIBLE"),
    (0x50, "MULTI_INSERT"),
    (0xD0, "MULTI_INSERT+INIT"),
    (0x60, "LOCK_UPDATED"),
    (0x70, "NEW_CID"),
];
const HEAP2_15: Names<3> = [(0x10, "PRUNE"), (0x20, "VACUUM"), (0x30, "FREEZE_PAGE")];
const HEAP2_17: Names<3> =
    [(0x10, "PRUNE_ON_ACCESS"), (0x20, "PRUNE_VACUUM_SCAN"), (0x30, "PRUNE_VACUUM_CLEANUP")];
const HEAP: Names<11> = [
    (0x00, "INSERT"),
    (0x80, "INSERT+INIT"),
    (0x10, "DELETE"),
    (0x20, "UPDATE"),
    (0xA0, "UPDATE+INIT"),
    (0x30, "TRUNCATE"),
    (0x40, "HOT_UPDATE"),
    (0xC0, "HOT_UPDATE+INIT"),
    (0x50, "HEAP_CONFIRM"),
    (0x60, "LOCK"),
    (0x70, "INPLACE"),
];
const BTREE: Names<15> = [
    (0x00, "INSERT_LEAF"),
    (0x10, "INSERT_UPPER"),
    (0x20, "INSERT_META"),
    (0x30, "SPLIT_L"),
    (0x40, "SPLIT_R"),
    (0x50, "INSERT_POST"),
    (0x60, "DEDUP"),
    (0x70, "DELETE"),
    (0x80, "UNLINK_PAGE"),
    (0x90, "UNLINK_PAGE_META"),
    (0xA0, "NEWROOT"),
    (0xB0, "MARK_PAGE_HALFDEAD"),
    (0xC0, "VACUUM"),
    (0xD0, "REUSE_PAGE"),
    (0xE0, "META_CLEANUP"),
];
const HASH: Names<13> = [
    (0x00, "INIT_META_PAGE"),
    (0x10, "INIT_BITMAP_PAGE"),
    (0x20, "INSERT"),
    (0x30, "ADD_OVFL_PAGE"),
    (0x40, "SPLIT_ALLOCATE_PAGE"),
    (0x50, "SPLIT_PAGE"),
    (0x60, "SPLIT_COMPLETE"),
    (0x70, "MOVE_PAGE_CONTENTS"),
    (0x80, "SQUEEZE_PAGE"),
    (0x90, "DELETE"),
    (0xA0, "SPLIT_CLEANUP"),
    (0xB0, "UPDATE_META_PAGE"),
    (0xC0, "VACUUM_ONE_PAGE"),
];
const GIN: Names<9> = [
    (0x10, "CREATE_PTREE"),
    (0x20, "INSERT"),
    (0x30, "SPLIT"),
    (0x40, "VACUUM_PAGE"),
    (0x50, "DELETE_PAGE"),
    (0x60, "UPDATE_META_PAGE"),
    (0x70, "INSERT_LISTPAGE"),
    (0x80, "DELETE_LISTPAGE"),
    (0x90, "VACUUM_DATA_LEAF_PAGE"),
];
const GIST: Names<6> = [
    (0x00, "PAGE_UPDATE"),
    (0x10, "DELETE"),
    (0x20, "PAGE_REUSE"),
    (0x30, "PAGE_SPLIT"),
    (0x60, "PAGE_DELETE"),
    (0x70, "ASSIGN_LSN"),
];
const SPGIST: Names<8> = [
    (0x10, "ADD_LEAF"),
    (0x20, "MOVE_LEAFS"),
    (0x30, "ADD_NODE"),
    (0x40, "SPLIT_TUPLE"),
    (0x50, "PICKSPLIT"),
    (0x60, "VACUUM_LEAF"),
    (0x70, "VACUUM_ROOT"),
    (0x80, "VACUUM_REDIRECT"),
];
const BRIN: Names<8> = [
    (0x00, "CREATE_INDEX"),
    (0x10, "INSERT"),
    (0x90, "INSERT+INIT"),
    (0x20, "UPDATE"),
    (0xA0, "UPDATE+INIT"),
    (0x30, "SAMEPAGE_UPDATE"),
    (0x40, "REVMAP_EXTEND"),
    (0x50, "DESUMMARIZE"),
];
