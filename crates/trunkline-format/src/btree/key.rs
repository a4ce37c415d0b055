//! One index column: how its values are stored, and how they compare.
//!
//! To compare two values, we first strip the varlena header, decompress the data, and strip the
//! padding from values of type `name`. The column's `DESC` and `NULLS FIRST` flags come from
//! `pg_index.indoption`. Note that the two flags are independent: `DESC` by itself does not change
//! where NULLs sort.

use super::fault::Fault;
use super::order::Order;
use crate::deform::Attribute;
use crate::varlena::{Varlena, VarlenaError};
use std::cmp::Ordering;

/// A search key's column: the payload to compare with, or `None` for NULL.
pub type Key<'a> = Option<&'a [u8]>;

/// One column of an index.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KeyColumn {
    /// How the index stores the column's values, which can differ from the table (`opckeytype`).
    pub attribute: Attribute,
    /// The comparison function for two values.
    pub order: Order,
    /// `DESC`: the greatest value sorts first.
    pub descending: bool,
    /// `NULLS FIRST`: NULLs sort before all other values.
    pub nulls_first: bool,
}

impl KeyColumn {
    /// Compares two values in this column's sort order; `None` if only the server can compare them.
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

    /// The payload of a stored value. A compressed value is decompressed into `room`.
    ///
    /// # Errors
    /// [`VarlenaError`] if the value is damaged or is stored out of line. An index never stores
    /// TOAST pointers.
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
