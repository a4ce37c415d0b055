//! **Constants** as they are written. Their types are the binder's matter: a string is of type
//! `unknown` at first, and a number that does not fit into `int4` may be `int8` or `numeric`.
//!
//! `1` and `0x1F` are [`Constant::Integer`], `2147483648` and `1e3` are [`Constant::Float`].

/// A constant of the raw syntax tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Constant {
    /// `NULL`.
    Null,
    /// `TRUE` or `FALSE`.
    Boolean(bool),
    /// An integer that fits into `int4`. A minus sign in front of it has been folded in.
    Integer(i32),
    /// Any other number, without underscores, with the minus sign in front of it. Hexadecimal, octal
    /// and binary integers keep their prefix, which the input of `numeric` understands.
    Float(String),
    /// A string of any notation, after its escapes.
    String(String),
    /// `B'01'` as `b01`, `X'1F'` as `x1F`. The input of type `bit` takes both.
    BitString(String),
}
