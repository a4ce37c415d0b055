//! **Predicates**: conditions for WHERE, ON, HAVING and CASE, for example
//! `generator.predicate(&scope, 1)`, which may return `t1.name like '%a%'`.

use super::generator::{Generator, Scope, Visible};
use super::kinds::Kind;

impl Generator<'_> {
    /// A condition over the columns in scope.
    pub(super) fn predicate(&mut self, scope: &Scope<'_>, depth: usize) -> String {
        if depth > 0 && self.chance(40) {
            let [a, b]: [String; 2] = std::array::from_fn(|_| self.predicate(scope, depth - 1));
            return match self.below(5) {
                0 | 1 => format!("({a} and {b})"),
                2 | 3 => format!("({a} or {b})"),
                _ => format!("not ({a})"),
            };
        }
        let depth = depth.saturating_sub(1);
        if self.chance(45)
            && let Some(comparison) = self.sample(scope)
        {
            return comparison;
        }
        let kind = self.kind_in(scope);
        let value = self.value(kind, scope, depth);
        match self.below(12) {
            0..=3 => self.comparison(kind, &value, scope, depth),
            4 => format!("{value} is {}null", self.pick(&["", "not "])),
            5 => {
                let list = self.list(kind, scope);
                format!("{value} {}in ({list})", self.pick(&["", "not "]))
            }
            6 => {
                let [a, b]: [String; 2] = std::array::from_fn(|_| self.leaf(kind, scope));
                let symmetric = self.pick(&["", "", "symmetric "]);
                format!("{value} {}between {symmetric}{a} and {b}", self.pick(&["", "not "]))
            }
            7 => self.pattern(scope, depth),
            8 => {
                let other = self.leaf(kind, scope);
                format!("{value} is {}distinct from {other}", self.pick(&["", "not "]))
            }
            // The elements of an array of arrays are no arrays.
            9 if !matches!(kind, Kind::IntArray | Kind::TextArray) => {
                let list = self.list(kind, scope);
                let quantifier = self.pick(&["= any", "<> all", "> any", "<= all"]);
                format!("{value} {quantifier} (array[{list}]::{}[])", kind.cast())
            }
            10 => self.subquery_test(kind, &value, scope),
            _ => {
                let condition = self.value(Kind::Bool, scope, depth);
                let test = self.pick(&["is true", "is not false", "is unknown", "= true"]);
                format!("({condition}) {test}")
            }
        }
    }

    /// A kind that occurs in the scope, as a rule.
    pub(super) fn kind_in(&mut self, scope: &Scope<'_>) -> Kind {
        if scope.columns.is_empty() || self.chance(10) {
            return *self.pick(&[Kind::Int4, Kind::Text, Kind::Numeric, Kind::Date]);
        }
        self.pick(&scope.columns).kind
    }

    /// Compares a column with a value that some of its rows have.
    fn sample(&mut self, scope: &Scope<'_>) -> Option<String> {
        let columns = scope.columns.iter().filter(|column| !column.samples.is_empty());
        let columns: Vec<&Visible<'_>> = columns.collect();
        if columns.is_empty() {
            return None;
        }
        let column = *self.pick(&columns);
        let [a, b] = std::array::from_fn(|_| format!("'{}'", self.pick(column.samples)));
        let name = &column.name;
        Some(match self.below(8) {
            0 => format!("{name} in ({a}, {b})"),
            1 => format!("{name} between symmetric {a} and {b}"),
            2 => format!("{name} <> {a}"),
            3 => format!("{name} = {a}"),
            _ => format!("{name} {} {a}", self.pick(&["<", "<=", ">", ">="])),
        })
    }

    fn comparison(&mut self, kind: Kind, value: &str, scope: &Scope<'_>, depth: usize) -> String {
        let operator = *self.pick(&["=", "=", "<>", "<", "<=", ">", ">="]);
        let others = scope.columns.iter().filter(|other| kind.compares_with(other.kind));
        let others: Vec<&Visible<'_>> = others.collect();
        let other = match self.below(3) {
            0 if !others.is_empty() => self.pick(&others).name.clone(),
            1 => self.unknown_literal(kind),
            _ => self.value(kind, scope, depth),
        };
        format!("{value} {operator} {other}")
    }

    fn list(&mut self, kind: Kind, scope: &Scope<'_>) -> String {
        let count = 1 + self.below(4);
        let values: Vec<String> = (0..count)
            .map(|_| if self.chance(15) { self.leaf(kind, scope) } else { self.literal(kind) })
            .collect();
        values.join(", ")
    }

    fn pattern(&mut self, scope: &Scope<'_>, depth: usize) -> String {
        let text = self.value(Kind::Text, scope, depth);
        if self.chance(25) {
            let pattern = self.pick(&["^[a-c]", "a.*e", "\\d+", "^$", "(an|er)", "[[:upper:]]"]);
            return format!("{text} {} '{pattern}'", self.pick(&["~", "!~", "~*"]));
        }
        let pattern = self.pick(&["%a%", "A%", "_b%", "%", "", "%\\%", "a_c", "%er"]);
        format!("{text} {} '{pattern}'", self.pick(&["like", "not like", "ilike"]))
    }
}
