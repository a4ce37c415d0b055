//! What scans through indexes show: conditions, and the nodes that make a bitmap.
//!
//! In our plans, the bitmap is made by the scan itself. It is shown as the nodes that PostgreSQL has:
//!
//! ```text
//!   Bitmap Heap Scan on t
//!     Recheck Cond: ((a = 1) OR (b = 2))
//!     ->  BitmapOr
//!           ->  Bitmap Index Scan on t_a
//!                 Index Cond: (a = 1)
//!           ->  Bitmap Index Scan on t_b
//!                 Index Cond: (b = 2)
//! ```

use trunkline_sql::SqlError;

use super::describe::Describer;
use super::index_conditions::all_of;
use super::instrument::Measured;
use super::node::{Detail, PlanNode, Value};
use super::scan::stream_details;
use crate::access_path::{BitmapNode, IndexSearch, PathKind};
use crate::scan::{IndexCounts, ScanCounts, ScanExec};

impl Describer<'_> {
    /// Adds the conditions of a scan through indexes. `keys` are columns of an index that it is searched
    /// for, and the values of the outer rows.
    pub(super) fn index_details(
        &self,
        node: &mut PlanNode,
        scan: &ScanExec,
        alias: &str,
        keys: &[(usize, String)],
    ) -> Result<(), SqlError> {
        match &scan.path().kind {
            PathKind::Sequential => {}
            // A whole index is scanned for its order, or instead of its table.
            PathKind::Index(search) | PathKind::IndexOnly(search)
                if search.conditions.is_empty() && keys.is_empty() => {}
            PathKind::Index(search) | PathKind::IndexOnly(search) => {
                let (table, expressions) = (scan.access().table(), &self.expressions);
                let texts = expressions.index_conditions(search, table, alias, keys)?;
                node.push(Detail::text("Index Cond", all_of(&texts)));
            }
            PathKind::Bitmap(bitmap) => {
                let text = self.bitmap_condition(bitmap, scan, alias)?;
                node.push(Detail::text("Recheck Cond", text));
            }
        }
        Ok(())
    }

    /// Adds the nodes that make a bitmap, and what its pages were.
    pub(super) fn bitmap_inputs(
        &self,
        node: &mut PlanNode,
        scan: &ScanExec,
        alias: &str,
        sum: &ScanCounts,
    ) -> Result<(), SqlError> {
        let PathKind::Bitmap(bitmap) = &scan.path().kind else { return Ok(()) };
        if self.options.analyze {
            let (exact, lossy) = (sum.exact, sum.lossy);
            let mut line = String::new();
            for (label, count) in [("exact", exact), ("lossy", lossy)] {
                if count > 0 {
                    line.push_str(&format!(" {label}={count}"));
                }
            }
            node.push(Detail {
                line: (!line.is_empty()).then(|| format!("Heap Blocks:{line}")),
                members: vec![
                    ("Exact Heap Blocks", Value::count(exact)),
                    ("Lossy Heap Blocks", Value::count(lossy)),
                ],
            });
        }
        let mut counts = sum.indexes.iter();
        let mut input = self.bitmap_node(bitmap, scan, alias, &mut counts)?;
        input.relationship = Some("Outer");
        node.inputs.push(input);
        Ok(())
    }

    fn bitmap_node<'c>(
        &self,
        bitmap: &BitmapNode,
        scan: &ScanExec,
        alias: &str,
        counts: &mut impl Iterator<Item = &'c IndexCounts>,
    ) -> Result<PlanNode, SqlError> {
        let (name, parts) = match bitmap {
            BitmapNode::Index(search) => {
                let counted = counts.next().copied().unwrap_or_default();
                return self.bitmap_search(search, scan, alias, &counted);
            }
            BitmapNode::And(parts) => ("BitmapAnd", parts),
            BitmapNode::Or(parts) => ("BitmapOr", parts),
        };
        let mut node = PlanNode::new(name);
        let mut measured = Measured::default();
        for part in parts {
            let mut input = self.bitmap_node(part, scan, alias, counts)?;
            input.relationship = Some("Member");
            if let Some(part) = &input.measured {
                measured.loops = measured.loops.max(part.loops);
                measured.total += part.total;
                measured.first += part.total;
            }
            node.inputs.push(input);
        }
        node.measured = self.options.analyze.then_some(measured);
        Ok(node)
    }

    fn bitmap_search(
        &self,
        search: &IndexSearch,
        scan: &ScanExec,
        alias: &str,
        counts: &IndexCounts,
    ) -> Result<PlanNode, SqlError> {
        let mut node = PlanNode::new("Bitmap Index Scan");
        let index = self.expressions.printer.quoted(&search.index.name);
        node.title = format!("Bitmap Index Scan on {index}");
        node.kind.push(("Index Name", Value::Text(search.index.name.clone())));
        node.push(Detail::text("Index Cond", self.index_condition(search, scan, alias)?));
        if self.options.costs {
            node.estimate = Some((search.entries.round() as u64, 0));
        }
        if self.options.analyze {
            node.measured = Some(Measured {
                loops: counts.loops,
                rows: counts.entries,
                first: counts.time,
                total: counts.time,
            });
            if self.options.io && counts.loops > 0 {
                node.details.extend(stream_details(&counts.streams));
            }
            node.buffers = Some(counts.buffers);
        }
        Ok(node)
    }

    fn index_condition(
        &self,
        search: &IndexSearch,
        scan: &ScanExec,
        alias: &str,
    ) -> Result<String, SqlError> {
        Ok(all_of(&self.index_conditions(search, scan, alias)?))
    }

    fn index_conditions(
        &self,
        search: &IndexSearch,
        scan: &ScanExec,
        alias: &str,
    ) -> Result<Vec<String>, SqlError> {
        self.expressions.index_conditions(search, scan.access().table(), alias, &[])
    }

    /// The conditions of a whole bitmap.
    fn bitmap_condition(
        &self,
        bitmap: &BitmapNode,
        scan: &ScanExec,
        alias: &str,
    ) -> Result<String, SqlError> {
        match bitmap {
            BitmapNode::Index(search) => self.index_condition(search, scan, alias),
            BitmapNode::And(parts) => {
                // As in PostgreSQL, the conditions of all indexes are one list.
                let mut texts = Vec::new();
                for part in parts {
                    match part {
                        BitmapNode::Index(search) => {
                            texts.extend(self.index_conditions(search, scan, alias)?);
                        }
                        other => texts.push(self.bitmap_condition(other, scan, alias)?),
                    }
                }
                Ok(all_of(&texts))
            }
            BitmapNode::Or(parts) => {
                let texts = parts.iter().map(|part| self.bitmap_condition(part, scan, alias));
                let texts = texts.collect::<Result<Vec<_>, SqlError>>()?;
                Ok(format!("({})", texts.join(" OR ")))
            }
        }
    }
}
