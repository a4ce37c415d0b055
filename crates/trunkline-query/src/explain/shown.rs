//! A printed expression, and whether it needs parentheses where it is passed on.

/// A printed expression.
#[derive(Debug, Clone)]
pub(super) struct Shown {
    pub(super) text: String,
    /// It is a column of a relation.
    pub(super) is_column: bool,
}

impl Shown {
    pub(super) fn computed(text: String) -> Self {
        Self { text, is_column: false }
    }

    /// As an operand of a node that only passes it on.
    pub(super) fn passed_on(self) -> String {
        if self.is_column { self.text } else { format!("({})", self.text) }
    }
}
