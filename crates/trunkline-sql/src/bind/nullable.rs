//! Which items of `FROM` outer joins make nullable, and the column that shows whether there is a row of one; see
//! [`super::presence`].

use super::binder::Binder;
use super::expression::BOOL;
use super::scope::{Presence, ScopeTable};
use crate::bound::{Expr, ExprKind, JoinKind, Relation};

/// The system column that shows whether there is a row.
const INDICATOR: &str = "tableoid";

impl Binder<'_> {
    /// Marks the sides of a join whose rows may be missing in its result.
    pub(super) fn mark_nullable(
        &mut self,
        kind: JoinKind,
        left: (&mut Relation, &mut [ScopeTable]),
        right: (&mut Relation, &mut [ScopeTable]),
    ) {
        if matches!(kind, JoinKind::Right | JoinKind::Full) {
            self.mark(left.0, left.1);
        }
        if matches!(kind, JoinKind::Left | JoinKind::Full) {
            self.mark(right.0, right.1);
        }
    }

    fn mark(&mut self, relation: &mut Relation, tables: &mut [ScopeTable]) {
        let mut marker = None;
        for table in tables {
            if !matches!(table.presence, Presence::Always) {
                continue;
            }
            let mut system = table.columns.iter().filter(|column| column.is_system);
            let indicator = system.find(|column| &*column.name == INDICATOR);
            table.presence = match indicator {
                Some(column) => Presence::IfNotNull(column.value.clone()),
                None => Presence::Marked(*marker.get_or_insert_with(|| self.column("", BOOL))),
            };
        }
        let Some(marker) = marker else { return };
        self.markers.add(marker);
        let input = Box::new(std::mem::replace(relation, Relation::Unit));
        let present = Expr::new(ExprKind::Constant(Some(Box::new([1]))), BOOL);
        *relation = Relation::Project { input, columns: vec![(marker, present)] };
    }

    /// What is null if the table has no row; `None` if it always has one.
    pub(super) fn indicator(&mut self, presence: &Presence) -> Option<Expr> {
        match presence {
            Presence::Always => None,
            Presence::IfNotNull(column) => Some(column.clone()),
            Presence::Marked(marker) => {
                self.markers.need(*marker);
                Some(Expr::new(ExprKind::Column(*marker), BOOL))
            }
        }
    }
}
