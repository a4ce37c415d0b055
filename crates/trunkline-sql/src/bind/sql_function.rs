//! Functions in SQL: a call is replaced by the body of the function (`inline_function`).
//!
//! ```text
//!   f(a, b) STRICT RETURN $1 + $2    ─▶  CASE WHEN a IS NULL OR b IS NULL THEN NULL ELSE a + b END
//!   f(a) … SELECT x FROM t WHERE y = $1   ─▶  (SELECT x FROM t WHERE y = a LIMIT 1)
//! ```
//!
//! The catalog has a body as a node tree, which is printed as SQL and bound, as the query of a view. Or
//! it has the text that the user wrote, whose names are looked up in the session's search path. Each
//! `$n` stands for the argument itself. An argument that must not be evaluated twice becomes a column
//! of a subquery around the body; a volatile one is refused, because a subquery isn't executed for
//! each row if it uses none of its columns.

use trunkline_engine::catalog::Procedure;
use trunkline_format::Oid;
use trunkline_format::text_input::InputOptions;
use trunkline_format::text_output::TextOptions;

use super::binder::{Binder, Context, Place};
use super::function_frame::FunctionFrame;
use super::level::Level;
use super::resolved::Resolved;
use super::scope::Scope;
use crate::bound::{
    Expr, ExprKind, OutputColumn, Query, Relation, SqlType, SubqueryKind, with_stack_for,
};
use crate::catalog::{DOMAIN_VIOLATION, Namespace, SearchPath, oids};
use crate::error::{SqlError, SqlState};
use crate::functions::Deparser;
use crate::syntax::{
    DistinctClause, Expression, RawStatement, SelectBody, SelectStatement, Statement, parse,
};

/// `SQLlanguageId`.
const SQL: Oid = Oid(14);

/// How many functions may be inside each other.
const DEPTH_MAX: usize = 64;

impl Binder<'_> {
    /// Whether calls of a function are replaced by its body.
    pub(super) fn is_inlined(&self, procedure: &Procedure) -> bool {
        procedure.language == SQL
            && procedure.kind == b'f'
            && !procedure.returns_set
            && !procedure.has_settings()
            && procedure.result != oids::RECORD
            && !self.catalog().is_composite(procedure.result)
    }

    /// What `$n` stands for in the body of a function.
    pub(super) fn function_argument(&self, number: u32, at: u32) -> Option<Result<Expr, SqlError>> {
        let frame = self.frames.last()?;
        let place = (number as usize).checked_sub(1);
        let argument = place.and_then(|place| frame.arguments.get(place));
        Some(argument.cloned().ok_or_else(|| {
            let message = format!("there is no parameter ${number}");
            SqlError::new(SqlState::UNDEFINED_PARAMETER, message).at(at)
        }))
    }

    /// An argument of the function by its name.
    pub(super) fn named_argument(&self, name: &str) -> Option<Expr> {
        let frame = self.frames.last()?;
        let at = frame.names.iter().position(|own| !own.is_empty() && own == name)?;
        frame.arguments.get(at).cloned()
    }

    /// Replaces a call by the body of its function.
    pub(super) fn inlined(&mut self, resolved: Resolved, at: u32) -> Result<Expr, SqlError> {
        let procedure = self.catalog().procedure(resolved.function);
        let procedure = procedure.ok_or_else(|| SqlError::internal("a call has a function"))?;
        let refused = || self.unsupported_function(procedure).at(at);
        if self.frames.iter().any(|frame| frame.function == resolved.function) {
            return Err(refused());
        }
        if self.frames.len() >= DEPTH_MAX {
            let message = "functions are nested too deeply";
            return Err(SqlError::new(SqlState::STATEMENT_TOO_COMPLEX, message).at(at));
        }
        let is_volatile = resolved.arguments.iter().any(|argument| self.is_volatile(argument));
        // These refer to something around them, which would be another thing in the body.
        let mut is_bare =
            |expr: &Expr| matches!(expr.kind, ExprKind::CaseOperand | ExprKind::ArrayElement);
        let is_placeholder = resolved.arguments.iter().any(|one| one.any(&mut is_bare));
        if is_volatile || is_placeholder {
            return Err(refused());
        }
        let mut has_subquery = |expr: &Expr| matches!(expr.kind, ExprKind::Subquery(_));
        let are_columns = resolved.arguments.iter().any(|one| one.any(&mut has_subquery));
        let collation = self.collation_of(&resolved.arguments, at)?;
        let (strict, result) = (procedure.strict, resolved.result);
        let encoding = self.catalog().encoding();
        let names = procedure.inputs().map(|input| encoding.decode(&input.name)).collect();
        let mut bindings = Vec::new();
        let arguments = resolved.arguments.into_iter().map(|argument| {
            let ty = SqlType { modifier: -1, ..argument.ty };
            if !are_columns {
                return Expr { ty, ..argument };
            }
            let id = self.column("", ty);
            bindings.push((id, argument));
            Expr::new(ExprKind::Column(id), ty)
        });
        let arguments: Vec<Expr> = arguments.collect();
        let tested: Vec<Expr> = match strict {
            true => arguments.iter().filter(|argument| may_be_null(argument)).cloned().collect(),
            false => Vec::new(),
        };
        let text = self.body_text(procedure).map_err(SqlError::without_position)?;
        let is_stored = procedure.body().is_some();
        self.frames.push(FunctionFrame { function: resolved.function, arguments, names });
        let body = self.body(&text, is_stored);
        self.frames.pop();
        let mut body = body.map_err(|error| error.without_position().at(at))?;
        self.resolve_unknown(&mut body)?;
        let ty =
            SqlType { collation: self.result_collation(result, collation), ..self.type_of(result) };
        let body = self.coerce_assignment(body, ty).map_err(|_| {
            let name = self.names.type_name(result);
            let message = format!("return type mismatch in function declared to return {name}");
            SqlError::new(SqlState::INVALID_FUNCTION_DEFINITION, message).at(at)
        })?;
        let body = Expr { ty: SqlType { modifier: -1, ..ty }, ..body };
        let guarded = match tested.is_empty() {
            true => body,
            false => guarded(tested, body),
        };
        if bindings.is_empty() {
            return Ok(guarded.at(at));
        }
        let id = self.column("", guarded.ty);
        let ty = guarded.ty;
        let input = Relation::Project { input: Box::new(Relation::Unit), columns: bindings };
        let relation = Relation::Project { input: Box::new(input), columns: vec![(id, guarded)] };
        let output = vec![OutputColumn { id, name: "".into() }];
        Ok(self.subquery(SubqueryKind::Scalar, Query { relation, output }, ty).at(at))
    }

    /// Whether an expression calls a volatile function outside of its subqueries.
    pub(super) fn is_volatile(&self, expr: &Expr) -> bool {
        expr.any(&mut |part| match &part.kind {
            // It fails, whenever it is called.
            ExprKind::Call { function, .. } if *function == DOMAIN_VIOLATION => false,
            ExprKind::Call { function, .. } => {
                self.catalog().procedure(*function).is_none_or(|row| row.volatility == b'v')
            }
            _ => false,
        })
    }

    /// The body of a function as text.
    fn body_text(&self, procedure: &Procedure) -> Result<String, SqlError> {
        match procedure.body() {
            Some(stored) => {
                let options = TextOptions::new(self.input.major, self.input.catalog);
                Deparser::for_binding(options, self.catalog()).body(stored)
            }
            None => Ok(self.catalog().encoding().decode(procedure.source())),
        }
    }

    /// Binds a body. A text that was printed from a tree needs neither the search path nor the settings
    /// of the session.
    fn body(&mut self, text: &str, is_stored: bool) -> Result<Expr, SqlError> {
        let parsed = parse(text)?;
        let [RawStatement { statement: Statement::Select(select), .. }] = &*parsed else {
            let message =
                "a function in SQL whose body isn't one query is not supported by trunkline";
            return Err(SqlError::unsupported(message));
        };
        let nesting = self.nesting;
        self.nesting += parsed.first().map_or(0, RawStatement::nesting);
        self.nesting_max = self.nesting_max.max(self.nesting);
        let bound = with_stack_for(self.nesting, || match is_stored {
            true => self.with_catalog_names(|binder| binder.body_query(select)),
            false => self.body_query(select),
        });
        self.nesting = nesting;
        bound
    }

    /// Binds something that was printed with the schema of every name and with the default settings.
    pub(super) fn with_catalog_names<T>(&mut self, bind: impl FnOnce(&mut Self) -> T) -> T {
        let defaults = InputOptions {
            zone: self.input.zone,
            names: self.input.names,
            ..InputOptions::new(self.input.major, self.input.catalog, self.input.now_us)
        };
        let names = Namespace::new(self.catalog(), SearchPath::of_catalog());
        let names = std::mem::replace(&mut self.names, names);
        let input = std::mem::replace(&mut self.input, defaults);
        let bound = bind(self);
        (self.names, self.input) = (names, input);
        bound
    }

    /// The value of a body: its only expression, or the first row of its query.
    fn body_query(&mut self, select: &SelectStatement) -> Result<Expr, SqlError> {
        let scope = Scope::default();
        if let Some(only) = only_expression(select) {
            let mut level = Level::default();
            let value = self.expression(only, &mut Context::new(&scope, Place::Target, &mut level));
            let is_plain =
                level.aggregates.is_empty() && level.windows.is_empty() && level.sets.is_empty();
            if value.is_err() || is_plain {
                return value;
            }
        }
        let query = self.query(select, &scope, true)?;
        let [output] = &*query.output else {
            let message = "final statement must return exactly one column";
            return Err(SqlError::new(SqlState::INVALID_FUNCTION_DEFINITION, message));
        };
        let (id, ty) = (output.id, self.columns.get(output.id).ty);
        let one = ExprKind::Constant(Some(1_i64.to_le_bytes().into()));
        let relation = Relation::Limit {
            input: Box::new(query.relation),
            limit: Some(Expr::new(one, SqlType::new(oids::INT8))),
            offset: None,
            ties: None,
        };
        let output = vec![OutputColumn { id, name: "".into() }];
        Ok(self.subquery(SubqueryKind::Scalar, Query { relation, output }, ty))
    }
}

/// Null if any of these values is null.
fn guarded(values: Vec<Expr>, otherwise: Expr) -> Expr {
    let bool_type = SqlType::new(oids::BOOL);
    let tests = values.into_iter().map(|value| {
        Expr::new(ExprKind::IsNull { argument: Box::new(value), is_row: false }, bool_type)
    });
    let condition = super::expression::joined(tests.collect(), false);
    let ty = otherwise.ty;
    let arms = vec![(condition, Expr::null(ty))];
    Expr::new(ExprKind::Case { operand: None, arms, otherwise: Box::new(otherwise) }, ty)
}

/// Whether a value can be null. A row can't, even if all its fields are null.
fn may_be_null(expr: &Expr) -> bool {
    !matches!(expr.kind, ExprKind::Constant(Some(_)) | ExprKind::Row { .. })
}

/// The expression of a query that is nothing else.
fn only_expression(select: &SelectStatement) -> Option<&Expression> {
    let SelectBody::Select(core) = &select.body else { return None };
    let is_bare = select.with.is_none()
        && select.order_by.is_empty()
        && select.offset.is_none()
        && select.limit.is_none()
        && select.locking.is_empty()
        && core.distinct == DistinctClause::All
        && core.from.is_empty()
        && core.where_clause.is_none()
        && core.group_by.is_empty()
        && core.having.is_none()
        && core.windows.is_empty();
    match &*core.targets {
        [target] if is_bare => Some(&target.expression),
        _ => None,
    }
}
