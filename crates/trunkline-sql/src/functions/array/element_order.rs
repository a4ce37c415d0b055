//! How the elements of an array compare.
//!
//! Elements are compared as stored, by the default B-tree operator class of their type. For example,
//! `ARRAY[1.0] = ARRAY[1.00]` is true, although the stored digits are followed by different scales.

use std::borrow::Cow;
use std::cmp::Ordering;

use trunkline_format::Oid;
use trunkline_format::btree::Order;
use trunkline_format::deform::Attribute;
use trunkline_format::text_output::{Base, StringType, Type};

use super::view::{ArrayView, attribute_of};
use crate::error::{SqlError, SqlState};
use crate::functions::call::Call;
use crate::functions::printing::resolve;

/// An element: as stored without a varlena header, or null.
pub(super) type Element<'a> = Option<Cow<'a, [u8]>>;

/// Compares elements of one type.
#[derive(Debug, Clone, Copy)]
pub(super) struct ElementOrder {
    pub(super) attribute: Attribute,
    order: Order,
}

impl ElementOrder {
    /// For tests of equality.
    pub(super) fn for_equality(element: Oid, call: &Call<'_>) -> Result<Self, SqlError> {
        Self::new(element, call, "an equality operator", |call| call.check_equality())
    }

    /// For sorting.
    pub(super) fn for_order(element: Oid, call: &Call<'_>) -> Result<Self, SqlError> {
        Self::new(element, call, "a comparison function", |call| call.check_order())
    }

    fn new(
        element: Oid,
        call: &Call<'_>,
        operator: &str,
        check: fn(&Call<'_>) -> Result<(), SqlError>,
    ) -> Result<Self, SqlError> {
        let attribute = attribute_of(element, &*call.settings.catalog)?;
        let order = match resolve(element, call.settings)? {
            Type::Base(base) => base_order(base, call, check)?,
            Type::Enum(..) => Some(Order::Enum),
            _ => None,
        };
        let order = order.ok_or_else(|| {
            SqlError::unsupported(format!(
                "{operator} for array elements of the type with OID {element} is not supported by \
                 trunkline"
            ))
        })?;
        Ok(Self { attribute, order })
    }

    /// Compares two elements that are not null.
    pub(super) fn compare(self, left: &[u8], right: &[u8]) -> Result<Ordering, SqlError> {
        self.order.compare(left, right).ok_or_else(|| {
            SqlError::unsupported("comparing these array elements is not supported by trunkline")
        })
    }

    /// Compares two elements. A null is greater than anything else.
    pub(super) fn compare_elements(
        self,
        left: &Element<'_>,
        right: &Element<'_>,
    ) -> Result<Ordering, SqlError> {
        match (left, right) {
            (Some(left), Some(right)) => self.compare(left, right),
            _ => Ok(left.is_none().cmp(&right.is_none())),
        }
    }

    /// Whether two elements are equal, or both are null.
    pub(super) fn is_same(self, left: &Element<'_>, right: &Element<'_>) -> Result<bool, SqlError> {
        self.compare_elements(left, right).map(Ordering::is_eq)
    }
}

fn base_order(
    base: Base,
    call: &Call<'_>,
    check: fn(&Call<'_>) -> Result<(), SqlError>,
) -> Result<Option<Order>, SqlError> {
    if matches!(base, Base::Text(_) | Base::Name) {
        check(call)?;
    }
    Ok(order_of(base))
}

/// How stored values of a type compare, if their order is that of their bytes for texts.
pub(in crate::functions) fn order_of(base: Base) -> Option<Order> {
    match base {
        Base::Bool | Base::Char => Some(Order::Byte),
        Base::Int2 => Some(Order::Int2),
        Base::Int4 | Base::Date => Some(Order::Int4),
        Base::Int8 | Base::Money | Base::Time | Base::Timestamp | Base::Timestamptz => {
            Some(Order::Int8)
        }
        Base::U32("oid") | Base::RegType(_) => Some(Order::Oid),
        Base::U64(_) | Base::Lsn => Some(Order::Unsigned8),
        Base::Float4 => Some(Order::Float4),
        Base::Float8 => Some(Order::Float8),
        Base::Numeric => Some(Order::Numeric),
        Base::Text(StringType::Text | StringType::Varchar)
        | Base::Bytea
        | Base::Uuid
        | Base::Macaddr
        | Base::Macaddr8 => Some(Order::Bytes),
        Base::Text(StringType::Bpchar) => Some(Order::Padded),
        Base::Name => Some(Order::Name),
        Base::Timetz => Some(Order::TimeTz),
        Base::Interval => Some(Order::Interval),
        Base::Tid => Some(Order::Tid),
        Base::Inet | Base::Cidr => Some(Order::Network),
        Base::Bits(_) => Some(Order::Bits),
        Base::Vector("oidvector") => Some(Order::OidVector),
        _ => None,
    }
}

/// An array with its elements.
pub(super) struct Elements<'a> {
    pub(super) view: ArrayView<'a>,
    pub(super) values: Vec<Element<'a>>,
}

impl<'a> Elements<'a> {
    pub(super) fn parse(payload: &'a [u8], attribute: Attribute) -> Result<Self, SqlError> {
        let view = ArrayView::parse(payload)?;
        let values = view.elements(attribute)?;
        Ok(Self { view, values })
    }

    /// Fails if there is more than one dimension.
    pub(super) fn check_one_dimension(&self, what: &str) -> Result<(), SqlError> {
        if self.view.dimensions().len() <= 1 {
            return Ok(());
        }
        let message = format!("{what} multidimensional arrays is not supported");
        Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message))
    }
}

/// The element type of an array type.
pub(super) fn element_of(array: Oid, call: &Call<'_>) -> Result<Oid, SqlError> {
    let row = call.settings.catalog.type_row(array);
    let element = row.map(|row| row.element).filter(|&element| element != Oid(0));
    element.ok_or_else(|| SqlError::internal(format!("type {array} is not an array")))
}

/// The element type of argument `number`, which is an array.
pub(super) fn element_of_argument(call: &Call<'_>, number: usize) -> Result<Oid, SqlError> {
    let ty = call.argument_types.get(number).copied();
    element_of(ty.ok_or_else(|| SqlError::internal("an argument is missing"))?, call)
}
