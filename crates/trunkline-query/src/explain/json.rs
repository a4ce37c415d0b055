//! A plan as JSON, in the layout of PostgreSQL.

use std::fmt::Write as _;

use super::node::{Detail, PlanNode, Summary, Value, millis};
use super::options::ExplainOptions;
use super::scan::buffer_details;
use super::text::mean_rows;

/// The document.
pub(crate) fn json_report(
    plan: &PlanNode,
    summary: &Summary,
    options: ExplainOptions,
    major: u32,
) -> String {
    let mut writer = Writer { text: String::new(), depth: 0, is_first: true, options, major };
    writer.open(None, '[');
    writer.open(None, '{');
    writer.node(Some("Plan"), plan);
    if let Some(settings) = summary.settings.as_ref().filter(|settings| !settings.is_empty()) {
        writer.open(Some("Settings"), '{');
        for (name, value) in settings {
            writer.member(name, &Value::Text(value.clone()));
        }
        writer.close('}');
    }
    if let Some(time) = summary.planning {
        writer.member("Planning Time", &Value::millis(time));
    }
    if options.analyze {
        writer.open(Some("Triggers"), '[');
        writer.close(']');
    }
    if let Some(time) = summary.execution {
        writer.member("Execution Time", &Value::millis(time));
    }
    writer.close('}');
    writer.close(']');
    writer.text
}

struct Writer {
    text: String,
    depth: usize,
    /// Nothing was written into the current object or array.
    is_first: bool,
    options: ExplainOptions,
    major: u32,
}

impl Writer {
    /// Starts a line for a value.
    fn begin(&mut self, name: Option<&str>) {
        if !self.is_first {
            self.text.push(',');
        }
        self.is_first = false;
        if !self.text.is_empty() {
            self.text.push('\n');
        }
        self.indent();
        if let Some(name) = name {
            quote(name, &mut self.text);
            self.text.push_str(": ");
        }
    }

    fn indent(&mut self) {
        self.text.extend(std::iter::repeat_n("  ", self.depth));
    }

    fn open(&mut self, name: Option<&str>, bracket: char) {
        self.begin(name);
        self.text.push(bracket);
        self.depth += 1;
        self.is_first = true;
    }

    fn close(&mut self, bracket: char) {
        self.depth -= 1;
        self.text.push('\n');
        self.indent();
        self.text.push(bracket);
        self.is_first = false;
    }

    fn member(&mut self, name: &str, value: &Value) {
        self.begin(Some(name));
        match value {
            Value::Text(text) => quote(text, &mut self.text),
            Value::Number(text) => self.text.push_str(text),
            Value::Bool(value) => self.text.push_str(if *value { "true" } else { "false" }),
            Value::List(texts) => {
                self.text.push('[');
                for (at, text) in texts.iter().enumerate() {
                    if at > 0 {
                        self.text.push_str(", ");
                    }
                    quote(text, &mut self.text);
                }
                self.text.push(']');
            }
        }
    }

    fn details(&mut self, details: &[Detail]) {
        for (name, value) in details.iter().flat_map(|detail| &detail.members) {
            self.member(name, value);
        }
    }

    fn measured(&mut self, measured: &super::instrument::Measured) {
        let loops = measured.loops;
        if self.options.timing {
            let mean = |time| Value::decimal(millis(time) / loops.max(1) as f64, 3);
            self.member("Actual Startup Time", &mean(measured.first));
            self.member("Actual Total Time", &mean(measured.total));
        }
        let rows = mean_rows(measured.rows, loops, self.major);
        self.member("Actual Rows", &Value::Number(rows));
        self.member("Actual Loops", &Value::count(loops));
    }

    fn node(&mut self, name: Option<&str>, node: &PlanNode) {
        self.open(name, '{');
        for (name, value) in &node.kind {
            self.member(name, value);
        }
        if let Some(relationship) = node.relationship {
            self.member("Parent Relationship", &Value::Text(relationship.to_owned()));
        }
        if let Some(subplan) = &node.subplan {
            self.member("Subplan Name", &Value::Text(subplan.clone()));
        }
        if !node.kind.iter().any(|(name, _)| *name == "Parallel Aware") {
            self.member("Parallel Aware", &Value::Bool(false));
        }
        self.member("Async Capable", &Value::Bool(false));
        if let Some((rows, width)) = node.estimate {
            self.member("Plan Rows", &Value::count(rows));
            self.member("Plan Width", &Value::count(width));
        }
        if let Some(measured) = &node.measured {
            self.measured(measured);
        }
        if self.major >= 18 {
            self.member("Disabled", &Value::Bool(false));
        }
        self.details(&node.details);
        if self.options.buffers && self.options.analyze {
            self.details(&buffer_details(&node.all_buffers(), self.options.timing));
        }
        if self.options.verbose && !node.workers.is_empty() {
            self.open(Some("Workers"), '[');
            for worker in &node.workers {
                self.open(None, '{');
                self.member("Worker Number", &Value::count(worker.number as u64));
                self.measured(&worker.measured);
                self.details(&worker.details);
                self.close('}');
            }
            self.close(']');
        }
        if !node.inputs.is_empty() {
            self.open(Some("Plans"), '[');
            node.inputs.iter().for_each(|input| self.node(None, input));
            self.close(']');
        }
        self.close('}');
    }
}

/// Writes a text as a JSON string.
fn quote(text: &str, out: &mut String) {
    out.push('"');
    for char in text.chars() {
        match char {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            char if char < ' ' => {
                // Writing to a string can't fail.
                let _ = write!(out, "\\u{:04x}", u32::from(char));
            }
            char => out.push(char),
        }
    }
    out.push('"');
}
