//! Why a value cannot be read: an SQLSTATE and PostgreSQL's own words.
//!
//! For example, `'x'::int4` is SQLSTATE 22P02, `invalid input syntax for type integer: "x"`.

use thiserror::Error;

/// A text, or a value in the binary format, that is not a valid value of its type.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{message}")]
pub struct InputError {
    code: &'static str,
    message: String,
    detail: Option<String>,
    hint: Option<String>,
}

impl InputError {
    /// The SQLSTATE: five digits or upper-case letters.
    pub fn code(&self) -> &'static str {
        self.code
    }

    /// The primary message.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The field `DETAIL`.
    pub fn detail(&self) -> Option<&str> {
        self.detail.as_deref()
    }

    /// The field `HINT`.
    pub fn hint(&self) -> Option<&str> {
        self.hint.as_deref()
    }

    /// An error of [`super::InputNames::object`].
    pub fn of_name(code: &'static str, message: impl Into<String>, hint: Option<&str>) -> Self {
        Self { hint: hint.map(str::to_owned), ..Self::new(code, message) }
    }

    pub(crate) fn new(code: &'static str, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), detail: None, hint: None }
    }

    pub(crate) fn with_detail(self, detail: impl Into<String>) -> Self {
        Self { detail: Some(detail.into()), ..self }
    }

    pub(crate) fn with_hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }

    /// 22P02: the text isn't in any of the type's formats.
    pub(crate) fn syntax(type_name: &str, text: &str) -> Self {
        Self::new("22P02", format!("invalid input syntax for type {type_name}: \"{text}\""))
    }

    /// 22003: the text is a number, but the type can't hold it.
    pub(crate) fn out_of_range(type_name: &str, text: &str) -> Self {
        Self::new("22003", format!("value \"{text}\" is out of range for type {type_name}"))
    }

    /// 0A000: a server may read such a value, but we don't.
    pub(crate) fn unsupported(what: impl Into<String>) -> Self {
        Self::new("0A000", what)
    }
}
