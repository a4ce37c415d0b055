//! **The choice of access paths**: is the path that is chosen one of the fastest?
//!
//! Forty predicates on the tables `uniform` and `linear_10` select 0.001 to 100 % of the rows, with and
//! without `LIMIT`. Each is executed with every path, which settings force, first with cold caches and then
//! with both the table and its index in the pool, and each time the planner says which path it would choose.
//! A choice is right if its path takes at most half as long again as the fastest one, or 5 ms longer.
//!
//! ```text
//!   drop files  ─▶ trunkline query:  EXPLAIN                     the choice with cold caches
//!                                    EXPLAIN ANALYZE, forced     the time with cold caches
//!                                    pg_prewarm of both
//!                                    EXPLAIN                     the choice with warm caches
//!                                    EXPLAIN ANALYZE, forced     the time with warm caches, the median of three
//! ```
//! The program ends after each of them, so the pool is empty each time.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;

use super::record::output;
use crate::failure::Failure;
use crate::invocation::Invocation;
use crate::tree::Checkout;

/// Percent of the rows.
const SELECTED: [f64; 10] = [0.001, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0];

const TABLES: [&str; 2] = ["uniform", "linear_10"];

/// The settings that force each path, with what its plan has.
const PATHS: [(&str, &str, [&str; 2]); 3] = [
    ("sequential", "Seq Scan", ["enable_indexscan", "enable_bitmapscan"]),
    ("index", "Index Scan", ["enable_seqscan", "enable_bitmapscan"]),
    ("bitmap", "Bitmap Heap Scan", ["enable_seqscan", "enable_indexscan"]),
];

/// Files of at least this many bytes are dropped from the page cache.
const LARGE: u64 = 8 << 20;

/// A choice is right if its time is at most this much longer than the shortest.
const FACTOR: f64 = 1.5;
const EQUAL_MS: f64 = 5.0;

/// The part of the choices that must be right.
const RIGHT_MIN: f64 = 0.95;

/// A predicate with what it selects.
#[derive(Debug, Clone)]
struct Predicate {
    table: &'static str,
    percent: f64,
    limit: Option<u32>,
}

/// The times of all paths in one state of the caches, and the path that was chosen.
#[derive(Debug, Clone, Default, PartialEq)]
struct Times {
    ms: [f64; PATHS.len()],
    chosen: usize,
}

impl Predicate {
    fn all() -> Vec<Self> {
        let mut all = Vec::new();
        for table in TABLES {
            for percent in SELECTED {
                all.extend([None, Some(100)].map(|limit| Self { table, percent, limit }));
            }
        }
        all
    }

    /// The values of `a` are 0 to 1,000,000; those of `linear_10` exceed that by 50,000 on each side.
    fn sql(&self) -> String {
        let Self { table, percent, limit } = self;
        let half = (percent * 5000.0).round();
        let (low, high) = match percent {
            100.0.. => (-1e6, 2e6),
            _ => (500_000.0 - half, 500_000.0 + half - 1.0),
        };
        match limit {
            None => {
                format!("select count(*), sum(b) from {table} where a between {low} and {high}")
            }
            Some(limit) => {
                format!("select b, pad from {table} where a between {low} and {high} limit {limit}")
            }
        }
    }
}

impl Times {
    fn fastest(&self) -> f64 {
        self.ms.iter().copied().fold(f64::INFINITY, f64::min)
    }

    fn of_choice(&self) -> f64 {
        self.ms.get(self.chosen).copied().unwrap_or(f64::INFINITY)
    }

    fn is_right(&self) -> bool {
        let (chosen, fastest) = (self.of_choice(), self.fastest());
        chosen <= FACTOR * fastest || chosen <= fastest + EQUAL_MS
    }
}

/// Measures the choices in all of these places, such as `disk=/srv/18/main`, which are clusters with the
/// two tables in a database `bench`.
pub(super) fn run(checkout: &Checkout, places: &[&str]) -> Result<String, Failure> {
    let named: Option<Vec<(&str, &str)>> =
        places.iter().map(|place| place.split_once('=')).collect();
    let Some(named) = named else {
        return Err(Failure::usage("soak choice: expected NAME=DIR"));
    };
    let build = "build --release -p trunkline --features trunkline/sql";
    checkout.cargo(build).run()?;
    let program = checkout.target.join("release/trunkline");
    let mut text = format!(
        "## Which access path is chosen\n\nTimes in ms of `select count(*), sum(b)` without and of \
         `select b, pad` with `LIMIT 100`, over tables of 2 million rows, forced by settings, \
         `shared_buffers = 1GB`, everything else the default. Commit {}. The path in bold was \
         chosen. A choice is right if its path takes at most {FACTOR} times as long as the fastest, \
         or {EQUAL_MS} ms longer. `cargo xtask soak choice`.\n",
        output(checkout, "git", "rev-parse --short=8 HEAD")?,
    );
    let (mut right, mut all) = (0_usize, 0_usize);
    let mut summary = Vec::new();
    for (name, dir) in named {
        let mut lines: [Vec<(Predicate, Times)>; 2] = Default::default();
        for predicate in Predicate::all() {
            let [cold, warm] =
                measure(checkout, (&program.display().to_string(), dir), &predicate)?;
            println!("{name}: {predicate:?}: cold {cold:?}, warm {warm:?}");
            let [colds, warms] = &mut lines;
            colds.push((predicate.clone(), cold));
            warms.push((predicate, warm));
        }
        for (state, lines) in ["cold", "warm"].into_iter().zip(&lines) {
            let good = lines.iter().filter(|(_, times)| times.is_right()).count();
            (right, all) = (right + good, all + lines.len());
            summary.push(format!("{name}, {state}: {good} of {}", lines.len()));
            table(&mut text, (name, state, good), lines);
        }
    }
    let folder = checkout.root.join("docs/benchmarks/soaks");
    fs::create_dir_all(&folder).map_err(|error| Failure::io(folder.display(), error))?;
    let file = folder.join("choice.md");
    fs::write(&file, text).map_err(|error| Failure::io(file.display(), error))?;
    let summary = summary.join("; ");
    match right as f64 >= RIGHT_MIN * all as f64 {
        true => Ok(format!("right choices: {summary}")),
        false => Err(Failure::new(format!("too few right choices: {summary}"))),
    }
}

/// The times with cold and with warm caches.
fn measure(
    checkout: &Checkout,
    (program, dir): (&str, &str),
    predicate: &Predicate,
) -> Result<[Times; 2], Failure> {
    let mut times: [Times; 2] = Default::default();
    for (number, (_, node, others)) in PATHS.into_iter().enumerate() {
        drop_caches(checkout, dir)?;
        let lines = explained(program, dir, predicate, others)?;
        let (cold, warm) = split(&lines);
        for (times, lines) in times.iter_mut().zip([cold, warm]) {
            let (chosen, ms) = read(lines, node)
                .map_err(|why| Failure::new(format!("{predicate:?}, {node}: {why}")))?;
            times.ms[number] = ms;
            // With cold caches, only the first execution has seen nothing but the catalogs.
            if number == 0 {
                times.chosen = chosen;
            }
        }
    }
    Ok(times)
}

/// Drops the large files of a cluster from the page cache. Programs and catalogs stay there: loading
/// them isn't what is measured.
fn drop_caches(checkout: &Checkout, dir: &str) -> Result<(), Failure> {
    let large = Path::new(dir).join("base");
    let databases = fs::read_dir(&large).map_err(|error| Failure::io(large.display(), error))?;
    for database in databases.flatten() {
        for file in fs::read_dir(database.path()).into_iter().flatten().flatten() {
            if file.metadata().is_ok_and(|metadata| metadata.len() >= LARGE) {
                let input = format!("if={}", file.path().display());
                let drop = "iflag=nocache count=0 status=none";
                Invocation::new(&checkout.root, "dd", drop).arg(input).capture()?;
            }
        }
    }
    Ok(())
}

/// What stands between the lines of the two states.
const WARM: &str = "warm";

/// The plans of the predicate.
fn explained(
    program: &str,
    dir: &str,
    predicate: &Predicate,
    others: [&str; 2],
) -> Result<Vec<String>, Failure> {
    let Predicate { table, .. } = predicate;
    let sql = predicate.sql();
    let set = |value: &str| {
        let sets = others.map(|name| format!("set {name} = {value};"));
        sets.join(" ")
    };
    let analyzed = format!("{} explain (analyze, timing off) {sql}; {}", set("off"), set("on"));
    let warm = format!("{analyzed} {analyzed} {analyzed}");
    let statements = format!(
        "explain (alternatives) {sql}; {analyzed} \
         select pg_prewarm('{table}'), pg_prewarm('{table}_a_idx'); select '{WARM}'; {analyzed} \
         explain (alternatives) {sql}; {warm}"
    );
    let arguments = ["query", "-D", dir, "-d", "bench", "-c", "shared_buffers=1GB", "-t"];
    let run = Command::new(program)
        .args(arguments)
        .args(["--format", "unaligned", &statements])
        .output()
        .map_err(|error| Failure::io(program, error))?;
    if !run.status.success() {
        let message = String::from_utf8_lossy(&run.stderr);
        return Err(Failure::new(format!("{statements}: {message}")));
    }
    let lines = String::from_utf8_lossy(&run.stdout);
    Ok(lines.lines().map(str::to_owned).collect())
}

fn split(lines: &[String]) -> (&[String], &[String]) {
    let at = lines.iter().position(|line| line == WARM).unwrap_or(lines.len());
    lines.split_at(at)
}

/// The path that was chosen, and the median of the times of the one that was forced.
fn read(lines: &[String], node: &str) -> Result<(usize, f64), String> {
    let mut plans = Vec::new();
    let mut times = Vec::new();
    for line in lines {
        if line.contains("Rejected Path") || line.contains("Bitmap Index Scan") {
            continue;
        }
        plans.extend(PATHS.iter().position(|(_, node, _)| line.contains(&format!("{node} "))));
        if let Some(text) = line.trim().strip_prefix("Execution Time: ") {
            let number = text.trim_end_matches(" ms").parse();
            times.push(number.map_err(|_| format!("not a time: {text}"))?);
        }
    }
    // The first execution with warm caches is not measured: it reads what the pages before it don't say.
    let (skipped, forced) = if times.len() > 1 { (1, 1) } else { (0, 0) };
    let chosen = plans.get(forced).copied().ok_or("no plan")?;
    let wanted = PATHS.iter().position(|(_, other, _)| *other == node);
    if plans.last().copied() != wanted {
        return Err("the path was not used".to_owned());
    }
    let mut times: Vec<f64> = times.into_iter().skip(skipped).collect();
    times.sort_by(f64::total_cmp);
    let median = times.get(times.len() / 2).copied().ok_or("no time")?;
    Ok((chosen, median))
}

fn table(
    text: &mut String,
    (name, state, good): (&str, &str, usize),
    lines: &[(Predicate, Times)],
) {
    let all = lines.len();
    let _ = write!(text, "\n**{name}, {state}**: {good} of {all} choices are right.\n\n");
    text.push_str("| Table | Rows | Limit | sequential | index | bitmap | Ratio |\n");
    text.push_str("|---|---|---|---|---|---|---|\n");
    for (Predicate { table, percent, limit }, times) in lines {
        let limit = limit.map_or("–".to_owned(), |limit| limit.to_string());
        let _ = write!(text, "| {table} | {percent} % | {limit} |");
        for (number, ms) in times.ms.iter().enumerate() {
            let bold = if number == times.chosen { "**" } else { "" };
            let _ = write!(text, " {bold}{ms:.1}{bold} |");
        }
        let ratio = times.of_choice() / times.fastest();
        let wrong = if times.is_right() { "" } else { ", wrong" };
        let _ = writeln!(text, " {ratio:.2}{wrong} |");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<String> {
        text.lines().map(str::to_owned).collect()
    }

    #[test]
    fn plans_and_times_are_read() {
        let output = lines(
            "Aggregate\n  ->  Bitmap Heap Scan on t\n     ->  Bitmap Index Scan on i\n     Path: cost=1..2\n     Rejected Path: Seq Scan  \
             (cost=1..9)\nAggregate\n  ->  Seq Scan on t\nExecution Time: 10.5 ms\n1|2\nwarm\n\
             ->  Seq Scan on t\nExecution Time: 99.0 ms\n->  Index Scan using i on t\n\
             ->  Seq Scan on t\nExecution Time: 3.0 ms\n->  Seq Scan on t\nExecution Time: 1.0 ms\n\
             ->  Seq Scan on t\nExecution Time: 2.0 ms",
        );
        let (cold, warm) = split(&output);
        assert_eq!(read(cold, "Seq Scan"), Ok((2, 10.5)));
        assert_eq!(read(warm, "Seq Scan"), Ok((1, 2.0)));
        assert!(read(warm, "Index Scan").is_err());
        assert!(read(&[], "Seq Scan").is_err());
    }

    #[test]
    fn a_choice_may_be_half_as_long_again_or_five_ms_longer() {
        let times = |ms, chosen| Times { ms, chosen };
        assert!(times([150.0, 100.0, 900.0], 0).is_right());
        assert!(!times([151.0, 100.0, 900.0], 0).is_right());
        assert!(times([6.0, 1.0, 9.0], 0).is_right());
        assert!(!times([6.0, 1.0, 9.0], 2).is_right());
    }

    #[test]
    fn forty_predicates_select_from_few_rows_to_all() {
        let all = Predicate::all();
        assert_eq!(all.len(), 40);
        let texts: Vec<String> = all.iter().map(Predicate::sql).collect();
        assert!(texts[0].ends_with("from uniform where a between 499995 and 500004"));
        assert!(
            texts[39].ends_with("from linear_10 where a between -1000000 and 2000000 limit 100")
        );
    }
}
