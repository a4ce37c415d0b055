//! What the rows of a partition satisfy: `pg_get_partition_constraintdef` (`partbounds.c`).
//!
//! ```text
//!   list      ((code IS NOT NULL) AND (code = ANY (ARRAY['DE'::text, 'FR'::text])))
//!   range     ((at IS NOT NULL) AND (at >= '2023-01-01'::date) AND (at < '2024-01-01'::date))
//!   hash      satisfies_hash_partition('16622'::oid, 2, 0, sensor)
//!   default   (NOT (what the rows of the other partitions satisfy))
//! ```
//!
//! Rows of several key columns are compared column by column: `(a, b) >= (1, 'x')` becomes
//! `((a > 1) OR ((a = 1) AND (b >= 'x')))`.

use std::cmp::Ordering;

use trunkline_format::Oid;
use trunkline_format::catalog::PartitionedTableRow;
use trunkline_format::node_tree::{Node, NodeValue};

use super::constant_text::payload;
use super::deparse::{Deparser, parse};
use super::index_definition::type_of;
use super::node_fields::{child, damaged, oid, unsupported};
use crate::catalog::oids;
use crate::error::SqlError;
use crate::functions::array::order_of;
use crate::functions::call::CallSettings;
use crate::functions::printing::resolve;

/// `RTLessStrategyNumber` and so on: what an operator of a B-tree operator family does.
const LESS: i16 = 1;
const LESS_EQUAL: i16 = 2;
const EQUAL: i16 = 3;
const GREATER_EQUAL: i16 = 4;
const GREATER: i16 = 5;

/// The constraint of a partition; `None` if the relation isn't one, or if everything satisfies it.
pub(super) fn partition_constraint(
    deparser: &Deparser<'_>,
    settings: &CallSettings,
    partition: Oid,
) -> Result<Option<String>, SqlError> {
    let catalog = deparser.names.catalog();
    let mut levels = Vec::new();
    let mut line = vec![partition];
    let mut last = partition;
    while catalog.database().relation(last).is_some_and(|relation| relation.is_partition)
        && let Some(&parent) = catalog.parents(last).first()
        // Damaged rows can form a cycle.
        && !line.contains(&parent)
    {
        levels.push((parent, last));
        line.push(parent);
        last = parent;
    }
    let mut conditions = Vec::new();
    for (parent, child) in levels.into_iter().rev() {
        let deparser = Deparser { relation: parent, ..*deparser };
        let row = catalog.definitions().partitioned_table(parent)?;
        let row = row.ok_or_else(|| damaged("partitioned table"))?;
        let level = Level { keys: keys(&deparser, row)?, deparser, settings, row };
        conditions.extend(level.conditions(child)?);
    }
    Ok(match conditions.len() {
        0 => None,
        _ => Some(all(&conditions)),
    })
}

/// A column or an expression of a partition key.
struct Key {
    /// How it is printed.
    text: String,
    /// The same with the cast that operators need.
    operand: String,
    ty: Oid,
    family: Oid,
    /// The type that the operators of the family take.
    input_type: Oid,
    collation: Oid,
}

fn keys(deparser: &Deparser<'_>, row: &PartitionedTableRow) -> Result<Vec<Key>, SqlError> {
    let catalog = deparser.names.catalog();
    let database = catalog.database();
    let relation = database.relation(row.relation).ok_or_else(|| damaged("table"))?;
    let columns = database.columns(relation).map_err(|_| damaged("columns"))?;
    let tree = row.expressions.as_deref().map(parse).transpose()?;
    let expressions = tree.as_ref().map_or(&[][..], NodeValue::elements);
    let mut expressions = expressions.iter().filter_map(NodeValue::node);
    let mut keys = Vec::new();
    for (at, &number) in row.columns.iter().enumerate() {
        let (text, plain, ty, own_collation) = if number == 0 {
            let node = expressions.next().ok_or_else(|| damaged("partexprs"))?;
            let (ty, collation) = type_of(node)?;
            (deparser.expression(node, true)?, deparser.expression(node, false)?, ty, collation)
        } else {
            let column = usize::try_from(number - 1).ok().and_then(|at| columns.get(at));
            let column = column.ok_or_else(|| damaged("partattrs"))?;
            let text = deparser.quoted(&column.name);
            (text.clone(), text, column.type_oid, column.collation)
        };
        let class = row.classes.get(at).copied().unwrap_or_default();
        let class = database.operator_classes().find(|row| row.oid == class);
        let class = class.ok_or_else(|| damaged("partclass"))?;
        let collation = row.collations.get(at).copied().unwrap_or_default();
        let input_type = class.input_type;
        let is_other_type =
            ty != input_type && input_type != oids::RECORD && !oids::is_polymorphic(input_type);
        let operand = match is_other_type || collation != own_collation {
            true => format!("({plain})::{}", deparser.names.format_type(input_type, Some(-1))),
            false => text.clone(),
        };
        keys.push(Key { text, operand, ty, family: class.family, input_type, collation });
    }
    Ok(keys)
}

/// A partitioned table, whose partitions are looked at.
struct Level<'a> {
    deparser: Deparser<'a>,
    settings: &'a CallSettings,
    row: &'a PartitionedTableRow,
    keys: Vec<Key>,
}

impl Level<'_> {
    /// Conditions that all rows of a partition satisfy.
    fn conditions(&self, partition: Oid) -> Result<Vec<String>, SqlError> {
        let tree = self.bound(partition)?;
        let NodeValue::Node(bound) = &tree else { return Err(damaged("relpartbound")) };
        match (self.row.strategy, bound.flag("is_default")) {
            (b'h', _) => self.hash(bound).map(|condition| vec![condition]),
            (b'l', false) => {
                let values: Vec<&Node> = bound.nodes("listdatums").collect();
                self.list(&values)
            }
            (b'r', false) => self.range(bound, false),
            (b'l', true) => self.list_default(),
            (b'r', true) => self.range_default(),
            _ => Err(damaged("partstrat")),
        }
    }

    fn bound(&self, partition: Oid) -> Result<NodeValue, SqlError> {
        let stored = self.deparser.names.catalog().definitions().partition_bound(partition)?;
        parse(stored.ok_or_else(|| damaged("relpartbound"))?)
    }

    /// The bounds of all partitions but the default one.
    fn siblings(&self) -> Result<Vec<NodeValue>, SqlError> {
        let children = self.deparser.names.catalog().database().children(self.row.relation);
        let others = children.iter().filter(|&&child| child != self.row.default_partition);
        others.map(|&child| self.bound(child)).collect()
    }

    fn hash(&self, bound: &Node) -> Result<String, SqlError> {
        let number = |field: &str| bound.number(field).ok_or_else(|| damaged("bound"));
        let keys: Vec<&str> = self.keys.iter().map(|key| &*key.text).collect();
        Ok(format!(
            "satisfies_hash_partition('{}'::oid, {}, {}, {})",
            self.row.relation,
            number("modulus")?,
            number("remainder")?,
            keys.join(", ")
        ))
    }

    fn key(&self, at: usize) -> Result<&Key, SqlError> {
        self.keys.get(at).ok_or_else(|| damaged("number of keys"))
    }

    /// The only key column is one of these values.
    fn list(&self, values: &[&Node]) -> Result<Vec<String>, SqlError> {
        let key = self.key(0)?;
        let (nulls, values): (Vec<&Node>, Vec<&Node>) =
            values.iter().partition(|value| value.flag("constisnull"));
        let is_array = self.deparser.names.catalog().element_type(key.ty).is_some();
        let condition = match &*values {
            [] => None,
            [only] => Some(self.comparison(0, EQUAL, only)?),
            several if is_array => {
                let each = several.iter().map(|value| self.comparison(0, EQUAL, value));
                Some(any(&each.collect::<Result<Vec<_>, _>>()?))
            }
            several => {
                let texts = several.iter().map(|value| self.deparser.constant(value, Some(false)));
                let texts = texts.collect::<Result<Vec<_>, _>>()?.join(", ");
                let operator = self.operator(key, EQUAL)?;
                Some(format!("({} {operator} ANY (ARRAY[{texts}]))", key.operand))
            }
        };
        let has_null = !nulls.is_empty();
        let test = format!("({} IS {}NULL)", key.text, if has_null { "" } else { "NOT " });
        Ok(match (condition, has_null) {
            (None, _) => vec![test],
            (Some(condition), true) => vec![any(&[test, condition])],
            (Some(condition), false) => vec![test, condition],
        })
    }

    /// The key column is in the list of no other partition.
    fn list_default(&self) -> Result<Vec<String>, SqlError> {
        let siblings = self.siblings()?;
        let bounds = siblings.iter().filter_map(NodeValue::node);
        let mut values: Vec<&Node> = bounds.flat_map(|bound| bound.nodes("listdatums")).collect();
        if values.is_empty() {
            return Ok(Vec::new());
        }
        let mut failed = None;
        values.sort_by(|one, other| {
            let is_null = |value: &Node| value.flag("constisnull");
            if is_null(one) || is_null(other) {
                return is_null(other).cmp(&is_null(one));
            }
            self.compare(0, one, other).unwrap_or_else(|error| {
                failed = Some(error);
                Ordering::Equal
            })
        });
        match failed {
            Some(error) => Err(error),
            None => Ok(vec![format!("(NOT {})", all(&self.list(&values)?))]),
        }
    }

    /// The rows between two bounds. For the default partition, without the tests for null.
    fn range(&self, bound: &Node, for_default: bool) -> Result<Vec<String>, SqlError> {
        let lower: Vec<Datum<'_>> = bound.nodes("lowerdatums").map(Datum::of).collect();
        let upper: Vec<Datum<'_>> = bound.nodes("upperdatums").map(Datum::of).collect();
        let not_null = || self.keys.iter().map(|key| format!("({} IS NOT NULL)", key.text));
        let mut found: Vec<String> = Vec::new();
        if !for_default {
            found.extend(not_null());
        }
        let mut start = 0;
        while let (Some(Datum::Value(low)), Some(Datum::Value(high))) =
            (lower.get(start), upper.get(start))
            && self.compare(start, low, high)? == Ordering::Equal
        {
            found.push(self.comparison(start, EQUAL, low)?);
            start += 1;
        }
        found.extend(self.arms(&lower, start, Side::Lower)?);
        found.extend(self.arms(&upper, start, Side::Upper)?);
        if found.is_empty() {
            found.extend(not_null());
        }
        Ok(found)
    }

    /// The comparisons with one bound, from key column `start` on; `None` if there is no bound. The
    /// first arm compares the first column only, the second one the first two, and so on.
    fn arms(
        &self,
        bound: &[Datum<'_>],
        start: usize,
        side: Side,
    ) -> Result<Option<String>, SqlError> {
        let mut arms = Vec::new();
        for arm in start..self.keys.len() {
            let mut parts = Vec::new();
            for at in start..=arm {
                let Some(Datum::Value(value)) = bound.get(at) else { break };
                let next = bound.get(at + 1);
                let strategy = match side {
                    _ if at < arm => EQUAL,
                    Side::Lower if next.is_none() || matches!(next, Some(Datum::Minimum)) => {
                        GREATER_EQUAL
                    }
                    Side::Lower => GREATER,
                    Side::Upper if matches!(next, Some(Datum::Maximum)) => LESS_EQUAL,
                    Side::Upper => LESS,
                };
                parts.push(self.comparison(at, strategy, value)?);
            }
            if !parts.is_empty() {
                arms.push(all(&parts));
            }
            let is_value = |at: usize| matches!(bound.get(at), Some(Datum::Value(_)));
            if !is_value(arm) || !is_value(arm + 1) {
                break;
            }
        }
        Ok((!arms.is_empty()).then(|| any(&arms)))
    }

    /// The rows that are in no range of another partition.
    fn range_default(&self) -> Result<Vec<String>, SqlError> {
        let siblings = self.siblings()?;
        let mut bounds: Vec<&Node> = siblings.iter().filter_map(NodeValue::node).collect();
        let mut failed = None;
        bounds.sort_by(|one, other| {
            self.compare_ranges(one, other).unwrap_or_else(|error| {
                failed = Some(error);
                Ordering::Equal
            })
        });
        if let Some(error) = failed {
            return Err(error);
        }
        if bounds.is_empty() {
            return Ok(Vec::new());
        }
        let ranges = bounds.iter().map(|bound| Ok(all(&self.range(bound, true)?)));
        let ranges = ranges.collect::<Result<Vec<_>, SqlError>>()?;
        let tests = self.keys.iter().map(|key| format!("({} IS NOT NULL)", key.text));
        let tests: Vec<String> = tests.collect();
        // The tests of several columns are one operand of the AND around them.
        let mut parts = tests;
        parts.push(any(&ranges));
        Ok(vec![format!("(NOT {})", all(&parts))])
    }

    /// Which of two ranges comes first. They don't overlap.
    fn compare_ranges(&self, one: &Node, other: &Node) -> Result<Ordering, SqlError> {
        let datums = one.nodes("lowerdatums").zip(other.nodes("lowerdatums"));
        for (at, (one, other)) in datums.enumerate() {
            let order = match (Datum::of(one), Datum::of(other)) {
                (Datum::Value(one), Datum::Value(other)) => self.compare(at, one, other)?,
                (one, other) => one.rank().cmp(&other.rank()),
            };
            if order != Ordering::Equal {
                return Ok(order);
            }
        }
        Ok(Ordering::Equal)
    }

    /// A comparison of a key column with a constant.
    fn comparison(&self, at: usize, strategy: i16, value: &Node) -> Result<String, SqlError> {
        let key = self.key(at)?;
        let operator = self.operator(key, strategy)?;
        let value = self.deparser.constant(value, Some(false))?;
        Ok(format!("({} {operator} {value})", key.operand))
    }

    fn operator(&self, key: &Key, strategy: i16) -> Result<String, SqlError> {
        let catalog = self.deparser.names.catalog();
        let ty = key.input_type;
        let operator = catalog.family_operator(key.family, ty, ty, strategy);
        self.deparser.operator(operator.ok_or_else(|| damaged("operator of a partition key"))?)
    }

    /// Compares two constants as the operator class of a key column does.
    fn compare(&self, at: usize, one: &Node, other: &Node) -> Result<Ordering, SqlError> {
        let key = self.key(at)?;
        let (left, right) = (payload(one)?, payload(other)?);
        if left == right {
            return Ok(Ordering::Equal);
        }
        let refused = || unsupported("the constraint of a partition of this type");
        let ty = resolve(oid(one, "consttype")?, self.settings)?;
        let order = match ty {
            trunkline_format::text_output::Type::Base(base) => order_of(base),
            _ => None,
        };
        let order = order.ok_or_else(refused)?;
        if key.collation != Oid(0) {
            let found = self.settings.collations.get(&key.collation);
            if !found.is_some_and(|found| found.orders_by_bytes()) {
                return Err(refused());
            }
        }
        order.compare(left, right).ok_or_else(refused)
    }
}

/// Which bound of a range is compared with.
#[derive(Clone, Copy)]
enum Side {
    Lower,
    Upper,
}

/// A part of a bound.
#[derive(Clone, Copy)]
enum Datum<'a> {
    Minimum,
    Value(&'a Node),
    Maximum,
}

impl<'a> Datum<'a> {
    fn of(node: &'a Node) -> Self {
        match (node.number("kind"), child(node, "value")) {
            (Some(0), Ok(value)) => Self::Value(value),
            (Some(kind), _) if kind < 0 => Self::Minimum,
            _ => Self::Maximum,
        }
    }

    fn rank(&self) -> i8 {
        match self {
            Self::Minimum => -1,
            Self::Value(_) => 0,
            Self::Maximum => 1,
        }
    }
}

/// All of these conditions.
fn all(conditions: &[String]) -> String {
    joined(conditions, " AND ")
}

/// Any of these conditions.
fn any(conditions: &[String]) -> String {
    joined(conditions, " OR ")
}

fn joined(conditions: &[String], word: &str) -> String {
    match conditions {
        [only] => only.clone(),
        several => format!("({})", several.join(word)),
    }
}
