//! **Relation map** (`pg_filenode.map`): the file numbers of the mapped catalogs.
//!
//! `pg_class` holds the file number of a relation. A few catalogs, such as `pg_class` itself, are read
//! before `pg_class` can be; their `relfilenode` is 0, and this file has the number instead. There
//! is one in `global` for shared catalogs and one in each database's directory.
//!
//! ```text
//!   0        4       8                         504 (520)  512 (524)
//!   ├────────┼───────┼──────┬──────┬── … ──┬ … ─┼─────┬────┤
//!   │ magic  │ count │ oid  │ file │       │ 0  │ crc │ pad│       PostgreSQL 15 (16 to 19)
//!   └────────┴───────┴──────┴──────┴── … ──┴ … ─┴─────┴────┘
//! ```
//!
//! Mirrors `RelMapFile` of PostgreSQL's `utils/cache/relmapper.c`.

use crate::control::PgVersion;
use crate::ids::Oid;
use crate::little_endian::u32_at;
use thiserror::Error;

/// The file's name in `global` and in a database's directory.
pub const RELATION_MAP_NAME: &str = "pg_filenode.map";

/// The first four bytes.
const MAGIC: u32 = 0x0059_2717;

/// Bytes before the pairs.
const HEADER: usize = 8;

/// Bytes of a pair: the catalog and its file.
const PAIR: usize = 8;

/// A map that was read and found sound.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct RelationMap {
    pairs: Vec<(Oid, u32)>,
}

/// Why a file is no map.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum RelationMapError {
    /// It is not as long as a map of its version.
    #[error("relation map has {found} bytes, expected {expected}")]
    Size {
        /// Its bytes.
        found: usize,
        /// Bytes of a map.
        expected: usize,
    },
    /// It begins otherwise.
    #[error("relation map begins with 0x{found:08X}, expected 0x{MAGIC:08X}", MAGIC = MAGIC)]
    Magic {
        /// Its first four bytes.
        found: u32,
    },
    /// It counts more pairs than there is room for.
    #[error("relation map counts {found} relations, expected at most {most}")]
    Count {
        /// The pairs that it counts.
        found: u32,
        /// The pairs that there is room for.
        most: usize,
    },
    /// Its checksum does not agree with its bytes.
    #[error("relation map has checksum 0x{found:08X}, expected 0x{expected:08X}")]
    Crc {
        /// The checksum in the file.
        found: u32,
        /// The checksum of its bytes.
        expected: u32,
    },
    /// A catalog or its file has the number 0.
    #[error("relation map has a relation or file numbered 0")]
    Zero,
}

/// Bytes of a map file of `version`.
pub fn relation_map_size(version: PgVersion) -> usize {
    if version == PgVersion::V15 { 512 } else { 524 }
}

impl RelationMap {
    /// Reads a map file of a cluster of `version`.
    ///
    /// # Errors
    /// [`RelationMapError`]: any part of it is not as a server writes it.
    pub fn parse(bytes: &[u8], version: PgVersion) -> Result<Self, RelationMapError> {
        let expected = relation_map_size(version);
        if bytes.len() != expected {
            return Err(RelationMapError::Size { found: bytes.len(), expected });
        }
        let number = |at| u32_at(bytes, at).unwrap_or_default();
        let found = number(0);
        if found != MAGIC {
            return Err(RelationMapError::Magic { found });
        }
        // In 15 the structure was padded to half a kilobyte, behind the checksum.
        let crc_at = if version == PgVersion::V15 { 504 } else { 520 };
        let covered = bytes.get(..crc_at).unwrap_or_default();
        let (found, expected) = (number(crc_at), crc32c::crc32c(covered));
        if found != expected {
            return Err(RelationMapError::Crc { found, expected });
        }
        let (found, most) = (number(4), (crc_at - HEADER) / PAIR);
        let count = usize::try_from(found).ok().filter(|&count| count <= most);
        let count = count.ok_or(RelationMapError::Count { found, most })?;
        let places = (0..count).map(|pair| HEADER + pair * PAIR);
        let pairs: Vec<_> = places.map(|at| (Oid(number(at)), number(at + 4))).collect();
        if pairs.iter().any(|&(Oid(oid), file)| oid == 0 || file == 0) {
            return Err(RelationMapError::Zero);
        }
        Ok(Self { pairs })
    }

    /// The file number of a mapped catalog or index; `None` if it is not mapped here.
    pub fn file_of(&self, relation: Oid) -> Option<u32> {
        self.pairs.iter().find(|(oid, _)| *oid == relation).map(|&(_, file)| file)
    }

    /// Relations and their file numbers, in the file's order, which means nothing.
    pub fn pairs(&self) -> &[(Oid, u32)] {
        &self.pairs
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_data::XorShift;

    fn map(version: PgVersion, count: u32, pairs: &[(u32, u32)]) -> Vec<u8> {
        let mut bytes = MAGIC.to_le_bytes().to_vec();
        bytes.extend(count.to_le_bytes());
        for (oid, file) in pairs {
            bytes.extend(oid.to_le_bytes());
            bytes.extend(file.to_le_bytes());
        }
        bytes.resize(if version == PgVersion::V15 { 504 } else { 520 }, 0);
        bytes.extend(crc32c::crc32c(&bytes).to_le_bytes());
        bytes.resize(relation_map_size(version), 0);
        bytes
    }

    #[test]
    fn maps_of_every_version() {
        for version in PgVersion::ALL {
            let bytes = map(version, 2, &[(1259, 16_400), (1249, 1249)]);
            let map = RelationMap::parse(&bytes, version).expect("sound");
            assert_eq!(map.file_of(Oid(1259)), Some(16_400));
            assert_eq!(map.file_of(Oid(1249)), Some(1249));
            assert_eq!(map.file_of(Oid(1262)), None);
            assert_eq!(map.pairs().len(), 2);
        }
    }

    #[test]
    fn what_is_wrong_is_named() {
        use PgVersion::{V15, V18};
        let good = map(V18, 1, &[(1259, 1259)]);
        let check = |bytes: &[u8], version, expected: &str| {
            let error = RelationMap::parse(bytes, version).expect_err("refused");
            assert!(error.to_string().starts_with(expected), "{error}");
        };
        check(&good, V15, "relation map has 524 bytes, expected 512");
        check(&[], V15, "relation map has 0 bytes");
        check(&[0; 524], V18, "relation map begins with 0x00000000, expected 0x00592717");
        check(&map(V18, 65, &[]), V18, "relation map counts 65 relations, expected at most 64");
        check(&map(V15, 63, &[]), V15, "relation map counts 63 relations, expected at most 62");
        check(&map(V18, u32::MAX, &[]), V18, "relation map counts 4294967295");
        check(&map(V18, 1, &[]), V18, "relation map has a relation or file numbered 0");
        let mut flipped = good.clone();
        flipped[300] ^= 4;
        check(&flipped, V18, "relation map has checksum");
    }

    /// Whatever the bytes, there is an answer; and no flipped bit goes unnoticed, padding apart.
    #[test]
    fn any_bytes() {
        let seed = 0x4E17;
        let mut random = XorShift(seed);
        for version in PgVersion::ALL {
            let good = map(version, 3, &[(1259, 1259), (1249, 1249), (1247, 1247)]);
            for _ in 0..2_000 {
                let mut bytes = good.clone();
                let at = random.below(good.len());
                bytes[at] ^= 1 << random.below(8);
                let padding = version == PgVersion::V15 && at >= 508;
                assert_eq!(RelationMap::parse(&bytes, version).is_ok(), padding, "seed {seed}");
                random.fill(&mut bytes);
                assert!(RelationMap::parse(&bytes, version).is_err(), "seed {seed}");
            }
        }
    }
}
