//! **SELECTs**: `generator.query()` returns a whole query. FROM clauses and subqueries stay small
//! enough for a nested loop: estimates of rows keep large tables from being multiplied.

use super::generator::{Generator, Scope, Visible};
use super::kinds::Kind;
use super::tables::{Column, Table};

/// The most rows that a FROM clause may produce, by a rough estimate.
const ROWS_MAX: u64 = 200_000;
/// How often rows of a correlated subquery may be visited.
const VISITS_MAX: u64 = 1_000_000;

/// A SELECT and the kinds of its columns, whose names are unknown.
struct Select {
    sql: String,
    kinds: Vec<Kind>,
    rows: u64,
}

/// A relation in FROM.
struct Relation<'a> {
    sql: String,
    scope: Scope<'a>,
}

impl<'a> Generator<'a> {
    /// The next query.
    pub(crate) fn query(&mut self) -> String {
        self.begin();
        let body = if self.chance(20) { self.set_operation() } else { self.select(None, 2) };
        let mut keys = Vec::new();
        for (number, kind) in body.kinds.iter().enumerate() {
            let order = *self.pick(&["", "", " desc", " nulls first", " desc nulls last"]);
            keys.push(format!("c{number}{order}"));
            if !kind.is_exact() {
                keys.push(format!("c{number}::text"));
            }
        }
        let names: Vec<String> = (0..body.kinds.len()).map(|number| format!("c{number}")).collect();
        let (names, keys) = (names.join(", "), keys.join(", "));
        let mut sql = if self.chance(15) {
            format!("with q({names}) as ({}) select * from q order by {keys}", body.sql)
        } else {
            format!("select {names} from ({}) as q({names}) order by {keys}", body.sql)
        };
        if self.chance(55) {
            sql.push_str(&format!(" limit {}", 1 + self.below(60)));
            if self.chance(30) {
                sql.push_str(&format!(" offset {}", self.below(10)));
            }
        }
        sql
    }

    /// A SELECT that returns these kinds, or some.
    fn select(&mut self, kinds: Option<&[Kind]>, depth: usize) -> Select {
        let from = self.from(depth);
        let condition = if self.chance(55) {
            format!(" where {}", self.predicate(&from.scope, depth))
        } else {
            String::new()
        };
        let kinds = kinds.map_or_else(|| self.kinds(&from.scope), <[Kind]>::to_vec);
        let rows = from.scope.rows;
        let from = Relation { sql: format!("{}{condition}", from.sql), scope: from.scope };
        if self.chance(35) {
            return self.grouped(&from, &kinds, depth);
        }
        let mut values: Vec<String> =
            kinds.iter().map(|kind| self.value(*kind, &from.scope, depth)).collect();
        let mut kinds = kinds;
        if self.chance(15) {
            values.push(self.window(&from.scope));
            kinds.push(Kind::Int8);
        }
        let is_exact = kinds.iter().all(|kind| kind.is_exact());
        let distinct = if is_exact && self.chance(15) { "distinct " } else { "" };
        let sql = format!("select {distinct}{} from {}", values.join(", "), from.sql);
        Select { sql, kinds, rows }
    }

    /// Kinds for a select list: mostly those of columns.
    fn kinds(&mut self, scope: &Scope<'_>) -> Vec<Kind> {
        let count = 1 + self.below(4);
        (0..count).map(|_| self.kind_in(scope)).collect()
    }

    /// Two SELECTs of the same kinds. Rows that are only equal would make the result depend on
    /// which of them is kept, so kinds are exact unless all rows are kept.
    fn set_operation(&mut self) -> Select {
        let operator = *self.pick(&["union", "union all", "intersect", "except", "except all"]);
        let exact = [Kind::Int4, Kind::Text, Kind::Date, Kind::Bool, Kind::Int8, Kind::Timestamp];
        let any = [Kind::Numeric, Kind::Float8, Kind::Interval, Kind::Int4, Kind::Text];
        let count = 1 + self.below(3);
        let kinds: Vec<Kind> = (0..count)
            .map(|_| *self.pick(if operator == "union all" { &any[..] } else { &exact[..] }))
            .collect();
        let [a, b] = std::array::from_fn(|_| {
            loop {
                let select = self.select(Some(&kinds), 1);
                // A window function adds a column.
                if select.kinds.len() == kinds.len() {
                    break select;
                }
            }
        });
        Select { sql: format!("({}) {operator} ({})", a.sql, b.sql), kinds, rows: a.rows + b.rows }
    }

    /// A SELECT with aggregates, and often with groups.
    fn grouped(&mut self, from: &Relation<'a>, kinds: &[Kind], depth: usize) -> Select {
        let exact = from.scope.columns.iter().filter(|column| column.kind.is_exact());
        let exact: Vec<&Visible<'_>> = exact.collect();
        let (mut values, mut keys) = (Vec::new(), Vec::new());
        for kind in kinds {
            let fits: Vec<_> = exact.iter().filter(|column| column.kind == *kind).collect();
            if !fits.is_empty() && self.chance(50) {
                let key = self.pick(&fits).name.clone();
                values.push(key.clone());
                keys.push(key);
            } else {
                values.push(self.aggregate(*kind, &from.scope, depth));
            }
        }
        let mut sql = format!("select {} from {}", values.join(", "), from.sql);
        if !keys.is_empty() {
            sql.push_str(&format!(" group by {}", keys.join(", ")));
        }
        if self.chance(30) {
            let count = self.below(4);
            let aggregate = self.aggregate(Kind::Int4, &from.scope, 0);
            sql.push_str(&format!(" having count(*) > {count} or {aggregate} is null"));
        }
        Select { sql, kinds: kinds.to_vec(), rows: from.scope.rows }
    }

    /// An aggregate of this kind whose result doesn't depend on the order of rows.
    fn aggregate(&mut self, kind: Kind, scope: &Scope<'_>, depth: usize) -> String {
        let depth = depth.min(1);
        let filter = if self.chance(20) {
            format!(" filter (where {})", self.predicate(scope, 0))
        } else {
            String::new()
        };
        let argument = self.kind_in(scope);
        match (kind, self.below(4)) {
            (Kind::Int8, 0) => format!("count(*){filter}"),
            (Kind::Int8, 1) => {
                let value = self.value(argument, scope, depth);
                format!("count({}{value}){filter}", self.pick(&["", "distinct "]))
            }
            (Kind::Int8, _) => {
                format!("sum({}){filter}", self.value(Kind::Int4, scope, depth))
            }
            (Kind::Numeric, _) => {
                let of = *self.pick(&[Kind::Int8, Kind::Numeric]);
                let value = self.value(of, scope, depth);
                format!("{}({value}){filter}", self.pick(&["sum", "avg"]))
            }
            (Kind::Bool, _) => {
                let value = self.value(kind, scope, depth);
                format!("{}({value}){filter}", self.pick(&["bool_and", "bool_or", "every"]))
            }
            (Kind::Text, 0) => {
                let value = self.value(kind, scope, depth);
                format!("string_agg({value}, ',' order by {value}){filter}")
            }
            (Kind::IntArray, 0) => {
                let value = self.value(Kind::Int4, scope, depth);
                format!("array_agg({value} order by {value} desc){filter}")
            }
            (Kind::Uuid | Kind::Jsonb | Kind::Bytea, _) => {
                // They have no min and max in all versions.
                format!("max(({})::text){filter}::{}", self.leaf(kind, scope), kind.cast())
            }
            _ => {
                let (extreme, value) =
                    (*self.pick(&["min", "max"]), self.value(kind, scope, depth));
                // Of values that are only equal, any may be returned; a text is only itself.
                if kind.is_exact() {
                    return format!("{extreme}({value}){filter}");
                }
                format!("({extreme}(({value})::text){filter})::{}", kind.cast())
            }
        }
    }

    /// A window function of type bigint. Peers share a frame, so their order doesn't matter.
    fn window(&mut self, scope: &Scope<'_>) -> String {
        let function = match self.below(5) {
            0 => "rank()".to_owned(),
            1 => "dense_rank()".to_owned(),
            2 => "count(*)".to_owned(),
            3 => format!("sum({})", self.leaf(Kind::Int4, scope)),
            _ => format!("count({})", self.leaf(Kind::Text, scope)),
        };
        let [kind, other] = std::array::from_fn(|_| self.kind_in(scope));
        let order = self.leaf(kind, scope);
        let partition = if self.chance(50) {
            format!("partition by {} ", self.leaf(other, scope))
        } else {
            String::new()
        };
        format!("{function} over ({partition}order by {order})")
    }

    fn from(&mut self, depth: usize) -> Relation<'a> {
        let mut from = self.relation(depth);
        let joins = *self.pick(&[0, 0, 0, 1, 1, 2]);
        for _ in 0..joins {
            from = self.join(from, depth);
        }
        from
    }

    /// Joins another relation. If the two have no columns to join by, a small one is added.
    fn join(&mut self, left: Relation<'a>, depth: usize) -> Relation<'a> {
        let right = self.relation(depth.saturating_sub(1));
        let pairs: Vec<(String, String)> = left
            .scope
            .columns
            .iter()
            .flat_map(|a| {
                let fits = right.scope.columns.iter().filter(|b| a.kind.compares_with(b.kind));
                fits.map(|b| (a.name.clone(), b.name.clone()))
            })
            .collect();
        let product = left.scope.rows.saturating_mul(right.scope.rows);
        let columns = [&left.scope.columns[..], &right.scope.columns].concat();
        if !pairs.is_empty() && product / 20 < ROWS_MAX {
            let (a, b) = self.pick(&pairs).clone();
            let kind = *self.pick(&["join", "left join", "right join", "full join"]);
            let rows = (product / 20).max(left.scope.rows).max(right.scope.rows);
            let scope = Scope { columns, rows };
            // A full join needs a condition that can be merged or hashed.
            let more = if kind != "full join" && self.chance(25) {
                format!(" and {}", self.predicate(&scope, 0))
            } else {
                String::new()
            };
            let sql = format!("{} {kind} {} on {a} = {b}{more}", left.sql, right.sql);
            return Relation { sql, scope };
        }
        let sql = format!("{} cross join {}", left.sql, right.sql);
        if product < ROWS_MAX {
            Relation { sql, scope: Scope { columns, rows: product } }
        } else {
            left
        }
    }

    /// A table, a subquery, a list of values or a series.
    fn relation(&mut self, depth: usize) -> Relation<'a> {
        let alias = self.alias();
        let named = |kinds: &[Kind]| {
            let names: Vec<String> = (0..kinds.len()).map(|number| format!("c{number}")).collect();
            let visible = |(name, kind): (&String, &Kind)| Visible {
                name: format!("{alias}.{name}"),
                kind: *kind,
                samples: &[],
            };
            let columns: Vec<Visible<'a>> = names.iter().zip(kinds).map(visible).collect();
            (names.join(", "), columns)
        };
        match self.below(20) {
            0..=3 if depth > 0 => {
                let select = self.select(None, depth - 1);
                let (names, columns) = named(&select.kinds);
                let lateral = if self.chance(20) { "lateral " } else { "" };
                let sql = format!("{lateral}({}) as {alias}({names})", select.sql);
                Relation { sql, scope: Scope { columns, rows: select.rows } }
            }
            4 => {
                let kinds = [*self.pick(&Kind::ALL), Kind::Int4];
                let row = |this: &mut Self| {
                    let [a, b] = kinds.map(|kind| this.literal(kind));
                    format!("({a}, {b})")
                };
                let rows: Vec<String> = (0..1 + self.below(4)).map(|_| row(self)).collect();
                let (names, columns) = named(&kinds);
                let sql = format!("(values {}) as {alias}({names})", rows.join(", "));
                Relation { sql, scope: Scope { columns, rows: 4 } }
            }
            5 => {
                let (first, last) = (self.below(5), 5 + self.below(20));
                let (names, columns) = named(&[Kind::Int4]);
                let sql = format!("generate_series({first}, {last}) as {alias}({names})");
                Relation { sql, scope: Scope { columns, rows: 25 } }
            }
            _ => {
                let tables: &'a [Table] = self.tables;
                let table = self.pick(tables);
                let visible = |column: &'a Column| {
                    let name = format!("{alias}.{}", column.name);
                    Visible { name, kind: column.kind, samples: &column.samples }
                };
                let columns = table.columns.iter().map(visible).collect();
                let sql = format!("{} as {alias}", table.name);
                Relation { sql, scope: Scope { columns, rows: table.rows } }
            }
        }
    }

    /// A table for a subquery that is evaluated for each row of the outer one.
    fn inner(&mut self, scope: &Scope<'_>) -> Option<Relation<'a>> {
        let visits = |relation: &Relation<'_>| relation.scope.rows.saturating_mul(scope.rows);
        Some(self.relation(0)).filter(|relation| visits(relation) < VISITS_MAX)
    }

    /// The condition of a subquery, which often refers to the outer query's columns.
    fn correlation(&mut self, inner: &Scope<'_>, outer: &Scope<'_>) -> String {
        if !self.chance(60) {
            return self.predicate(inner, 0);
        }
        let visible = inner.columns.iter().chain(&outer.columns);
        let columns: Vec<Visible<'_>> = visible.cloned().collect();
        self.predicate(&Scope { columns, rows: inner.rows }, 1)
    }

    /// A subquery that returns a single value.
    pub(super) fn scalar_subquery(&mut self, kind: Kind, scope: &Scope<'_>) -> Option<String> {
        if matches!(kind, Kind::Bool | Kind::Bytea | Kind::Uuid) {
            return None; // without max in all versions
        }
        let inner = self.inner(scope)?;
        let value = self.leaf(kind, &inner.scope);
        let condition = self.correlation(&inner.scope, scope);
        Some(format!("(select max({value}) from {} where {condition})", inner.sql))
    }

    /// EXISTS, IN or a quantified comparison. If the subquery would be too slow, IS NOT NULL.
    pub(super) fn subquery_test(&mut self, kind: Kind, value: &str, scope: &Scope<'_>) -> String {
        let Some(inner) = self.inner(scope) else { return format!("{value} is not null") };
        let condition = self.correlation(&inner.scope, scope);
        let other = self.leaf(kind, &inner.scope);
        let rest = format!("from {} where {condition})", inner.sql);
        match self.below(5) {
            0 => format!(" exists (select 1 {rest}"),
            1 => format!("not exists (select {rest}"),
            2 => format!("{value} in (select {other} {rest}"),
            3 => format!("{value} not in (select {other} {rest}"),
            _ => {
                let quantifier = self.pick(&["= any", "< all", ">= any", "<> all"]);
                format!("{value} {quantifier} (select {other} {rest}")
            }
        }
    }
}
