//! The text of an expression, by which equal expressions are recognized, and which plans show.
//!
//! It names functions and columns: `int4pl(c1, '01000000'::23)`.

use std::fmt::Write as _;

use trunkline_sql::bound::{CallForm, ColumnId, Expr, ExprKind, Location, with_stack};

use crate::environment::Environment;

/// The text of an expression.
pub(crate) fn expression_text(environment: &Environment, expr: &Expr) -> String {
    let mut text = String::new();
    append(environment, expr, &mut text);
    text
}

fn append(environment: &Environment, expr: &Expr, text: &mut String) {
    with_stack(|| append_node(environment, expr, text));
}

fn append_node(environment: &Environment, expr: &Expr, text: &mut String) {
    match &expr.kind {
        ExprKind::Column(id) => text.push_str(&column_name(*id)),
        ExprKind::Constant(None) => text.push_str("NULL"),
        ExprKind::Constant(Some(payload)) => {
            text.push('\'');
            for byte in &**payload {
                // Writing to a string can't fail.
                let _ = write!(text, "{byte:02x}");
            }
            let _ = write!(text, "'::{}", expr.ty.oid);
        }
        ExprKind::Parameter(number) => {
            let _ = write!(text, "${number}");
        }
        ExprKind::Call { function, arguments, collation, form } => {
            match environment.function(*function) {
                Ok(info) => text.push_str(&info.name),
                Err(_) => text.push_str("function"),
            }
            list(environment, arguments, text);
            // Overloads share a C function, and a result type may depend on the context.
            let _ = write!(text, "#{function}:{}:{collation}", expr.ty.oid);
            if *form == CallForm::Variadic {
                text.push_str(":variadic");
            }
        }
        ExprKind::And(operands) => joined(environment, "AND", operands, text),
        ExprKind::Or(operands) => joined(environment, "OR", operands, text),
        ExprKind::Not(operand) => {
            joined(environment, "NOT", std::slice::from_ref(&**operand), text)
        }
        ExprKind::Coalesce(operands) => joined(environment, "COALESCE", operands, text),
        ExprKind::Collate(argument) => append(environment, argument, text),
        ExprKind::Relabel(argument) => {
            append(environment, argument, text);
            let _ = write!(text, "::{}", expr.ty.oid);
        }
        // The derived form of the tree is unique, if not pretty.
        _ => {
            let mut plain = expr.clone();
            remove_locations(&mut plain);
            let _ = write!(text, "{:?}", plain.kind);
        }
    }
}

/// Equal expressions have equal texts, wherever they are written.
fn remove_locations(expr: &mut Expr) {
    expr.location = Location::default();
    expr.children_mut(remove_locations);
}

fn joined(environment: &Environment, name: &str, operands: &[Expr], text: &mut String) {
    text.push_str(name);
    list(environment, operands, text);
}

fn list(environment: &Environment, operands: &[Expr], text: &mut String) {
    text.push('(');
    for (at, operand) in operands.iter().enumerate() {
        if at > 0 {
            text.push_str(", ");
        }
        append(environment, operand, text);
    }
    text.push(')');
}

/// The name of a column's field in plans: `c12`. Ids are unique within a statement, so names are too.
pub(crate) fn column_name(id: ColumnId) -> String {
    format!("c{}", id.number())
}
