//! Subscripts of `jsonb`: `value['a'][1]` is `jsonb_extract_path(value, 'a', '1')`.

use super::binder::{Binder, Context};
use super::resolved::ResolvedCall;
use crate::bound::{CallForm, Expr, ExprKind, SqlType};
use crate::catalog::{ObjectName, oids};
use crate::error::{SqlError, SqlState};
use crate::resolve::{CoercionContext, coercion};
use crate::syntax::IndirectionStep;

impl Binder<'_> {
    /// Subscripts of a `jsonb`: each is a key or the number of an element, and together they are a path
    /// (`jsonb_subscript_transform`).
    pub(super) fn jsonb_subscripts(
        &mut self,
        jsonb: Expr,
        steps: &[IndirectionStep],
        at: u32,
        context: &mut Context<'_>,
    ) -> Result<Expr, SqlError> {
        let slice = steps.iter().find_map(|step| match step {
            IndirectionStep::Slice { lower, upper, .. } => Some(upper.as_ref().or(lower.as_ref())),
            _ => None,
        });
        if let Some(bound) = slice {
            let message = "jsonb subscript does not support slices";
            let error = SqlError::new(SqlState::DATATYPE_MISMATCH, message);
            return Err(match bound {
                Some(bound) => error.at(bound.location),
                None => error,
            });
        }
        let text = self.type_of(oids::TEXT);
        let mut elements = Vec::with_capacity(steps.len());
        for step in steps {
            let IndirectionStep::Subscript(node) = step else { continue };
            let index = self.expression(node, context)?;
            let source = index.ty.oid;
            let fits = |target| {
                let context = CoercionContext::Implicit;
                source == target || coercion(self.catalog(), source, target, context).is_some()
            };
            let target = match (fits(oids::INT4), fits(oids::TEXT)) {
                _ if source == oids::UNKNOWN => text,
                (true, false) => self.type_of(oids::INT4),
                (false, true) => text,
                (is_integer, _) => {
                    let name = self.names.type_name(source);
                    let message = format!("subscript type {name} is not supported");
                    let hint = match is_integer {
                        true => {
                            "jsonb subscript must be coercible to only one type, integer or text."
                        }
                        false => "jsonb subscript must be coercible to either integer or text.",
                    };
                    let error = SqlError::new(SqlState::DATATYPE_MISMATCH, message);
                    return Err(error.with_hint(hint).at(node.location));
                }
            };
            let index = self.coerce_implicit(index, target)?;
            elements.push(self.coerce(index, text, CoercionContext::Explicit)?);
        }
        let array = ExprKind::Array { elements, nested: false };
        let path = Expr::new(array, self.type_of(oids::TEXTARRAY));
        let jsonb = self.coerce_implicit(jsonb, SqlType::new(oids::JSONB))?;
        let name = ObjectName::built_in("jsonb_extract_path");
        match self.resolve_call(name, vec![jsonb, path], &[], true, at)? {
            ResolvedCall::Cast(cast) => Ok(cast),
            ResolvedCall::Function(resolved) => self.plain_call(resolved, CallForm::Function, at),
        }
    }
}
