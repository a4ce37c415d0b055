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
//!   a fact that is an OR    each of its arms, with the other facts, implies the goal
//! ```
//! Clauses of filters are consequences of them, so they may be facts. A clause of the predicate must say exactly
//! what the predicate says, or it can't be a goal.

use trunkline_engine::catalog::{Database, RelationInfo};
use trunkline_format::btree::{Comparison, Condition};
use trunkline_sql::bound::{ColumnId, Expr, ExprKind};

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
}

/// What is to be proven.
enum Goal {
    All(Vec<Goal>),
    Any(Vec<Goal>),
    /// A condition, with the clause that says exactly the same, if there is one.
    Atom(Expr, Option<Clause>),
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
        let proof = Proof {
            environment,
            conditions: Conditions::new(environment, encoding),
            orders: orders.collect(),
            expressions: in_places(facts.expressions, &stored),
        };
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
    let columns = |id: ColumnId| {
        let carrier = environment.carrier(stored.columns().get(id).ty.oid).ok()?;
        Some(FilterColumn { place: id.number() as usize, carrier })
    };
    let clauses = BoundClauses::new(environment, &columns);
    Some(Goal::All(parts.into_iter().map(|part| goal(&clauses, part)).collect()))
}

fn goal(clauses: &BoundClauses<'_>, expr: Expr) -> Goal {
    match expr.kind {
        ExprKind::And(parts) => {
            Goal::All(parts.into_iter().map(|part| goal(clauses, part)).collect())
        }
        ExprKind::Or(parts) => {
            Goal::Any(parts.into_iter().map(|part| goal(clauses, part)).collect())
        }
        _ => {
            // A clause of a single condition says the same, unless nothing is known about it.
            let clause = clauses.of(&expr);
            let is_exact = matches!(clause, Clause::Test(_) | Clause::Row(_));
            Goal::Atom(expr, is_exact.then_some(clause))
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
            Goal::Atom(expr, clause) => {
                let is_said = |clause: &Clause| {
                    facts.iter().any(|fact| *fact == clause || self.is_test_implied(fact, clause))
                };
                if self.expressions.contains(expr) || clause.as_ref().is_some_and(is_said) {
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
