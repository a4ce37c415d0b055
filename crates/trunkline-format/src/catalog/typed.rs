//! Rows about types: what a value's bytes depend on.
//!
//! And the beginning that rows of many catalogs share: a number, a name, a schema.

use super::fields::{Fields, RowError};
use super::listed_tables::PG_OPERATOR;
use super::mapped_tables::PG_PROC;
use crate::align::Align;
use crate::ids::Oid;

/// A row of `pg_type`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TypeRow<'a> {
    /// Its OID.
    pub oid: Oid,
    /// Its name.
    pub name: &'a [u8],
    /// The schema it is in.
    pub schema: Oid,
    /// The size of its values in bytes; -1 with a length before them, -2 with a zero behind them.
    pub len: i16,
    /// What it is: `b` base, `c` composite, `d` domain, `e` enum, `m` multirange, `p` pseudo, `r`
    /// range.
    pub kind: u8,
    /// What separates elements in the text of an array of it.
    pub delimiter: u8,
    /// Of a composite type, the relation with its columns; else 0.
    pub relation: Oid,
    /// The type of its elements; 0 if it has none.
    pub element: Oid,
    /// The type of arrays of it; 0 if there is none.
    pub array: Oid,
    /// The function that makes text of it.
    pub output: Oid,
    /// How its values are aligned.
    pub align: Align,
    /// Of a domain, the type that it restricts; else 0.
    pub base: Oid,
    /// Of a domain, what the type that it restricts was given; else -1.
    pub modifier: i32,
}

impl<'a> TypeRow<'a> {
    /// Takes it out of a row.
    ///
    /// # Errors
    /// [`RowError`]: a column is missing or senseless.
    pub fn read(fields: &mut Fields<'a, '_>) -> Result<Self, RowError> {
        Ok(Self {
            oid: fields.oid("oid")?,
            name: fields.name("typname")?,
            schema: fields.oid("typnamespace")?,
            len: fields.short_number("typlen")?,
            kind: fields.code("typtype")?,
            delimiter: fields.code("typdelim")?,
            relation: fields.oid("typrelid")?,
            element: fields.oid("typelem")?,
            array: fields.oid("typarray")?,
            output: fields.oid("typoutput")?,
            align: fields.align("typalign")?,
            base: fields.oid("typbasetype")?,
            modifier: fields.word("typtypmod")?.cast_signed(),
        })
    }
}

/// A row of `pg_enum`: one label of an enum.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct EnumRow<'a> {
    /// What values hold.
    pub oid: Oid,
    /// The enum.
    pub enum_type: Oid,
    /// Labels come in this order.
    pub order: f32,
    /// The label.
    pub label: &'a [u8],
}

impl<'a> EnumRow<'a> {
    /// Takes it out of a row.
    ///
    /// # Errors
    /// As [`TypeRow::read`].
    pub fn read(fields: &mut Fields<'a, '_>) -> Result<Self, RowError> {
        Ok(Self {
            oid: fields.oid("oid")?,
            enum_type: fields.oid("enumtypid")?,
            order: fields.float("enumsortorder")?,
            label: fields.name("enumlabel")?,
        })
    }
}

/// A row of `pg_range`: a range type and its multirange.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RangeRow {
    /// The range type.
    pub range: Oid,
    /// The type of its bounds.
    pub subtype: Oid,
    /// The type of sets of such ranges.
    pub multirange: Oid,
    /// The collation of its bounds; 0 if none.
    pub collation: Oid,
}

impl RangeRow {
    /// Takes it out of a row.
    ///
    /// # Errors
    /// As [`TypeRow::read`].
    pub fn read(fields: &mut Fields<'_, '_>) -> Result<Self, RowError> {
        Ok(Self {
            range: fields.oid("rngtypid")?,
            subtype: fields.oid("rngsubtype")?,
            multirange: fields.oid("rngmultitypid")?,
            collation: fields.oid("rngcollation")?,
        })
    }
}

/// A row of a catalog of objects that have a name in a schema: `pg_proc`, `pg_operator`,
/// `pg_collation`, `pg_ts_config`, `pg_ts_dict`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NamedRow<'a> {
    /// The object's OID.
    pub oid: Oid,
    /// Its name.
    pub name: &'a [u8],
    /// The schema it is in.
    pub schema: Oid,
    /// Of a function, the types of what it is called with; of an operator, those of its left and
    /// right side, 0 for a side that it has not; of others none.
    pub arguments: Vec<Oid>,
}

impl<'a> NamedRow<'a> {
    /// Takes it out of a row of any of these catalogs.
    ///
    /// # Errors
    /// As [`TypeRow::read`].
    pub fn read(fields: &mut Fields<'a, '_>) -> Result<Self, RowError> {
        let table = fields.table();
        // They all begin alike.
        let column = |at: usize| table.columns.get(at).map_or("", |column| column.name);
        Ok(Self {
            oid: fields.oid(column(0))?,
            name: fields.name(column(1))?,
            schema: fields.oid(column(2))?,
            arguments: if table.oid == PG_PROC.oid {
                fields.oids("proargtypes")?
            } else if table.oid == PG_OPERATOR.oid {
                vec![fields.oid("oprleft")?, fields.oid("oprright")?]
            } else {
                Vec::new()
            },
        })
    }
}
