//! **Relation map** (`pg_filenode.map`): the mapped catalogs' file numbers.
//!
//! `pg_class` holds each relation's file number. But a few catalogs, such as `pg_class` itself,
//! must be read before `pg_class` can be. Their `relfilenode` is 0, and the relation map holds the
//! file number instead. There is one map in `global` for shared catalogs, and one in each database
//! directory.
//!
//! ```text
//!   0        4       8                         504 (520)  512 (524)
//!   ├────────┼───────┼──────┬──────┬── … ──┬ … ─┼─────┬────┤
//!   │ magic  │ count │ oid  │ file │       │ 0  │ crc │ pad│       PostgreSQL 15 (16 to 19)
//!   └────────┴───────┴──────┴──────┴── … ──┴ … ─┴─────┴────┘
//! ```
//!
//! Mirrors `RelMapFile` in PostgreSQL's `utils/cache/relmapper.c`.

use crate::control::PgVersion;
use crate::ids::Oid;
use crate::little_endian::read_at;
use thiserror::Error;

/// The map's file name, in `global` and in each database directory.
pub const RELATION_MAP_NAME: &str = "pg_filenode.map";

/// `RELMAPPER_FILEMAGIC`: the first four bytes.
const MAGIC: u32 = 0x0059_2717;

/// Size of the header before the mappings, in bytes.
const HEADER: usize = 8;

/// Size of one mapping, in bytes: the catalog's OID and its file number.
const PAIR: usize = 8;

/// A relation map that passed all checks.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct RelationMap {
    pairs: Vec<(Oid, u32)>,
}

/// The reason why a relation map is invalid.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum RelationMapError {
    /// The file's size doesn't match its version.
    #[error("relation map has {found} bytes, expected {expected}")]
    Size {
        /// The actual size.
        found: usize,
        /// The size of a map of this version.
        expected: usize,
    },
    /// The magic number is wrong.
    #[error("relation map begins with 0x{found:08X}, expected 0x{MAGIC:08X}", MAGIC = MAGIC)]
    Magic {
        /// The first four bytes.
        found: u32,
    },
    /// The count exceeds the number of mappings that fit.
    #[error("relation map counts {found} relations, expected at most {most}")]
    Count {
        /// The count in the file.
        found: u32,
        /// The number of mappings that fit.
        most: usize,
    },
    /// The checksum doesn't match the contents.
    #[error("relation map has checksum 0x{found:08X}, expected 0x{expected:08X}")]
    Crc {
        /// The stored checksum.
        found: u32,
        /// The checksum computed from the contents.
        expected: u32,
    },
    /// A mapping contains OID 0 or file number 0.
    #[error("relation map has a relation or file numbered 0")]
    Zero,
}

/// Size of a map file in `version`, in bytes.
pub fn relation_map_size(version: PgVersion) -> usize {
    if version == PgVersion::V15 { 512 } else { 524 }
}

impl RelationMap {
    /// Parses a map file from a cluster of `version`.
    ///
    /// # Errors
    /// [`RelationMapError`] if any part of the file differs from what a server writes.
    pub fn parse(bytes: &[u8], version: PgVersion) -> Result<Self, RelationMapError> {
        let expected = relation_map_size(version);
        if bytes.len() != expected {
            return Err(RelationMapError::Size { found: bytes.len(), expected });
        }
        let number = |at| read_at::<u32>(bytes, at).unwrap_or_default();
        let found = number(0);
        if found != MAGIC {
            return Err(RelationMapError::Magic { found });
        }
        // In 15 the structure was padded to 512 bytes, after the checksum.
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

    /// The file number of a mapped catalog or index; `None` if this map doesn't contain it.
    pub fn file_of(&self, relation: Oid) -> Option<u32> {
        self.pairs.iter().find(|(oid, _)| *oid == relation).map(|&(_, file)| file)
    }

    /// All relations and their file numbers, in file order, which has no meaning.
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

    /// Arbitrary bytes never panic, and every flipped bit outside the padding is detected.
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
