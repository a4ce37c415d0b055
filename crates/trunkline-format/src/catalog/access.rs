//! Rows about indexes, how they sort, and about partitions and sequences.
//! Vectors in them are taken apart: how an index sorts is a number for each of its columns.

use super::fields::{Fields, RowError};
use crate::ids::Oid;

/// A row of `pg_am`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AccessMethodRow<'a> {
    /// Its OID.
    pub oid: Oid,
    /// Its name.
    pub name: &'a [u8],
    /// What it is for: `t` tables, `i` indexes.
    pub kind: u8,
}

impl<'a> AccessMethodRow<'a> {
    /// Takes it out of a row.
    ///
    /// # Errors
    /// [`RowError`]: a column is missing or senseless.
    pub fn read(fields: &mut Fields<'a, '_>) -> Result<Self, RowError> {
        Ok(Self {
            oid: fields.oid("oid")?,
            name: fields.name("amname")?,
            kind: fields.code("amtype")?,
        })
    }
}

/// A row of `pg_inherits`: a table is a child or a partition of another one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct InheritsRow {
    /// The child.
    pub child: Oid,
    /// The parent.
    pub parent: Oid,
    /// Which of the child's parents it is, from 1.
    pub number: i32,
    /// Whether the partition is being detached: new queries do not see it any longer.
    pub detaching: bool,
}

impl InheritsRow {
    /// Takes it out of a row.
    ///
    /// # Errors
    /// As [`AccessMethodRow::read`].
    pub fn read(fields: &mut Fields<'_, '_>) -> Result<Self, RowError> {
        Ok(Self {
            child: fields.oid("inhrelid")?,
            parent: fields.oid("inhparent")?,
            number: fields.word("inhseqno")?.cast_signed(),
            detaching: fields.flag("inhdetachpending")?,
        })
    }
}

/// A row of `pg_index`: how an index sorts, and what it promises.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct IndexRow {
    /// The index.
    pub index: Oid,
    /// The table.
    pub table: Oid,
    /// Columns that it sorts by; those after them are carried along.
    pub key_count: u16,
    /// Whether no two rows have the same key.
    pub unique: bool,
    /// Whether nulls count as the same.
    pub nulls_not_distinct: bool,
    /// Whether it is the primary key's.
    pub primary: bool,
    /// Whether it may be searched.
    pub valid: bool,
    /// Whether new rows are entered.
    pub ready: bool,
    /// Whether it is not on its way out.
    pub live: bool,
    /// The table's columns by number, all that it has; 0 for an expression.
    pub columns: Vec<i16>,
    /// The collation of each key column; 0 if none.
    pub collations: Vec<Oid>,
    /// The operator class of each key column.
    pub classes: Vec<Oid>,
    /// Of each key column: bit 0 descending, bit 1 nulls first.
    pub options: Vec<i16>,
    /// Whether rows are entered only under a condition.
    pub partial: bool,
}

impl IndexRow {
    /// Takes it out of a row.
    ///
    /// # Errors
    /// As [`AccessMethodRow::read`]; also if the lengths of its vectors do not fit its counts.
    pub fn read(fields: &mut Fields<'_, '_>) -> Result<Self, RowError> {
        let index = fields.oid("indexrelid")?;
        let table = fields.oid("indrelid")?;
        let column_count = fields.short_number("indnatts")?;
        let found = fields.short_number("indnkeyatts")?;
        let key_count = u16::try_from(found).ok().filter(|_| found <= column_count);
        let key_count = key_count.ok_or_else(|| fields.value("indnkeyatts", i64::from(found)))?;
        let row = Self {
            index,
            table,
            key_count,
            unique: fields.flag("indisunique")?,
            nulls_not_distinct: fields.flag("indnullsnotdistinct")?,
            primary: fields.flag("indisprimary")?,
            valid: fields.flag("indisvalid")?,
            ready: fields.flag("indisready")?,
            live: fields.flag("indislive")?,
            columns: fields.short_numbers("indkey")?,
            collations: fields.oids("indcollation")?,
            classes: fields.oids("indclass")?,
            options: fields.short_numbers("indoption")?,
            partial: fields.stored("indpred")?.is_some(),
        };
        let keys = usize::from(key_count);
        for (column, found, expected) in [
            ("indkey", row.columns.len(), usize::try_from(column_count).unwrap_or_default()),
            ("indcollation", row.collations.len(), keys),
            ("indclass", row.classes.len(), keys),
            ("indoption", row.options.len(), keys),
        ] {
            if found != expected {
                return Err(fields.value(column, i64::try_from(found).unwrap_or(i64::MAX)));
            }
        }
        Ok(row)
    }
}

/// A row of `pg_opclass`: how a type is sorted, or otherwise indexed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OperatorClassRow<'a> {
    /// Its OID.
    pub oid: Oid,
    /// The access method that it is for.
    pub method: Oid,
    /// Its name.
    pub name: &'a [u8],
    /// The family: classes that sort alike, for several types.
    pub family: Oid,
    /// The type that it is for.
    pub input_type: Oid,
    /// The type of what is in the index; 0 if the same.
    pub key_type: Oid,
}

impl<'a> OperatorClassRow<'a> {
    /// Takes it out of a row.
    ///
    /// # Errors
    /// As [`AccessMethodRow::read`].
    pub fn read(fields: &mut Fields<'a, '_>) -> Result<Self, RowError> {
        Ok(Self {
            oid: fields.oid("oid")?,
            method: fields.oid("opcmethod")?,
            name: fields.name("opcname")?,
            family: fields.oid("opcfamily")?,
            input_type: fields.oid("opcintype")?,
            key_type: fields.oid("opckeytype")?,
        })
    }
}

/// A row of `pg_collation`: how text is sorted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CollationRow<'a> {
    /// Its OID.
    pub oid: Oid,
    /// Its name.
    pub name: &'a [u8],
    /// Who compares: `b` the server itself, `c` the C library, `i` ICU, `d` whoever the database
    /// says.
    pub provider: u8,
}

impl<'a> CollationRow<'a> {
    /// Takes it out of a row.
    ///
    /// # Errors
    /// As [`AccessMethodRow::read`].
    pub fn read(fields: &mut Fields<'a, '_>) -> Result<Self, RowError> {
        Ok(Self {
            oid: fields.oid("oid")?,
            name: fields.name("collname")?,
            provider: fields.code("collprovider")?,
        })
    }
}

/// A row of `pg_sequence`: how a sequence goes on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SequenceRow {
    /// The sequence.
    pub relation: Oid,
    /// The type of its values.
    pub type_oid: Oid,
    /// Its first value.
    pub start: i64,
    /// From one value to the next.
    pub increment: i64,
    /// The largest value.
    pub most: i64,
    /// The smallest value.
    pub least: i64,
    /// How many values a session takes at once.
    pub cache: i64,
    /// Whether it begins anew at its end.
    pub cycles: bool,
}

impl SequenceRow {
    /// Takes it out of a row.
    ///
    /// # Errors
    /// As [`AccessMethodRow::read`].
    pub fn read(fields: &mut Fields<'_, '_>) -> Result<Self, RowError> {
        Ok(Self {
            relation: fields.oid("seqrelid")?,
            type_oid: fields.oid("seqtypid")?,
            start: fields.double("seqstart")?,
            increment: fields.double("seqincrement")?,
            most: fields.double("seqmax")?,
            least: fields.double("seqmin")?,
            cache: fields.double("seqcache")?,
            cycles: fields.flag("seqcycle")?,
        })
    }
}
