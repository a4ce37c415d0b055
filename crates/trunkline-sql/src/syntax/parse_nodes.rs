//! **The nodes of queries and expressions**, modelled on PostgreSQL's raw parse tree. Queries contain
//! expressions and expressions contain queries, which is why both are in this file.
//!
//! The grammar already simplifies, and the tree shows the result as PostgreSQL's does: `TABLE t` is
//! `SELECT * FROM t`; `x LIKE y ESCAPE z` is the operator `~~` with `pg_catalog.like_escape(y, z)`;
//! `EXTRACT(year FROM d)` is a call of `pg_catalog.extract`; `-1` is a constant. For
//! `select a.x + 1 from a`, the only target is an [`ExpressionKind::Operator`] of a
//! [`ExpressionKind::ColumnReference`] with the fields `a`, `x` and a [`Constant::Integer`].
//!
//! A chain of operators nests to the left, at most as deep as the limits allow. Code that follows
//! it must recurse on a stack that can grow (`stacker`).

use super::clauses::{
    ColumnDefinition, ColumnReference, FrameExclusion, FrameUnits, JoinKind, LockingClause,
    Quantifier, RangeVariable, SetOperation, SqlValueFunction,
};
use super::constant::Constant;
use super::names::{Alias, Name, OperatorName, QualifiedName, TypeName};
use super::span::Span;

/// An expression and where it is written.
#[derive(Clone, Debug, PartialEq)]
pub struct Expression {
    /// What it is.
    pub kind: ExpressionKind,
    /// Its whole extent. The start is what PostgreSQL's `exprLocation` gives, except that
    /// parentheses around the expression are not part of it.
    pub span: Span,
    /// The offset that PostgreSQL keeps as the node's `location`: of an operator, its symbol; of a
    /// cast with `::`, the colons; otherwise mostly the start.
    pub location: u32,
}

/// The kinds of expressions.
#[derive(Clone, Debug, PartialEq)]
pub enum ExpressionKind {
    /// `a`, `t.a`, `s.t.a`, `t.*`, `*`.
    ColumnReference(ColumnReference),
    /// `$1`.
    Parameter(u32),
    /// A literal.
    Constant(Constant),
    /// Fields and subscripts of a value: `(row).field`, `a[1]`, `$1[2:3]`, `(row).*`.
    Indirection {
        /// The value.
        base: Box<Expression>,
        /// What follows it, from left to right; never empty.
        steps: Vec<IndirectionStep>,
    },
    /// An operator. LIKE, ILIKE and SIMILAR TO are among them.
    Operator {
        /// The operator.
        operator: OperatorName,
        /// The left operand; none if the operator is a prefix.
        left: Option<Box<Expression>>,
        /// The right operand.
        right: Box<Expression>,
    },
    /// `left operator ANY (array)` or `ALL (array)`.
    ArrayComparison {
        /// The operator.
        operator: OperatorName,
        /// ANY (also written SOME) or ALL.
        quantifier: Quantifier,
        /// The scalar.
        left: Box<Expression>,
        /// The array.
        right: Box<Expression>,
    },
    /// `left IS [NOT] DISTINCT FROM right`.
    Distinct {
        /// With NOT.
        negated: bool,
        /// The left operand.
        left: Box<Expression>,
        /// The right operand.
        right: Box<Expression>,
    },
    /// `NULLIF(left, right)`.
    NullIf {
        /// The value.
        left: Box<Expression>,
        /// What it is compared with.
        right: Box<Expression>,
    },
    /// `left [NOT] IN (list)`.
    In {
        /// With NOT.
        negated: bool,
        /// The left operand.
        left: Box<Expression>,
        /// The list; never empty.
        list: Vec<Expression>,
    },
    /// `operand [NOT] BETWEEN [SYMMETRIC] low AND high`.
    Between {
        /// With NOT.
        negated: bool,
        /// With SYMMETRIC: the bounds may be exchanged.
        symmetric: bool,
        /// The operand.
        operand: Box<Expression>,
        /// The first bound.
        low: Box<Expression>,
        /// The second bound.
        high: Box<Expression>,
    },
    /// Two or more conditions joined by AND.
    And(Vec<Expression>),
    /// Two or more conditions joined by OR.
    Or(Vec<Expression>),
    /// `NOT condition`.
    Not(Box<Expression>),
    /// `argument IS [NOT] NULL`.
    NullTest {
        /// With NOT.
        negated: bool,
        /// The argument.
        argument: Box<Expression>,
    },
    /// `argument IS [NOT] TRUE`, `FALSE` or `UNKNOWN`.
    BooleanTest {
        /// With NOT.
        negated: bool,
        /// The value; none is UNKNOWN.
        value: Option<bool>,
        /// The argument.
        argument: Box<Expression>,
    },
    /// A function, an aggregate or a window function.
    FunctionCall(Box<FunctionCall>),
    /// `CURRENT_DATE` and its like, which are written without parentheses.
    SqlValueFunction {
        /// Which one.
        function: SqlValueFunction,
        /// The digits of a second that a time or timestamp keeps, if written.
        precision: Option<i32>,
    },
    /// `argument::type`, `CAST(argument AS type)`, `type 'string'`.
    TypeCast {
        /// The argument.
        argument: Box<Expression>,
        /// The target type.
        type_name: Box<TypeName>,
    },
    /// `argument COLLATE collation`.
    Collate {
        /// The argument.
        argument: Box<Expression>,
        /// The collation.
        collation: QualifiedName,
    },
    /// `CASE [argument] WHEN … THEN … [ELSE …] END`.
    Case {
        /// What the conditions are compared with, if written.
        argument: Option<Box<Expression>>,
        /// The branches; never empty.
        branches: Vec<CaseBranch>,
        /// The result of ELSE.
        default: Option<Box<Expression>>,
    },
    /// `COALESCE(…)`.
    Coalesce(Vec<Expression>),
    /// `GREATEST(…)`.
    Greatest(Vec<Expression>),
    /// `LEAST(…)`.
    Least(Vec<Expression>),
    /// `ROW(…)`, or `(a, b)`.
    Row {
        /// The word ROW is written. Only then may the row have fewer than two fields.
        explicit: bool,
        /// The fields.
        fields: Vec<Expression>,
    },
    /// `ARRAY[…]`. Rows of a multidimensional array are arrays, without the word ARRAY.
    Array(Vec<Expression>),
    /// A query inside an expression.
    SubLink {
        /// What is done with its rows.
        kind: SubLinkKind,
        /// The query.
        query: Box<SelectStatement>,
    },
    /// `GROUPING(…)`.
    Grouping(Vec<Expression>),
}

/// One step from a value to a part of it.
#[derive(Clone, Debug, PartialEq)]
pub enum IndirectionStep {
    /// `.name`
    Field(Name),
    /// `.*`
    Star(Span),
    /// `[index]`
    Subscript(Expression),
    /// `[lower:upper]`
    Slice {
        /// The lower bound, if written.
        lower: Option<Box<Expression>>,
        /// The upper bound, if written.
        upper: Option<Box<Expression>>,
        /// The brackets.
        span: Span,
    },
}

/// What an expression does with the rows of a query.
#[derive(Clone, Debug, PartialEq)]
pub enum SubLinkKind {
    /// `EXISTS (query)`.
    Exists,
    /// `left operator ANY (query)`, or ALL.
    Quantified {
        /// ANY or ALL.
        quantifier: Quantifier,
        /// The left operand.
        left: Box<Expression>,
        /// The operator.
        operator: OperatorName,
    },
    /// `left [NOT] IN (query)`.
    In {
        /// With NOT.
        negated: bool,
        /// The left operand.
        left: Box<Expression>,
    },
    /// `(query)`: the value of its only row.
    Scalar,
    /// `ARRAY(query)`.
    Array,
}

/// One `WHEN condition THEN result`.
#[derive(Clone, Debug, PartialEq)]
pub struct CaseBranch {
    /// The condition, or what the argument of CASE must equal.
    pub condition: Expression,
    /// The result.
    pub result: Expression,
    /// From WHEN to the result.
    pub span: Span,
}

/// A call of a function.
#[derive(Clone, Debug, PartialEq)]
pub struct FunctionCall {
    /// The function.
    pub name: QualifiedName,
    /// The arguments.
    pub arguments: Vec<Argument>,
    /// `f(*)`.
    pub star: bool,
    /// `f(DISTINCT …)`.
    pub distinct: bool,
    /// VARIADIC precedes the last argument.
    pub variadic: bool,
    /// ORDER BY inside the parentheses, or that of WITHIN GROUP.
    pub order_by: Vec<SortBy>,
    /// `order_by` is that of WITHIN GROUP.
    pub within_group: bool,
    /// `FILTER (WHERE …)`.
    pub filter: Option<Expression>,
    /// `OVER …`.
    pub over: Option<Over>,
    /// The call was written in a syntax of its own, such as `EXTRACT(… FROM …)`. PostgreSQL prints it
    /// so, and the name is then qualified with `pg_catalog`.
    pub sql_syntax: bool,
}

/// An argument of a function.
#[derive(Clone, Debug, PartialEq)]
pub struct Argument {
    /// The name of `name => value`.
    pub name: Option<Name>,
    /// The value.
    pub value: Expression,
}

/// What follows OVER.
#[derive(Clone, Debug, PartialEq)]
pub enum Over {
    /// `OVER name`: exactly a window of the WINDOW clause.
    Name(Name),
    /// `OVER (…)`.
    Window(WindowDefinition),
}

/// A window definition, in OVER or in the WINDOW clause.
#[derive(Clone, Debug, PartialEq)]
pub struct WindowDefinition {
    /// Its own name, in a WINDOW clause.
    pub name: Option<Name>,
    /// The window whose clauses it takes over.
    pub reference: Option<Name>,
    /// PARTITION BY.
    pub partition_by: Vec<Expression>,
    /// ORDER BY.
    pub order_by: Vec<SortBy>,
    /// The frame, if written.
    pub frame: Option<WindowFrame>,
    /// The parentheses.
    pub span: Span,
}

/// The frame of a window.
#[derive(Clone, Debug, PartialEq)]
pub struct WindowFrame {
    /// What offsets count.
    pub units: FrameUnits,
    /// Where the frame starts; never `UnboundedFollowing`.
    pub start: FrameBound,
    /// Where it ends; `CurrentRow` if only a start is written, never `UnboundedPreceding`.
    pub end: FrameBound,
    /// Rows left out.
    pub exclusion: FrameExclusion,
    /// The clause.
    pub span: Span,
}

/// One end of a frame.
#[derive(Clone, Debug, PartialEq)]
#[expect(missing_docs, reason = "the variants are the words of the clause")]
pub enum FrameBound {
    UnboundedPreceding,
    Preceding(Box<Expression>),
    CurrentRow,
    Following(Box<Expression>),
    UnboundedFollowing,
}

/// One key of ORDER BY.
#[derive(Clone, Debug, PartialEq)]
pub struct SortBy {
    /// The key.
    pub expression: Expression,
    /// ASC, DESC or USING.
    pub direction: SortDirection,
    /// `Some(true)` is NULLS FIRST, `Some(false)` NULLS LAST.
    pub nulls_first: Option<bool>,
}

/// The direction of a sort key.
#[derive(Clone, Debug, PartialEq)]
pub enum SortDirection {
    /// Nothing is written, which means ascending.
    Default,
    /// ASC.
    Ascending,
    /// DESC.
    Descending,
    /// `USING operator`.
    Using(OperatorName),
}

/// A query: SELECT, VALUES, TABLE, or a set operation, with the clauses that surround it.
#[derive(Clone, Debug, PartialEq)]
pub struct SelectStatement {
    /// WITH.
    pub with: Option<WithClause>,
    /// The query proper.
    pub body: SelectBody,
    /// ORDER BY.
    pub order_by: Vec<SortBy>,
    /// OFFSET.
    pub offset: Option<Expression>,
    /// LIMIT or FETCH FIRST. `LIMIT ALL` is the constant null.
    pub limit: Option<Expression>,
    /// FETCH FIRST … WITH TIES.
    pub with_ties: bool,
    /// FOR UPDATE and the like.
    pub locking: Vec<LockingClause>,
    /// The query without parentheses around it.
    pub span: Span,
}

/// The body of a query.
#[derive(Clone, Debug, PartialEq)]
pub enum SelectBody {
    /// SELECT, or TABLE.
    Select(Box<SelectCore>),
    /// VALUES. PostgreSQL checks that all rows are of equal length only in parse analysis.
    Values(Vec<ValuesRow>),
    /// UNION, INTERSECT, EXCEPT.
    SetOperation {
        /// Which.
        operation: SetOperation,
        /// With ALL.
        all: bool,
        /// The left operand.
        left: Box<SelectStatement>,
        /// The right operand.
        right: Box<SelectStatement>,
    },
}

/// One row of VALUES.
#[derive(Clone, Debug, PartialEq)]
pub struct ValuesRow {
    /// The columns.
    pub columns: Vec<Expression>,
    /// The parentheses.
    pub span: Span,
}

/// A simple SELECT.
#[derive(Clone, Debug, PartialEq)]
pub struct SelectCore {
    /// DISTINCT.
    pub distinct: DistinctClause,
    /// The target list; may be empty.
    pub targets: Vec<TargetEntry>,
    /// FROM.
    pub from: Vec<TableReference>,
    /// WHERE.
    pub where_clause: Option<Expression>,
    /// GROUP BY.
    pub group_by: Vec<GroupingElement>,
    /// `GROUP BY DISTINCT`.
    pub group_distinct: bool,
    /// HAVING.
    pub having: Option<Expression>,
    /// WINDOW; each has a name.
    pub windows: Vec<WindowDefinition>,
}

/// DISTINCT of a SELECT.
#[derive(Clone, Debug, PartialEq)]
pub enum DistinctClause {
    /// None, or ALL.
    All,
    /// DISTINCT.
    Distinct,
    /// DISTINCT ON.
    On(Vec<Expression>),
}

/// One entry of a target list.
#[derive(Clone, Debug, PartialEq)]
pub struct TargetEntry {
    /// The expression; `*` and `t.*` are column references with a star.
    pub expression: Expression,
    /// AS.
    pub name: Option<Name>,
}

/// One entry of GROUP BY.
#[derive(Clone, Debug, PartialEq)]
pub enum GroupingElement {
    /// An expression; a row without the word ROW stands for its fields.
    Expression(Expression),
    /// `()`.
    Empty(Span),
    /// `ROLLUP (…)`.
    Rollup(Vec<Expression>, Span),
    /// `CUBE (…)`.
    Cube(Vec<Expression>, Span),
    /// `GROUPING SETS (…)`.
    Sets(Vec<GroupingElement>, Span),
}

/// WITH.
#[derive(Clone, Debug, PartialEq)]
pub struct WithClause {
    /// WITH RECURSIVE.
    pub recursive: bool,
    /// The common table expressions.
    pub ctes: Vec<CommonTableExpression>,
    /// From WITH to the last of them.
    pub span: Span,
}

/// A common table expression.
#[derive(Clone, Debug, PartialEq)]
pub struct CommonTableExpression {
    /// Its name and the aliases of its columns.
    pub alias: Alias,
    /// `Some(true)` is MATERIALIZED, `Some(false)` NOT MATERIALIZED.
    pub materialized: Option<bool>,
    /// The query.
    pub query: Box<SelectStatement>,
    /// SEARCH.
    pub search: Option<SearchClause>,
    /// CYCLE.
    pub cycle: Option<CycleClause>,
}

/// SEARCH DEPTH FIRST BY or SEARCH BREADTH FIRST BY columns SET sequence.
#[derive(Clone, Debug, PartialEq)]
pub struct SearchClause {
    /// BREADTH.
    pub breadth: bool,
    /// The columns by which rows are ordered.
    pub columns: Vec<Name>,
    /// The column that is added.
    pub sequence: Name,
    /// From the word SEARCH.
    pub span: Span,
}

/// CYCLE columns SET mark TO value DEFAULT default USING path.
#[derive(Clone, Debug, PartialEq)]
pub struct CycleClause {
    /// The columns that are the same in all rows of a cycle.
    pub columns: Vec<Name>,
    /// The column that marks the row that closes a cycle.
    pub mark: Name,
    /// The values of the mark for such a row and for others; `true` and `false` if they are not given.
    pub values: Option<(Expression, Expression)>,
    /// The column with the rows before.
    pub path: Name,
    /// From the word CYCLE.
    pub span: Span,
}

/// An item of FROM.
#[derive(Clone, Debug, PartialEq)]
pub enum TableReference {
    /// A table, view or common table expression.
    Relation(RangeVariable),
    /// A query in parentheses.
    Subselect(RangeSubselect),
    /// A function, or ROWS FROM.
    Function(RangeFunction),
    /// A join.
    Join(Box<JoinExpression>),
    /// A relation with TABLESAMPLE.
    TableSample(RangeTableSample),
}

/// A query in FROM.
#[derive(Clone, Debug, PartialEq)]
pub struct RangeSubselect {
    /// LATERAL.
    pub lateral: bool,
    /// The query.
    pub query: Box<SelectStatement>,
    /// Its alias. PostgreSQL 15 requires one, 16 does not.
    pub alias: Option<Alias>,
    /// From the parenthesis to the alias.
    pub span: Span,
}

/// Functions in FROM.
#[derive(Clone, Debug, PartialEq)]
pub struct RangeFunction {
    /// LATERAL. A function may refer to the items before it in any case.
    pub lateral: bool,
    /// WITH ORDINALITY.
    pub ordinality: bool,
    /// ROWS FROM.
    pub rows_from: bool,
    /// The functions; one unless `rows_from`.
    pub functions: Vec<RangeFunctionItem>,
    /// The alias.
    pub alias: Option<Alias>,
    /// The column definitions behind the alias, as in `AS t(a int, b text)` or `AS (a int)`.
    pub columns: Vec<ColumnDefinition>,
    /// From the function to the alias.
    pub span: Span,
}

/// One function of a [`RangeFunction`].
#[derive(Clone, Debug, PartialEq)]
pub struct RangeFunctionItem {
    /// The call: a `FunctionCall`, or what a special syntax such as `CURRENT_DATE` stands for.
    pub function: Expression,
    /// `AS (a int, b text)` inside ROWS FROM.
    pub columns: Vec<ColumnDefinition>,
}

/// A join.
#[derive(Clone, Debug, PartialEq)]
pub struct JoinExpression {
    /// The kind of join. CROSS JOIN is an inner join without a condition.
    pub kind: JoinKind,
    /// The left side.
    pub left: TableReference,
    /// The right side.
    pub right: TableReference,
    /// ON, USING or NATURAL.
    pub condition: JoinCondition,
    /// The alias of a join in parentheses.
    pub alias: Option<Alias>,
    /// From the left side to the condition.
    pub span: Span,
}

/// What joins two relations.
#[derive(Clone, Debug, PartialEq)]
pub enum JoinCondition {
    /// CROSS JOIN.
    None,
    /// ON.
    On(Expression),
    /// USING, with the alias of the joined columns.
    Using(Vec<Name>, Option<Name>),
    /// NATURAL.
    Natural,
}

/// `relation TABLESAMPLE method (arguments) [REPEATABLE (seed)]`.
#[derive(Clone, Debug, PartialEq)]
pub struct RangeTableSample {
    /// The relation.
    pub relation: RangeVariable,
    /// The method.
    pub method: QualifiedName,
    /// Its arguments.
    pub arguments: Vec<Expression>,
    /// REPEATABLE.
    pub repeatable: Option<Expression>,
}
