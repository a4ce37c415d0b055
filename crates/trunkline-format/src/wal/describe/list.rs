//! Lists in brackets, as `[1, 2, 3]`.

use std::fmt::{self, Display};

/// Prints a slice in brackets.
pub(super) struct List<'l, T>(pub(super) &'l [T]);

impl<T: Display> Display for List<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[")?;
        for (index, element) in self.0.iter().enumerate() {
            if index > 0 {
                f.write_str(", ")?;
            }
            element.fmt(f)?;
        }
        f.write_str("]")
    }
}

/// The names of the bits that are set.
pub(super) fn bit_names(bits: u8, names: &[(u8, &'static str)]) -> Vec<&'static str> {
    names.iter().filter(|(bit, _)| bits & bit != 0).map(|(_, name)| *name).collect()
}
