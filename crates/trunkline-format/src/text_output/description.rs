//! Resolved types: everything needed to print the values of a type, without further look-ups.

use super::base::Base;
use crate::deform::Attribute;
use crate::ids::Oid;
use std::sync::Arc;

/// A resolved type. It holds everything needed to print a value.
#[derive(Debug, Clone, PartialEq)]
pub enum Type {
    /// A built-in type without parts.
    Base(Base),
    /// An enum: its OID, and its labels sorted by their OIDs.
    Enum(Oid, Arc<[(Oid, Vec<u8>)]>),
    /// An array with any number of dimensions.
    Array(Arc<Part>),
    /// A composite type, or the rows of a table.
    Composite(Arc<Record>),
    /// A range.
    Range(Arc<Bounds>),
    /// A multirange: its OID and its range type.
    Multirange(Oid, Arc<Bounds>),
}

impl Type {
    /// Whether `test` returns true for this type or any type it contains.
    pub fn contains(&self, test: &dyn Fn(Base) -> bool) -> bool {
        match self {
            Self::Base(base) => test(*base),
            Self::Enum(..) => false,
            Self::Array(element) => element.ty.contains(test),
            Self::Composite(record) => record.types().any(|ty| ty.contains(test)),
            Self::Range(range) | Self::Multirange(_, range) => range.bound.ty.contains(test),
        }
    }
}

/// A type, and how its values are stored as parts of other values.
#[derive(Debug, PartialEq)]
pub struct Part {
    pub(crate) ty: Type,
    /// The type's OID. For a domain, this is the domain itself rather than its base type.
    pub(crate) oid: Oid,
    pub(crate) attribute: Attribute,
    /// `typdelim`: the delimiter between array elements of this type.
    pub(crate) delimiter: u8,
    /// Whether the type is a domain, whose constraints we don't know.
    pub(crate) domain: bool,
}

impl Part {
    /// The type; for a domain, its base type.
    pub fn ty(&self) -> &Type {
        &self.ty
    }

    /// The type's OID: the domain's own if the type is a domain.
    pub fn oid(&self) -> Oid {
        self.oid
    }

    /// Whether the type is a domain, whose constraints only the caller can check.
    pub fn is_domain(&self) -> bool {
        self.domain
    }
}

/// The type of a composite type's column.
#[derive(Debug, Clone, Copy)]
pub struct ColumnType<'a> {
    /// The type; for a domain, its base type.
    pub ty: &'a Type,
    /// The type's OID: the domain's own if the type is a domain.
    pub oid: Oid,
    /// `atttypmod`; -1 if there is none.
    pub modifier: i32,
    /// Whether the type is a domain.
    pub is_domain: bool,
}

/// The columns of a composite type, in order, dropped ones included.
#[derive(Debug, PartialEq)]
pub struct Record {
    /// The type's OID.
    pub(crate) oid: Oid,
    pub(crate) fields: Vec<Field>,
}

/// A column of a composite type.
#[derive(Debug, PartialEq)]
pub(crate) struct Field {
    pub(crate) attribute: Attribute,
    /// `None` if the column was dropped.
    pub(crate) ty: Option<Type>,
    /// The type's OID: the domain's own if the type is a domain.
    pub(crate) oid: Oid,
    /// `atttypmod`; -1 if there is none.
    pub(crate) modifier: i32,
    /// Whether the type is a domain.
    pub(crate) domain: bool,
}

impl Record {
    /// The types of the columns, in order, without dropped columns.
    pub fn types(&self) -> impl Iterator<Item = &Type> {
        self.fields.iter().filter_map(|field| field.ty.as_ref())
    }

    /// The columns, in order, without dropped ones.
    pub fn columns(&self) -> impl Iterator<Item = ColumnType<'_>> {
        self.fields.iter().filter_map(|field| {
            let (ty, is_domain) = (field.ty.as_ref()?, field.domain);
            Some(ColumnType { ty, oid: field.oid, modifier: field.modifier, is_domain })
        })
    }

    /// The same columns with these type modifiers, as a column definition list gives them.
    #[must_use]
    pub fn with_modifiers(mut self, modifiers: impl IntoIterator<Item = i32>) -> Self {
        for (field, modifier) in self.fields.iter_mut().zip(modifiers) {
            field.modifier = modifier;
        }
        self
    }
}

/// A range type, or the multirange type over it.
#[derive(Debug, PartialEq)]
pub struct Bounds {
    /// The range type's OID, which every value also stores.
    pub(crate) oid: Oid,
    pub(crate) bound: Part,
}
