//! **Session**: a connection to the server, the statements that are measured, and the counters that
//! show what they did.

use std::path::Path;

use postgres::{Client, NoTls, SimpleQueryMessage};

use super::error::ServerError;
use super::method::Setting;
use crate::access::Scan;

/// The superuser and the database of a cluster that we have created.
pub(super) const NAME: &str = "postgres";

/// A connection.
pub(super) struct Session(Client);

/// What the server has counted for a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Blocks {
    /// Blocks requested from the buffers.
    pub(super) fetched: i64,
    /// Of these, found there.
    pub(super) hits: i64,
}

/// The nodes of a plan that are forced for a scan, below the aggregate.
fn nodes(scan: Scan) -> &'static [&'static str] {
    match scan {
        Scan::Sequential => &["Seq Scan"],
        Scan::Bitmap => &["Bitmap Heap Scan", "Bitmap Index Scan"],
        Scan::Index => &["Index Scan"],
    }
}

/// The settings that force a scan.
pub(super) fn force(scan: Scan) -> String {
    let on = |this: Scan| if scan == this { "on" } else { "off" };
    format!(
        "SET enable_seqscan = {}; SET enable_bitmapscan = {}; SET enable_indexscan = {}; \
         SET enable_indexonlyscan = off; SET enable_tidscan = off",
        on(Scan::Sequential),
        on(Scan::Bitmap),
        on(Scan::Index)
    )
}

/// Lets the planner choose again.
const RESET: &str = "RESET enable_seqscan; RESET enable_bitmapscan; RESET enable_indexscan; \
                     RESET enable_indexonlyscan; RESET enable_tidscan";

impl Session {
    /// Connects through the socket in `directory`.
    pub(super) fn connect(directory: &Path) -> Result<Self, postgres::Error> {
        let mut config = postgres::Config::new();
        config.host_path(directory).port(5432).user(NAME).dbname(NAME);
        config.application_name("trunkline bench");
        config.connect(NoTls).map(Self)
    }

    /// Runs statements without a result.
    pub(super) fn execute(&mut self, sql: &str) -> Result<(), ServerError> {
        self.0.batch_execute(sql).map_err(|error| ServerError::statement(sql, &error))
    }

    /// The first row of a result, as texts.
    pub(super) fn row(&mut self, sql: &str) -> Result<Vec<String>, ServerError> {
        let rows = self.rows(sql)?;
        rows.into_iter().next().ok_or_else(|| ServerError::Statement {
            statement: sql.to_owned(),
            reason: "no row".to_owned(),
        })
    }

    /// All rows of a result, as texts. A null is empty.
    pub(super) fn rows(&mut self, sql: &str) -> Result<Vec<Vec<String>>, ServerError> {
        let messages =
            self.0.simple_query(sql).map_err(|error| ServerError::statement(sql, &error))?;
        let rows = messages.into_iter().filter_map(|message| match message {
            SimpleQueryMessage::Row(row) => {
                let cell = |at| row.get(at).unwrap_or_default().to_owned();
                Some((0..row.len()).map(cell).collect())
            }
            _ => None,
        });
        Ok(rows.collect())
    }

    /// The numbers in the first row.
    pub(super) fn numbers<const N: usize>(&mut self, sql: &str) -> Result<[i64; N], ServerError> {
        let row = self.row(sql)?;
        let mut numbers = [0; N];
        for (number, text) in numbers.iter_mut().zip(&row) {
            *number = text.parse().map_err(|_| ServerError::Statement {
                statement: sql.to_owned(),
                reason: format!("returned \"{text}\", expected a number"),
            })?;
        }
        Ok(numbers)
    }

    /// The texts of one column, passed to `each` while they arrive.
    pub(super) fn column(
        &mut self,
        sql: &str,
        mut each: impl FnMut(&str) -> Result<(), ServerError>,
    ) -> Result<(), ServerError> {
        use postgres::fallible_iterator::FallibleIterator;
        let fail = |error| ServerError::statement(sql, &error);
        let no_parameters: [&str; 0] = [];
        let mut rows = self.0.query_raw(sql, no_parameters).map_err(fail)?;
        while let Some(row) = rows.next().map_err(fail)? {
            each(row.try_get(0).map_err(fail)?)?;
        }
        Ok(())
    }

    /// Prepares `query` as the statement `q`, and fails if its plan isn't the forced scan. A
    /// statement without parameters is planned once, so this is the plan that is run.
    pub(super) fn prepare_scan(&mut self, query: &str, scan: Scan) -> Result<(), ServerError> {
        self.execute(&format!("DEALLOCATE ALL; {}; PREPARE q AS {query}", force(scan)))?;
        let plan = self.row("EXPLAIN (FORMAT JSON, COSTS OFF) EXECUTE q")?.concat();
        let found = plan_nodes(&plan);
        if found == nodes(scan) {
            return Ok(());
        }
        let (found, expected) = (found.join(" over "), nodes(scan).join(" over "));
        Err(ServerError::Plan { found, expected })
    }

    /// Prepares `query` as the statement `q`, with any plan. Returns that plan's nodes.
    pub(super) fn prepare_planned(&mut self, query: &str) -> Result<String, ServerError> {
        self.execute(&format!("DEALLOCATE ALL; {RESET}; PREPARE q AS {query}"))?;
        let plan = self.row("EXPLAIN (FORMAT JSON, COSTS OFF) EXECUTE q")?.concat();
        Ok(plan_nodes(&plan).join(" over "))
    }

    /// The values of these settings that are in effect. Those that the server doesn't know are left
    /// out.
    pub(super) fn shown(&mut self, names: &[&str]) -> Result<Vec<Setting>, ServerError> {
        let names: Vec<String> =
            names.iter().map(|name| format!("'{}'", name.replace('\'', "''"))).collect();
        let sql = format!(
            "SELECT name, current_setting(name, true) AS value FROM unnest(ARRAY[{}]) AS name \
             WHERE current_setting(name, true) IS NOT NULL",
            names.join(", ")
        );
        let rows = self.rows(&sql)?.into_iter();
        Ok(rows.filter_map(|row| <[String; 2]>::try_from(row).ok().map(Into::into)).collect())
    }

    /// Fails if settings have other values than these.
    pub(super) fn expect_shown(&mut self, expected: &[Setting]) -> Result<(), ServerError> {
        let names: Vec<&str> = expected.iter().map(|one| one.0.as_str()).collect();
        if names.is_empty() {
            return Ok(());
        }
        let found = self.shown(&names)?;
        match expected.iter().zip(&found).find(|(expected, found)| expected != found) {
            Some((expected, found)) => Err(ServerError::Changed {
                name: expected.0.clone(),
                found: found.1.clone(),
                expected: expected.1.clone(),
            }),
            None => Ok(()),
        }
    }

    /// Runs the prepared statement. Returns its number.
    pub(super) fn run_prepared(&mut self) -> Result<i64, ServerError> {
        let [sum] = self.numbers("EXECUTE q")?;
        Ok(sum)
    }

    /// The counters of a table.
    pub(super) fn blocks(&mut self, table: u32) -> Result<Blocks, ServerError> {
        // A statement of its own: counters are passed on after its transaction.
        self.row("SELECT pg_stat_force_next_flush()")?;
        let sql =
            format!("SELECT pg_stat_get_blocks_fetched({table}), pg_stat_get_blocks_hit({table})");
        let [fetched, hits] = self.numbers(&sql)?;
        Ok(Blocks { fetched, hits })
    }
}

/// The types of a plan's nodes from top to bottom, without the aggregate.
fn plan_nodes(json: &str) -> Vec<String> {
    fn collect(plan: &serde_json::Value, found: &mut Vec<String>) {
        let kind = plan["Node Type"].as_str().unwrap_or("unknown");
        if kind != "Aggregate" {
            found.push(kind.to_owned());
        }
        for child in plan["Plans"].as_array().into_iter().flatten() {
            collect(child, found);
        }
    }
    let mut found = Vec::new();
    let plan: serde_json::Value = serde_json::from_str(json).unwrap_or_default();
    collect(&plan[0]["Plan"], &mut found);
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nodes_of_a_plan_are_named() {
        let plan = r#"[{"Plan": {"Node Type": "Aggregate", "Plans": [{"Node Type":
            "Bitmap Heap Scan", "Relation Name": "uniform", "Plans": [{"Node Type":
            "Bitmap Index Scan"}]}]}}]"#;
        assert_eq!(plan_nodes(plan), nodes(Scan::Bitmap));
        assert_ne!(plan_nodes(plan), nodes(Scan::Index));
        assert_eq!(plan_nodes("[]"), ["unknown"]);
    }

    #[test]
    fn one_scan_is_enabled() {
        for (scan, expected) in
            [(Scan::Sequential, "enable_seqscan = on"), (Scan::Index, "enable_indexscan = on")]
        {
            let text = force(scan);
            assert!(text.contains(expected) && text.matches(" = on").count() == 1, "{text}");
            // All of them are reset for a plan that the planner chooses.
            for name in text.split("; ").filter_map(|it| it.strip_prefix("SET ")?.split(' ').next())
            {
                assert!(RESET.contains(&format!("RESET {name}")), "{name}");
            }
        }
    }
}
