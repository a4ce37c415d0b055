//! A node of a plan as it is shown, in all formats.

use std::time::Duration;

use trunkline_engine::pool::Tally;

use super::instrument::Measured;

/// A value of a property.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Value {
    /// A text.
    Text(String),
    /// A number as it is printed.
    Number(String),
    /// True or false.
    Bool(bool),
    /// Several texts.
    List(Vec<String>),
}

impl Value {
    /// A count.
    pub(super) fn count(number: u64) -> Self {
        Self::Number(number.to_string())
    }

    /// A number with this many digits after the point.
    pub(super) fn decimal(number: f64, digits: usize) -> Self {
        Self::Number(format!("{number:.digits$}"))
    }

    /// Milliseconds.
    pub(super) fn millis(time: Duration) -> Self {
        Self::decimal(millis(time), 3)
    }
}

/// A duration in milliseconds.
pub(super) fn millis(time: Duration) -> f64 {
    time.as_nanos() as f64 / 1e6
}

/// A property of a node: a line of text, and members of a JSON object.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Detail {
    /// The line; `None` if text doesn't show it.
    pub(crate) line: Option<String>,
    /// The members.
    pub(crate) members: Vec<(&'static str, Value)>,
}

impl Detail {
    /// A property that is the same in all formats.
    pub(super) fn text(label: &'static str, text: impl Into<String>) -> Self {
        let text = text.into();
        Self { line: Some(format!("{label}: {text}")), members: vec![(label, Value::Text(text))] }
    }

    /// Texts, between commas.
    pub(super) fn list(label: &'static str, texts: Vec<String>) -> Self {
        Self {
            line: Some(format!("{label}: {}", texts.join(", "))),
            members: vec![(label, Value::List(texts))],
        }
    }

    /// A count.
    pub(super) fn count(label: &'static str, number: u64) -> Self {
        Self {
            line: Some(format!("{label}: {number}")),
            members: vec![(label, Value::count(number))],
        }
    }

    /// What text doesn't show.
    pub(super) fn members(members: Vec<(&'static str, Value)>) -> Self {
        Self { line: None, members }
    }
}

/// What a worker has done.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Worker {
    pub(crate) number: usize,
    pub(crate) measured: Measured,
    pub(crate) details: Vec<Detail>,
}

/// A node.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct PlanNode {
    /// What is printed above the node: `InitPlan 1`.
    pub(crate) subplan: Option<String>,
    /// Its relation to the node above: `Outer`.
    pub(crate) relationship: Option<&'static str>,
    /// The node as text names it: `Parallel Seq Scan on t`.
    pub(crate) title: String,
    /// What JSON has instead of the title.
    pub(crate) kind: Vec<(&'static str, Value)>,
    /// Estimated rows, and the width of one.
    pub(crate) estimate: Option<(u64, u64)>,
    /// What the node has done, over all workers; `None` without `ANALYZE`.
    pub(crate) measured: Option<Measured>,
    pub(crate) details: Vec<Detail>,
    /// Pages of the node itself, without those of its inputs.
    pub(crate) buffers: Option<Tally>,
    pub(crate) workers: Vec<Worker>,
    pub(crate) inputs: Vec<PlanNode>,
}

impl PlanNode {
    /// A node of this type.
    pub(super) fn new(node_type: &'static str) -> Self {
        let kind = vec![("Node Type", Value::Text(node_type.to_owned()))];
        Self { title: node_type.to_owned(), kind, ..Self::default() }
    }

    /// The same with an input.
    pub(super) fn over(mut self, mut input: PlanNode) -> Self {
        if input.relationship.is_none() {
            input.relationship = Some("Outer");
        }
        self.inputs.push(input);
        self
    }

    /// Pages of the node and of all nodes below.
    pub(super) fn all_buffers(&self) -> Tally {
        let mut all = self.buffers.unwrap_or_default();
        self.inputs.iter().for_each(|input| all.add(&input.all_buffers()));
        all
    }

    /// Adds a detail.
    pub(super) fn push(&mut self, detail: Detail) {
        self.details.push(detail);
    }
}

/// What is printed below the plan.
#[derive(Debug, Clone, Default)]
pub(crate) struct Summary {
    /// Settings that aren't the defaults.
    pub(crate) settings: Option<Vec<(String, String)>>,
    pub(crate) planning: Option<Duration>,
    pub(crate) execution: Option<Duration>,
}
