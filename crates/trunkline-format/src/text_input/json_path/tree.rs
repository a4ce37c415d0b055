//! Paths as trees: a chain of items, some of which have operands that are chains.

/// A path.
#[derive(Debug, Clone, PartialEq)]
pub struct JsonPath {
    /// Whether the mode is lax, in which structural errors are ignored.
    pub lax: bool,
    /// The items.
    pub items: PathChain,
}

/// Items, each applied to the results of the one before.
pub type PathChain = Vec<PathItem>;

/// An operator or method with its number in storage (`JsonPathItemType`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
#[expect(missing_docs, reason = "the names are those of the language")]
pub enum PathOperator {
    And = 4,
    Or = 5,
    Not = 6,
    IsUnknown = 7,
    Equal = 8,
    NotEqual = 9,
    Less = 10,
    Greater = 11,
    LessOrEqual = 12,
    GreaterOrEqual = 13,
    Add = 14,
    Subtract = 15,
    Multiply = 16,
    Divide = 17,
    Modulo = 18,
    Plus = 19,
    Minus = 20,
    Filter = 29,
    Exists = 30,
    Type = 31,
    Size = 32,
    Abs = 33,
    Floor = 34,
    Ceiling = 35,
    Double = 36,
    Datetime = 37,
    KeyValue = 38,
    StartsWith = 41,
    Bigint = 43,
    Boolean = 44,
    Date = 45,
    Decimal = 46,
    Integer = 47,
    Number = 48,
    String = 49,
    Time = 50,
    TimeTz = 51,
    Timestamp = 52,
    TimestampTz = 53,
}

impl PathOperator {
    /// All of them.
    pub(super) const ALL: [Self; 39] = [
        Self::And,
        Self::Or,
        Self::Not,
        Self::IsUnknown,
        Self::Equal,
        Self::NotEqual,
        Self::Less,
        Self::Greater,
        Self::LessOrEqual,
        Self::GreaterOrEqual,
        Self::Add,
        Self::Subtract,
        Self::Multiply,
        Self::Divide,
        Self::Modulo,
        Self::Plus,
        Self::Minus,
        Self::Filter,
        Self::Exists,
        Self::Type,
        Self::Size,
        Self::Abs,
        Self::Floor,
        Self::Ceiling,
        Self::Double,
        Self::Datetime,
        Self::KeyValue,
        Self::StartsWith,
        Self::Bigint,
        Self::Boolean,
        Self::Date,
        Self::Decimal,
        Self::Integer,
        Self::Number,
        Self::String,
        Self::Time,
        Self::TimeTz,
        Self::Timestamp,
        Self::TimestampTz,
    ];

    /// Whether it is a method.
    pub(super) fn is_method(self) -> bool {
        let number = self as u8;
        (Self::Type as u8..=Self::KeyValue as u8).contains(&number) || number >= Self::Bigint as u8
    }

    /// The number of operands or arguments that are stored.
    pub(super) fn operands(self) -> usize {
        match self {
            Self::Not
            | Self::IsUnknown
            | Self::Plus
            | Self::Minus
            | Self::Filter
            | Self::Exists => 1,
            Self::Decimal => 2,
            Self::Datetime | Self::Time | Self::TimeTz | Self::Timestamp | Self::TimestampTz => 1,
            method if method.is_method() => 0,
            _ => 2,
        }
    }
}

/// An item of a path.
#[derive(Debug, Clone, PartialEq)]
pub enum PathItem {
    /// `null`.
    Null,
    /// A string.
    String(String),
    /// A number, as a stored `numeric` without a varlena header.
    Number(Vec<u8>),
    /// `true` or `false`.
    Bool(bool),
    /// `$name`.
    Variable(String),
    /// `$`.
    Root,
    /// `@`.
    Current,
    /// `last`.
    Last,
    /// `[*]`.
    AnyArray,
    /// `.*`.
    AnyKey,
    /// `.name`.
    Key(String),
    /// `.**{first to last}`, where `u32::MAX` is `last`.
    Any(u32, u32),
    /// `[from to to, …]`.
    Subscripts(Vec<(PathChain, Option<PathChain>)>),
    /// An operator with two operands.
    Binary(PathOperator, PathChain, PathChain),
    /// An operator with one operand: `Not`, `IsUnknown`, `Plus`, `Minus`, `Filter` or `Exists`.
    Unary(PathOperator, PathChain),
    /// A method with its arguments.
    Method(PathOperator, Vec<PathChain>),
    /// `like_regex`: the operand, the pattern, and the flags as bits in the order `ismxq`.
    LikeRegex(PathChain, String, u32),
}

impl PathItem {
    /// Whether it is true, false or unknown, instead of a sequence of values.
    pub fn is_predicate(&self) -> bool {
        use PathOperator as O;
        match self {
            Self::Binary(operator, ..) => {
                *operator as u8 <= O::GreaterOrEqual as u8 || *operator == O::StartsWith
            }
            Self::Unary(operator, _) => {
                matches!(operator, O::Not | O::IsUnknown | O::Exists)
            }
            Self::LikeRegex(..) => true,
            _ => false,
        }
    }
}
