//! What keeps a value from being printed.
//!
//! Either its bytes are no value of its type, or the type is one that nobody here knows.

use crate::ids::Oid;
use crate::varlena::VarlenaError;
use std::fmt;

/// Bytes that are no value of their type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ValueError {
    /// The bytes of a type of fixed length are more or fewer.
    Length {
        /// The type, as PostgreSQL names it.
        type_name: &'static str,
        /// Bytes that it has.
        expected: usize,
        /// Bytes there are.
        found: usize,
    },
    /// The bytes end before the value does.
    Truncated {
        /// The type, as PostgreSQL names it.
        type_name: &'static str,
        /// Bytes there are.
        found: usize,
    },
    /// The value contradicts itself, or is outside what the type can be.
    Malformed {
        /// The type, as PostgreSQL names it.
        type_name: &'static str,
        /// What is wrong.
        what: &'static str,
    },
    /// A number that no label of the enum has.
    Label {
        /// The OID found.
        label: Oid,
    },
    /// A part of the value is damaged.
    Varlena(VarlenaError),
    /// The value says its type itself, and that type cannot be printed.
    Unsupported(UnsupportedType),
}

impl fmt::Display for ValueError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Length { type_name, expected, found } => {
                write!(f, "{type_name}: {found} bytes, expected {expected}")
            }
            Self::Truncated { type_name, found } => {
                write!(f, "{type_name}: {found} bytes end before the value does")
            }
            Self::Malformed { type_name, what } => write!(f, "{type_name}: {what}"),
            Self::Label { label } => write!(f, "enum: no label has the OID {label}"),
            Self::Varlena(error) => error.fmt(f),
            Self::Unsupported(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for ValueError {}

impl From<VarlenaError> for ValueError {
    fn from(error: VarlenaError) -> Self {
        Self::Varlena(error)
    }
}

impl From<UnsupportedType> for ValueError {
    fn from(error: UnsupportedType) -> Self {
        Self::Unsupported(error)
    }
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
    /// It never lies in a table, or the server does not print it either.
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
