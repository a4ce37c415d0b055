//! **Invalidation messages**: which catalog caches of other sessions a transaction makes stale.
//!
//! Commit records carry them for standbys and for logical decoding. Only their description needs
//! them; a reader of pages has no such caches.
//!
//! Mirrors `SharedInvalidationMessage` in PostgreSQL's `storage/sinval.h`.

use std::fmt;

use super::fields::Fields;

/// One message. The numbers are OIDs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Invalidation {
    /// A row of a catalog cache; the number of the cache.
    CatalogCache(i8),
    /// A whole catalog.
    Catalog(u32),
    /// A relation's descriptor.
    Relation(u32),
    /// A relation's open files.
    Files,
    /// A database's relation map.
    RelationMap(u32),
    /// Snapshots of a catalog.
    Snapshot(u32),
    /// Since 18: what logical replication has cached about a relation.
    RelationSync(u32),
    /// A kind that we don't know.
    Unknown(i8),
}

impl Invalidation {
    /// Size in bytes.
    const SIZE: usize = 16;

    pub(super) fn list(fields: &mut Fields<'_>, count: usize) -> Option<Vec<Self>> {
        fields.list(count, |fields| Self::parse(fields.bytes(Self::SIZE)?))
    }

    fn parse(bytes: &[u8]) -> Option<Self> {
        let word = |at| Fields::of(bytes).skip_to(at).u32();
        Some(match Fields::of(bytes).u8()? as i8 {
            cache @ 0.. => Self::CatalogCache(cache),
            -1 => Self::Catalog(word(8)?),
            -2 => Self::Relation(word(8)?),
            -3 => Self::Files,
            -4 => Self::RelationMap(word(4)?),
            -5 => Self::Snapshot(word(8)?),
            -6 => Self::RelationSync(word(8)?),
            unknown => Self::Unknown(unknown),
        })
    }
}

impl fmt::Display for Invalidation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::CatalogCache(cache) => write!(f, "catcache {cache}"),
            Self::Catalog(catalog) => write!(f, "catalog {catalog}"),
            Self::Relation(relation) => write!(f, "relcache {relation}"),
            Self::Files => f.write_str("smgr"),
            Self::RelationMap(database) => write!(f, "relmap db {database}"),
            Self::Snapshot(relation) => write!(f, "snapshot {relation}"),
            Self::RelationSync(relation) => write!(f, "relsync {relation}"),
            Self::Unknown(id) => write!(f, "unrecognized id {id}"),
        }
    }
}
