//! Arrays, on the values as they are stored.
//!
//! [`ArrayView`] reads an array and [`ArrayBuilder`] makes one. For example, `array_cat`, the function
//! of `||`, reads two and makes one.

mod builder;
mod comparing;
mod element_order;
mod finding;
mod joining;
mod measuring;
mod subscripts;
mod texts;
mod values;
mod view;

#[cfg(test)]
mod tests;

pub use builder::ArrayBuilder;
pub use subscripts::{slice, subscript};
pub use view::{ArrayView, DIMENSIONS_MAX, Dimension, ELEMENTS_MAX, attribute_of};

pub(super) use comparing::COMPARING;
pub(super) use finding::FINDING;
pub(super) use joining::JOINING;
pub(super) use measuring::MEASURING;
pub(super) use texts::TEXTS;
