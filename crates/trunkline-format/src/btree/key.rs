//! One index column: how it is stored, and how its values compare.
//!
//! Values are compared by their payload: without varlena header, decompressed, and without the
//! padding of a `name`. `pg_index.indoption` decides about `DESC` and `NULLS FIRST`. The two are
//! independent: `DESC` does not reverse the position of NULLs.

use super::fault::Fault;
use super::order::Order;
use crate::deform::Attribute;
use crate::varlena::{Varlena, VarlenaError};
use std::cmp::Ordering;

/// A value to compare with: the payload, or `None` for NULL.
pub type Key<'a> = Option<&'a [u8]>;

/// One column of an index.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KeyColumn {
    /// How values are stored in the index; not always as in the table.
    pub attribute: Attribute,
    /// How two of them compare.
    pub order: Order,
    /// The greatest comes first.
    pub descending: bool,
    /// NULLs come first.
    pub nulls_first: bool,
}

impl KeyColumn {
    /// How two values of this column stand in the index; `None` if only the server knows.
    #[inline]
    pub fn compare(&self, left: Key<'_>, right: Key<'_>) -> Option<Ordering> {
        let nulls = if self.nulls_first { Ordering::Less } else { Ordering::Greater };
        match (left, right) {
            (Some(left), Some(right)) => {
                let ordering = self.order.compare(left, right)?;
                Some(if self.descending { ordering.reverse() } else { ordering })
            }
            (None, None) => Some(Ordering::Equal),
            (None, Some(_)) => Some(nulls),
            (Some(_), None) => Some(nulls.reverse()),
        }
    }

    /// The payload of a stored value; `room` takes it if it is compressed.
    ///
    /// # Errors
    /// [`VarlenaError`]; a value elsewhere, which no index has, is one too.
    #[inline]
    pub fn payload<'r>(
        &self,
        stored: &'r [u8],
        room: &'r mut Vec<u8>,
    ) -> Result<&'r [u8], VarlenaError> {
        match self.attribute.len {
            -1 => Varlena::parse(stored)?.payload(room),
            _ => Ok(stored),
        }
    }

    pub(super) fn key<'r>(
        &self,
        stored: Option<&'r [u8]>,
        room: &'r mut Vec<u8>,
        fault: Fault,
    ) -> Result<Key<'r>, Fault> {
        stored.map(|stored| self.payload(stored, room)).transpose().map_err(|_| fault)
    }
}
