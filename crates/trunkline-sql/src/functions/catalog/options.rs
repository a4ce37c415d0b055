//! Options of foreign servers and the like as rows: `pg_options_to_table`.
//!
//! They are stored as texts, such as `host=db1`. One without a value is just a name.

use std::sync::Arc;

use arrow_array::StringViewArray;
use trunkline_format::catalog::array_texts;

use crate::error::{SqlError, SqlState};
use crate::functions::rows::Reader;
use crate::functions::set_rows::{AllRows, NoRows, SetFunction};

/// The set-returning functions of this module.
pub(in crate::functions) const OPTIONS: &[(&str, SetFunction)] =
    &[("pg_options_to_table", |call, row| {
        let encoding = call.settings.session()?.catalog.encoding();
        let Some(array) = Reader::<&[u8]>::new(call, 0)?.get(row) else {
            return Ok(Box::new(NoRows));
        };
        let texts = array_texts(array).ok_or_else(|| {
            let message = "null array element not allowed in this context";
            SqlError::new(SqlState::NULL_VALUE_NOT_ALLOWED, message)
        })?;
        let texts: Vec<String> = texts.into_iter().map(|text| encoding.decode(text)).collect();
        let parts = || texts.iter().map(|text| text.split_once('=').unzip());
        let names = texts.iter().zip(parts()).map(|(whole, (name, _))| name.or(Some(whole)));
        Ok(Box::new(AllRows::new(vec![
            Arc::new(names.collect::<StringViewArray>()),
            Arc::new(parts().map(|(_, value)| value).collect::<StringViewArray>()),
        ])))
    })];
