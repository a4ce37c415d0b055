//! Functions of text that are written in SQL in the server's catalogs, and known by their names and
//! argument types.
//!
//! ```text
//!   lpad(text, integer)     lpad(text, integer, ' ')
//!   text || anything        text || anything::text
//! ```
//!
//! Mirrors PostgreSQL's `catalog/system_functions.sql`.

use trunkline_format::Oid;

use super::padding::padded;
use super::quoting::quoted_literal;
use crate::error::SqlError;
use crate::functions::call::{Call, Kernel};
use crate::functions::printing::Printer;
use crate::functions::rows::{Reader, binary, each_row, unary};

/// The kernels of this module.
pub(in crate::functions) const SQL_FUNCTIONS: &[(&str, Kernel)] = &[
    ("lpad(text,int4)", |call| {
        binary(call, |text: &str, width: i32| {
            let (text, padding) = padded(text, width, " ")?;
            Ok(padding + text)
        })
    }),
    ("rpad(text,int4)", |call| {
        binary(call, |text: &str, width: i32| {
            let (text, padding) = padded(text, width, " ")?;
            Ok(text.to_owned() + &padding)
        })
    }),
    ("bit_length(text)", |call| unary(call, |text: &str| Ok(text.len() as i32 * 8))),
    ("bit_length(bytea)", |call| unary(call, |value: &[u8]| Ok(value.len() as i32 * 8))),
    ("textanycat(text,anynonarray)", |call| {
        let (text, mut value) = (Reader::<&str>::new(call, 0)?, CastToText::new(call, 1)?);
        each_row(call.rows, |row| {
            let value = value.get(row)?;
            Ok(text.get(row).zip(value).map(|(text, value)| text.to_owned() + &value))
        })
    }),
    ("anytextcat(anynonarray,text)", |call| {
        let (mut value, text) = (CastToText::new(call, 0)?, Reader::<&str>::new(call, 1)?);
        each_row(call.rows, |row| {
            let value = value.get(row)?;
            Ok(value.zip(text.get(row)).map(|(value, text)| value + text))
        })
    }),
    ("quote_literal(anyelement)", |call| {
        let mut value = CastToText::new(call, 0)?;
        each_row(call.rows, |row| Ok(value.get(row)?.map(|text| quoted_literal(&text))))
    }),
    ("quote_nullable(anyelement)", |call| {
        let mut value = CastToText::new(call, 0)?;
        each_row(call.rows, |row| {
            let text = value.get(row)?;
            Ok(Some(text.map_or_else(|| "NULL".to_owned(), |text| quoted_literal(&text))))
        })
    }),
];

/// `boolean`, `character`, and the types of networks.
const BOOL: Oid = Oid(16);
const BPCHAR: Oid = Oid(1042);
const CIDR: Oid = Oid(650);
const INET: Oid = Oid(869);

/// An argument of any type, cast to `text`. That is mostly, but not always, what its output function
/// prints.
struct CastToText<'a> {
    ty: Oid,
    printer: Printer<'a>,
}

impl<'a> CastToText<'a> {
    fn new(call: &'a Call<'_>, number: usize) -> Result<Self, SqlError> {
        let ty = call.argument_types.get(number).copied().unwrap_or_default();
        Ok(Self { ty, printer: Printer::new(call, number)? })
    }

    fn get(&mut self, row: usize) -> Result<Option<String>, SqlError> {
        let Some(mut text) = self.printer.text(row)? else { return Ok(None) };
        match self.ty {
            BOOL => text = if text == "t" { "true" } else { "false" }.to_owned(),
            BPCHAR => text.truncate(text.trim_end_matches(' ').len()),
            INET | CIDR => show_length(&mut text),
            _ => {}
        }
        Ok(Some(text))
    }
}

/// Cast to `text`, an `inet` always has the length of its prefix.
fn show_length(text: &mut String) {
    if !text.contains('/') {
        text.push_str(if text.contains(':') { "/128" } else { "/32" });
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::cast::AsArray;
    use arrow_array::{BooleanArray, StringViewArray};

    use super::*;
    use crate::functions::tests::settings;
    use crate::functions::{Argument, kernel};

    /// `'x' || true` and `bit_length('é')` of a server.
    #[test]
    fn functions_in_sql_give_what_their_bodies_do() {
        let settings = settings();
        let text = Argument::column(Arc::new(StringViewArray::from(vec!["é"])));
        let yes = Argument::column(Arc::new(BooleanArray::from(vec![true])));
        let call = |name: &str, arguments: &[Argument], types: &[Oid]| {
            let kernel = kernel(name).expect("a kernel");
            let call = Call {
                arguments,
                rows: 1,
                argument_types: types,
                result_type: Oid(25),
                collation: Oid(950),
                row: None,
                settings: &settings,
            };
            kernel(&call).expect("a result")
        };
        let joined =
            call("textanycat(text,anynonarray)", &[text.clone(), yes], &[Oid(25), Oid(16)]);
        assert_eq!(joined.as_string_view().value(0), "étrue");
        let bits = call("bit_length(text)", &[text], &[Oid(25)]);
        assert_eq!(bits.as_primitive::<arrow_array::types::Int32Type>().value(0), 16);
    }
}
