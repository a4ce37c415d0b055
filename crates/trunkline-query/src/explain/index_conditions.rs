//! The conditions on an index as SQL text: `((a >= 1) AND (b = ANY ('{x,y}'::text[])))`.
//!
//! Constants have the type of the column here, because that is what the index is searched for. As in
//! PostgreSQL, integers are printed without their type.

use trunkline_engine::catalog::{ColumnInfo, Database};
use trunkline_format::Oid;
use trunkline_format::btree::{Comparison, Condition, KeyValue};
use trunkline_format::deform::Attribute;
use trunkline_sql::SqlError;
use trunkline_sql::bound::SqlType;
use trunkline_sql::catalog::oids;

use super::expressions::Expressions;
use super::literals::VARCHAR;
use crate::access_path::{IndexSearch, KeyOperator, first_column};

/// The header of a varlena of four bytes counts itself, in units of a quarter byte.
const HEADER_SHIFT: u32 = 2;

impl Expressions<'_> {
    /// The conditions of a search, whose columns are those of `alias`. `keys` are columns of the index
    /// that must be equal to values of other rows.
    pub(super) fn index_conditions(
        &self,
        search: &IndexSearch,
        table: Oid,
        alias: &str,
        keys: &[(usize, String)],
    ) -> Result<Vec<String>, SqlError> {
        let catalog = &self.environment.catalog;
        let database = catalog.database();
        let columns = self.table_columns(database, table)?;
        let name = |at: usize| self.key_column(search, columns, alias, at);
        let mut parts = Vec::new();
        for (at, value) in keys {
            let (operator, _) = self.key_operator(search, *at, Comparison::Equal)?;
            parts.push((*at, format!("({} {operator} {value})", name(*at)?)));
        }
        for condition in &search.conditions {
            let text = match condition {
                Condition::Compare { column, comparison, value } => {
                    let (operator, ty) = self.key_operator(search, *column, *comparison)?;
                    let value = self.key_value(ty, value)?;
                    format!("({} {operator} {value})", name(*column)?)
                }
                Condition::AnyOf { column, values } => {
                    let (operator, ty) = self.key_operator(search, *column, Comparison::Equal)?;
                    let array = self.key_array(ty, values)?;
                    format!("({} {operator} ANY ({array}))", name(*column)?)
                }
                Condition::IsNull { column } => format!("({} IS NULL)", name(*column)?),
                Condition::IsNotNull { column } => format!("({} IS NOT NULL)", name(*column)?),
                Condition::Row { comparison, values } => {
                    let (operator, _) = self.key_operator(search, 0, *comparison)?;
                    let (mut left, mut right) = (Vec::new(), Vec::new());
                    for (at, value) in values.iter().enumerate() {
                        let (_, ty) = self.key_operator(search, at, *comparison)?;
                        left.push(name(at)?);
                        right.push(self.key_value(ty, value)?);
                    }
                    match (left.as_slice(), right.as_slice()) {
                        ([left], [right]) => format!("({left} {operator} {right})"),
                        _ => {
                            let (left, right) = (left.join(", "), right.join(", "));
                            format!("(ROW({left}) {operator} ROW({right}))")
                        }
                    }
                }
            };
            parts.push((first_column(condition), text));
        }
        // As in PostgreSQL, they are in the order of the index's columns.
        parts.sort_by_key(|(at, _)| *at);
        Ok(parts.into_iter().map(|(_, text)| text).collect())
    }

    fn table_columns<'d>(
        &self,
        database: &'d Database,
        table: Oid,
    ) -> Result<&'d [ColumnInfo], SqlError> {
        let relation = database.relation(table);
        let columns = relation.and_then(|relation| database.columns(relation).ok());
        columns.ok_or_else(|| SqlError::internal("the table of an index has no columns"))
    }

    /// A key column. Operators of `text` take `varchar`, too, as text.
    fn key_column(
        &self,
        search: &IndexSearch,
        columns: &[ColumnInfo],
        alias: &str,
        at: usize,
    ) -> Result<String, SqlError> {
        let place = search.index.place_of(at);
        let column = place.and_then(|place| columns.get(place));
        let column = column.ok_or_else(|| SqlError::internal("an index has no such column"))?;
        let name = self.environment.catalog.encoding().decode(&column.name);
        let name = self.printer.quoted(&name);
        let name = match self.verbose {
            true => format!("{}.{name}", self.printer.quoted(alias)),
            false => name,
        };
        Ok(if column.type_oid == VARCHAR { format!("({name})::text") } else { name })
    }

    /// The name of an operator of a key column, and the type of its operands.
    fn key_operator(
        &self,
        search: &IndexSearch,
        at: usize,
        comparison: Comparison,
    ) -> Result<(String, SqlType), SqlError> {
        let catalog = &self.environment.catalog;
        let missing = || SqlError::internal("an operator family lacks a comparison");
        let KeyOperator { operator, input } =
            search.index.operator(catalog, at, comparison).ok_or_else(missing)?;
        let operator = catalog.operator(operator).ok_or_else(missing)?;
        Ok((catalog.encoding().decode(&operator.name), SqlType::new(input)))
    }

    fn key_value(&self, ty: SqlType, value: &KeyValue) -> Result<String, SqlError> {
        let number = value.as_deref().and_then(|payload| integer(ty.oid, payload));
        match number {
            Some(number) => {
                self.printer.constant(SqlType::new(oids::INT4), Some(&number.to_le_bytes()))
            }
            None => self.printer.constant(ty, value.as_deref()),
        }
    }

    fn key_array(&self, ty: SqlType, values: &[KeyValue]) -> Result<String, SqlError> {
        let catalog = &self.environment.catalog;
        let missing = || SqlError::internal("a type that has an index has no array type");
        let row =
            catalog.data_type(ty.oid).filter(|row| row.array != Oid(0)).ok_or_else(missing)?;
        let attribute = Attribute { len: row.len, align: row.align };
        let payload = array(ty.oid, attribute, values);
        self.printer.constant(SqlType::new(row.array), Some(&payload))
    }
}

/// Conditions that must all hold.
pub(super) fn all_of(parts: &[String]) -> String {
    match parts {
        [only] => only.clone(),
        all => format!("({})", all.join(" AND ")),
    }
}

/// An integer that fits into `int4`, whatever its type is.
fn integer(ty: Oid, payload: &[u8]) -> Option<i32> {
    let value: i64 = match ty {
        oids::INT2 => i16::from_le_bytes(payload.try_into().ok()?).into(),
        oids::INT4 => i32::from_le_bytes(payload.try_into().ok()?).into(),
        oids::INT8 => i64::from_le_bytes(payload.try_into().ok()?),
        _ => return None,
    };
    i32::try_from(value).ok()
}

/// An array of one dimension, without its varlena header.
fn array(element: Oid, attribute: Attribute, values: &[KeyValue]) -> Vec<u8> {
    let values: Vec<&[u8]> = values.iter().filter_map(Option::as_deref).collect();
    let mut payload = Vec::new();
    let mut word = |number: u32| payload.extend_from_slice(&number.to_le_bytes());
    match values.is_empty() {
        true => [0, 0, element.0].into_iter().for_each(&mut word),
        false => [1, 0, element.0, values.len() as u32, 1].into_iter().for_each(&mut word),
    }
    for value in values {
        // Offsets count from the varlena header, which has four bytes.
        while (payload.len() + 4) % attribute.align.up(1) != 0 {
            payload.push(0);
        }
        if attribute.len == -1 {
            let length = (value.len() as u32 + 4) << HEADER_SHIFT;
            payload.extend_from_slice(&length.to_le_bytes());
        }
        payload.extend_from_slice(value);
    }
    payload
}

#[cfg(test)]
mod tests {
    use super::*;
    use trunkline_format::align::Align;
    use trunkline_sql::functions::ArrayView;

    #[test]
    fn arrays_are_read_back() {
        let check = |attribute: Attribute, values: &[&[u8]]| {
            let values: Vec<KeyValue> = values.iter().map(|value| Some((*value).into())).collect();
            let payload = array(Oid(25), attribute, &values);
            let view = ArrayView::parse(&payload).expect("an array");
            let found = view.elements(attribute).expect("elements");
            let found: Vec<Option<&[u8]>> = found.iter().map(Option::as_deref).collect();
            assert_eq!(found, values.iter().map(Option::as_deref).collect::<Vec<_>>());
        };
        check(Attribute { len: -1, align: Align::Int }, &[b"a", b"bcdef", b""]);
        check(Attribute { len: 8, align: Align::Double }, &[&[1; 8], &[2; 8]]);
        check(Attribute { len: 2, align: Align::Short }, &[&[1, 2], &[3, 4], &[5, 6]]);
        check(Attribute { len: 4, align: Align::Int }, &[]);
    }
}
