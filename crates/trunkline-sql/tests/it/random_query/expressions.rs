//! **Expressions** of a given kind: `generator.value(Kind::Int4, &scope, 2)` may return
//! `(t1.id + coalesce(t1.floor, '7'::integer))`. The depth limits how far they nest.

use super::generator::{Generator, Scope};
use super::kinds::Kind;

impl Generator<'_> {
    /// An expression of this kind.
    pub(super) fn value(&mut self, kind: Kind, scope: &Scope<'_>, depth: usize) -> String {
        if depth == 0 || self.chance(35) {
            return self.leaf(kind, scope);
        }
        if self.chance(30) {
            return self.any_value(kind, scope, depth - 1);
        }
        let made = match kind {
            Kind::Bool => Some(format!("({})", self.predicate(scope, depth - 1))),
            Kind::Int4 => Some(self.integer(scope, depth - 1)),
            Kind::Int2 | Kind::Int8 | Kind::Numeric | Kind::Float4 | Kind::Float8 => {
                Some(self.number(kind, scope, depth - 1))
            }
            Kind::Text => Some(self.text(scope, depth - 1)),
            Kind::Date | Kind::Timestamp | Kind::Timestamptz | Kind::Interval => {
                Some(self.moment(kind, scope, depth - 1))
            }
            Kind::Jsonb if self.chance(40) => {
                let text = self.value(Kind::Int4, scope, depth - 1);
                Some(format!("to_jsonb({text})"))
            }
            Kind::IntArray => {
                let [a, b] = self.values(Kind::Int4, scope, depth - 1);
                Some(format!("array[{a}, {b}]"))
            }
            _ => None,
        };
        made.unwrap_or_else(|| self.any_value(kind, scope, depth - 1))
    }

    /// A column or a literal.
    pub(super) fn leaf(&mut self, kind: Kind, scope: &Scope<'_>) -> String {
        let columns = scope.of(kind);
        if !columns.is_empty() && self.chance(80) {
            return (*self.pick(&columns)).to_owned();
        }
        self.literal(kind)
    }

    /// A literal with its type.
    pub(super) fn literal(&mut self, kind: Kind) -> String {
        if self.chance(4) {
            return format!("null::{}", kind.cast());
        }
        if kind == Kind::Int4 && self.chance(60) {
            return self.below(100).to_string();
        }
        if kind == Kind::Bool && self.chance(60) {
            return (*self.pick(&["true", "false"])).to_owned();
        }
        format!("{}::{}", self.unknown_literal(kind), kind.cast())
    }

    /// A literal whose type is to be found out from the context.
    pub(super) fn unknown_literal(&mut self, kind: Kind) -> String {
        format!("'{}'", self.pick(kind.literals()))
    }

    fn values<const N: usize>(
        &mut self,
        kind: Kind,
        scope: &Scope<'_>,
        depth: usize,
    ) -> [String; N] {
        std::array::from_fn(|_| self.value(kind, scope, depth))
    }

    /// What exists for every kind.
    fn any_value(&mut self, kind: Kind, scope: &Scope<'_>, depth: usize) -> String {
        let [a, b] = self.values(kind, scope, depth);
        match self.below(6) {
            0 => {
                let condition = self.predicate(scope, depth);
                format!("case when {condition} then {a} else {b} end")
            }
            1 => format!("coalesce({a}, {b})"),
            2 => format!("nullif({a}, {b})"),
            3 => {
                let which = self.pick(&["greatest", "least"]);
                format!("{which}({a}, {b})")
            }
            4 if kind.is_exact() => self.scalar_subquery(kind, scope).unwrap_or(a),
            _ => self.cast(kind, scope, depth).unwrap_or(b),
        }
    }

    /// A cast from another kind that can't fail, if there is one.
    fn cast(&mut self, kind: Kind, scope: &Scope<'_>, depth: usize) -> Option<String> {
        let from: &[Kind] = match kind {
            Kind::Int4 => &[Kind::Int2, Kind::Bool],
            Kind::Int8 => &[Kind::Int2, Kind::Int4],
            Kind::Numeric => &[Kind::Int2, Kind::Int4, Kind::Int8],
            Kind::Float8 => &[Kind::Int4, Kind::Float4, Kind::Int8],
            Kind::Text => &Kind::ALL,
            Kind::Varchar => &[Kind::Text, Kind::Char],
            Kind::Date => &[Kind::Timestamp],
            Kind::Timestamp => &[Kind::Date, Kind::Timestamptz],
            Kind::Timestamptz => &[Kind::Date, Kind::Timestamp],
            Kind::Interval => &[Kind::Time],
            _ => return None,
        };
        let from = *self.pick(from);
        let value = self.value(from, scope, depth);
        Some(format!("({value})::{}", kind.cast()))
    }

    fn integer(&mut self, scope: &Scope<'_>, depth: usize) -> String {
        let [a, b] = self.values(Kind::Int4, scope, depth);
        match self.below(9) {
            0 | 1 => format!("({a} {} {b})", self.pick(&["+", "-", "&", "|", "#"])),
            2 => format!("({a} % 1000 * ({b} % 1000))"),
            3 => format!("({a} {} nullif({b}, 0))", self.pick(&["/", "%"])),
            4 => format!("(-({a}))"),
            5 => {
                let field = *self.pick(&["year", "month", "day", "dow", "week", "doy"]);
                let kind = *self.pick(&[Kind::Date, Kind::Timestamp]);
                let day = self.value(kind, scope, depth);
                format!("(extract({field} from {day}) % 10000)::integer")
            }
            6 => {
                let text = self.value(Kind::Text, scope, depth);
                format!("{}({text})", self.pick(&["length", "octet_length", "ascii"]))
            }
            7 => format!("cardinality({})", self.value(Kind::IntArray, scope, depth)),
            _ => {
                let [a, b] = self.values(Kind::Text, scope, depth);
                format!("position({a} in {b})")
            }
        }
    }

    fn number(&mut self, kind: Kind, scope: &Scope<'_>, depth: usize) -> String {
        let [a, b] = self.values(kind, scope, depth);
        let is_float = matches!(kind, Kind::Float4 | Kind::Float8);
        match (self.below(5), kind) {
            (0, _) => format!("({a} {} {b})", self.pick(&["+", "-"])),
            (1, Kind::Int2) => format!("({a} / nullif({b}, 0::smallint))"),
            (1, _) => format!("({a} / nullif({b}, 0))"),
            (2, Kind::Numeric) => format!("round({a}, {})", self.below(6)),
            (2, Kind::Float8) => format!("sqrt(abs({a}))"),
            (3, Kind::Numeric | Kind::Float8) => {
                format!("{}({a})", self.pick(&["floor", "ceil", "trunc", "round", "sign"]))
            }
            (3, _) if !is_float => format!("(-({a}))"),
            (4, Kind::Numeric | Kind::Float8) => format!("({a} * {b})"),
            _ => format!("abs({a})"),
        }
    }

    fn text(&mut self, scope: &Scope<'_>, depth: usize) -> String {
        let [a, b] = self.values(Kind::Text, scope, depth);
        let small = self.below(5);
        match self.below(10) {
            0 | 1 => format!("({a} || {b})"),
            2 => format!("{}({a})", self.pick(&["upper", "lower", "reverse", "md5", "btrim"])),
            3 => format!("substr({a}, {}, {})", 1 + small, self.below(6)),
            4 => format!("{}({a}, {small})", self.pick(&["left", "right", "repeat"])),
            5 => format!("replace({a}, {b}, '-')"),
            6 => {
                let kind = *self.pick(&Kind::ALL);
                let other = self.value(kind, scope, depth);
                format!("concat({a}, {other}, {b})")
            }
            7 => format!("split_part({a}, {}, 1)", self.pick(&["' '", "'a'", "'-'"])),
            8 => format!("lpad({a}, {}, 'xy')", self.below(12)),
            _ => {
                let document = self.value(Kind::Jsonb, scope, depth);
                format!("({document} ->> {})", self.pick(&["'lang'", "0", "'visits'"]))
            }
        }
    }

    fn moment(&mut self, kind: Kind, scope: &Scope<'_>, depth: usize) -> String {
        let value = self.value(kind, scope, depth);
        let days = self.below(60);
        let field = *self.pick(&["year", "month", "week", "day", "hour"]);
        let step = *self.pick(&["1 day", "1 mon", "-3 days 02:00", "00:00:01.5"]);
        match (kind, self.below(3)) {
            (Kind::Date, 0) => format!("({value} + {days})"),
            (Kind::Date, 1) => format!("({value} - {days})"),
            (Kind::Date, _) => format!("date_trunc('{field}', {value})::date"),
            (Kind::Interval, 0) => {
                let [a, b] = self.values(Kind::Timestamp, scope, depth);
                // The difference of two infinite timestamps is an error in older versions.
                format!("case when isfinite({a}) and isfinite({b}) then {a} - {b} end")
            }
            (Kind::Interval, 1) => format!("({value} * {})", self.below(5)),
            (Kind::Interval, _) => format!("({value} + interval '{step}')"),
            (_, 0) => format!("date_trunc('{field}', {value})"),
            _ => format!("({value} + interval '{step}')"),
        }
    }
}
