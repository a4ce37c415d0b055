//! Hypothetical-set aggregates: the rank that a row would have among those of a group.
//!
//! ```text
//!   rank(5) WITHIN GROUP (ORDER BY a)          1 + count(*) FILTER (WHERE a is before 5)
//!   dense_rank(5) …                            1 + count(DISTINCT ROW(a)) FILTER (WHERE …)
//!   percent_rank(5) …                          count(*) FILTER (WHERE …) / count(*), or 0
//!   cume_dist(5) …        (1 + count(*) FILTER (WHERE a is not after 5)) / (1 + count(*))
//! ```

use trunkline_format::Oid;

use super::binder::{Binder, Context};
use super::expression::BOOL;
use super::outer_aggregate::outer_aggregate;
use crate::bound::{Aggregate, Expr, ExprKind, SortKey, SqlType};
use crate::catalog::{ObjectName, oids};
use crate::error::{SqlError, SqlState};
use crate::syntax::FunctionCall;

/// `count(*)` and `count("any")`.
const COUNT_ROWS: Oid = Oid(2803);
const COUNT_VALUES: Oid = Oid(2147);

/// A sort key with the value of the hypothetical row.
struct Pair {
    key: SortKey,
    value: Expr,
    compare: Oid,
}

impl Binder<'_> {
    /// Binds a call. `arguments` are those of the row and then those that the group is sorted by.
    pub(super) fn hypothetical(
        &mut self,
        call: &FunctionCall,
        function: Oid,
        mut arguments: Vec<Expr>,
        within: Vec<SortKey>,
        at: u32,
        context: &mut Context<'_>,
    ) -> Result<Expr, SqlError> {
        let name = self.catalog().encoding().decode(&self.procedure(function)?.name);
        let columns = arguments.split_off(arguments.len().saturating_sub(within.len()));
        if arguments.len() != columns.len() {
            let types =
                arguments.iter().chain(&columns).map(|one| self.names.type_name(one.ty.oid));
            let types: Vec<String> = types.collect();
            let message = format!("function {name}({}) does not exist", types.join(", "));
            let hint = format!(
                "To use the hypothetical-set aggregate {name}, the number of hypothetical direct \
                 arguments (here {}) must match the number of ordering columns (here {}).",
                arguments.len(),
                columns.len()
            );
            let error = SqlError::new(SqlState::UNDEFINED_FUNCTION, message);
            return Err(error.with_hint(hint).at(at));
        }
        let mut pairs = Vec::with_capacity(columns.len());
        for ((value, column), key) in arguments.into_iter().zip(columns).zip(within) {
            self.check_direct(&value, context, at)?;
            pairs.push(self.pair(value, column, key, at)?);
        }
        let filter = self.filter(call, context)?;
        let row = |pairs: &[Pair]| {
            let fields: Vec<Expr> = pairs.iter().map(|pair| pair.key.expr.clone()).collect();
            let names = (1..=fields.len()).map(|number| format!("f{number}").into()).collect();
            Expr::new(ExprKind::Row { fields, names }, SqlType::new(oids::RECORD))
        };
        let before = both(precede(&pairs, false), filter.clone());
        match name.as_str() {
            "rank" => {
                let before = self.counted(Vec::new(), Some(before), at, context)?;
                self.plus_one(before, at)
            }
            "dense_rank" => {
                let before = self.counted(vec![row(&pairs)], Some(before), at, context)?;
                self.plus_one(before, at)
            }
            "percent_rank" => {
                let before = self.counted(Vec::new(), Some(before), at, context)?;
                let all = self.counted(Vec::new(), filter, at, context)?;
                let share = self.share(before, all.clone(), at)?;
                let zero = self.int8(0);
                let empty = self.apply_operator(ObjectName::built_in("="), Some(all), zero, at)?;
                let nothing = constant(oids::FLOAT8, &0_f64.to_le_bytes());
                let ty = share.ty;
                let arms = vec![(empty, nothing)];
                let kind = ExprKind::Case { operand: None, arms, otherwise: Box::new(share) };
                Ok(Expr::new(kind, ty).at(at))
            }
            "cume_dist" => {
                let up_to = both(precede(&pairs, true), filter.clone());
                let up_to = self.counted(Vec::new(), Some(up_to), at, context)?;
                let all = self.counted(Vec::new(), filter, at, context)?;
                let (up_to, all) = (self.plus_one(up_to, at)?, self.plus_one(all, at)?);
                self.share(up_to, all, at)
            }
            _ => Err(self.unsupported_function(self.procedure(function)?).at(at)),
        }
    }

    /// A direct argument has one value for all rows.
    fn check_direct(&self, value: &Expr, context: &Context<'_>, at: u32) -> Result<(), SqlError> {
        let (mut is_nested, mut is_column) = (false, self.is_volatile(value));
        value.columns(&self.subqueries, &mut |id| {
            is_nested |= context.level.is_aggregate(id);
            is_column |= !self.is_outer(id, context.scope);
        });
        let at = value.location.0.unwrap_or(at);
        if is_nested {
            let message = "aggregate function calls cannot be nested";
            return Err(SqlError::new(SqlState::GROUPING_ERROR, message).at(at));
        }
        if is_column {
            let message = "a direct argument that is not a constant is not supported by trunkline";
            return Err(SqlError::unsupported(message).at(at));
        }
        Ok(())
    }

    /// Brings a value and the column that it is compared with to one type.
    fn pair(&mut self, value: Expr, column: Expr, key: SortKey, at: u32) -> Result<Pair, SqlError> {
        let (ty, mut converted) = self.common_type("WITHIN GROUP", vec![column, value], at)?;
        let (Some(value), Some(column)) = (converted.pop(), converted.pop()) else {
            return Err(SqlError::internal("a pair of expressions"));
        };
        let compare = self.catalog().type_operators(ty.oid).compare.ok_or_else(|| {
            let type_name = self.names.type_name(ty.oid);
            let message = format!("could not identify an ordering operator for type {type_name}");
            SqlError::new(SqlState::UNDEFINED_FUNCTION, message).at(at)
        })?;
        self.check_collation(ty.collation, at)?;
        Ok(Pair { key: SortKey { expr: column, ..key }, value, compare })
    }

    /// The number of rows for which the filter is true, or of different values.
    fn counted(
        &mut self,
        arguments: Vec<Expr>,
        filter: Option<Expr>,
        at: u32,
        context: &mut Context<'_>,
    ) -> Result<Expr, SqlError> {
        let ty = SqlType::new(oids::INT8);
        let distinct = !arguments.is_empty();
        let aggregate = Aggregate {
            function: if distinct { COUNT_VALUES } else { COUNT_ROWS },
            arguments,
            direct: Vec::new(),
            distinct,
            order_by: Vec::new(),
            filter,
            ty,
            collation: oids::NONE,
        };
        if self.check_aggregate(&aggregate, at, context)? || !context.place.allows_aggregates() {
            return Err(outer_aggregate(at));
        }
        let id = context.level.aggregate(aggregate, || self.column("count", ty));
        Ok(Expr::new(ExprKind::Column(id), ty).at(at))
    }

    fn int8(&self, number: i64) -> Expr {
        constant(oids::INT8, &number.to_le_bytes())
    }

    fn plus_one(&mut self, count: Expr, at: u32) -> Result<Expr, SqlError> {
        let one = self.int8(1);
        self.apply_operator(ObjectName::built_in("+"), Some(count), one, at)
    }

    /// The quotient of two numbers as a float8.
    fn share(&mut self, part: Expr, all: Expr, at: u32) -> Result<Expr, SqlError> {
        let part = self.built_in_call("float8", vec![part], at)?;
        let all = self.built_in_call("float8", vec![all], at)?;
        self.apply_operator(ObjectName::built_in("/"), Some(part), all, at)
    }
}

fn constant(oid: Oid, payload: &[u8]) -> Expr {
    Expr::new(ExprKind::Constant(Some(payload.into())), SqlType::new(oid))
}

fn bool_constant(value: bool) -> Expr {
    constant(oids::BOOL, &[u8::from(value)])
}

/// Both conditions.
fn both(condition: Expr, filter: Option<Expr>) -> Expr {
    match filter {
        Some(filter) => Expr::new(ExprKind::And(vec![filter, condition]), BOOL),
        None => condition,
    }
}

/// Whether a row of the group comes before the hypothetical one. `tie` is the result if they are equal.
fn precede(pairs: &[Pair], tie: bool) -> Expr {
    let arms = pairs.iter().flat_map(|pair| {
        let (column, value) = (&pair.key.expr, &pair.value);
        [
            (precedes(pair, column, value), bool_constant(true)),
            (precedes(pair, value, column), bool_constant(false)),
        ]
    });
    let otherwise = Box::new(bool_constant(tie));
    Expr::new(ExprKind::Case { operand: None, arms: arms.collect(), otherwise }, BOOL)
}

/// Whether the left value sorts before the right one.
fn precedes(pair: &Pair, left: &Expr, right: &Expr) -> Expr {
    let nulls_first = pair.key.nulls_first;
    let is_null = |expr: &Expr| {
        let kind = ExprKind::IsNull { argument: Box::new(expr.clone()), is_row: false };
        Expr::new(kind, BOOL)
    };
    let is_not_null = ExprKind::Not(Box::new(is_null(right)));
    let first = Expr::new(
        ExprKind::And(vec![bool_constant(nulls_first), Expr::new(is_not_null, BOOL)]),
        BOOL,
    );
    let arms = vec![(is_null(left), first), (is_null(right), bool_constant(!nulls_first))];
    let compared = (left.clone(), right.clone(), pair.compare, left.ty.collation);
    let less =
        ExprKind::RowComparison { less: !pair.key.descending, equal: false, pairs: vec![compared] };
    let otherwise = Box::new(Expr::new(less, BOOL));
    Expr::new(ExprKind::Case { operand: None, arms, otherwise }, BOOL)
}
