//! **Clauses**: what the filters of a scan say about single columns, before an index is chosen.
//!
//! ```text
//!   a >= 3 AND (b = 'x' OR b IS NULL) AND c + d > 5
//!   All [ Test a, Any [ Test b, Test b ], Other ]
//! ```
//! A clause is a consequence of the filter that it was made from: it is true for every row for which
//! the filter is true. The scan evaluates the whole filter for each row that an index leads to, so a
//! clause may say less than its filter, but never more.

use trunkline_format::Oid;
use trunkline_format::btree::Comparison;
use trunkline_sql::values::Carrier;

/// A condition as far as indexes could use it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Clause {
    /// A test of one column.
    Test(ColumnTest),
    /// A comparison of several columns with a row of constants.
    Row(RowTest),
    /// All are true.
    All(Vec<Clause>),
    /// At least one is true.
    Any(Vec<Clause>),
    /// Something that no index can be searched for.
    Other,
}

/// A test of a column.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ColumnTest {
    /// The column's place among the stored columns of the table, from 0.
    pub(crate) column: usize,
    /// What is tested.
    pub(crate) test: Test,
}

/// What is tested.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Test {
    /// A comparison with a constant.
    Compare(Operation, Constant),
    /// A comparison that must be true for one of the constants.
    AnyOf(Operation, Vec<Constant>),
    /// `IS NULL`
    IsNull,
    /// `IS NOT NULL`
    IsNotNull,
}

/// How a column is compared with a constant.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Operation {
    /// The column's array is compared by Arrow.
    Native {
        /// The comparison, with the column on its left.
        comparison: Comparison,
        /// What holds the column's values.
        carrier: Carrier,
    },
    /// The function of an operator.
    Function {
        /// Its `pg_proc.oid`.
        function: Oid,
        /// The constant is its left operand.
        commuted: bool,
        /// The collation that it uses; 0 if none.
        collation: Oid,
    },
}

/// A constant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Constant {
    /// Null.
    Null,
    /// An integer of any size.
    Integer(i64),
    /// A value as it is stored, without a varlena header.
    Stored(Box<[u8]>),
}

/// `(column, …) operator (constant, …)`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RowTest {
    /// The operator: not `=`.
    pub(crate) comparison: Comparison,
    /// The columns with their constants.
    pub(crate) fields: Vec<RowField>,
}

/// A column of a row comparison.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RowField {
    /// The column's place among the stored columns.
    pub(crate) column: usize,
    /// The constant.
    pub(crate) constant: Constant,
    /// The B-tree comparison function of the types, and the collation that it uses.
    pub(crate) compare: Oid,
    pub(crate) collation: Oid,
}

/// A column of the table that a filter uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FilterColumn {
    /// Its place among the stored columns.
    pub(crate) place: usize,
    /// What holds its values.
    pub(crate) carrier: Carrier,
}

impl Clause {
    /// Adds the places of the columns that it is about.
    pub(crate) fn add_columns(&self, columns: &mut Vec<usize>) {
        match self {
            Self::Test(test) => columns.push(test.column),
            Self::Row(row) => columns.extend(row.fields.iter().map(|field| field.column)),
            Self::All(parts) | Self::Any(parts) => {
                parts.iter().for_each(|part| part.add_columns(columns));
            }
            Self::Other => {}
        }
    }

    /// The parts that must all be true.
    pub(crate) fn conjuncts(&self) -> Vec<&Self> {
        match self {
            Self::All(parts) => parts.iter().flat_map(Self::conjuncts).collect(),
            other => vec![other],
        }
    }
}

/// The comparison with its sides exchanged.
pub(crate) fn commuted(comparison: Comparison) -> Comparison {
    match comparison {
        Comparison::Less => Comparison::Greater,
        Comparison::LessOrEqual => Comparison::GreaterOrEqual,
        Comparison::Equal => Comparison::Equal,
        Comparison::GreaterOrEqual => Comparison::LessOrEqual,
        Comparison::Greater => Comparison::Less,
    }
}

/// The clause of a test.
pub(super) fn test(column: FilterColumn, test: Test) -> Clause {
    Clause::Test(ColumnTest { column: column.place, test })
}

/// A column of type `bool` that must have this value.
pub(super) fn boolean_test(column: FilterColumn, value: bool) -> Clause {
    if column.carrier != Carrier::Bool {
        return Clause::Other;
    }
    let operation = Operation::Native { comparison: Comparison::Equal, carrier: Carrier::Bool };
    let value = Constant::Stored([u8::from(value)].into());
    test(column, Test::Compare(operation, value))
}
