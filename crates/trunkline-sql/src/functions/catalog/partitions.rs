//! Partitions: `pg_partition_tree`, `pg_partition_ancestors`, `pg_partition_root`.
//!
//! For a relation that is not partitioned and not a partition, there are no rows.

use std::sync::Arc;

use arrow_array::{BooleanArray, Int32Array, UInt32Array};
use trunkline_format::Oid;
use trunkline_format::catalog::RelationKind;

use crate::catalog::SqlCatalog;
use crate::error::SqlError;
use crate::functions::call::{Call, Kernel};
use crate::functions::rows::{Reader, each_row};
use crate::functions::set_rows::{AllRows, NoRows, SetFunction, SetRows};

/// The kernels of this module.
pub(in crate::functions) const PARTITIONS: &[(&str, Kernel)] = &[("pg_partition_root", |call| {
    let catalog = &call.settings.session()?.catalog;
    let oids = Reader::<u32>::new(call, 0)?;
    each_row(call.rows, |row| {
        let found = oids.get(row).filter(|&oid| is_in_tree(catalog, Oid(oid)));
        let lines = found.map(|oid| ancestors(catalog, Oid(oid)));
        Ok(lines.and_then(|line| line.last().map(|oid| oid.0)))
    })
})];

/// The set-returning functions of this module.
pub(in crate::functions) const SETS: &[(&str, SetFunction)] =
    &[("pg_partition_ancestors", partition_ancestors), ("pg_partition_tree", partition_tree)];

/// Whether the relation is partitioned or a partition.
fn is_in_tree(catalog: &SqlCatalog, oid: Oid) -> bool {
    let relation = catalog.database().relation(oid);
    relation.is_some_and(|relation| {
        relation.is_partition
            || matches!(
                relation.kind,
                RelationKind::PartitionedTable | RelationKind::PartitionedIndex
            )
    })
}

/// The relation and what it is a partition of, up to the root.
fn ancestors(catalog: &SqlCatalog, oid: Oid) -> Vec<Oid> {
    let mut line = vec![oid];
    let mut last = oid;
    while catalog.database().relation(last).is_some_and(|relation| relation.is_partition)
        && let Some(&parent) = catalog.parents(last).first()
        // Damaged rows can form a cycle.
        && !line.contains(&parent)
    {
        line.push(parent);
        last = parent;
    }
    line
}

fn partition_ancestors(call: &Call<'_>, row: usize) -> Result<Box<dyn SetRows>, SqlError> {
    let catalog = &call.settings.session()?.catalog;
    match Reader::<u32>::new(call, 0)?.get(row) {
        Some(oid) if is_in_tree(catalog, Oid(oid)) => {
            let line = ancestors(catalog, Oid(oid)).into_iter().map(|oid| oid.0);
            Ok(Box::new(AllRows::new(vec![Arc::new(line.collect::<UInt32Array>())])))
        }
        _ => Ok(Box::new(NoRows)),
    }
}

fn partition_tree(call: &Call<'_>, row: usize) -> Result<Box<dyn SetRows>, SqlError> {
    let catalog = &call.settings.session()?.catalog;
    let database = catalog.database();
    let found = Reader::<u32>::new(call, 0)?.get(row).filter(|&oid| is_in_tree(catalog, Oid(oid)));
    let Some(root) = found.and_then(|oid| database.relation(Oid(oid))) else {
        return Ok(Box::new(NoRows));
    };
    let above = ancestors(catalog, root.oid);
    let (mut oids, mut parents, mut leaves, mut levels) =
        (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for relation in database.inheritors(root) {
        let line = ancestors(catalog, relation.oid);
        let level = match line.iter().position(|&oid| oid == root.oid) {
            Some(level) => level,
            // Only damaged rows reach a table from a root that is not above it.
            None => continue,
        };
        // The parent of the root itself is shown too, if it has one.
        let parent = line.get(1).or_else(|| above.get(1).filter(|_| level == 0));
        oids.push(relation.oid.0);
        parents.push(parent.map(|oid| oid.0));
        leaves.push(!matches!(
            relation.kind,
            RelationKind::PartitionedTable | RelationKind::PartitionedIndex
        ));
        levels.push(i32::try_from(level).unwrap_or(i32::MAX));
    }
    Ok(Box::new(AllRows::new(vec![
        Arc::new(UInt32Array::from(oids)),
        Arc::new(UInt32Array::from(parents)),
        Arc::new(BooleanArray::from(leaves)),
        Arc::new(Int32Array::from(levels)),
    ])))
}
