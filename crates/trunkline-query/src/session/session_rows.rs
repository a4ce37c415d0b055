//! The rows of `pg_prepared_statements` and `pg_cursors`: what a session has prepared and declared.

use arrow_array::ArrayRef;
use trunkline_aio::facade::atomic::Ordering;
use trunkline_format::Oid;
use trunkline_sql::SqlError;
use trunkline_sql::functions::{ArrayBuilder, attribute_of};
use trunkline_sql::syntax::Statement;
use trunkline_sql::values::Carrier;

use super::functions::SessionFunctions;
use super::prepared::Prepared;
use crate::server::{RowBuilder, Value};

/// `regtype`.
const REGTYPE: Oid = Oid(2206);
/// The first version whose `pg_prepared_statements` shows the types of results.
const RESULT_TYPES_SINCE: u32 = 16;

impl SessionFunctions {
    /// `pg_prepared_statement()`.
    pub(super) fn prepared_statements(&self) -> Result<Vec<ArrayRef>, SqlError> {
        let has_result_types = self.major >= RESULT_TYPES_SINCE;
        let mut carriers = vec![Carrier::Text, Carrier::Text, Carrier::Int64, Carrier::Bytes];
        if has_result_types {
            carriers.push(Carrier::Bytes);
        }
        carriers.extend([Carrier::Bool, Carrier::Int64, Carrier::Int64]);
        let mut rows = RowBuilder::new(&carriers);
        for (name, prepared) in self.prepared.iter().filter(|(name, _)| !name.is_empty()) {
            let parameters = prepared.bound.as_ref().map_or(&[][..], |bound| &*bound.parameters);
            let mut row = vec![
                Value::Text(name.clone()),
                Value::Text(prepared.text.clone()),
                Value::Time(prepared.prepared_at),
                self.types(parameters)?,
            ];
            if has_result_types {
                row.push(match result_types(prepared) {
                    Some(types) => self.types(&types)?,
                    None => Value::Null,
                });
            }
            // Each execution is planned with its values, except for look-ups, which do the same each
            // time.
            let [generic, custom] = [&prepared.lookups, &prepared.plans]
                .map(|counter| Value::count(counter.load(Ordering::Relaxed)));
            row.extend([Value::Bool(prepared.from_sql), generic, custom]);
            rows.push(&row)?;
        }
        Ok(rows.finish())
    }

    /// `pg_cursor()`.
    pub(super) fn cursors(&self) -> Result<Vec<ArrayRef>, SqlError> {
        let mut rows = RowBuilder::new(&[
            Carrier::Text,
            Carrier::Text,
            Carrier::Bool,
            Carrier::Bool,
            Carrier::Bool,
            Carrier::Int64,
        ]);
        for cursor in &self.cursors {
            rows.push(&[
                Value::Text(cursor.name.clone()),
                Value::Text(cursor.text.to_string()),
                Value::Bool(cursor.hold),
                Value::Bool(false),
                Value::Bool(false),
                Value::Time(cursor.created),
            ])?;
        }
        Ok(rows.finish())
    }

    /// A `regtype[]`.
    fn types(&self, types: &[Oid]) -> Result<Value, SqlError> {
        let attribute = attribute_of(REGTYPE, &**self.names.catalog.database())?;
        let mut array = ArrayBuilder::new(REGTYPE, attribute);
        for ty in types {
            array.push(Some(&ty.0.to_le_bytes()))?;
        }
        Ok(Value::Bytes(array.finish_list()?))
    }
}

/// The types of a statement's columns; `None` if it returns no rows.
fn result_types(prepared: &Prepared) -> Option<Vec<Oid>> {
    let raw = prepared.raw.as_ref()?;
    let Statement::Select(_) = raw.statement else { return None };
    let statement = &prepared.bound.as_ref()?.statement;
    let output = statement.query.output.iter();
    Some(output.map(|column| statement.columns.get(column.id).ty.oid).collect())
}
