//! Expressions compiled for evaluation over batches.
//!
//! ```text
//!   bound expression ── compile ──▶ Program { root: Node, columns: [c7, c3] }
//!                                       │ evaluate(arrays of c7 and c3)
//!                                       ▼
//!                                     array
//! ```
//!
//! DataFusion has its own nodes for `CASE`, `AND`, `COALESCE` and so on, but it may evaluate their
//! operands in rows in which PostgreSQL would not, and knows neither our kernels nor our errors. So
//! whatever isn't a plain comparison of columns becomes one opaque function of the columns that it
//! uses.

use arrow_array::ArrayRef;
use trunkline_format::Oid;
use trunkline_sql::SqlError;
use trunkline_sql::bound::{
    BooleanTest, CallForm, ColumnId, Comparison, Expr, ExprKind, Quantifier, SqlType, with_stack,
};
use trunkline_sql::values::{Carrier, OrderKey};

use super::arrays::ElementType;
use super::constant::{constant, parameter};
use super::elements::constant_elements;
use super::function::Function;
use super::keys::Key;
use super::row_values::RowType;
use super::via_text::ViaText;
use crate::environment::{Environment, Volatility};

/// `bool`'s OID.
pub(crate) const BOOL: Oid = Oid(16);

/// A compiled expression.
pub(crate) struct Program {
    pub(super) root: Node,
    columns: Vec<ColumnId>,
    volatility: Volatility,
    carrier: Carrier,
}

/// A step of a program.
pub(super) enum Node {
    Column(usize),
    Constant(ArrayRef),
    Call {
        function: Function,
        arguments: Vec<Node>,
    },
    /// A call whose last argument is an array of arguments.
    Spread {
        function: Function,
        arguments: Vec<Node>,
    },
    And(Vec<Node>),
    Or(Vec<Node>),
    Not(Box<Node>),
    IsNull {
        argument: Box<Node>,
        negated: bool,
    },
    Test {
        argument: Box<Node>,
        test: BooleanTest,
    },
    Distinct {
        equality: Function,
        left: Box<Node>,
        right: Box<Node>,
    },
    NullIf {
        equality: Function,
        left: Box<Node>,
        right: Box<Node>,
    },
    Case {
        operand: Option<Box<Node>>,
        arms: Vec<(Node, Node)>,
        otherwise: Box<Node>,
    },
    Operand,
    Coalesce(Vec<Node>),
    Extreme {
        greatest: bool,
        compare: Function,
        arguments: Vec<Node>,
    },
    /// `ANY` or `ALL` of the elements of a constant array.
    AnyElement {
        comparison: Function,
        all: bool,
        left: Box<Node>,
        elements: Vec<ArrayRef>,
    },
    /// `ANY` or `ALL` of the elements of an array that is computed.
    AnyOf {
        comparison: Function,
        all: bool,
        left: Box<Node>,
        array: Box<Node>,
    },
    Array {
        element: ElementType,
        elements: Vec<Node>,
        nested: bool,
    },
    ArrayCast {
        from: ElementType,
        to: ElementType,
        argument: Box<Node>,
        /// The cast of an element, which is its [`Node::Operand`].
        cast: Box<Node>,
    },
    Subscript {
        element: ElementType,
        array: Box<Node>,
        subscripts: Vec<Node>,
    },
    Slice {
        element: ElementType,
        array: Box<Node>,
        bounds: Vec<(Option<Node>, Option<Node>)>,
    },
    /// Rows, by the first pair of fields that differs.
    Rows {
        less: bool,
        equal: bool,
        pairs: Vec<(Node, Node, Function)>,
    },
    /// `ROW(…)`.
    Row {
        ty: RowType,
        fields: Vec<Node>,
    },
    /// `(row).field`.
    Field {
        row: Box<Node>,
        number: i16,
        carrier: Carrier,
    },
    /// `row IS NULL`, field by field.
    RowTest {
        row: Box<Node>,
        negated: bool,
    },
    ViaText {
        cast: ViaText,
        argument: Box<Node>,
    },
    Key {
        key: Key,
        argument: Box<Node>,
    },
    Relabel {
        argument: Box<Node>,
        from: Carrier,
        to: Carrier,
    },
}

/// A program under construction.
struct Compiler<'a> {
    environment: &'a Environment,
    columns: Vec<ColumnId>,
    volatility: Volatility,
}

impl Program {
    /// Compiles an expression.
    ///
    /// # Errors
    /// 0A000: it contains something that we have not implemented.
    pub(crate) fn compile(environment: &Environment, expr: &Expr) -> Result<Self, SqlError> {
        Self::build(environment, environment.carrier(expr.ty.oid)?, |compiler| compiler.node(expr))
    }

    /// Compiles the key by which values of an expression are compared; see [`Key`].
    ///
    /// # Errors
    /// As for [`Program::compile`].
    pub(crate) fn compile_key(
        environment: &Environment,
        expr: &Expr,
        key: Key,
    ) -> Result<Self, SqlError> {
        let carrier = key.carrier();
        Self::build(environment, carrier, |compiler| {
            Ok(Node::Key { key, argument: Box::new(compiler.node(expr)?) })
        })
    }

    fn build<'a>(
        environment: &'a Environment,
        carrier: Carrier,
        root: impl FnOnce(&mut Compiler<'a>) -> Result<Node, SqlError>,
    ) -> Result<Self, SqlError> {
        let volatility = Volatility::Immutable;
        let mut compiler = Compiler { environment, columns: Vec::new(), volatility };
        let root = root(&mut compiler)?;
        let Compiler { columns, volatility, .. } = compiler;
        Ok(Self { root, columns, volatility, carrier })
    }

    /// If this is only the key of a column's stored value: how that is made.
    pub(crate) fn key_of_column(&self) -> Option<OrderKey> {
        match &self.root {
            Node::Key { key: Key::Stored(key), argument } => {
                matches!(**argument, Node::Column(_)).then_some(*key)
            }
            _ => None,
        }
    }

    /// Whether it computes the keys of values.
    pub(crate) fn is_key(&self) -> bool {
        matches!(self.root, Node::Key { .. })
    }

    /// The columns that the program reads, in the order in which it expects their arrays.
    pub(crate) fn columns(&self) -> &[ColumnId] {
        &self.columns
    }

    /// That of the most volatile function.
    pub(crate) fn volatility(&self) -> Volatility {
        self.volatility
    }

    /// Whether its value may differ each time.
    pub(crate) fn is_volatile(&self) -> bool {
        self.volatility == Volatility::Volatile
    }

    /// The carrier of the result.
    pub(crate) fn carrier(&self) -> Carrier {
        self.carrier
    }
}

impl Compiler<'_> {
    fn node(&mut self, expr: &Expr) -> Result<Node, SqlError> {
        with_stack(|| self.any_node(expr))
    }

    fn any_node(&mut self, expr: &Expr) -> Result<Node, SqlError> {
        Ok(match &expr.kind {
            ExprKind::Column(id) => Node::Column(self.column(*id)),
            ExprKind::Constant(payload) => {
                Node::Constant(constant(self.environment, expr.ty, payload.as_deref())?)
            }
            ExprKind::Parameter(number) => {
                let payload = parameter(self.environment, *number)?;
                Node::Constant(constant(self.environment, expr.ty, payload)?)
            }
            ExprKind::Call { function, arguments, collation, form } => {
                let types = arguments.iter().map(|argument| argument.ty.oid).collect();
                let function = self.function(*function, types, expr.ty.oid, *collation)?;
                let arguments = self.nodes(arguments)?;
                match form {
                    CallForm::Variadic => Node::Spread { function, arguments },
                    _ => Node::Call { function, arguments },
                }
            }
            ExprKind::And(operands) => Node::And(self.nodes(operands)?),
            ExprKind::Or(operands) => Node::Or(self.nodes(operands)?),
            ExprKind::Not(operand) => Node::Not(self.boxed(operand)?),
            ExprKind::IsNull { argument, is_row: false } => {
                Node::IsNull { argument: self.boxed(argument)?, negated: false }
            }
            ExprKind::IsNotNull { argument, is_row: false } => {
                Node::IsNull { argument: self.boxed(argument)?, negated: true }
            }
            ExprKind::BooleanTest { argument, test } => {
                Node::Test { argument: self.boxed(argument)?, test: *test }
            }
            ExprKind::Case { operand, arms, otherwise } => {
                let operand = operand.as_ref().map(|operand| self.boxed(operand)).transpose()?;
                let arm = |(condition, result): &(Expr, Expr)| {
                    Ok((self.node(condition)?, self.node(result)?))
                };
                let arms = arms.iter().map(arm).collect::<Result<_, SqlError>>()?;
                Node::Case { operand, arms, otherwise: self.boxed(otherwise)? }
            }
            ExprKind::CaseOperand | ExprKind::ArrayElement => Node::Operand,
            ExprKind::Coalesce(operands) => Node::Coalesce(self.nodes(operands)?),
            ExprKind::Collate(argument) => return self.node(argument),
            ExprKind::Relabel(argument) => self.relabel(expr, argument)?,
            _ => return self.comparison_node(expr),
        })
    }

    /// Nodes that compare values without being calls of a comparison.
    fn comparison_node(&mut self, expr: &Expr) -> Result<Node, SqlError> {
        Ok(match &expr.kind {
            ExprKind::Distinct { equality, left, right } => Node::Distinct {
                equality: self.comparison(equality, left.ty, right.ty)?,
                left: self.boxed(left)?,
                right: self.boxed(right)?,
            },
            ExprKind::NullIf { equality, left, right } => Node::NullIf {
                equality: self.comparison(equality, left.ty, right.ty)?,
                left: self.boxed(left)?,
                right: self.boxed(right)?,
            },
            ExprKind::Extreme { greatest, compare, collation, arguments } => {
                let types = vec![expr.ty.oid; 2];
                // Comparison functions return an int4.
                let compare = self.function(*compare, types, Oid(23), *collation)?;
                Node::Extreme { greatest: *greatest, compare, arguments: self.nodes(arguments)? }
            }
            ExprKind::ArrayComparison { comparison, quantifier, left, array } => {
                self.array_comparison(comparison, *quantifier, left, array)?
            }
            _ => return self.compound_node(expr),
        })
    }

    /// Nodes that make values of other values, or take them apart.
    fn compound_node(&mut self, expr: &Expr) -> Result<Node, SqlError> {
        let environment = self.environment;
        Ok(match &expr.kind {
            ExprKind::Array { elements, nested } => Node::Array {
                element: ElementType::of(environment, expr.ty.oid)?,
                elements: self.nodes(elements)?,
                nested: *nested,
            },
            ExprKind::ArrayCast { argument, element } => Node::ArrayCast {
                from: ElementType::of(environment, argument.ty.oid)?,
                to: ElementType::of(environment, expr.ty.oid)?,
                argument: self.boxed(argument)?,
                cast: self.boxed(element)?,
            },
            ExprKind::Subscript { array, element, slice } => {
                let ty = ElementType::of(environment, array.ty.oid)?;
                let (array, subscripts) = (self.boxed(array)?, self.nodes(element)?);
                if slice.is_empty() {
                    return Ok(Node::Subscript { element: ty, array, subscripts });
                }
                let mut bound =
                    |bound: &Option<Expr>| bound.as_ref().map(|expr| self.node(expr)).transpose();
                let bounds = slice.iter().map(|(lower, upper)| Ok((bound(lower)?, bound(upper)?)));
                let bounds = bounds.collect::<Result<_, SqlError>>()?;
                Node::Slice { element: ty, array, bounds }
            }
            ExprKind::RowComparison { less, equal, pairs } => {
                let pairs = pairs.iter().map(|(left, right, compare, collation)| {
                    let types = vec![left.ty.oid, right.ty.oid];
                    // Comparison functions return an int4.
                    let compare = self.function(*compare, types, Oid(23), *collation)?;
                    Ok((self.node(left)?, self.node(right)?, compare))
                });
                let pairs = pairs.collect::<Result<_, SqlError>>()?;
                Node::Rows { less: *less, equal: *equal, pairs }
            }
            ExprKind::IsNull { argument, is_row: true } => self.row_test(argument, false)?,
            ExprKind::IsNotNull { argument, is_row: true } => self.row_test(argument, true)?,
            ExprKind::ViaText(argument) => {
                // How values are printed and read may depend on settings.
                self.depends_on(Volatility::Stable);
                let cast = ViaText::new(environment, argument.ty.oid, expr.ty.oid)?;
                Node::ViaText { cast, argument: self.boxed(argument)? }
            }
            ExprKind::Row { fields, names } => {
                let ty = RowType::new(environment, expr.ty, fields, names)?;
                Node::Row { ty, fields: self.nodes(fields)? }
            }
            ExprKind::Field { row, number } => {
                let carrier = environment.carrier(expr.ty.oid)?;
                Node::Field { row: self.boxed(row)?, number: *number, carrier }
            }
            other => return Err(refuse(other)),
        })
    }

    /// `ROW(…) IS NULL`: whether all fields are null, or with `negated`, whether none is. Fields that
    /// are rows themselves are tested as values.
    fn row_test(&mut self, argument: &Expr, negated: bool) -> Result<Node, SqlError> {
        let ExprKind::Row { fields, .. } = &argument.kind else {
            return Ok(Node::RowTest { row: self.boxed(argument)?, negated });
        };
        let tests = fields.iter().map(|field| {
            let is_row = matches!(field.kind, ExprKind::Row { .. });
            // A row that is written down is not null, whatever its fields are.
            match is_row {
                true => self.boolean(negated),
                false => Ok(Node::IsNull { argument: self.boxed(field)?, negated }),
            }
        });
        let tests: Vec<Node> = tests.collect::<Result<_, SqlError>>()?;
        match tests.is_empty() {
            true => self.boolean(true),
            false => Ok(Node::And(tests)),
        }
    }

    fn boolean(&self, value: bool) -> Result<Node, SqlError> {
        let payload = [u8::from(value)];
        Ok(Node::Constant(constant(self.environment, SqlType::new(BOOL), Some(&payload))?))
    }

    /// `left operator ANY (array)`.
    fn array_comparison(
        &mut self,
        comparison: &Comparison,
        quantifier: Quantifier,
        left: &Expr,
        array: &Expr,
    ) -> Result<Node, SqlError> {
        let all = quantifier == Quantifier::All;
        if let Some((element, elements)) = constant_elements(self.environment, array)? {
            return Ok(Node::AnyElement {
                comparison: self.comparison(comparison, left.ty, SqlType::new(element))?,
                all,
                left: self.boxed(left)?,
                elements,
            });
        }
        let element = ElementType::of(self.environment, array.ty.oid)?;
        Ok(Node::AnyOf {
            comparison: self.comparison(comparison, left.ty, SqlType::new(element.oid))?,
            all,
            left: self.boxed(left)?,
            array: self.boxed(array)?,
        })
    }

    /// The same stored value as another type, which may have another carrier: an `int4` can be taken
    /// for an `oid`.
    fn relabel(&mut self, expr: &Expr, argument: &Expr) -> Result<Node, SqlError> {
        let from = self.environment.carrier(argument.ty.oid)?;
        let to = self.environment.carrier(expr.ty.oid)?;
        let argument = self.node(argument)?;
        Ok(match from.data_type() == to.data_type() {
            true => argument,
            false => Node::Relabel { argument: Box::new(argument), from, to },
        })
    }

    fn nodes(&mut self, exprs: &[Expr]) -> Result<Vec<Node>, SqlError> {
        exprs.iter().map(|expr| self.node(expr)).collect()
    }

    fn boxed(&mut self, expr: &Expr) -> Result<Box<Node>, SqlError> {
        self.node(expr).map(Box::new)
    }

    fn column(&mut self, id: ColumnId) -> usize {
        match self.columns.iter().position(|known| *known == id) {
            Some(at) => at,
            None => {
                self.columns.push(id);
                self.columns.len() - 1
            }
        }
    }

    fn comparison(
        &mut self,
        comparison: &Comparison,
        left: SqlType,
        right: SqlType,
    ) -> Result<Function, SqlError> {
        let types = vec![left.oid, right.oid];
        self.function(comparison.function, types, BOOL, comparison.collation)
    }

    fn function(
        &mut self,
        oid: Oid,
        types: Vec<Oid>,
        result: Oid,
        collation: Oid,
    ) -> Result<Function, SqlError> {
        let function = Function::new(self.environment, oid, types, result, collation)?;
        self.depends_on(function.volatility);
        Ok(function)
    }

    /// The program contains something of this volatility.
    fn depends_on(&mut self, volatility: Volatility) {
        self.volatility = match (self.volatility, volatility) {
            (Volatility::Volatile, _) | (_, Volatility::Volatile) => Volatility::Volatile,
            (Volatility::Stable, _) | (_, Volatility::Stable) => Volatility::Stable,
            _ => Volatility::Immutable,
        };
    }
}

/// The error for a kind of expression that is not implemented.
fn refuse(kind: &ExprKind) -> SqlError {
    let what = match kind {
        ExprKind::Subquery(_) => "a subquery in this place",
        _ => "this kind of expression",
    };
    SqlError::unsupported(format!("{what} is not supported by trunkline"))
}
