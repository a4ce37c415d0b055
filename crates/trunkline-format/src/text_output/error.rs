//! Why a value cannot be printed: its bytes are damaged, or its type is unknown.
//!
//! The messages state the type. The caller adds the column and the row.

use crate::ids::Oid;
use crate::varlena::VarlenaError;
use std::fmt;
use thiserror::Error;

/// Maximum length of a compound value's text: 1 GiB, as in the server.
pub const TEXT_MAX: usize = 1 << 30;

/// Fails if more than [`TEXT_MAX`] bytes were written since `start`.
pub(super) fn bounded(start: usize, out: &[u8]) -> Result<(), ValueError> {
    if out.len() - start <= TEXT_MAX {
        return Ok(());
    }
    Err(ValueError::Malformed { type_name: "compound", what: "a text above 1 GiB" })
}

/// Bytes that aren't a valid value of their type.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ValueError {
    /// A fixed-length type's value has the wrong length.
    #[error("{type_name}: {found} bytes, expected {expected}")]
    Length {
        /// The type, as PostgreSQL names it.
        type_name: &'static str,
        /// The type's length.
        expected: usize,
        /// The number of bytes found.
        found: usize,
    },
    /// The bytes end before the value does.
    #[error("{type_name}: {found} bytes end before the value does")]
    Truncated {
        /// The type, as PostgreSQL names it.
        type_name: &'static str,
        /// The number of bytes found.
        found: usize,
    },
    /// The value contradicts itself, or is outside the type's range.
    #[error("{type_name}: {what}")]
    Malformed {
        /// The type, as PostgreSQL names it.
        type_name: &'static str,
        /// What is wrong.
        what: &'static str,
    },
    /// An OID that isn't one of the enum's labels.
    #[error("enum: no label has the OID {label}")]
    Label {
        /// The OID found.
        label: Oid,
    },
    /// A part of the value is damaged.
    #[error(transparent)]
    Varlena(#[from] VarlenaError),
    /// The value itself records its type, as an `anyarray` does, and we cannot print that type.
    #[error(transparent)]
    Unsupported(#[from] UnsupportedType),
}

/// A type whose values cannot be printed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnsupportedType {
    /// Its OID.
    pub oid: Oid,
    /// Its name without the schema; empty if the catalog has no such type. Invalid UTF-8 is
    /// replaced.
    pub name: String,
    /// Why.
    pub reason: UnsupportedReason,
}

/// Why a type cannot be printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum UnsupportedReason {
    /// The catalog has no row for it.
    Unknown,
    /// An extension or a user defined the type, and its output function is not one of the server's
    /// own, so only the extension's code can print it.
    NotBuiltIn,
    /// A pseudo-type. Tables cannot store it, or the server cannot print it either.
    NotStored,
    /// The catalog row contradicts itself, or a row it refers to is missing.
    BrokenCatalog,
    /// The type contains more than [`super::PARTS_MAX`] types, or nests deeper than
    /// [`super::DEPTH_MAX`].
    TooComplex,
}

impl fmt::Display for UnsupportedType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { oid, name, reason } = self;
        let reason = match reason {
            UnsupportedReason::Unknown => return write!(f, "no type has the OID {oid}"),
            UnsupportedReason::NotBuiltIn => "only the extension that defines it can print it",
            UnsupportedReason::NotStored => "its values are not kept in tables",
            UnsupportedReason::BrokenCatalog => "its rows in the catalogs contradict each other",
            UnsupportedReason::TooComplex => "it is made of too many types",
        };
        write!(f, "type {name} (OID {oid}): {reason}")
    }
}

impl std::error::Error for UnsupportedType {}
