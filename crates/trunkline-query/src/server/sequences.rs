//! The values of sequences: `pg_sequence_last_value` and the like. The value is on the page of the
//! sequence, and its parameters are in `pg_sequence`.

use arrow_array::ArrayRef;
use trunkline_engine::catalog::RelationInfo;
use trunkline_format::Oid;
use trunkline_format::catalog::RelationKind;
use trunkline_format::sequence::Sequence;
use trunkline_sql::values::Carrier;
use trunkline_sql::{SqlError, SqlState};

use super::row_builder::{RowBuilder, Value};
use super::view::{ServerView, blocking};
use crate::scan::catalog_error;

impl ServerView {
    /// `pg_sequence_last_value`: null if no value has been taken.
    pub(super) fn sequence_last_value(&self, relation: u32) -> Result<Option<i64>, SqlError> {
        let value = self.sequence_value(relation)?;
        Ok(value.filter(|value| value.is_called).map(|value| value.last_value))
    }

    /// `pg_get_sequence_data`, which is null for what isn't a sequence.
    pub(super) fn sequence_data(&self, relation: u32) -> Result<Vec<ArrayRef>, SqlError> {
        let value = match self.database.relation(Oid(relation)) {
            Some(found) if found.kind == RelationKind::Sequence => self.sequence_value(relation)?,
            _ => None,
        };
        let mut rows = RowBuilder::new(&[Carrier::Int64, Carrier::Bool]);
        rows.push(&match value {
            Some(value) => [Value::Int8(value.last_value), Value::Bool(value.is_called)],
            None => [Value::Null, Value::Null],
        })?;
        Ok(rows.finish())
    }

    /// `pg_sequence_parameters`.
    pub(super) fn sequence_parameters(&self, sequence: u32) -> Result<Vec<ArrayRef>, SqlError> {
        let found = blocking(|| {
            let mut session = self.session()?;
            let all =
                self.database.sequences(&mut session).map_err(|error| catalog_error(&error))?;
            // Damage that was skipped could hide it.
            match (all.0.into_iter().find(|row| row.sequence == Oid(sequence)), all.1.first()) {
                (Some(row), _) => Ok(row),
                (None, Some(error)) => Err(catalog_error(error)),
                (None, None) => {
                    let message = format!("cache lookup failed for sequence {sequence}");
                    Err(SqlError::internal(message))
                }
            }
        })?;
        let count = Carrier::Int64;
        let mut rows =
            RowBuilder::new(&[count, count, count, count, Carrier::Bool, count, Carrier::UInt32]);
        rows.push(&[
            Value::Int8(found.start),
            Value::Int8(found.min),
            Value::Int8(found.max),
            Value::Int8(found.increment),
            Value::Bool(found.cycle),
            Value::Int8(found.cache),
            Value::Oid(found.type_oid.0),
        ])?;
        Ok(rows.finish())
    }

    /// The page of a sequence; `None` if it has none.
    fn sequence_value(&self, relation: u32) -> Result<Option<Sequence>, SqlError> {
        let relation = self.relation(relation)?;
        if relation.kind != RelationKind::Sequence {
            return Err(self.not_a_sequence(relation));
        }
        blocking(|| {
            let mut session = self.session()?;
            let value = self.database.sequence_value(&mut session, relation);
            value.map(Some).map_err(|error| catalog_error(&error))
        })
    }

    fn not_a_sequence(&self, relation: &RelationInfo) -> SqlError {
        let name = String::from_utf8_lossy(&relation.name);
        let code = SqlState::WRONG_OBJECT_TYPE;
        // Since version 16, the relation is opened as a sequence.
        if self.database.version().major() < 16 {
            return SqlError::new(code, format!("\"{name}\" is not a sequence"));
        }
        let kind = match relation.kind {
            RelationKind::Index => "indexes",
            RelationKind::PartitionedIndex => "partitioned indexes",
            RelationKind::View => "views",
            RelationKind::MaterializedView => "materialized views",
            RelationKind::CompositeType => "composite types",
            RelationKind::ForeignTable => "foreign tables",
            RelationKind::PartitionedTable => "partitioned tables",
            RelationKind::Toast => "TOAST tables",
            RelationKind::Table | RelationKind::Sequence => "tables",
        };
        SqlError::new(code, format!("cannot open relation \"{name}\""))
            .with_detail(format!("This operation is not supported for {kind}."))
    }
}
