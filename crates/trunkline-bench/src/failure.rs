//! **Errors** of the benchmark. They're only ever printed, so a boxed error is enough.

/// An error with a text for the user.
pub(crate) type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Result of a row, or of one step of a row.
pub(crate) type Result<T> = std::result::Result<T, Failure>;
