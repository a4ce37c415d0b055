//! Windows: `OVER` and the `WINDOW` clause.

use super::binder::{Binder, Context, Place};
use super::level::{Level, NamedWindow};
use super::scope::Scope;
use crate::bound::{
    Expr, FrameBound, FrameExclusion, FrameUnit, SortKey, SqlType, Window, WindowFrame,
};
use crate::catalog::oids;
use crate::error::{SqlError, SqlState};
use crate::syntax::{self, FrameUnits, Over, WindowDefinition};

/// The frame of a window for which none is written.
const DEFAULT_FRAME: WindowFrame = WindowFrame {
    unit: FrameUnit::Range,
    start: FrameBound::UnboundedPreceding,
    end: FrameBound::CurrentRow,
    exclude: FrameExclusion::NoOthers,
};

impl Binder<'_> {
    /// Binds the `WINDOW` clause.
    pub(super) fn window_clause(
        &mut self,
        definitions: &[WindowDefinition],
        scope: &Scope<'_>,
        level: &mut Level,
    ) -> Result<(), SqlError> {
        for definition in definitions {
            let name = definition.name.as_ref().map_or("", |name| &name.text);
            if level.named_windows.iter().any(|window| &*window.name == name) {
                let message = format!("window \"{name}\" is already defined");
                let at = definition.span.start;
                return Err(SqlError::new(SqlState::WINDOWING_ERROR, message).at(at));
            }
            let mut context = Context::new(scope, Place::Window, level);
            let window = self.window(definition, &mut context)?;
            let has_frame = definition.frame.is_some();
            level.named_windows.push(NamedWindow { name: name.into(), window, has_frame });
        }
        Ok(())
    }

    /// The window of a call.
    pub(super) fn window_of(
        &mut self,
        over: &Over,
        at: u32,
        context: &mut Context<'_>,
    ) -> Result<Window, SqlError> {
        if !context.place.allows_windows() {
            let clause = context.place.clause();
            let message = format!("window functions are not allowed in {clause}");
            return Err(SqlError::new(SqlState::WINDOWING_ERROR, message).at(at));
        }
        match over {
            Over::Name(name) => {
                Ok(named(context.level, &name.text, name.span.start)?.window.clone())
            }
            Over::Window(definition) => {
                let mut inner = Context::new(context.scope, Place::Window, context.level);
                self.window(definition, &mut inner)
            }
        }
    }

    /// A window definition.
    fn window(
        &mut self,
        definition: &WindowDefinition,
        context: &mut Context<'_>,
    ) -> Result<Window, SqlError> {
        let mut partition_by = Vec::new();
        for node in &definition.partition_by {
            let mut expr = self.expression(node, context)?;
            self.resolve_unknown(&mut expr)?;
            self.check_comparable(expr.ty.oid, node.span.start)?;
            partition_by.push(expr);
        }
        let mut order_by = self.sort_keys(&definition.order_by, context)?;
        if let Some(reference) = &definition.reference {
            let (name, at) = (&reference.text, reference.span.start);
            let found = named(context.level, name, at)?;
            let what = if !partition_by.is_empty() {
                Some(format!("cannot override PARTITION BY clause of window \"{name}\""))
            } else if !order_by.is_empty() && !found.window.order_by.is_empty() {
                Some(format!("cannot override ORDER BY clause of window \"{name}\""))
            } else if found.has_frame {
                Some(format!("cannot copy window \"{name}\" because it has a frame clause"))
            } else {
                None
            };
            if let Some(message) = what {
                return Err(SqlError::new(SqlState::WINDOWING_ERROR, message).at(at));
            }
            partition_by = found.window.partition_by.clone();
            if order_by.is_empty() {
                order_by = found.window.order_by.clone();
            }
        }
        let frame = match &definition.frame {
            Some(frame) => self.frame(frame, definition.span.start, &order_by, context)?,
            None => DEFAULT_FRAME,
        };
        Ok(Window { partition_by, order_by, frame })
    }

    /// A frame that is written, in the window definition at `at`.
    fn frame(
        &mut self,
        frame: &syntax::WindowFrame,
        at: u32,
        order_by: &[SortKey],
        context: &mut Context<'_>,
    ) -> Result<WindowFrame, SqlError> {
        let unit = match frame.units {
            FrameUnits::Rows => FrameUnit::Rows,
            FrameUnits::Range => FrameUnit::Range,
            FrameUnits::Groups => FrameUnit::Groups,
        };
        if unit == FrameUnit::Groups && order_by.is_empty() {
            let message = "GROUPS mode requires an ORDER BY clause";
            return Err(SqlError::new(SqlState::WINDOWING_ERROR, message).at(at));
        }
        let start = self.frame_bound(&frame.start, unit, order_by, at, context)?;
        let end = self.frame_bound(&frame.end, unit, order_by, at, context)?;
        let exclude = match frame.exclusion {
            syntax::FrameExclusion::None => FrameExclusion::NoOthers,
            syntax::FrameExclusion::CurrentRow => FrameExclusion::CurrentRow,
            syntax::FrameExclusion::Group => FrameExclusion::Group,
            syntax::FrameExclusion::Ties => FrameExclusion::Ties,
        };
        Ok(WindowFrame { unit, start, end, exclude })
    }

    /// A bound of a frame.
    fn frame_bound(
        &mut self,
        bound: &syntax::FrameBound,
        unit: FrameUnit,
        order_by: &[SortKey],
        at: u32,
        context: &mut Context<'_>,
    ) -> Result<FrameBound, SqlError> {
        Ok(match bound {
            syntax::FrameBound::UnboundedPreceding => FrameBound::UnboundedPreceding,
            syntax::FrameBound::CurrentRow => FrameBound::CurrentRow,
            syntax::FrameBound::UnboundedFollowing => FrameBound::UnboundedFollowing,
            syntax::FrameBound::Preceding(distance) => {
                FrameBound::Preceding(self.distance(distance, unit, order_by, at, context)?)
            }
            syntax::FrameBound::Following(distance) => {
                FrameBound::Following(self.distance(distance, unit, order_by, at, context)?)
            }
        })
    }

    /// The distance of a bound: a number of rows or groups, or a difference of the sort key.
    fn distance(
        &mut self,
        node: &syntax::Expression,
        unit: FrameUnit,
        order_by: &[SortKey],
        at: u32,
        context: &mut Context<'_>,
    ) -> Result<Expr, SqlError> {
        let expr = self.expression(node, context)?;
        let name = match unit {
            FrameUnit::Rows => "ROWS",
            FrameUnit::Groups => "GROUPS",
            FrameUnit::Range => {
                let [key] = order_by else {
                    let message = "RANGE with offset PRECEDING/FOLLOWING requires exactly one \
                                   ORDER BY column";
                    return Err(SqlError::new(SqlState::WINDOWING_ERROR, message).at(at));
                };
                let ty = key.expr.ty;
                let offset = match ty.oid {
                    oids::INT2 | oids::INT4 | oids::INT8 => oids::INT8,
                    oids::DATE
                    | oids::TIMESTAMP
                    | oids::TIMESTAMPTZ
                    | oids::TIME
                    | oids::TIMETZ
                    | oids::INTERVAL => oids::INTERVAL,
                    _ => {
                        let name = self.names.type_name(ty.oid);
                        let message = format!(
                            "RANGE with offset PRECEDING/FOLLOWING is not supported by trunkline \
                             for column type {name}"
                        );
                        return Err(SqlError::unsupported(message).at(at));
                    }
                };
                let (given, is_literal) = (expr.ty.oid, expr.ty.oid == oids::UNKNOWN);
                let expr = self.coerce_implicit(expr, SqlType::new(offset));
                let expr = expr.map_err(|error| match is_literal {
                    true => error,
                    false => {
                        let names = [ty.oid, given].map(|oid| self.names.type_name(oid));
                        let [key, offset] = names;
                        let message = format!(
                            "RANGE with offset PRECEDING/FOLLOWING is not supported for column \
                             type {key} and offset type {offset}"
                        );
                        let hint = "Cast the offset value to an appropriate type.";
                        SqlError::unsupported(message).with_hint(hint).at(node.location)
                    }
                })?;
                return self.without_columns(expr, "RANGE", node.location);
            }
        };
        let expr = self.require_row_count(expr, name, node.location)?;
        self.without_columns(expr, name, node.location)
    }

    /// A distance is the same for all rows.
    fn without_columns(&self, expr: Expr, name: &str, at: u32) -> Result<Expr, SqlError> {
        let mut uses_columns = false;
        expr.columns(&self.subqueries, &mut |_| uses_columns = true);
        if uses_columns {
            let message = format!("argument of {name} must not contain variables");
            let code = SqlState::INVALID_COLUMN_REFERENCE;
            return Err(SqlError::new(code, message).at(at));
        }
        Ok(expr)
    }
}

/// The window of this name in the `WINDOW` clause.
fn named<'l>(level: &'l Level, name: &str, at: u32) -> Result<&'l NamedWindow, SqlError> {
    level.named_windows.iter().find(|window| &*window.name == name).ok_or_else(|| {
        let message = format!("window \"{name}\" does not exist");
        SqlError::new(SqlState::UNDEFINED_OBJECT, message).at(at)
    })
}
