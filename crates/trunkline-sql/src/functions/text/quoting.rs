//! Quoting: `quote_ident`, `quote_literal`, `quote_nullable`.
//!
//! For example, `quote_ident('Foo')` is `"Foo"`, and `quote_literal('O''Reilly')` is `'O''Reilly'`.

use trunkline_format::text_output::write_identifier;

use crate::error::SqlError;
use crate::functions::call::Kernel;
use crate::functions::printing::into_text;
use crate::functions::rows::{Reader, each_row, unary};

/// The kernels of this module.
pub(in crate::functions) const QUOTING: &[(&str, Kernel)] = &[
    ("quote_ident", |call| unary(call, |name: &str| quoted_identifier(name, call.settings.major))),
    ("quote_literal", |call| unary(call, |text: &str| Ok(quoted_literal(text)))),
    ("quote_nullable", |call| {
        let text = Reader::<&str>::new(call, 0)?;
        each_row(call.rows, |row| {
            Ok(Some(text.get(row).map_or_else(|| "NULL".to_owned(), quoted_literal)))
        })
    }),
];

/// An identifier, in double quotes if it needs them in version `major`.
pub(super) fn quoted_identifier(name: &str, major: u32) -> Result<String, SqlError> {
    let mut out = Vec::new();
    write_identifier(name.as_bytes(), major, &mut out);
    into_text(out)
}

/// A literal. With a backslash, it is written as an escape string, which doesn't depend on
/// `standard_conforming_strings`.
pub(super) fn quoted_literal(text: &str) -> String {
    let start = if text.contains('\\') { "E'" } else { "'" };
    let mut literal = String::with_capacity(text.len() + 3);
    literal.push_str(start);
    for letter in text.chars() {
        if matches!(letter, '\'' | '\\') {
            literal.push(letter);
        }
        literal.push(letter);
    }
    literal.push('\'');
    literal
}
