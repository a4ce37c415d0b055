//! A plan as lines of text.
//!
//! ```text
//!   Sort (actual time=0.020..0.021 rows=3.00 loops=1)
//!     Sort Key: a
//!     ->  Seq Scan on t (actual time=0.010..0.012 rows=3.00 loops=1)
//!           Filter: (a > 0)
//! ```

use std::time::Duration;

use super::instrument::Measured;
use super::node::{PlanNode, Summary, millis};
use super::options::ExplainOptions;
use super::scan::buffer_details;

/// The lines of a plan. `major` is the version whose format they have.
pub(crate) fn text_report(
    plan: &PlanNode,
    summary: &Summary,
    options: ExplainOptions,
    major: u32,
) -> Vec<String> {
    let mut report = Report { lines: Vec::new(), options, major };
    report.node(plan, 0);
    if let Some(settings) = summary.settings.as_ref().filter(|settings| !settings.is_empty()) {
        let settings = settings.iter().map(|(name, value)| format!("{name} = '{value}'"));
        report.lines.push(format!("Settings: {}", settings.collect::<Vec<_>>().join(", ")));
    }
    let times = [("Planning", summary.planning), ("Execution", summary.execution)];
    for (name, time) in times {
        if let Some(time) = time {
            report.lines.push(format!("{name} Time: {:.3} ms", millis(time)));
        }
    }
    report.lines
}

struct Report {
    lines: Vec<String>,
    options: ExplainOptions,
    major: u32,
}

impl Report {
    fn push(&mut self, indent: usize, text: &str) {
        self.lines.push(format!("{:width$}{text}", "", width = 2 * indent));
    }

    fn node(&mut self, node: &PlanNode, indent: usize) {
        let mut indent = indent;
        if let Some(subplan) = &node.subplan {
            self.push(indent, subplan);
            indent += 1;
        }
        let mut line = node.title.clone();
        if let Some((rows, width)) = node.estimate {
            line.push_str(&format!("  (rows={rows} width={width})"));
        }
        if let Some(measured) = &node.measured {
            line.push(' ');
            line.push_str(&self.actual(measured));
        }
        if indent > 0 {
            self.push(indent, &format!("->  {line}"));
            indent += 2;
        } else {
            self.push(indent, &line);
        }
        indent += 1;
        for detail in node.details.iter().filter_map(|detail| detail.line.as_ref()) {
            self.push(indent, detail);
        }
        if self.options.buffers && self.options.analyze {
            let details = buffer_details(&node.all_buffers(), self.options.timing);
            for line in details.into_iter().filter_map(|detail| detail.line) {
                self.push(indent, &line);
            }
        }
        if self.options.verbose {
            for worker in &node.workers {
                let actual = self.actual(&worker.measured);
                let actual = actual.trim_start_matches('(').trim_end_matches(')');
                self.push(indent, &format!("Worker {}:  {actual}", worker.number));
                for line in worker.details.iter().filter_map(|detail| detail.line.as_ref()) {
                    self.push(indent + 1, line);
                }
            }
        }
        node.inputs.iter().for_each(|input| self.node(input, indent));
    }

    /// What was measured, as means over the executions.
    fn actual(&self, measured: &Measured) -> String {
        let Measured { loops, rows, first, total } = *measured;
        if loops == 0 {
            return "(never executed)".to_owned();
        }
        let rows = self.mean_rows(rows, loops);
        let mean = |time: Duration| millis(time) / loops as f64;
        match self.options.timing {
            true => format!(
                "(actual time={:.3}..{:.3} rows={rows} loops={loops})",
                mean(first),
                mean(total)
            ),
            false => format!("(actual rows={rows} loops={loops})"),
        }
    }

    fn mean_rows(&self, rows: u64, loops: u64) -> String {
        mean_rows(rows, loops, self.major)
    }
}

/// Rows of one execution. Versions before 18 round them.
pub(super) fn mean_rows(rows: u64, loops: u64, major: u32) -> String {
    let mean = rows as f64 / loops.max(1) as f64;
    if major >= 18 { format!("{mean:.2}") } else { format!("{mean:.0}") }
}
