//! **Names and type names** as the grammar delivers them: folded to lower case unless quoted,
//! truncated to 63 bytes, and not looked up yet.
//!
//! `Public."Order"` is a [`QualifiedName`] of the two parts `public` and `Order`. `int[]` is a
//! [`TypeName`] named `pg_catalog.int4` with one array bound, because the grammar itself maps the
//! type names of the SQL standard onto names of the catalog. For the same reason `interval day to
//! second` carries a type modifier although none was written.

use super::span::Span;

/// One identifier.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Name {
    /// The identifier after case folding, without quotes.
    pub text: String,
    /// Where it is written, with its quotes.
    pub span: Span,
}

/// A name with up to as many qualifications as were written, such as `schema.relation`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QualifiedName {
    /// The parts from left to right; never empty.
    pub parts: Vec<Name>,
    /// From the first part to the last.
    pub span: Span,
}

impl QualifiedName {
    /// The last part, which is the name proper.
    pub fn last(&self) -> &str {
        self.parts.last().map_or("", |part| part.text.as_str())
    }
}

/// An operator, possibly written as `OPERATOR(schema.+)`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OperatorName {
    /// The schemas, from left to right; empty unless written.
    pub qualification: Vec<Name>,
    /// The operator's characters. `!=` is `<>` here, as in the catalog.
    pub symbol: String,
    /// Where the operator is written. PostgreSQL points here if it finds no such operator.
    pub span: Span,
}

/// The name of a type with its modifiers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypeName {
    /// The type's name; types of the SQL standard are already `pg_catalog.int4` and the like.
    pub name: QualifiedName,
    /// What follows in parentheses. The grammar adds some: `char` is `bpchar(1)`, and an interval's
    /// fields are a bit mask.
    pub modifiers: Vec<TypeModifier>,
    /// One entry for each pair of brackets, with the size if one is written. PostgreSQL ignores the
    /// sizes and the number of dimensions.
    pub array_bounds: Vec<Option<i32>>,
    /// `SETOF` was written. No cast accepts it.
    pub setof: bool,
    /// From the first token of the type to the last.
    pub span: Span,
}

/// One modifier of a type. PostgreSQL accepts constants and identifiers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypeModifier {
    /// What is written.
    pub value: TypeModifierValue,
    /// Where; empty if the grammar added the modifier.
    pub span: Span,
}

/// The value of a [`TypeModifier`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TypeModifierValue {
    /// An integer, with its sign.
    Integer(i32),
    /// Another number or a string, or an identifier: a type's input of modifiers takes text.
    Text(String),
}

/// An alias of an item in FROM: `t`, or `t(a, b)`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Alias {
    /// The alias of the relation.
    pub name: Name,
    /// The aliases of its first columns.
    pub columns: Vec<Name>,
}
