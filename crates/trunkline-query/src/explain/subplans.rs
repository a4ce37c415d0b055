//! The numbers of subplans, in the order in which they are shown.

use std::sync::Arc;

use datafusion::physical_plan::ExecutionPlan;

use super::shown::Shown;
use crate::subplan::{SubplanExec, SubplanKind};

/// The subplans of a plan.
#[derive(Debug, Default)]
pub(super) struct Subplans {
    /// The numbers that lowering gave them, in order.
    numbers: Vec<u32>,
    /// Names as PostgreSQL has them from version 17.
    is_new: bool,
}

impl Subplans {
    pub(super) fn of(plan: &Arc<dyn ExecutionPlan>, major: u32) -> Self {
        let mut found = Self { numbers: Vec::new(), is_new: major >= 17 };
        found.collect(plan);
        found
    }

    fn collect(&mut self, plan: &Arc<dyn ExecutionPlan>) {
        if let Some(subplan) = plan.downcast_ref::<SubplanExec>() {
            if !matches!(subplan.kind(), SubplanKind::Rows { .. })
                && !self.numbers.contains(&subplan.number())
            {
                self.numbers.push(subplan.number());
            }
            self.collect(subplan.inner_plan());
        }
        plan.children().into_iter().for_each(|child| self.collect(child));
    }

    fn number(&self, subplan: &SubplanExec) -> usize {
        let place = self.numbers.iter().position(|number| *number == subplan.number());
        place.map_or(0, |place| place + 1)
    }

    /// What is printed above the plan of a subplan.
    pub(super) fn title(&self, subplan: &SubplanExec) -> String {
        let number = self.number(subplan);
        match (subplan.is_correlated(), self.is_new) {
            (true, _) => format!("SubPlan {number}"),
            (false, true) => format!("InitPlan {number}"),
            (false, false) => format!("InitPlan {number} (returns ${})", number - 1),
        }
    }

    /// A column that a subplan adds.
    pub(super) fn value(&self, subplan: &SubplanExec, column: usize) -> Shown {
        let number = self.number(subplan);
        Shown::computed(match (subplan.is_correlated(), self.is_new) {
            (true, true) if subplan.kind() == SubplanKind::Exists => {
                format!("EXISTS(SubPlan {number})")
            }
            (true, _) => format!("(SubPlan {number})"),
            (false, true) => format!("(InitPlan {number}).col{}", column + 1),
            (false, false) => format!("${}", number.saturating_sub(1)),
        })
    }
}
