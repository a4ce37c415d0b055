//! How a value of one type is converted to another type (`parse_coerce.c`).
//!
//! `pg_cast` lists conversions and where each may be applied. Besides those, there are rules: arrays
//! are converted element by element, any type can be assigned to a string type by its output function,
//! and rows can be used as rows of a parent table.

use trunkline_format::Oid;

use crate::catalog::{Category, SqlCatalog, oids};

/// Where a conversion is applied. The later ones allow more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum CoercionContext {
    /// In any expression.
    Implicit,
    /// Where a value is assigned to a column.
    Assignment,
    /// In a cast that is written out.
    Explicit,
}

impl CoercionContext {
    /// The context of a row of `pg_cast`.
    fn of_code(code: u8) -> Self {
        match code {
            b'i' => Self::Implicit,
            b'a' => Self::Assignment,
            _ => Self::Explicit,
        }
    }
}

/// A conversion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Coercion {
    /// The values are the same, and only the type differs.
    Relabel,
    /// By a function: its `pg_proc.oid`.
    Function(Oid),
    /// Of each element of an array.
    Array,
    /// By the output function of the one type and the input function of the other.
    ViaText,
}

/// How a type is converted to another, or `None` if it can't be (`find_coercion_pathway`). Domains
/// count as the types under them, so their constraints must be checked besides.
pub fn coercion(
    catalog: &SqlCatalog,
    source: Oid,
    target: Oid,
    context: CoercionContext,
) -> Option<Coercion> {
    let (source, target) = (catalog.base_type(source), catalog.base_type(target));
    if source == target {
        return Some(Coercion::Relabel);
    }
    if let Some(cast) = catalog.cast(source, target) {
        if context < CoercionContext::of_code(cast.context) {
            return None;
        }
        return Some(match cast.method {
            b'f' => Coercion::Function(cast.function),
            b'i' => Coercion::ViaText,
            _ => Coercion::Relabel,
        });
    }
    // Vectors have elements, but must have one dimension, so arrays are not converted to them.
    if ![oids::INT2VECTOR, oids::OIDVECTOR].contains(&target)
        && let (Some(from), Some(to)) = (catalog.element_type(source), catalog.element_type(target))
        && coercion(catalog, from, to, context).is_some()
    {
        return Some(Coercion::Array);
    }
    let is_string = |oid: Oid| catalog.category(oid) == Category::STRING;
    let has_text = (context >= CoercionContext::Assignment && is_string(target))
        || (context >= CoercionContext::Explicit && is_string(source));
    has_text.then_some(Coercion::ViaText)
}

/// Whether values of a type can be converted to another, which is not polymorphic. As far as we know
/// here, a literal can be read as any type.
pub(super) fn can_convert(
    catalog: &SqlCatalog,
    source: Oid,
    target: Oid,
    context: CoercionContext,
) -> bool {
    source == target
        || target == oids::ANY
        || source == oids::UNKNOWN
        || coercion(catalog, source, target, context).is_some()
        || (source == oids::RECORD && catalog.is_composite(target))
        || (target == oids::RECORD && catalog.is_composite(source))
        || (target == oids::RECORDARRAY && catalog.is_composite_array(source))
        || catalog.is_subtype_row(source, target)
}

/// How a value is converted to a modifier of its own type, such as a length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ModifierCoercion {
    /// By a function, which takes the value, the modifier, and perhaps whether the cast is explicit.
    Function(Oid),
    /// By applying a function to each element of an array.
    Array(Oid),
}

/// How a value of a type is converted to a modifier, or `None` if the type ignores modifiers
/// (`find_typmod_coercion_function`).
pub fn modifier_coercion(catalog: &SqlCatalog, oid: Oid) -> Option<ModifierCoercion> {
    let element = catalog.element_type(oid);
    let value = element.unwrap_or(oid);
    let function = catalog.cast(value, value)?.function;
    (function != oids::NONE).then_some(match element {
        Some(_) => ModifierCoercion::Array(function),
        None => ModifierCoercion::Function(function),
    })
}
