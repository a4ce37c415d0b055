//! The selectivity of conditions on one column (`selfuncs.c`).
//!
//! With statistics, an equality is looked up among the most common values, and a range is measured
//! against the histogram, with interpolation between two of its values if they are numbers. Without
//! statistics, PostgreSQL's defaults apply.

use trunkline_format::btree::{Comparison, Condition, KeyValue, Order};
use trunkline_sql::catalog::oids;

use super::column_order::ColumnOrder;
use super::statistics::ColumnStatistics;

/// `DEFAULT_INEQ_SEL`, also that of conditions that we know nothing about.
pub(super) const RANGE: f64 = 1.0 / 3.0;
/// `DEFAULT_RANGE_INEQ_SEL`: a range with two ends.
const CLOSED_RANGE: f64 = 0.005;
/// `DEFAULT_UNK_SEL`: the fraction of nulls.
pub(super) const NULLS: f64 = 0.005;
/// `DEFAULT_NUM_DISTINCT`.
const DISTINCT: f64 = 200.0;

/// A fraction of the rows on one side of a value.
#[derive(Debug, Clone, Copy)]
struct Range {
    fraction: f64,
    /// It comes from statistics.
    known: bool,
}

impl Range {
    fn min(self, other: Self) -> Self {
        if other.fraction < self.fraction { other } else { self }
    }
}

/// One column.
#[derive(Debug, Clone, Copy)]
pub(super) struct ColumnSelectivity<'a> {
    /// Its statistics.
    pub(super) found: Option<&'a ColumnStatistics>,
    /// The rows of the table.
    pub(super) rows: f64,
    /// How the values in conditions are sorted.
    pub(super) order: Option<&'a ColumnOrder>,
    /// No value occurs twice.
    pub(super) unique: bool,
}

impl ColumnSelectivity<'_> {
    /// All of these conditions.
    pub(super) fn all(&self, conditions: &[&Condition]) -> f64 {
        let (mut low, mut high, mut product) = (None, None, 1.0_f64);
        for condition in conditions {
            match condition {
                Condition::Compare { comparison, value, .. } => {
                    let Some(payload) = value else { return 0.0 };
                    match comparison {
                        Comparison::Equal => product = product.min(self.equal(payload)),
                        Comparison::Less | Comparison::LessOrEqual => {
                            let found = self.side(payload, *comparison);
                            high = Some(high.map_or(found, |known: Range| known.min(found)));
                        }
                        Comparison::Greater | Comparison::GreaterOrEqual => {
                            let found = self.side(payload, *comparison);
                            low = Some(low.map_or(found, |known: Range| known.min(found)));
                        }
                    }
                }
                Condition::AnyOf { values, .. } => product = product.min(self.any_of(values)),
                Condition::IsNull { .. } => product = product.min(self.nulls()),
                Condition::IsNotNull { .. } => product = product.min(1.0 - self.nulls()),
                // As in `rowcomparesel`, the first column decides.
                Condition::Row { comparison, values } => match values.first() {
                    Some(Some(payload)) => {
                        product = product.min(self.side(payload, *comparison).fraction);
                    }
                    _ => return 0.0,
                },
            }
        }
        let range = match (low, high) {
            (None, None) => 1.0,
            (Some(one), None) | (None, Some(one)) => one.fraction,
            (Some(low), Some(high)) if low.known && high.known => {
                // Each end leaves out a part, and the two parts have nothing in common.
                let both = low.fraction + high.fraction - (1.0 - self.nulls());
                match both {
                    both if both > 0.0 => both,
                    // The ends exclude each other, or the statistics are too coarse.
                    both if both < -0.01 => CLOSED_RANGE,
                    _ => 1e-10,
                }
            }
            (Some(_), Some(_)) => CLOSED_RANGE,
        };
        (product * range).clamp(0.0, 1.0)
    }

    fn nulls(&self) -> f64 {
        self.found.map_or(NULLS, |found| found.nulls)
    }

    /// The least fraction that an estimate returns: one row.
    fn least(&self) -> f64 {
        1.0 / self.rows.max(1.0)
    }

    fn order(&self) -> Order {
        self.order.map_or(Order::Unknown, |order| order.order)
    }

    /// `var_eq_const`
    fn equal(&self, value: &[u8]) -> f64 {
        if self.unique {
            return self.least();
        }
        let Some(found) = self.found else { return 1.0 / self.distinct() };
        let is_equal = |other: &[u8]| self.order().compare(other, value).is_some_and(|o| o.is_eq());
        if let Some((_, fraction)) = found.common.iter().find(|(common, _)| is_equal(common)) {
            return *fraction;
        }
        // The other values share what is left.
        let rest = (1.0 - found.common_fraction() - found.nulls).clamp(0.0, 1.0);
        let others = self.distinct() - found.common.len() as f64;
        let fraction = if others > 1.0 { rest / others } else { rest };
        // No value that isn't among the most common ones is more common than those.
        let most = found.common.iter().map(|(_, fraction)| *fraction).reduce(f64::min);
        most.map_or(fraction, |most| fraction.min(most))
    }

    /// `var_eq_non_const`: equal to a value that isn't known, such as that of another row.
    pub(super) fn equal_to_any(&self) -> f64 {
        if self.unique {
            return self.least();
        }
        let Some(found) = self.found else { return 1.0 / self.distinct() };
        let fraction = (1.0 - found.nulls).max(0.0) / self.distinct();
        // The mean can't be above the most common value.
        let most = found.common.iter().map(|(_, fraction)| *fraction).reduce(f64::max);
        most.map_or(fraction, |most| fraction.min(most))
    }

    /// `get_variable_numdistinct`: the number of distinct values.
    pub(super) fn distinct(&self) -> f64 {
        let rows = self.rows.max(1.0);
        let known = self.found.filter(|found| found.distinct != 0.0);
        match known {
            _ if self.unique => rows,
            Some(found) => found.distinct_in(rows),
            None if self.order.is_some_and(|order| order.input == oids::BOOL) => 2.0,
            None => DISTINCT.min(rows),
        }
    }

    fn any_of(&self, list: &[KeyValue]) -> f64 {
        let mut values: Vec<&[u8]> = list.iter().filter_map(Option::as_deref).collect();
        values.sort_unstable();
        values.dedup();
        values.into_iter().map(|value| self.equal(value)).sum::<f64>().min(1.0)
    }

    /// `scalarineqsel` for `<` and `<=`.
    fn below(&self, value: &[u8], comparison: Comparison) -> Range {
        let Some(found) = self.found else { return Range { fraction: RANGE, known: false } };
        let order = self.order();
        let is_known = order != Order::Unknown && found.order.as_ref() == self.order;
        if !is_known {
            return Range { fraction: RANGE, known: false };
        }
        let holds = |other: &[u8]| order.compare(other, value).is_some_and(|o| comparison.holds(o));
        let common = found.common.iter().filter(|(other, _)| holds(other));
        let common: f64 = common.map(|(_, fraction)| fraction).sum();
        let rest = (1.0 - found.common_fraction() - found.nulls).clamp(0.0, 1.0);
        let part = self.histogram_below(found, value).unwrap_or(0.5);
        Range { fraction: (common + rest * part).clamp(0.0, 1.0), known: true }
    }

    /// One side of a value.
    fn side(&self, value: &[u8], comparison: Comparison) -> Range {
        match comparison {
            Comparison::Greater | Comparison::GreaterOrEqual => self.above(value, comparison),
            _ => self.below(value, comparison),
        }
    }

    /// `>` and `>=`.
    fn above(&self, value: &[u8], comparison: Comparison) -> Range {
        let opposite = match comparison {
            Comparison::Greater => Comparison::LessOrEqual,
            _ => Comparison::Less,
        };
        let below = self.below(value, opposite);
        match below.known {
            true => {
                let fraction = (1.0 - self.nulls() - below.fraction).clamp(0.0, 1.0);
                Range { fraction, known: true }
            }
            false => below,
        }
    }

    /// `ineq_histogram_selectivity`: which part of the values in the histogram is below a value.
    fn histogram_below(&self, found: &ColumnStatistics, value: &[u8]) -> Option<f64> {
        let bounds = &found.histogram;
        let parts = bounds.len().checked_sub(1).filter(|parts| *parts > 0)?;
        let order = self.order();
        // The first bound that isn't below the value.
        let at =
            bounds.partition_point(|bound| order.compare(bound, value).is_some_and(|o| o.is_lt()));
        let part = match (at.checked_sub(1).and_then(|below| bounds.get(below)), bounds.get(at)) {
            (None, _) => 0.0,
            (_, None) => 1.0,
            (Some(low), Some(high)) => {
                let within = interpolated(order, low, value, high).unwrap_or(0.5);
                ((at - 1) as f64 + within) / parts as f64
            }
        };
        // The value may be outside only because the histogram is old.
        let least = 0.01 / parts as f64;
        Some(part.clamp(least, 1.0 - least))
    }
}

/// Where a number is between two others, from 0 to 1. `None` if the values aren't numbers.
fn interpolated(order: Order, low: &[u8], value: &[u8], high: &[u8]) -> Option<f64> {
    let number = |payload: &[u8]| -> Option<f64> {
        Some(match order {
            Order::Byte => f64::from(*payload.first()?),
            Order::Int2 => f64::from(i16::from_le_bytes(payload.try_into().ok()?)),
            Order::Int4 => f64::from(i32::from_le_bytes(payload.try_into().ok()?)),
            Order::Int8 => i64::from_le_bytes(payload.try_into().ok()?) as f64,
            Order::Oid => f64::from(u32::from_le_bytes(payload.try_into().ok()?)),
            Order::Unsigned8 => u64::from_le_bytes(payload.try_into().ok()?) as f64,
            Order::Float4 => f64::from(f32::from_le_bytes(payload.try_into().ok()?)),
            Order::Float8 => f64::from_le_bytes(payload.try_into().ok()?),
            _ => return None,
        })
    };
    let (low, value, high) = (number(low)?, number(value)?, number(high)?);
    let within = (value - low) / (high - low);
    within.is_finite().then(|| within.clamp(0.0, 1.0))
}

#[cfg(test)]
mod tests {
    use trunkline_format::Oid;

    use super::*;

    const ORDER: ColumnOrder =
        ColumnOrder { order: Order::Int4, family: Oid(1976), input: Oid(23) };

    fn value(number: i32) -> Box<[u8]> {
        number.to_le_bytes().into()
    }

    /// 10 % nulls; 1 in 20 % and 2 in 10 % of the rows; the other 60 % are 48 values from 0 to 100, half
    /// of them up to 40.
    fn statistics() -> ColumnStatistics {
        ColumnStatistics {
            nulls: 0.1,
            distinct: 50.0,
            common: vec![(value(1), 0.2), (value(2), 0.1)],
            histogram: vec![value(0), value(40), value(100)],
            correlation: 0.5,
            order: Some(ORDER),
        }
    }

    fn compare(comparison: Comparison, number: i32) -> Condition {
        Condition::Compare { column: 0, comparison, value: Some(value(number)) }
    }

    fn check(found: Option<&ColumnStatistics>, conditions: &[Condition], expected: f64) {
        let column = ColumnSelectivity { found, rows: 1000.0, order: Some(&ORDER), unique: false };
        let found = column.all(&conditions.iter().collect::<Vec<_>>());
        assert!((found - expected).abs() < 1e-9, "{conditions:?}: {found}, not {expected}");
    }

    #[test]
    fn statistics_are_used_as_in_postgresql() {
        use Comparison::{Equal, Greater, GreaterOrEqual, Less, LessOrEqual};
        let known = statistics();
        let check = |conditions: &[Condition], expected| check(Some(&known), conditions, expected);
        check(&[compare(Equal, 1)], 0.2);
        // (1 - 0.3 - 0.1) / 48 others.
        check(&[compare(Equal, 7)], 0.0125);
        let list = [Some(value(1)), Some(value(2)), Some(value(7)), Some(value(7)), None];
        check(&[Condition::AnyOf { column: 0, values: list.to_vec() }], 0.3125);
        check(&[Condition::AnyOf { column: 0, values: Vec::new() }], 0.0);
        check(&[Condition::IsNull { column: 0 }], 0.1);
        check(&[Condition::IsNotNull { column: 0 }], 0.9);
        // 1 and 2, and half of the first half of the histogram: 0.3 + 0.6 * 0.25.
        check(&[compare(Less, 20)], 0.45);
        check(&[compare(GreaterOrEqual, 20)], 0.45);
        // 1, and a fortieth of the first half for 0 to 1.
        check(&[compare(LessOrEqual, 1)], 0.2 + 0.6 * 0.5 / 40.0);
        check(&[compare(Less, 1)], 0.6 * 0.5 / 40.0);
        // 0.6 * (1 - 0.75) above 70.
        check(&[compare(Greater, 70)], 0.15);
        // From 20 to 70: 0.6 * (0.75 - 0.25).
        check(&[compare(GreaterOrEqual, 20), compare(Less, 70)], 0.3);
        // Ends that exclude each other have the default, and what is outside of the histogram is a little.
        check(&[compare(Greater, 70), compare(Less, 20)], 0.005);
        // A row is estimated as its first column.
        let row = |comparison, values: Vec<KeyValue>| Condition::Row { comparison, values };
        check(&[row(Greater, vec![Some(value(70)), Some(value(5))])], 0.15);
        check(&[row(Less, vec![Some(value(20)), None])], 0.45);
        check(&[row(Less, vec![None, Some(value(5))])], 0.0);
        check(&[compare(Greater, 5000)], 0.6 * 0.01 / 2.0);
        check(&[Condition::Compare { column: 0, comparison: Equal, value: None }], 0.0);
    }

    #[test]
    fn without_statistics_the_defaults_are_those_of_postgresql() {
        use Comparison::{Equal, Greater, Less};
        check(None, &[compare(Equal, 1)], 1.0 / 200.0);
        check(None, &[compare(Less, 1)], 1.0 / 3.0);
        check(None, &[compare(Greater, 1), compare(Less, 9)], 0.005);
        check(None, &[Condition::IsNull { column: 0 }], 0.005);
        // A boolean has two values.
        let order = ColumnOrder { order: Order::Byte, family: Oid(424), input: oids::BOOL };
        let is = Condition::Compare { column: 0, comparison: Equal, value: Some([1].into()) };
        let boolean =
            ColumnSelectivity { found: None, rows: 400.0, order: Some(&order), unique: false };
        assert_eq!(boolean.all(&[&is]), 0.5);
        let unique = ColumnSelectivity { found: None, rows: 400.0, order: None, unique: true };
        assert_eq!(unique.all(&[&compare(Equal, 1)]), 1.0 / 400.0);
        // Neither common values nor a histogram: half of the rows that aren't null.
        let empty = ColumnStatistics { common: Vec::new(), histogram: Vec::new(), ..statistics() };
        check(Some(&empty), &[compare(Less, 1)], 0.45);
        // Statistics in another order say nothing about a range.
        let other = ColumnStatistics { order: None, ..statistics() };
        check(Some(&other), &[compare(Less, 20)], 1.0 / 3.0);
        check(Some(&other), &[compare(Equal, 1)], 0.2);
    }

    #[test]
    fn distinct_values_are_counted_or_grow_with_the_table() {
        assert_eq!(statistics().distinct_in(1000.0), 50.0);
        let growing = ColumnStatistics { distinct: -0.5, ..statistics() };
        assert_eq!(growing.distinct_in(1000.0), 500.0);
    }
}
