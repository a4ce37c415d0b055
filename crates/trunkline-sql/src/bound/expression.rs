//! Expressions: PostgreSQL's expression nodes, without those that need more than one row.

use trunkline_format::Oid;

use super::column::{ColumnId, SqlType};

/// An expression and its type. Two expressions are equal if they compute the same, wherever they are
/// written.
#[derive(Debug, Clone, PartialEq)]
pub struct Expr {
    /// What it computes.
    pub kind: ExprKind,
    /// The type of its value.
    pub ty: SqlType,
    /// Where it is written.
    pub location: Location,
}

impl Expr {
    /// An expression that is not written in the statement.
    pub fn new(kind: ExprKind, ty: SqlType) -> Self {
        Self { kind, ty, location: Location::default() }
    }

    /// The same expression, written at this byte offset of the statement.
    #[must_use]
    pub fn at(self, offset: u32) -> Self {
        Self { location: Location(Some(offset)), ..self }
    }

    /// A null constant of this type.
    pub fn null(ty: SqlType) -> Self {
        Self::new(ExprKind::Constant(None), ty)
    }
}

/// Where an expression is written: a byte offset in the statement, or nowhere. All locations are
/// equal, so that the location of an expression doesn't make it different from another one.
#[derive(Debug, Clone, Copy, Default)]
pub struct Location(pub Option<u32>);

impl PartialEq for Location {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

/// The kinds of expressions.
#[derive(Debug, Clone, PartialEq)]
pub enum ExprKind {
    /// A column of an input, or of an outer query.
    Column(ColumnId),
    /// A constant: the value as it is stored, without a varlena header, or null.
    Constant(Option<Box<[u8]>>),
    /// A parameter of a prepared statement, from 1.
    Parameter(u32),
    /// A call of a function, an operator or a cast function.
    Call {
        /// `pg_proc.oid`.
        function: Oid,
        /// The arguments, of exactly the types that the function takes.
        arguments: Vec<Expr>,
        /// The collation that the function uses; 0 if none.
        collation: Oid,
        /// How the call was written.
        form: CallForm,
    },
    /// `left operator ANY (array)` or `ALL (array)`.
    ArrayComparison {
        /// How the operands are compared.
        comparison: Comparison,
        /// `ANY` or `ALL`.
        quantifier: Quantifier,
        /// The left operand.
        left: Box<Expr>,
        /// The array.
        array: Box<Expr>,
    },
    /// Three-valued `AND` of at least two.
    And(Vec<Expr>),
    /// Three-valued `OR` of at least two.
    Or(Vec<Expr>),
    /// `NOT`.
    Not(Box<Expr>),
    /// `IS NULL`. For a composite value, `is_row` says that its fields are tested.
    IsNull {
        /// What is tested.
        argument: Box<Expr>,
        /// The argument is a row, which `IS NULL` tests field by field.
        is_row: bool,
    },
    /// `IS NOT NULL`, which is not the opposite of `IS NULL` for rows.
    IsNotNull {
        /// What is tested.
        argument: Box<Expr>,
        /// The argument is a row, which is tested field by field.
        is_row: bool,
    },
    /// `IS TRUE` and so on.
    BooleanTest {
        /// What is tested.
        argument: Box<Expr>,
        /// For what.
        test: BooleanTest,
    },
    /// `IS DISTINCT FROM`.
    Distinct {
        /// The type's `=`.
        equality: Comparison,
        /// The left operand.
        left: Box<Expr>,
        /// The right operand.
        right: Box<Expr>,
    },
    /// `NULLIF`: the left operand, or null if it equals the right one.
    NullIf {
        /// The type's `=`.
        equality: Comparison,
        /// The left operand.
        left: Box<Expr>,
        /// The right operand.
        right: Box<Expr>,
    },
    /// `CASE`. The conditions are boolean. `CASE x WHEN y` compares with [`ExprKind::CaseOperand`].
    Case {
        /// The operand of the simple form, evaluated once.
        operand: Option<Box<Expr>>,
        /// Conditions and results.
        arms: Vec<(Expr, Expr)>,
        /// The result if no condition is true; a null constant if there is no `ELSE`.
        otherwise: Box<Expr>,
    },
    /// The operand of the innermost simple `CASE` around.
    CaseOperand,
    /// `COALESCE`.
    Coalesce(Vec<Expr>),
    /// `GREATEST` or `LEAST`, which ignore nulls.
    Extreme {
        /// `GREATEST`.
        greatest: bool,
        /// The type's B-tree comparison function.
        compare: Oid,
        /// The collation that it uses.
        collation: Oid,
        /// The arguments, all of the result's type.
        arguments: Vec<Expr>,
    },
    /// `ARRAY[…]`; with `nested`, the elements are arrays of the result's type.
    Array {
        /// The elements.
        elements: Vec<Expr>,
        /// The elements are arrays, which become the inner dimensions.
        nested: bool,
    },
    /// `ROW(…)`, of type `record` or a composite type.
    Row {
        /// The fields.
        fields: Vec<Expr>,
        /// Their names, for functions such as `row_to_json`.
        names: Vec<Box<str>>,
    },
    /// `ROW(…) < ROW(…)` and the other three orders: the first pair that differs decides.
    RowComparison {
        /// Whether the result is true if the left side is less.
        less: bool,
        /// Whether the result is true if all pairs are equal.
        equal: bool,
        /// For each pair, the operands and the B-tree comparison function with its collation.
        pairs: Vec<(Expr, Expr, Oid, Oid)>,
    },
    /// The same value with another type whose values are stored the same way.
    Relabel(Box<Expr>),
    /// The same value with a collation that was given with `COLLATE`.
    Collate(Box<Expr>),
    /// A cast by the output function of one type and the input function of the other.
    ViaText(Box<Expr>),
    /// A cast of an array, element by element.
    ArrayCast {
        /// The array.
        argument: Box<Expr>,
        /// The cast of one element, which refers to it as [`ExprKind::ArrayElement`].
        element: Box<Expr>,
    },
    /// The current element in an [`ExprKind::ArrayCast`].
    ArrayElement,
    /// `array[i]`, or a part of it: for each dimension, the lower and upper bound.
    Subscript {
        /// The array.
        array: Box<Expr>,
        /// For an element, the subscripts; for a slice, empty.
        element: Vec<Expr>,
        /// For a slice, the bounds; an omitted one is `None`.
        slice: Vec<(Option<Expr>, Option<Expr>)>,
    },
    /// `(row).field`.
    Field {
        /// The row.
        row: Box<Expr>,
        /// The field's number, from 1.
        number: i16,
    },
    /// A subquery used as an expression.
    Subquery(Box<Subquery>),
}

/// How a call was written, which deparsing repeats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallForm {
    /// `f(x)`.
    Function,
    /// `f(x, VARIADIC array)` of a function that takes any number of arguments of any type: the
    /// elements are arguments.
    Variadic,
    /// An operator: its `pg_operator.oid`.
    Operator(Oid),
    /// `x::t` or `CAST(x AS t)`.
    ExplicitCast,
    /// A cast that the binder added.
    ImplicitCast,
}

/// A comparison: the function of an operator that returns a boolean.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Comparison {
    /// `pg_operator.oid`.
    pub operator: Oid,
    /// Its function.
    pub function: Oid,
    /// The collation that it uses; 0 if none.
    pub collation: Oid,
}

/// Which elements must satisfy a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quantifier {
    /// At least one.
    Any,
    /// Every one.
    All,
}

/// The tests of a boolean value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are SQL's")]
pub enum BooleanTest {
    IsTrue,
    IsNotTrue,
    IsFalse,
    IsNotFalse,
    IsUnknown,
    IsNotUnknown,
}

/// A subquery used as an expression. The queries themselves are kept beside the tree, in
/// [`super::Subqueries`], so that an expression is independent of relations.
#[derive(Debug, Clone, PartialEq)]
pub struct Subquery {
    /// What its value is.
    pub kind: SubqueryKind,
    /// The subquery.
    pub query: QueryId,
}

/// A subquery of the statement. Ids are assigned in sequence, from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct QueryId(pub(super) u32);

/// What a subquery's value is.
#[derive(Debug, Clone, PartialEq)]
pub enum SubqueryKind {
    /// The only column of the only row; null if there is no row, an error if there are more.
    Scalar,
    /// Whether there is a row.
    Exists,
    /// `row operator ANY (subquery)` or `ALL`; `IN` is `= ANY`. Rows match if all pairs of columns do.
    Quantified {
        /// `ANY` or `ALL`.
        quantifier: Quantifier,
        /// The left operands with their comparisons, one for each column of the subquery.
        operands: Vec<(Expr, Comparison)>,
        /// The columns of the subquery as the comparisons' right operands. They refer to the
        /// subquery's output columns.
        columns: Vec<Expr>,
    },
    /// `ARRAY(subquery)`.
    Array,
}

/// How rows are sorted by one expression.
#[derive(Debug, Clone, PartialEq)]
pub struct SortKey {
    /// The expression.
    pub expr: Expr,
    /// `DESC`.
    pub descending: bool,
    /// `NULLS FIRST`.
    pub nulls_first: bool,
}
