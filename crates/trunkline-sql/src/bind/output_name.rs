//! The names of output columns that are not given with `AS`.
//!
//! A column is named after the last name in its expression: `t.a` is `a`, `lower(a)` is `lower`,
//! `a::text` is `a`, but `'x'::text` is `text`. Anything else is `?column?`. The rules are those of
//! PostgreSQL's `FigureColname`.

use crate::syntax::{
    Expression, ExpressionKind, IndirectionStep, SelectBody, SelectStatement, SqlValueFunction,
    SubLinkKind, TypeName,
};

/// The name of an output column that has no name.
const NONE: &str = "?column?";

/// The name of the output column that shows `expression`.
pub(super) fn output_name(expression: &Expression) -> &str {
    find(expression).map_or(NONE, |found| found.name)
}

/// A name, and whether it comes from the expression itself and not from a cast or `CASE` around it.
struct NameFound<'e> {
    name: &'e str,
    is_strong: bool,
}

fn strong(name: &str) -> Option<NameFound<'_>> {
    Some(NameFound { name, is_strong: true })
}

fn weak(name: &str) -> Option<NameFound<'_>> {
    Some(NameFound { name, is_strong: false })
}

fn find(expression: &Expression) -> Option<NameFound<'_>> {
    stacker::maybe_grow(64 << 10, 1 << 20, || find_inside(expression))
}

fn find_inside(expression: &Expression) -> Option<NameFound<'_>> {
    match &expression.kind {
        ExpressionKind::ColumnReference(reference) => {
            strong(&reference.fields.last().filter(|_| !reference.star)?.text)
        }
        ExpressionKind::Indirection { base, steps } => {
            let field = steps.iter().rev().find_map(|step| match step {
                IndirectionStep::Field(name) => Some(name.text.as_str()),
                _ => None,
            });
            field.map_or_else(|| find(base), strong)
        }
        ExpressionKind::FunctionCall(call) => strong(call.name.last()),
        ExpressionKind::NullIf { .. } => strong("nullif"),
        ExpressionKind::TypeCast { argument, type_name } => {
            let inner = find(argument);
            inner.filter(|found| found.is_strong).or_else(|| weak(cast_name(type_name)))
        }
        ExpressionKind::Collate { argument, .. } => find(argument),
        ExpressionKind::Grouping(_) => strong("grouping"),
        ExpressionKind::SubLink { kind, query } => match kind {
            SubLinkKind::Exists => strong("exists"),
            SubLinkKind::Array => strong("array"),
            SubLinkKind::Scalar => first_target(query),
            SubLinkKind::Quantified { .. } | SubLinkKind::In { .. } => None,
        },
        ExpressionKind::Case { default, .. } => {
            let inner = default.as_deref().and_then(find);
            inner.filter(|found| found.is_strong).or_else(|| weak("case"))
        }
        ExpressionKind::Array(_) => strong("array"),
        ExpressionKind::Row { .. } => strong("row"),
        ExpressionKind::Coalesce(_) => strong("coalesce"),
        ExpressionKind::Greatest(_) => strong("greatest"),
        ExpressionKind::Least(_) => strong("least"),
        ExpressionKind::SqlValueFunction { function, .. } => strong(value_function(*function)),
        _ => None,
    }
}

fn cast_name(type_name: &TypeName) -> &str {
    type_name.name.last()
}

/// A scalar subquery is named like its only column, even if that has no name but `?column?`.
fn first_target(query: &SelectStatement) -> Option<NameFound<'_>> {
    let core = match &query.body {
        SelectBody::Select(core) => core,
        SelectBody::Values(_) => return strong("column1"),
        SelectBody::SetOperation { left, .. } => return first_target(left),
    };
    let target = core.targets.first()?;
    match (&target.name, &target.expression.kind) {
        (Some(name), _) => strong(&name.text),
        // The columns of the tables are not known here.
        (None, ExpressionKind::ColumnReference(reference)) if reference.star => None,
        (None, _) => strong(output_name(&target.expression)),
    }
}

fn value_function(function: SqlValueFunction) -> &'static str {
    match function {
        SqlValueFunction::CurrentDate => "current_date",
        SqlValueFunction::CurrentTime => "current_time",
        SqlValueFunction::CurrentTimestamp => "current_timestamp",
        SqlValueFunction::LocalTime => "localtime",
        SqlValueFunction::LocalTimestamp => "localtimestamp",
        SqlValueFunction::CurrentRole => "current_role",
        SqlValueFunction::CurrentUser => "current_user",
        SqlValueFunction::User => "user",
        SqlValueFunction::SessionUser => "session_user",
        SqlValueFunction::CurrentCatalog => "current_catalog",
        SqlValueFunction::CurrentSchema => "current_schema",
    }
}
