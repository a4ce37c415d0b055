//! Arrays, on the values as they are stored.
//!
//! [`ArrayView`] reads an array and [`ArrayBuilder`] makes one. For example, `array_cat`, the function
//! of `||`, reads two and makes one.

mod aggregates;
mod array_aggregate;
mod builder;
mod comparing;
mod element_order;
mod finding;
mod joining;
mod key;
mod measuring;
mod quantified;
mod rows;
mod sorting;
mod subscripts;
mod texts;
mod values;
mod view;

#[cfg(test)]
mod aggregate_tests;
#[cfg(test)]
mod tests;

pub use builder::ArrayBuilder;
pub use key::ArrayKey;
pub(super) use key::{append_array_end, append_base_key};
pub use quantified::compare_with_elements;
pub use subscripts::{slice, subscript};
pub use view::{ArrayView, DIMENSIONS_MAX, Dimension, ELEMENTS_MAX, attribute_of};

pub(super) use aggregates::AGGREGATES;
pub(super) use array_aggregate::ARRAY_AGGREGATES;
pub(super) use comparing::COMPARING;
pub(super) use element_order::order_of;
pub(super) use finding::FINDING;
pub(super) use joining::JOINING;
pub(super) use measuring::MEASURING;
pub(super) use rows::SETS;
pub(super) use sorting::SORTING;
pub(super) use texts::TEXTS;
