//! Why a value cannot be printed: its bytes are damaged, or its type is not known.
//!
//! Texts name the type. The caller adds the column and the row.

use crate::ids::Oid;
use crate::varlena::VarlenaError;
use std::fmt;
use thiserror::Error;

/// Bytes that are not a value of their type.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ValueError {
    /// The bytes of a type of fixed length are more or fewer.
    #[error("{type_name}: {found} bytes, expected {expected}")]
    Length {
        /// The type, as PostgreSQL names it.
        type_name: &'static str,
        /// The type's length.
        expected: usize,
        /// Bytes there are.
        found: usize,
    },
    /// The bytes end before the value does.
    #[error("{type_name}: {found} bytes end before the value does")]
    Truncated {
        /// The type, as PostgreSQL names it.
        type_name: &'static str,
        /// Bytes there are.
        found: usize,
    },
    /// The value contradicts itself, or is outside what the type can be.
    #[error("{type_name}: {what}")]
    Malformed {
        /// The type, as PostgreSQL names it.
        type_name: &'static str,
        /// What is wrong.
        what: &'static str,
    },
    /// An OID that is not a label of the enum.
    #[error("enum: no label has the OID {label}")]
    Label {
        /// The OID found.
        label: Oid,
    },
    /// A part of the value is damaged.
    #[error(transparent)]
    Varlena(#[from] VarlenaError),
    /// The value names its type itself, as `anyarray` does, and that type cannot be printed.
    #[error(transparent)]
    Unsupported(#[from] UnsupportedType),
}

/// A type whose values cannot be printed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnsupportedType {
    /// Its OID.
    pub oid: Oid,
    /// Its name without schema, as far as it is UTF-8; empty if the catalog has no such type.
    pub name: String,
    /// Why.
    pub reason: UnsupportedReason,
}

/// Why a type cannot be printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum UnsupportedReason {
    /// The catalog has no row for it.
    Unknown,
    /// An extension or a user brought it, and only their code can print it.
    NotBuiltIn,
    /// It is a pseudo-type that tables cannot store, or one that the server does not print either.
    NotStored,
    /// The row of the catalog contradicts itself, or what it refers to is missing.
    BrokenCatalog,
    /// Types within types, more than [`super::PARTS_MAX`] or deeper than [`super::DEPTH_MAX`].
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
