//! The kinds of tokens of a text search parser: `ts_token_type`.

use std::sync::Arc;

use arrow_array::{Int32Array, StringViewArray};
use trunkline_format::Oid;

use crate::error::{SqlError, SqlState};
use crate::functions::call::Call;
use crate::functions::rows::Reader;
use crate::functions::set_rows::{AllRows, NoRows, SetFunction, SetRows};
use crate::resolve::{name_parts, object_name};

/// The parser that is built into the server, which is `default`.
const BUILT_IN: Oid = Oid(3722);

/// The set-returning functions of this module.
pub(in crate::functions) const TEXT_SEARCH: &[(&str, SetFunction)] = &[
    ("ts_token_type_byid", |call, row| match Reader::<u32>::new(call, 0)?.get(row) {
        Some(oid) => token_types(call, Oid(oid)),
        None => Ok(Box::new(NoRows)),
    }),
    ("ts_token_type_byname", |call, row| {
        let Some(text) = Reader::<&str>::new(call, 0)?.get(row) else {
            return Ok(Box::new(NoRows));
        };
        let names = call.settings.session()?.names();
        let parts = name_parts(text)?;
        let rows = names.catalog().definitions().catalogs()?.text_search_parsers.iter();
        let rows = rows.map(|row| (row.oid, row.schema, &*row.name));
        let found = names.object_named(object_name(names, &parts)?, rows);
        let found = found.ok_or_else(|| {
            let message = format!("text search parser \"{}\" does not exist", parts.join("."));
            SqlError::new(SqlState::UNDEFINED_OBJECT, message)
        })?;
        token_types(call, found)
    }),
];

/// Name and description of each kind of token, from number 1 on.
const TOKENS: [(&str, &str); 23] = [
    ("asciiword", "Word, all ASCII"),
    ("word", "Word, all letters"),
    ("numword", "Word, letters and digits"),
    ("email", "Email address"),
    ("url", "URL"),
    ("host", "Host"),
    ("sfloat", "Scientific notation"),
    ("version", "Version number"),
    ("hword_numpart", "Hyphenated word part, letters and digits"),
    ("hword_part", "Hyphenated word part, all letters"),
    ("hword_asciipart", "Hyphenated word part, all ASCII"),
    ("blank", "Space symbols"),
    ("tag", "XML tag"),
    ("protocol", "Protocol head"),
    ("numhword", "Hyphenated word, letters and digits"),
    ("asciihword", "Hyphenated word, all ASCII"),
    ("hword", "Hyphenated word, all letters"),
    ("url_path", "URL path"),
    ("file", "File or path name"),
    ("float", "Decimal notation"),
    ("int", "Signed integer"),
    ("uint", "Unsigned integer"),
    ("entity", "XML entity"),
];

fn token_types(call: &Call<'_>, parser: Oid) -> Result<Box<dyn SetRows>, SqlError> {
    let catalog = &call.settings.session()?.catalog;
    let parsers = &catalog.definitions().catalogs()?.text_search_parsers;
    if !parsers.iter().any(|row| row.oid == parser) {
        let message = format!("cache lookup failed for text search parser {parser}");
        return Err(SqlError::internal(message));
    }
    if parser != BUILT_IN {
        let message = "the text search parser of an extension is not supported by trunkline";
        return Err(SqlError::unsupported(message));
    }
    Ok(Box::new(AllRows::new(vec![
        Arc::new((1..=23).collect::<Int32Array>()),
        Arc::new(TOKENS.iter().map(|(name, _)| Some(*name)).collect::<StringViewArray>()),
        Arc::new(TOKENS.iter().map(|(_, text)| Some(*text)).collect::<StringViewArray>()),
    ])))
}
