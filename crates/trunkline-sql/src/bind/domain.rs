//! Conversions to domains: to the type under the domain, then its constraints (`coerce_domain`).
//!
//! ```text
//!   x::positive   ─▶  CASE x WHEN (its value > 0) IS FALSE THEN the error 23514 ELSE its value END
//! ```
//!
//! The constraints of a domain under a domain come first, as in PostgreSQL; `NOT NULL` comes before
//! `CHECK`, and these in the order of their names.

use trunkline_format::Oid;
use trunkline_format::text_output::TextOptions;

use super::binder::{Binder, Context, Place};
use super::expression::BOOL;
use super::function_frame::FunctionFrame;
use super::level::Level;
use super::scope::Scope;
use crate::bound::{BooleanTest, CallForm, Expr, ExprKind, SqlType};
use crate::catalog::{DOMAIN_VIOLATION, oids};
use crate::error::SqlError;
use crate::functions::Deparser;
use crate::resolve::CoercionContext;
use crate::syntax::{RawStatement, SelectBody, Statement, parse};

impl Binder<'_> {
    /// Converts to a domain.
    pub(super) fn coerce_domain(
        &mut self,
        expr: Expr,
        target: SqlType,
        context: CoercionContext,
    ) -> Result<Expr, SqlError> {
        let (base, modifier) = self.catalog().base_type_and_modifier(target.oid, target.modifier);
        let location = expr.location;
        let value = self.coerce(expr, self.type_with(base, modifier), context)?;
        let collation = match target.collation {
            own if own == oids::NONE || value.ty.collation == oids::NONE => own,
            _ => value.ty.collation,
        };
        let ty = SqlType { modifier: -1, collation, ..target };
        let constraints = self.constraints(target.oid)?;
        if constraints.is_empty() {
            return Ok(Expr { kind: ExprKind::Relabel(Box::new(value)), ty, location });
        }
        // The value is the operand of a CASE, so that it is evaluated once.
        let operand = Expr::new(ExprKind::CaseOperand, value.ty);
        let mut arms = Vec::new();
        for constraint in constraints {
            let (condition, violated) = match constraint {
                Constraint::NotNull => {
                    let argument = Box::new(operand.clone());
                    (Expr::new(ExprKind::IsNull { argument, is_row: false }, BOOL), None)
                }
                Constraint::Check { name, expression } => {
                    let check = self.domain_check(&expression, &operand)?;
                    let (argument, test) = (Box::new(check), BooleanTest::IsFalse);
                    (Expr::new(ExprKind::BooleanTest { argument, test }, BOOL), Some(name))
                }
            };
            arms.push((condition, self.violation(target.oid, violated, ty)));
        }
        let otherwise = Box::new(Expr::new(ExprKind::Relabel(Box::new(operand)), ty));
        let operand = Some(Box::new(value));
        Ok(Expr { kind: ExprKind::Case { operand, arms, otherwise }, ty, location })
    }

    /// The constraints of a domain and of those under it.
    fn constraints(&self, domain: Oid) -> Result<Vec<Constraint>, SqlError> {
        let catalog = self.catalog();
        let (mut checks, mut is_not_null) = (Vec::new(), false);
        let mut next = domain;
        while let Some(row) = catalog.data_type(next).filter(|row| row.kind == b'd') {
            is_not_null |= row.not_null;
            let all = &catalog.definitions().catalogs()?.constraints;
            let own = all.iter().filter(|one| one.domain == next && one.kind == b'c');
            let mut own: Vec<_> = own.collect();
            own.sort_by(|one, other| one.name.cmp(&other.name));
            let own = own.into_iter().map(|one| {
                let expression = one.expression.clone();
                Ok(Constraint::Check {
                    name: catalog.encoding().decode(&one.name),
                    expression: expression
                        .ok_or_else(|| SqlError::internal("a check without an expression"))?,
                })
            });
            checks.splice(0..0, own.collect::<Result<Vec<_>, SqlError>>()?);
            next = row.base;
        }
        if is_not_null {
            checks.insert(0, Constraint::NotNull);
        }
        Ok(checks)
    }

    /// The condition of a constraint for a value.
    fn domain_check(&mut self, stored: &[u8], value: &Expr) -> Result<Expr, SqlError> {
        let options = TextOptions::new(self.input.major, self.input.catalog);
        let text = Deparser::for_binding(options, self.catalog()).stored(stored)?;
        let parsed = parse(&format!("SELECT {text}"))?;
        let node = match &*parsed {
            [RawStatement { statement: Statement::Select(select), .. }] => match &select.body {
                SelectBody::Select(core) => core.targets.first().map(|target| &target.expression),
                _ => None,
            },
            _ => None,
        };
        let node = node.ok_or_else(|| SqlError::internal("a constraint is one expression"))?;
        let frame = FunctionFrame {
            function: oids::NONE,
            arguments: vec![value.clone()],
            names: Vec::new(),
        };
        self.frames.push(frame);
        let bound = self.with_catalog_names(|binder| {
            let (scope, mut level) = (Scope::default(), Level::default());
            binder.expression(node, &mut Context::new(&scope, Place::Where, &mut level))
        });
        self.frames.pop();
        let bound = bound.map_err(SqlError::without_position)?;
        // Its operand would hide the value.
        let mut is_simple_case =
            |part: &Expr| matches!(part.kind, ExprKind::Case { operand: Some(_), .. });
        if bound.any(&mut is_simple_case) {
            let message = "a domain whose constraint contains CASE with an operand is not supported \
                           by trunkline";
            return Err(SqlError::unsupported(message));
        }
        self.require_boolean(bound, "CHECK")
    }

    /// The call that fails with the error of a constraint; `None` stands for `NOT NULL`.
    fn violation(&self, domain: Oid, constraint: Option<String>, ty: SqlType) -> Expr {
        let text = |text: String| {
            let kind = ExprKind::Constant(Some(text.into_bytes().into()));
            Expr::new(kind, self.type_of(oids::TEXT))
        };
        let constraint = constraint.map_or_else(|| Expr::null(self.type_of(oids::TEXT)), text);
        let arguments = vec![text(self.names.type_name(domain)), constraint];
        let (function, form) = (DOMAIN_VIOLATION, CallForm::Function);
        Expr::new(ExprKind::Call { function, arguments, collation: oids::NONE, form }, ty)
    }
}

/// A constraint of a domain.
enum Constraint {
    NotNull,
    Check { name: String, expression: Box<[u8]> },
}
