//! Relations of every kind, over small inputs. Each case states the query, whose rows are those of
//! PostgreSQL 15.

use trunkline_format::Oid;
use trunkline_query::StatementContext;
use trunkline_sql::bound::{
    BoundStatement, ColumnId, Comparison, Expr, ExprKind, JoinKind, OutputColumn, Quantifier,
    Query, Relation, SetOperator, SqlType, Subquery, SubqueryKind,
};

use crate::cluster::{batches, fixtures, lines, open};
use crate::tree::{BOOL, INT4, Tree, call, filtered, int4, int8, sorted};

const FLOAT8: SqlType = SqlType::new(Oid(701));

/// Runs a check on the newest cluster, with one task and with several.
fn with_context(check: impl Fn(&StatementContext)) {
    let Some(data) = fixtures().pop() else { return };
    let mut context = open(&data, "fixture");
    for workers in [0, 2] {
        context.options.workers = workers;
        check(&context);
    }
}

/// The only case's rows, in ascending order of their text.
fn check(context: &StatementContext, statement: &BoundStatement, expected: &[&str]) {
    let mut found = lines(context, statement);
    found.sort_unstable();
    assert_eq!(found, expected);
}

/// `VALUES (…), (…)` of numbers, with null for `None`.
fn numbers(tree: &mut Tree, rows: &[&[Option<i32>]]) -> (Relation, Vec<ColumnId>) {
    let width = rows.first().map_or(0, |row| row.len());
    let columns: Vec<ColumnId> = (0..width).map(|_| tree.column("n", INT4)).collect();
    let value = |value: &Option<i32>| value.map_or_else(|| Expr::null(INT4), int4);
    let rows = rows.iter().map(|row| row.iter().map(value).collect()).collect();
    (Relation::Values { columns: columns.clone(), rows }, columns)
}

fn boxed(relation: &Relation) -> Box<Relation> {
    Box::new(relation.clone())
}

/// `select * from (values (1), (2), (null)) a(x) JOIN (values (2), (3), (null)) b(y) on x = y`
#[test]
fn joins_keep_unmatched_rows_of_the_outer_side() {
    with_context(|context| {
        for (kind, expected) in [
            (JoinKind::Inner, &["2\t2"][..]),
            (JoinKind::Left, &["1\t\\N", "2\t2", "\\N\t\\N"]),
            (JoinKind::Right, &["2\t2", "\\N\t3", "\\N\t\\N"]),
            (JoinKind::Full, &["1\t\\N", "2\t2", "\\N\t3", "\\N\t\\N", "\\N\t\\N"]),
        ] {
            let mut tree = Tree::default();
            let (left, x) = numbers(&mut tree, &[&[Some(1)], &[Some(2)], &[None]]);
            let (right, y) = numbers(&mut tree, &[&[Some(2)], &[Some(3)], &[None]]);
            let pair = vec![tree.reference(x[0]), tree.reference(y[0])];
            let condition = Some(call(context, "int4eq", pair, BOOL));
            let (left, right, lateral) = (boxed(&left), boxed(&right), false);
            let join = Relation::Join { kind, left, right, condition, lateral };
            check(context, &tree.statement(join, &[x[0], y[0]]), expected);
        }
    });
}

/// `(values (1), (1), (1), (2), (null)) OPERATOR (values (1), (3), (null), (null))`
#[test]
fn set_operations_count_duplicates() {
    with_context(|context| {
        for (operator, all, expected) in [
            (SetOperator::Union, false, &["1", "2", "3", "\\N"][..]),
            (SetOperator::Union, true, &["1", "1", "1", "1", "2", "3", "\\N", "\\N", "\\N"]),
            (SetOperator::Intersect, false, &["1", "\\N"]),
            (SetOperator::Intersect, true, &["1", "\\N"]),
            (SetOperator::Except, false, &["2"]),
            (SetOperator::Except, true, &["1", "1", "2"]),
        ] {
            let mut tree = Tree::default();
            let rows: &[&[Option<i32>]] =
                &[&[Some(1)], &[Some(1)], &[Some(1)], &[Some(2)], &[None]];
            let (left, a) = numbers(&mut tree, rows);
            let (right, b) = numbers(&mut tree, &[&[Some(1)], &[Some(3)], &[None], &[None]]);
            let columns = vec![tree.column("n", INT4)];
            let (left, right) = ((boxed(&left), a), (boxed(&right), b));
            let output = columns.clone();
            let set = Relation::SetOperation { operator, all, left, right, columns };
            check(context, &tree.statement(set, &output), expected);
        }
    });
}

/// `select distinct x from (values …) v(x) order by x`, for float8, where -0 equals 0 and NaN is the
/// greatest value.
#[test]
fn floats_are_grouped_and_sorted_as_in_postgresql() {
    with_context(|context| {
        let mut tree = Tree::default();
        let id = tree.column("x", FLOAT8);
        let values = [0.0, f64::NAN, 1.5, -0.0, f64::NEG_INFINITY, -f64::NAN, f64::INFINITY, 0.0];
        let constant = |value: f64| {
            vec![Expr::new(ExprKind::Constant(Some(value.to_le_bytes().into())), FLOAT8)]
        };
        let rows = values.into_iter().map(constant).collect();
        let input = Box::new(Relation::Values { columns: vec![id], rows });
        let distinct = Relation::Distinct { input, on: None };
        let keys = vec![tree.reference(id)];
        let found = lines(context, &tree.statement(sorted(distinct, keys), &[id]));
        let found: Vec<&str> = found.iter().map(|line| line.trim_start_matches('-')).collect();
        assert_eq!(found, ["Infinity", "0", "1.5", "Infinity", "NaN"]);
    });
}

/// `select x from (values (0), (1), (2), (5)) v(x) where x <> 0 and 10 / x > 4` with either order of
/// the conditions, and `select case when x = 0 then 0 else 10 / x end`.
#[test]
fn an_operand_that_would_fail_is_not_evaluated() {
    with_context(|context| {
        for swapped in [false, true] {
            let mut tree = Tree::default();
            let rows: &[&[Option<i32>]] = &[&[Some(0)], &[Some(1)], &[Some(2)], &[Some(5)]];
            let (input, x) = numbers(&mut tree, rows);
            let x = x[0];
            let reference = tree.reference(x);
            let zero = call(context, "int4ne", vec![reference.clone(), int4(0)], BOOL);
            let quotient = call(context, "int4div", vec![int4(10), reference.clone()], INT4);
            let greater = call(context, "int4gt", vec![quotient.clone(), int4(4)], BOOL);
            let conditions = if swapped { vec![greater, zero] } else { vec![zero, greater] };
            let condition = Expr::new(ExprKind::And(conditions), BOOL);
            let result = tree.column("q", INT4);
            let equal = call(context, "int4eq", vec![reference, int4(0)], BOOL);
            let arms = vec![(equal, int4(0))];
            let case = ExprKind::Case { operand: None, arms, otherwise: Box::new(quotient) };
            let columns = vec![(result, Expr::new(case, INT4))];
            let all = Relation::Project { input: boxed(&input), columns };
            let filter = filtered(input, condition);
            let Tree { columns, subqueries } = tree;
            let again = Tree { columns: columns.clone(), subqueries: subqueries.clone() };
            check(context, &again.statement(filter, &[x]), &["1", "2"]);
            let again = Tree { columns, subqueries };
            check(context, &again.statement(all, &[result]), &["0", "10", "2", "5"]);
        }
    });
}

/// `select 10 / x from (values (1), (0)) v(x)` fails with 22012.
#[test]
fn an_error_of_a_kernel_reaches_the_caller() {
    with_context(|context| {
        let mut tree = Tree::default();
        let (input, x) = numbers(&mut tree, &[&[Some(1)], &[Some(0)]]);
        let quotient = call(context, "int4div", vec![int4(10), tree.reference(x[0])], INT4);
        let result = tree.column("q", INT4);
        let project =
            Relation::Project { input: Box::new(input), columns: vec![(result, quotient)] };
        let error = batches(context, &tree.statement(project, &[result])).expect_err("x is 0");
        assert_eq!((error.code().as_str(), error.message()), ("22012", "division by zero"));
    });
}

/// A subquery `select y from (values …) v(y)` of a kind.
fn subquery(tree: &mut Tree, rows: &[&[Option<i32>]], kind: SubqueryKind, ty: SqlType) -> Expr {
    let (relation, columns) = numbers(tree, rows);
    let output = columns.iter().map(|&id| OutputColumn { id, name: "y".into() }).collect();
    let query = tree.subqueries.add(Query { relation, output });
    let kind = match kind {
        SubqueryKind::Quantified { quantifier, operands, .. } => {
            let columns = columns.iter().map(|&id| tree.reference(id)).collect();
            SubqueryKind::Quantified { quantifier, operands, columns }
        }
        other => other,
    };
    Expr::new(ExprKind::Subquery(Box::new(Subquery { kind, query })), ty)
}

/// `select x, SUBQUERY from (values (1), (2), (null)) a(x)`
#[test]
fn subqueries_are_three_valued() {
    type Rows<'a> = &'a [&'a [Option<i32>]];
    with_context(|context| {
        let equality = call(context, "int4eq", vec![int4(0), int4(0)], BOOL);
        let ExprKind::Call { function, .. } = equality.kind else { panic!("a call") };
        let comparison = Comparison { operator: Oid(96), function, collation: Oid(0) };
        let cases: [(Quantifier, Rows<'_>, [&str; 3]); 6] = [
            (Quantifier::Any, &[&[Some(1)], &[Some(3)]], ["t", "f", "\\N"]),
            (Quantifier::Any, &[&[Some(1)], &[None]], ["t", "\\N", "\\N"]),
            (Quantifier::All, &[&[Some(1)], &[Some(1)]], ["t", "f", "\\N"]),
            (Quantifier::All, &[&[Some(1)], &[None]], ["\\N", "f", "\\N"]),
            (Quantifier::Any, &[], ["f", "f", "f"]),
            (Quantifier::All, &[], ["t", "t", "t"]),
        ];
        for (quantifier, rows, expected) in cases {
            let mut tree = Tree::default();
            let (input, x) = numbers(&mut tree, &[&[Some(1)], &[Some(2)], &[None]]);
            let operands = vec![(tree.reference(x[0]), comparison)];
            let kind = SubqueryKind::Quantified { quantifier, operands, columns: Vec::new() };
            // VALUES needs at least one row to have columns, so an empty one is filtered.
            let value = match rows.is_empty() {
                false => subquery(&mut tree, rows, kind, BOOL),
                true => {
                    let expr = subquery(&mut tree, &[&[Some(1)]], kind, BOOL);
                    let ExprKind::Subquery(found) = &expr.kind else { panic!("a subquery") };
                    let query = tree.subqueries.get_mut(found.query);
                    let never = Expr::new(ExprKind::Constant(Some([0].into())), BOOL);
                    query.relation = filtered(query.relation.clone(), never);
                    expr
                }
            };
            let result = tree.column("r", BOOL);
            let columns = vec![(x[0], tree.reference(x[0])), (result, value)];
            let project = Relation::Project { input: Box::new(input), columns };
            let expected: Vec<String> =
                ["1", "2", "\\N"].iter().zip(expected).map(|(x, r)| format!("{x}\t{r}")).collect();
            let expected: Vec<&str> = expected.iter().map(String::as_str).collect();
            check(context, &tree.statement(project, &[x[0], result]), &expected);
        }
    });
}

/// `select x from (values (1), (2), (null)) a(x) where exists (select … where y = x)`, and
/// `not exists`.
#[test]
fn a_correlated_exists_is_a_semi_join() {
    with_context(|context| {
        for (negated, expected) in [(false, &["2"][..]), (true, &["1", "\\N"])] {
            let mut tree = Tree::default();
            let (input, x) = numbers(&mut tree, &[&[Some(1)], &[Some(2)], &[None]]);
            let rows: &[&[Option<i32>]] = &[&[Some(2)], &[Some(2)], &[None]];
            let exists = subquery(&mut tree, rows, SubqueryKind::Exists, BOOL);
            let ExprKind::Subquery(found) = &exists.kind else { panic!("a subquery") };
            let output = tree.subqueries.get(found.query).output[0].id;
            let pair = vec![tree.reference(output), tree.reference(x[0])];
            let equal = call(context, "int4eq", pair, BOOL);
            let query = tree.subqueries.get_mut(found.query);
            query.relation = filtered(query.relation.clone(), equal);
            let condition = match negated {
                true => Expr::new(ExprKind::Not(Box::new(exists)), BOOL),
                false => exists,
            };
            check(context, &tree.statement(filtered(input, condition), &[x[0]]), expected);
        }
    });
}

/// `select (select y from (values (1), (2)) v(y))` fails with 21000, and with one row it doesn't.
#[test]
fn a_scalar_subquery_returns_one_row() {
    with_context(|context| {
        for (rows, expected) in
            [(&[&[Some(7)][..]][..], Ok("7")), (&[&[Some(7)], &[Some(8)]], Err("21000"))]
        {
            let mut tree = Tree::default();
            let value = subquery(&mut tree, rows, SubqueryKind::Scalar, INT4);
            let result = tree.column("r", INT4);
            let columns = vec![(result, value)];
            let project = Relation::Project { input: Box::new(Relation::Unit), columns };
            let statement = tree.statement(project, &[result]);
            match (expected, batches(context, &statement)) {
                (Ok(line), Ok(_)) => assert_eq!(lines(context, &statement), [line]),
                (Err(code), Err(error)) => assert_eq!(error.code().as_str(), code),
                (expected, found) => panic!("{expected:?}: {found:?}"),
            }
        }
    });
}

/// `select x from (values (3), (1), (2), (5)) v(x) order by x offset 1 limit 2`
#[test]
fn a_limit_cuts_sorted_rows() {
    with_context(|context| {
        let mut tree = Tree::default();
        let rows: &[&[Option<i32>]] = &[&[Some(3)], &[Some(1)], &[Some(2)], &[Some(5)]];
        let (input, x) = numbers(&mut tree, rows);
        let input = Box::new(sorted(input, vec![tree.reference(x[0])]));
        let (limit, offset, ties) = (Some(int8(2)), Some(int8(1)), None);
        let cut = Relation::Limit { input, limit, offset, ties };
        assert_eq!(lines(context, &tree.statement(cut, &[x[0]])), ["2", "3"]);
    });
}

/// `select x from (values (1), (2), (2), (3), (2), (null)) v(x) order by x offset O
/// fetch first N rows with ties`
#[test]
fn a_limit_with_ties_returns_the_rows_that_equal_the_last_one() {
    with_context(|context| {
        for (offset, limit, expected) in [
            (0, 1, &["1"][..]),
            (0, 2, &["1", "2", "2", "2"]),
            (1, 1, &["2", "2", "2"]),
            (2, 2, &["2", "2"]),
            (4, 1, &["3"]),
            (5, 9, &["\\N"]),
            (0, 0, &[]),
            (9, 1, &[]),
        ] {
            let mut tree = Tree::default();
            let rows: &[&[Option<i32>]] =
                &[&[Some(1)], &[Some(2)], &[Some(2)], &[Some(3)], &[Some(2)], &[None]];
            let (input, x) = numbers(&mut tree, rows);
            let input = Box::new(sorted(input, vec![tree.reference(x[0])]));
            let Relation::Sort { keys, .. } = &*input else { unreachable!("sorted") };
            let ties = Some(keys.clone());
            let (limit, offset) = (Some(int8(limit)), Some(int8(offset)));
            let cut = Relation::Limit { input, limit, offset, ties };
            assert_eq!(lines(context, &tree.statement(cut, &[x[0]])), expected);
        }
    });
}
