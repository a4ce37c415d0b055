//! Chooses how a bitmap is made: of which indexes, combined with AND and OR (`indxpath.c`).

use std::sync::Arc;

use super::clause::Clause;
use super::cost::{Cost, TableSize, bitmap_pages};
use super::index_search::{EstimatedSearch, Searches};
use super::path::BitmapNode;

/// The most indexes that are combined with AND.
const COMBINED_MAX: usize = 8;

/// The bytes that a bitmap needs for a page; see the engine's `tid_bitmap`.
const BITMAP_PAGE_BYTES: f64 = 98.0;

/// A bitmap with its estimates.
#[derive(Debug, Clone)]
pub(super) struct EstimatedBitmap {
    pub(super) node: BitmapNode,
    cost: Cost,
    selectivity: f64,
    /// The part of the table that its rows are in.
    window: f64,
    /// The filters that the bitmap covers.
    pub(super) covered: Vec<usize>,
    used: Vec<usize>,
}

impl Searches<'_> {
    /// The cheapest bitmap.
    pub(super) fn bitmap(
        &self,
        found: &[EstimatedSearch],
        clauses: &[Clause],
    ) -> Option<EstimatedBitmap> {
        let mut all: Vec<EstimatedBitmap> =
            found.iter().map(|found| self.of_search(found)).collect();
        for (number, clause) in clauses.iter().enumerate() {
            let Clause::Any(arms) = clause else { continue };
            if let Some((bitmap, is_exact)) = self.any(arms) {
                let covered = if is_exact { vec![number] } else { Vec::new() };
                all.push(EstimatedBitmap { used: vec![number], covered, ..bitmap });
            }
        }
        // As in `choose_bitmap_and`: each index that has conditions of its own is added if that is
        // cheaper. Begin with every one of them.
        all.sort_by(|one, other| {
            let key = |bitmap: &EstimatedBitmap| (bitmap.cost.total, bitmap.selectivity);
            key(one).partial_cmp(&key(other)).unwrap_or(std::cmp::Ordering::Equal)
        });
        let mut best: Option<(Cost, EstimatedBitmap)> = None;
        for first in 0..all.len().min(COMBINED_MAX) {
            let Some(mut combined) = all.get(first).cloned() else { break };
            let mut cost = self.bitmap_cost(&combined, 1.0);
            for other in all.iter().skip(first + 1).take(COMBINED_MAX) {
                if other.used.iter().any(|number| combined.used.contains(number)) {
                    continue;
                }
                let both = self.and(&combined, other);
                let with = self.bitmap_cost(&both, 1.0);
                if with.is_below(&cost) {
                    (combined, cost) = (both, with);
                }
            }
            if best.as_ref().is_none_or(|(known, _)| cost.is_below(known)) {
                best = Some((cost, combined));
            }
        }
        best.map(|(_, bitmap)| bitmap)
    }

    /// The part of the table that the rows of a search are in; all of it, as in PostgreSQL, if pages
    /// cost what the settings say.
    pub(super) fn window(&self, found: &EstimatedSearch) -> f64 {
        let is_found = self.table.costs.found().is_some();
        if is_found { found.size.window(found.size.selectivity) } else { 1.0 }
    }

    fn of_search(&self, found: &EstimatedSearch) -> EstimatedBitmap {
        let added = self.settings.bitmap_row() * found.cost.rows;
        let total = found.cost.cost.total + added;
        EstimatedBitmap {
            node: BitmapNode::Index(Arc::clone(&found.search)),
            cost: Cost { total, startup: total, disabled: 0 },
            selectivity: found.size.selectivity,
            window: self.window(found),
            covered: found.conditions.covered.clone(),
            used: found.conditions.used.clone(),
        }
    }

    fn and(&self, one: &EstimatedBitmap, other: &EstimatedBitmap) -> EstimatedBitmap {
        let mut parts = match &one.node {
            BitmapNode::And(parts) => parts.clone(),
            node => vec![node.clone()],
        };
        parts.push(other.node.clone());
        // cost_bitmap_and_node: a hundred operators for each input but the first.
        let total = one.cost.total + other.cost.total + 100.0 * self.settings.cpu_operator_cost;
        let concat = |one: &[usize], other: &[usize]| [one, other].concat();
        EstimatedBitmap {
            node: BitmapNode::And(parts),
            cost: Cost { total, startup: total, disabled: 0 },
            selectivity: one.selectivity * other.selectivity,
            window: one.window.min(other.window),
            covered: concat(&one.covered, &other.covered),
            used: concat(&one.used, &other.used),
        }
    }

    /// The bitmap of the rows for which one of the arms is true, and whether it says as much as they do.
    fn any(&self, arms: &[Clause]) -> Option<(EstimatedBitmap, bool)> {
        let mut parts = Vec::with_capacity(arms.len());
        let (mut total, mut window, mut is_exact) = (0.0, 0.0, true);
        for arm in arms {
            let arm: Vec<Clause> = arm.conjuncts().into_iter().cloned().collect();
            // Each arm must have a bitmap, or rows would be missing.
            let bitmap = self.bitmap(&self.all(&arm), &arm)?;
            is_exact &= (0..arm.len()).all(|part| bitmap.covered.contains(&part));
            total += bitmap.cost.total;
            window += bitmap.window;
            parts.push(bitmap.node);
        }
        total += 100.0 * self.settings.cpu_operator_cost * (parts.len() as f64 - 1.0).max(0.0);
        let bitmap = EstimatedBitmap {
            node: BitmapNode::Or(parts),
            cost: Cost { total, startup: total, disabled: 0 },
            selectivity: self.estimates.any(arms),
            window: f64::min(window, 1.0),
            covered: Vec::new(),
            used: Vec::new(),
        };
        Some((bitmap, is_exact))
    }

    /// The costs of a scan of this part of a bitmap's rows.
    pub(super) fn bitmap_cost(&self, bitmap: &EstimatedBitmap, fraction: f64) -> Cost {
        let table = &self.table;
        let rows = (bitmap.selectivity * table.rows).max(1.0);
        let room = self.work_mem as f64 / BITMAP_PAGE_BYTES;
        let pages = bitmap_pages(&TableSize { pages: table.pages * bitmap.window, ..*table }, rows);
        // About half of the pages become lossy at a time.
        let lossy = if pages > room { (1.0 - room / 2.0 / pages).clamp(0.0, 1.0) } else { 0.0 };
        let found = (rows, bitmap.window);
        self.settings.bitmap_scan(table, bitmap.cost, found, lossy, fraction)
    }
}
