//! The rows of `pg_settings`.

use arrow_array::ArrayRef;
use trunkline_sql::SqlError;
use trunkline_sql::catalog::oids;
use trunkline_sql::functions::{ArrayBuilder, attribute_of};
use trunkline_sql::values::Carrier;

use super::functions::SessionFunctions;
use crate::server::{RowBuilder, Value};
use crate::settings::SettingRow;

/// The columns of `pg_show_all_settings()`.
const CARRIERS: [Carrier; 17] = {
    let mut carriers = [Carrier::Text; 17];
    carriers[11] = Carrier::Bytes;
    carriers[15] = Carrier::Int32;
    carriers[16] = Carrier::Bool;
    carriers
};

impl SessionFunctions {
    /// `pg_show_all_settings()`. All users see all settings: there is only one kind of user.
    pub(super) fn settings(&self) -> Result<Vec<ArrayRef>, SqlError> {
        let settings = self.instance.with_configuration(|file| self.store.lock().rows(file));
        let mut rows = RowBuilder::new(&CARRIERS);
        for row in settings {
            rows.push(&self.setting(row)?)?;
        }
        Ok(rows.finish())
    }

    fn setting(&self, row: SettingRow) -> Result<[Value; 17], SqlError> {
        let (file, line) = row.file.unzip();
        Ok([
            Value::Text(row.name),
            Value::Text(row.setting),
            Value::text(row.unit),
            Value::Text(row.category.to_owned()),
            Value::text(row.short),
            // Our descriptions have one line.
            Value::Null,
            Value::Text(row.context.to_owned()),
            Value::Text(row.vartype.to_owned()),
            Value::Text(row.source.to_owned()),
            Value::text(row.min),
            Value::text(row.max),
            row.words.map_or(Ok(Value::Null), |words| self.words(words))?,
            Value::text(row.boot),
            Value::text(row.reset),
            Value::text(file),
            line.map_or(Value::Null, Value::Int4),
            Value::Bool(row.pending_restart),
        ])
    }

    /// A `text[]`.
    fn words(&self, words: &[&str]) -> Result<Value, SqlError> {
        let attribute = attribute_of(oids::TEXT, &**self.names.catalog.database())?;
        let mut array = ArrayBuilder::new(oids::TEXT, attribute);
        for word in words {
            array.push(Some(word.as_bytes()))?;
        }
        Ok(Value::Bytes(array.finish_list()?))
    }
}
