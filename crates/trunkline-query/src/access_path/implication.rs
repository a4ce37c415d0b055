//! **Implication**: whether the filters of a scan imply the predicate of a partial index
//! (`predicate_implied_by` in `predtest.c`).
//!
//! A partial index has the rows for which its predicate is true. So a scan may use it only if the predicate is
//! true for every row that its filters let pass. Anything that isn't proven here leaves the index unused.
//!
//! ```text
//!   facts   what the filters say: clauses that must all be true
//!   goal    a AND b    both are implied           a OR b    one of them is
//!           an atom    a fact that is the same, or a test of the same column that allows fewer values
//!           a <> 5     the same, or a test of the column that allows only other values
//!   a fact that is an OR    each of its arms, with the other facts, implies the goal
//! ```
//! Clauses of filters are consequences of them, so they may be facts. A clause of the predicate must say exactly
//! what the predicate says, or it can't be a goal.

use trunkline_engine::catalog::{Database, RelationInfo};
use trunkline_format::btree::{Comparison, Condition};
use trunkline_sql::bound::{CallForm, ColumnId, Expr, ExprKind};
use trunkline_sql::catalog::oids;

use super::bound_clause::BoundClauses;
use super::candidate_index::{CandidateIndex, TableIndexes};
use super::clause::{Clause, ColumnTest, FilterColumn, Operation, Test};
use super::column_order::ColumnOrder;
use super::index_condition::Conditions;
use super::stored_predicate::StoredPredicates;
use crate::environment::Environment;

/// The most steps of a proof. Each `OR` among the facts multiplies them.
const STEPS_MAX: usize = 10_000;

/// What the filters of a scan say.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Facts<'a> {
    /// Their clauses.
    pub(crate) clauses: &'a [Clause],
    /// Those that we evaluate ourselves, as they were written, with the place of each of their columns.
    pub(crate) expressions: &'a [(Expr, Vec<(ColumnId, usize)>)],
    /// Comparisons for equality that must be false, as those of `<>`.
    pub(crate) unequal: &'a [ColumnTest],
}

/// What is to be proven.
enum Goal {
    All(Vec<Goal>),
    Any(Vec<Goal>),
    /// A condition, with the clause that says exactly the same, if there is one, and the test that says the
    /// opposite, as `=` does of `<>`.
    Atom(Expr, Option<Clause>, Option<ColumnTest>),
}

impl TableIndexes {
    /// The same indexes, where a partial one may be used if the facts imply its predicate.
    pub(crate) fn with_implied(
        mut self,
        environment: &Environment,
        database: &Database,
        table: &RelationInfo,
        facts: Facts<'_>,
    ) -> Self {
        let partial = std::mem::take(&mut self.partial);
        if partial.is_empty() {
            return self;
        }
        let columns = database.columns(table).unwrap_or_default();
        let encoding = database.info().encoding;
        let stored = StoredPredicates::new(&environment.catalog, columns, encoding);
        let orders = columns
            .iter()
            .map(|column| ColumnOrder::of_type(database, column.type_oid, column.collation));
        let mut proof = Proof {
            environment,
            conditions: Conditions::new(environment, encoding),
            orders: orders.collect(),
            expressions: in_places(facts.expressions, &stored),
            unequal: facts.unequal.to_vec(),
        };
        let columns = |id| filter_column(environment, &stored, id);
        let clauses = BoundClauses::new(environment, &columns);
        let opposites = proof.expressions.iter();
        let opposites: Vec<_> =
            opposites.filter_map(|expr| opposite(environment, &clauses, expr)).collect();
        proof.unequal.extend(opposites);
        for index in partial {
            let why = match predicate(environment, &stored, &index) {
                None => "it is partial, with a predicate that is not understood",
                Some(goal) => {
                    let mut steps = STEPS_MAX;
                    let clauses = facts.clauses.iter().flat_map(Clause::conjuncts).collect();
                    match proof.implies(clauses, &goal, &mut steps) {
                        true => {
                            self.usable.push(index);
                            continue;
                        }
                        false => {
                            "it is partial, and its predicate does not follow from the filters"
                        }
                    }
                }
            };
            self.unusable.push((index.name.clone(), why.to_owned()));
        }
        self.usable.sort_by_key(|index| index.oid);
        self
    }
}

/// The filters' expressions with the columns of the table.
fn in_places(
    expressions: &[(Expr, Vec<(ColumnId, usize)>)],
    stored: &StoredPredicates<'_>,
) -> Vec<Expr> {
    let in_place = |(expr, places): &(Expr, Vec<(ColumnId, usize)>)| {
        let mut expr = expr.clone();
        let mut is_known = true;
        replace(&mut expr, &mut |id| {
            let place = places.iter().find(|(known, _)| *known == id).map(|(_, place)| *place);
            let found = place.and_then(|place| stored.columns().find(u32::try_from(place).ok()?));
            is_known &= found.is_some();
            found.unwrap_or(id)
        });
        is_known.then_some(expr)
    };
    expressions.iter().filter_map(in_place).flat_map(conjuncts).collect()
}

fn replace(expr: &mut Expr, with: &mut dyn FnMut(ColumnId) -> ColumnId) {
    if let ExprKind::Column(id) = &mut expr.kind {
        *id = with(*id);
    }
    expr.children_mut(|child| replace(child, with));
}

fn conjuncts(expr: Expr) -> Vec<Expr> {
    match expr.kind {
        ExprKind::And(parts) => parts.into_iter().flat_map(conjuncts).collect(),
        _ => vec![expr],
    }
}

/// The predicate of an index.
fn predicate(
    environment: &Environment,
    stored: &StoredPredicates<'_>,
    index: &CandidateIndex,
) -> Option<Goal> {
    let row = environment.catalog.definitions().index_expressions(index.oid).ok()??;
    let parts = stored.read(row.predicate.as_deref()?)?;
    let columns = |id| filter_column(environment, stored, id);
    let clauses = BoundClauses::new(environment, &columns);
    let goals = parts.into_iter().map(|part| goal(environment, &clauses, part));
    Some(Goal::All(goals.collect()))
}

/// A column of a stored predicate.
fn filter_column(
    environment: &Environment,
    stored: &StoredPredicates<'_>,
    id: ColumnId,
) -> Option<FilterColumn> {
    let carrier = environment.carrier(stored.columns().get(id).ty.oid).ok()?;
    Some(FilterColumn { place: id.number() as usize, carrier })
}

/// A call of an operator as one of its negator, which is true where this is false.
fn negated(environment: &Environment, call: &Expr) -> Option<Expr> {
    let ExprKind::Call { arguments, collation, form: CallForm::Operator(operator), .. } =
        &call.kind
    else {
        return None;
    };
    let negator = environment.catalog.operator(*operator)?.negator;
    let kind = ExprKind::Call {
        function: environment.catalog.operator(negator)?.function,
        arguments: arguments.clone(),
        collation: *collation,
        form: CallForm::Operator(negator),
    };
    Some(Expr::new(kind, call.ty))
}

/// The test that a call of an operator says the opposite of.
fn opposite(
    environment: &Environment,
    clauses: &BoundClauses<'_>,
    call: &Expr,
) -> Option<ColumnTest> {
    match clauses.of(&negated(environment, call)?) {
        Clause::Test(test) => Some(test),
        _ => None,
    }
}

fn goal(environment: &Environment, clauses: &BoundClauses<'_>, expr: Expr) -> Goal {
    let all =
        |parts: Vec<Expr>| parts.into_iter().map(|part| goal(environment, clauses, part)).collect();
    match expr.kind {
        ExprKind::And(parts) => Goal::All(all(parts)),
        ExprKind::Or(parts) => Goal::Any(all(parts)),
        ExprKind::Not(ref operand) if let Some(call) = negated(environment, operand) => {
            goal(environment, clauses, call)
        }
        _ => {
            // A clause of a single condition says the same, unless nothing is known about it.
            let clause = clauses.of(&expr);
            let is_exact = matches!(clause, Clause::Test(_) | Clause::Row(_));
            let opposite = opposite(environment, clauses, &expr);
            Goal::Atom(expr, is_exact.then_some(clause), opposite)
        }
    }
}

/// Proves goals.
struct Proof<'a> {
    environment: &'a Environment,
    conditions: Conditions<'a>,
    /// How the columns of the table are sorted by default.
    orders: Vec<Option<ColumnOrder>>,
    /// Facts as they were written.
    expressions: Vec<Expr>,
    /// Comparisons for equality that must be false.
    unequal: Vec<ColumnTest>,
}

impl Proof<'_> {
    /// Whether the goal is true for every row for which all facts are.
    fn implies(&self, facts: Vec<&Clause>, goal: &Goal, steps: &mut usize) -> bool {
        let Some(left) = steps.checked_sub(1) else { return false };
        *steps = left;
        match goal {
            Goal::All(parts) => {
                return parts.iter().all(|part| self.implies(facts.clone(), part, steps));
            }
            Goal::Any(parts)
                if parts.iter().any(|part| self.implies(facts.clone(), part, steps)) =>
            {
                return true;
            }
            Goal::Any(_) => {}
            Goal::Atom(expr, clause, opposite) => {
                let is_said = |clause: &Clause| {
                    facts.iter().any(|fact| *fact == clause || self.is_test_implied(fact, clause))
                };
                if self.expressions.contains(expr)
                    || clause.as_ref().is_some_and(is_said)
                    || opposite.as_ref().is_some_and(|test| self.is_excluded(&facts, test))
                {
                    return true;
                }
            }
        }
        // One of the arms of an OR is true, whichever it is.
        for (at, fact) in facts.iter().enumerate() {
            let Clause::Any(arms) = fact else { continue };
            let mut others = facts.clone();
            others.remove(at);
            let is_implied = arms.iter().all(|arm| {
                let with_arm = others.iter().copied().chain(arm.conjuncts()).collect();
                self.implies(with_arm, goal, steps)
            });
            if is_implied {
                return true;
            }
        }
        false
    }

    /// Whether a test of a column allows only values that another test of it allows.
    fn is_test_implied(&self, fact: &Clause, goal: &Clause) -> bool {
        let (Clause::Test(fact), Clause::Test(goal)) = (fact, goal) else { return false };
        if fact.column != goal.column {
            return false;
        }
        if goal.test == Test::IsNotNull {
            return match &fact.test {
                Test::IsNull => false,
                Test::IsNotNull => true,
                Test::Compare(operation, _) | Test::AnyOf(operation, _) => {
                    self.is_strict(*operation)
                }
            };
        }
        let Some(order) = self.orders.get(fact.column).copied().flatten() else { return false };
        let condition = |test: &ColumnTest| self.conditions.condition(0, &order, test);
        match (condition(fact), condition(goal)) {
            (Some(fact), Some(goal)) => is_within(&order, &fact, &goal),
            _ => false,
        }
    }
}

impl Proof<'_> {
    /// Whether the facts are about other values of the column than the one that a test wants, so that `<>` is
    /// true.
    fn is_excluded(&self, facts: &[&Clause], test: &ColumnTest) -> bool {
        let Some(order) = self.orders.get(test.column).copied().flatten() else { return false };
        let condition = |test: &ColumnTest| self.conditions.condition(0, &order, test);
        let Some(excluded) = condition(test) else { return false };
        let Condition::Compare { comparison: Comparison::Equal, value: Some(value), .. } =
            &excluded
        else {
            return false;
        };
        let mut same = self.unequal.iter().filter(|fact| fact.column == test.column);
        if same.any(|fact| {
            condition(fact).is_some_and(|fact| {
                matches!(fact, Condition::Compare { comparison: Comparison::Equal, .. })
                    && is_within(&order, &fact, &excluded)
            })
        }) {
            return true;
        }
        facts.iter().any(|fact| match fact {
            Clause::Test(fact) if fact.column == test.column => {
                condition(fact).is_some_and(|fact| is_beside(&order, &fact, value))
            }
            _ => false,
        })
    }

    /// Whether an operation is never true for a null.
    fn is_strict(&self, operation: Operation) -> bool {
        match operation {
            Operation::Native { .. } => true,
            Operation::Function { function, .. } => {
                let procedure = self.environment.catalog.procedure(function);
                procedure.is_some_and(|procedure| procedure.strict)
            }
        }
    }
}

/// Whether no value that fulfils a condition equals `value`.
fn is_beside(order: &ColumnOrder, condition: &Condition, value: &[u8]) -> bool {
    use Comparison::{Equal, Greater, GreaterOrEqual, Less, LessOrEqual};
    let holds = |comparison: Comparison, bound: &[u8]| {
        order.order.compare(bound, value).is_some_and(|ordering| comparison.holds(ordering))
    };
    // Text is equal only if its bytes are, also where its order is unknown.
    let differs = |other: &[u8]| match order.input {
        oids::TEXT => other != value,
        _ => holds(Less, other) || holds(Greater, other),
    };
    match condition {
        Condition::Compare { comparison, value: Some(bound), .. } => match comparison {
            Less => holds(LessOrEqual, bound),
            LessOrEqual => holds(Less, bound),
            Equal => differs(bound),
            GreaterOrEqual => holds(Greater, bound),
            Greater => holds(GreaterOrEqual, bound),
        },
        Condition::AnyOf { values, .. } => values.iter().flatten().all(|bound| differs(bound)),
        _ => false,
    }
}

/// Whether every value that fulfils `inner` fulfils `outer`. Both are about the same column.
fn is_within(order: &ColumnOrder, inner: &Condition, outer: &Condition) -> bool {
    use Comparison::{Equal, Greater, GreaterOrEqual, Less, LessOrEqual};
    let compare = |left: &[u8], right: &[u8]| match left == right {
        true => Some(std::cmp::Ordering::Equal),
        false => order.order.compare(left, right),
    };
    let holds = |comparison: Comparison, left: &[u8], right: &[u8]| {
        compare(left, right).is_some_and(|ordering| comparison.holds(ordering))
    };
    match (inner, outer) {
        (Condition::IsNull { .. }, Condition::IsNull { .. }) => true,
        // Comparisons are strict, and a null never fulfils one.
        (
            Condition::IsNotNull { .. } | Condition::Compare { .. } | Condition::AnyOf { .. },
            Condition::IsNotNull { .. },
        ) => true,
        (
            Condition::Compare { comparison: inner, value: Some(left), .. },
            Condition::Compare { comparison: outer, value: Some(right), .. },
        ) => match (inner, outer) {
            (Equal, outer) => holds(*outer, left, right),
            (Less, Less | LessOrEqual) | (LessOrEqual, LessOrEqual) => {
                holds(LessOrEqual, left, right)
            }
            (LessOrEqual, Less) => holds(Less, left, right),
            (Greater, Greater | GreaterOrEqual) | (GreaterOrEqual, GreaterOrEqual) => {
                holds(GreaterOrEqual, left, right)
            }
            (GreaterOrEqual, Greater) => holds(Greater, left, right),
            _ => false,
        },
        (
            Condition::AnyOf { values, .. },
            Condition::Compare { comparison, value: Some(right), .. },
        ) => values.iter().flatten().all(|left| holds(*comparison, left, right)),
        (
            Condition::Compare { comparison: Equal, value: Some(left), .. },
            Condition::AnyOf { values, .. },
        ) => values.iter().flatten().any(|right| holds(Equal, left, right)),
        (Condition::AnyOf { values: inner, .. }, Condition::AnyOf { values: outer, .. }) => {
            let is_one_of =
                |left: &[u8]| outer.iter().flatten().any(|right| holds(Equal, left, right));
            inner.iter().flatten().all(|left| is_one_of(left))
        }
        _ => false,
    }
}
