//! Checksums of the files in a backup manifest.
//!
//! `pg_basebackup --manifest-checksums` chooses the algorithm; CRC32C is the default. The manifest has
//! the bytes in hexadecimal. PostgreSQL keeps a CRC as a number in memory and prints the bytes of that
//! memory, so on the machines that we support the lowest byte comes first.

use std::fmt::Write as _;

use sha2::{Digest, Sha224, Sha256, Sha384, Sha512};

/// How a checksum is computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Algorithm {
    Crc32c,
    Sha224,
    Sha256,
    Sha384,
    Sha512,
}

const NAMES: [(Algorithm, &str, usize); 5] = [
    (Algorithm::Crc32c, "CRC32C", 4),
    (Algorithm::Sha224, "SHA224", 28),
    (Algorithm::Sha256, "SHA256", 32),
    (Algorithm::Sha384, "SHA384", 48),
    (Algorithm::Sha512, "SHA512", 64),
];

impl Algorithm {
    /// The algorithm with this name in a manifest, which may be in lower case too. `None` if it is
    /// unknown, or is `NONE`.
    pub(super) fn of_name(name: &str) -> Option<Self> {
        let found = NAMES.into_iter().find(|(_, known, _)| known.eq_ignore_ascii_case(name));
        found.map(|(algorithm, ..)| algorithm)
    }

    /// Its name in a manifest.
    pub(super) fn name(self) -> &'static str {
        let found = NAMES.into_iter().find(|(known, ..)| *known == self);
        found.map_or("", |(_, name, _)| name)
    }

    /// The length of a checksum in bytes.
    pub(super) fn length(self) -> usize {
        let found = NAMES.into_iter().find(|(known, ..)| *known == self);
        found.map_or(0, |(.., length)| length)
    }

    /// Begins a checksum.
    pub(super) fn hasher(self) -> Hasher {
        match self {
            Self::Crc32c => Hasher::Crc32c(0),
            Self::Sha224 => Hasher::Sha224(Box::default()),
            Self::Sha256 => Hasher::Sha256(Box::default()),
            Self::Sha384 => Hasher::Sha384(Box::default()),
            Self::Sha512 => Hasher::Sha512(Box::default()),
        }
    }
}

/// A checksum that is being computed.
#[derive(Debug)]
pub(super) enum Hasher {
    Crc32c(u32),
    Sha224(Box<Sha224>),
    Sha256(Box<Sha256>),
    Sha384(Box<Sha384>),
    Sha512(Box<Sha512>),
}

impl Hasher {
    /// Adds bytes.
    pub(super) fn update(&mut self, bytes: &[u8]) {
        match self {
            Self::Crc32c(crc) => *crc = crc32c::crc32c_append(*crc, bytes),
            Self::Sha224(state) => state.update(bytes),
            Self::Sha256(state) => state.update(bytes),
            Self::Sha384(state) => state.update(bytes),
            Self::Sha512(state) => state.update(bytes),
        }
    }

    /// The checksum.
    pub(super) fn finish(self) -> Vec<u8> {
        match self {
            Self::Crc32c(crc) => crc.to_le_bytes().to_vec(),
            Self::Sha224(state) => state.finalize().to_vec(),
            Self::Sha256(state) => state.finalize().to_vec(),
            Self::Sha384(state) => state.finalize().to_vec(),
            Self::Sha512(state) => state.finalize().to_vec(),
        }
    }
}

/// The checksum of some bytes.
pub(super) fn checksum(algorithm: Algorithm, bytes: &[u8]) -> Vec<u8> {
    let mut hasher = algorithm.hasher();
    hasher.update(bytes);
    hasher.finish()
}

/// Bytes in hexadecimal.
pub(super) fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// The bytes that a text in hexadecimal stands for.
pub(super) fn from_hex(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: &u8| char::from(*byte).to_digit(16);
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    let byte = |[high, low]: &[u8; 2]| Some((digit(high)? * 16 + digit(low)?) as u8);
    if rest.is_empty() { pairs.iter().map(byte).collect() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As PostgreSQL's `crc32c`, `sha224` and so on compute them, and as a manifest prints them.
    #[test]
    fn checksums_are_those_of_a_manifest() {
        for (name, expected) in [
            ("CRC32C", "839206e3"),
            ("SHA224", "9b3e61bf29f17c75572fae2e86e17809a4513d07c8a18152acf34521"),
            ("sha256", "15e2b0d3c33891ebb0f1ef609ec419420c20e320ce94c65fbc8c3312448eb225"),
        ] {
            let algorithm = Algorithm::of_name(name).expect("known");
            let found = checksum(algorithm, b"123456789");
            assert_eq!(to_hex(&found), expected, "{name}");
            assert_eq!(found.len(), algorithm.length());
            assert_eq!(from_hex(expected), Some(found));
        }
        for algorithm in [Algorithm::Sha384, Algorithm::Sha512] {
            assert_eq!(checksum(algorithm, b"").len(), algorithm.length());
            assert_eq!(Algorithm::of_name(algorithm.name()), Some(algorithm));
        }
        assert_eq!(Algorithm::of_name("NONE"), None);
    }

    #[test]
    fn hexadecimal_is_pairs_of_digits() {
        assert_eq!(from_hex("00fF"), Some(vec![0, 255]));
        for text in ["0", "0g", "+1", "é"] {
            assert_eq!(from_hex(text), None, "{text}");
        }
    }
}
