//! How a column's values are stored and compared: by the operator class of an index, or by the default
//! class of their type.

use trunkline_engine::catalog::{BTREE_METHOD, Database};
use trunkline_format::Oid;
use trunkline_format::btree::{Comparison, Order};
use trunkline_format::catalog::OperatorClassRow;
use trunkline_sql::catalog::{SqlCatalog, oids};
use trunkline_sql::values::{Carrier, OrderKey};

use super::clause::{Operation, commuted};
use crate::environment::Environment;

/// Types of text that have operator classes.
const STRINGS: [Oid; 3] = [oids::TEXT, oids::NAME, oids::BPCHAR];

/// The most domains over domains that we follow.
const DOMAINS_MAX: usize = 32;

/// By what a sort compares the values of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SortedBy {
    /// The arrays of a carrier.
    Values(Carrier),
    /// Keys that are made from the values.
    Keys(OrderKey),
}

/// The order of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ColumnOrder {
    /// How values compare.
    pub(super) order: Order,
    /// The operator family.
    pub(super) family: Oid,
    /// The type for which its operators are declared.
    pub(super) input: Oid,
}

impl ColumnOrder {
    /// The order of an operator class, for a column with this collation.
    pub(super) fn of_class(database: &Database, class: &OperatorClassRow, collation: Oid) -> Self {
        let order = Order::of(class.family, class.input_type, database.sorts_by_bytes(collation));
        Self { order, family: class.family, input: class.input_type }
    }

    /// The order of a type's default operator class. `None` if it has none.
    pub(super) fn of_type(database: &Database, type_oid: Oid, collation: Oid) -> Option<Self> {
        let mut base = type_oid;
        for _ in 0..DOMAINS_MAX {
            match database.data_type(base) {
                Some(row) if row.kind == b'd' => base = row.base,
                _ => break,
            }
        }
        // The values of varchar are compared as text.
        let input = if base == oids::VARCHAR { oids::TEXT } else { base };
        let class = database.operator_classes().find(|class| {
            class.method == BTREE_METHOD && class.default && class.input_type == input
        })?;
        Some(Self::of_class(database, class, collation))
    }

    /// The operator of the family for a comparison.
    pub(super) fn operator(&self, catalog: &SqlCatalog, comparison: Comparison) -> Option<Oid> {
        let (strategy, _) = STRATEGIES.iter().find(|(_, known)| *known == comparison)?;
        catalog.family_operator(self.family, self.input, self.input, *strategy)
    }

    /// Whether values are text, in the encoding of the database.
    pub(super) fn is_text(&self) -> bool {
        STRINGS.contains(&self.input)
    }

    /// What an operation means for this column: the comparison with the column on its left, and the type
    /// of the constant. `None` if the operator isn't one of the column's family, or if it compares in
    /// another way than the column is sorted.
    pub(super) fn comparison(
        &self,
        operation: Operation,
        environment: &Environment,
    ) -> Option<(Comparison, Oid)> {
        match operation {
            Operation::Native { comparison, carrier } => {
                // Text has equal bytes if it is equal, even where we don't know its order. No index is
                // searched for that, but it can be estimated.
                let is_equality = comparison == Comparison::Equal && carrier == Carrier::Text;
                let is_known = self.is_carried_by(carrier)
                    || (is_equality && self.is_text() && self.order == Order::Unknown);
                is_known.then_some((comparison, self.input))
            }
            Operation::Function { function, commuted: swapped, collation } => {
                let catalog = &environment.catalog;
                let &[left, right] = catalog.procedure(function)?.arguments.as_slice() else {
                    return None;
                };
                let (own, constant) = if swapped { (right, left) } else { (left, right) };
                if own != self.input {
                    return None;
                }
                let comparison = STRATEGIES.iter().find(|(strategy, _)| {
                    let operator = catalog.family_operator(self.family, left, right, *strategy);
                    let operator = operator.and_then(|operator| catalog.operator(operator));
                    operator.is_some_and(|operator| operator.function == function)
                });
                let (_, comparison) = *comparison?;
                // Text that is equal has equal bytes in every deterministic collation, and the order of
                // the column is always that of bytes.
                let agrees = match comparison {
                    Comparison::Equal => environment.is_deterministic(collation),
                    _ => environment.sorts_by_bytes(collation),
                };
                let comparison = if swapped { commuted(comparison) } else { comparison };
                agrees.then_some((comparison, constant))
            }
        }
    }

    /// Whether a sort by these values has the order of the column.
    pub(super) fn is_that_of(&self, sorted: SortedBy) -> bool {
        match sorted {
            SortedBy::Values(carrier) => self.is_carried_by(carrier),
            SortedBy::Keys(OrderKey::Natural) => false,
            SortedBy::Keys(OrderKey::Float4) => self.order == Order::Float4,
            SortedBy::Keys(OrderKey::Float8) => self.order == Order::Float8,
            SortedBy::Keys(OrderKey::Padded) => self.order == Order::Padded,
            SortedBy::Keys(OrderKey::Numeric) => self.order == Order::Numeric,
            SortedBy::Keys(OrderKey::Interval) => self.order == Order::Interval,
            SortedBy::Keys(OrderKey::Timetz) => self.order == Order::TimeTz,
            SortedBy::Keys(OrderKey::Network) => self.order == Order::Network,
            SortedBy::Keys(OrderKey::Bits) => self.order == Order::Bits,
        }
    }

    /// Whether the arrays of a carrier compare as the column is sorted.
    fn is_carried_by(&self, carrier: Carrier) -> bool {
        match carrier {
            Carrier::Bool | Carrier::UInt8 => self.order == Order::Byte,
            Carrier::Int16 => self.order == Order::Int2,
            Carrier::Int32 => self.order == Order::Int4,
            Carrier::Int64 => self.order == Order::Int8,
            Carrier::UInt32 => self.order == Order::Oid,
            Carrier::UInt64 => self.order == Order::Unsigned8,
            Carrier::Tid => self.order == Order::Tid,
            Carrier::Name => self.order == Order::Name,
            Carrier::Text | Carrier::Fixed(_) | Carrier::Bytes => self.order == Order::Bytes,
            // Arrow distinguishes -0 from 0.
            Carrier::Float32 | Carrier::Float64 => false,
        }
    }
}

/// The comparisons of a B-tree operator family by strategy number (`access/stratnum.h`).
const STRATEGIES: [(i16, Comparison); 5] = [
    (1, Comparison::Less),
    (2, Comparison::LessOrEqual),
    (3, Comparison::Equal),
    (4, Comparison::GreaterOrEqual),
    (5, Comparison::Greater),
];
