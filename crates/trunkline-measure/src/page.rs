//! **The page**: a report as one HTML file without any other file, for light and dark screens and
//! for phones.
//!
//! Its table has the cells of the CSV file ([`crate::columns`]). A wide table scrolls within itself,
//! and plots scale to the width of the screen.

use std::fmt::Write;

use trunkline_format::BLOCK_SIZE;

use crate::columns::COLUMNS;
use crate::error::MeasureError;
use crate::plot::Plot;
use crate::plots::plots;
use crate::report::{Measurement, Report, SlowDisk};
use crate::versus::OverDefaults;
use crate::workload::Cache;

/// The page's own style sheet.
pub(crate) const STYLE: &str = "\
:root{color-scheme:light dark}\
body{font:16px/1.45 system-ui,sans-serif;margin:0 auto;max-width:70rem;padding:1rem}\
h1{font-size:1.5rem}h2{font-size:1.2rem;margin-top:2rem}\
dl{display:grid;grid-template-columns:max-content 1fr;gap:.2rem 1rem}dt{font-weight:600}\
dd{margin:0;overflow-wrap:anywhere}\
.scroll{overflow-x:auto}\
table{border-collapse:collapse;font-size:.8rem;font-variant-numeric:tabular-nums}\
th,td{border-bottom:1px solid #8884;padding:.25rem .5rem;text-align:right;white-space:nowrap}\
th:first-child,td:first-child{text-align:left}\
.plots{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,26rem),1fr));gap:1rem}\
figure{margin:0}figcaption{font-size:.9rem}\
svg{display:block;width:100%;height:auto}\
.key{display:flex;flex-wrap:wrap;gap:.1rem 1rem;font-size:.85rem}\
.key i{display:inline-block;width:1.6em;vertical-align:.25em;margin-right:.4em}\
@media(max-width:30rem){dl{grid-template-columns:1fr}dd{margin-bottom:.4rem}}";

/// The report as a page.
///
/// # Errors
/// [`MeasureError::Text`]: a plot can't be drawn.
pub fn to_html(report: &Report) -> Result<String, MeasureError> {
    let mut page = format!(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\
         <title>trunkline bench</title><style>{STYLE}</style></head><body>\n\
         <h1>trunkline bench</h1>\n"
    );
    facts(report, &mut page);
    let drawn = plots(report);
    if !drawn.is_empty() {
        page += "<h2>Plots</h2>\n<div class=\"plots\">\n";
        for plot in &drawn {
            figure(plot, &mut page)?;
        }
        page += "</div>\n";
    }
    best(report, &mut page);
    settings(report, &mut page);
    table(report, &mut page);
    skipped(report, &mut page);
    page += "</body></html>\n";
    Ok(page)
}

/// What the numbers belong to.
fn facts(report: &Report, page: &mut String) {
    let percent = report.rule.spread_max * 100.0;
    let unsteady = report.measurements.iter().filter(|case| !case.steady).count();
    let table = &report.table;
    let size = u64::from(table.blocks) * BLOCK_SIZE as u64 / 1_000_000;
    let mut facts = vec![
        ("Command", report.command_line.clone()),
        ("Program", report.program.clone()),
        ("Started", started(report.started)),
        (
            "Table",
            format!(
                "{}: {} blocks, {size} MB, {} rows per page",
                table.name, table.blocks, table.rows_per_page
            ),
        ),
        ("Shared buffers", format!("{} blocks", report.shared_buffers)),
        (
            "Worker threads",
            format!("{} to {} for io_method worker", report.io_min_workers, report.io_max_workers),
        ),
    ];
    facts.extend(report.machine.facts());
    facts.push(("Slow disk", report.slow_disk.as_ref().map(SlowDisk::summary).unwrap_or_default()));
    facts.push(("Server", server(report)));
    facts.push(("Page cache", cache_state(report)));
    facts.push((
        "Statistics",
        format!(
            "seconds are the median of the repetitions with its 95 % confidence interval from \
             order statistics (Le Boudec 2010, theorem 2.1), if there are enough repetitions for one; \
             a case is steady if that is no wider than {percent} % of the median. Not steady: \
             {unsteady} of {} cases.",
            report.measurements.len()
        ),
    ));
    if let Some(against) = &report.against {
        let mut text = format!("{}, started {}", against.path, started(against.started));
        against.doubts.iter().for_each(|doubt| text += &format!("; {doubt}"));
        facts.push(("Compared with", text));
    }
    *page += "<dl>\n";
    for (name, text) in facts.into_iter().filter(|(_, text)| !text.is_empty()) {
        let _ = writeln!(page, "<dt>{name}</dt><dd>{}</dd>", escape(&text));
    }
    server_settings(report, page);
    *page += "</dl>\n";
    if !report.complete {
        *page += "<p><strong>The measurement was interrupted, or a case has failed: some cases are \
                  missing or have fewer repetitions.</strong></p>\n";
    }
}

/// A time in seconds since 1970, in UTC.
pub(crate) fn started(seconds: i64) -> String {
    let time = jiff::Timestamp::from_second(seconds);
    time.map_or_else(|_| seconds.to_string(), |time| time.to_string())
}

/// The server and its second table.
fn server(report: &Report) -> String {
    let Some(server) = &report.server else { return String::new() };
    format!(
        "{} on the same files. Second table: {}, {} blocks",
        server.name, server.linear_10.name, server.linear_10.blocks
    )
}

/// The server's settings, which are shown on demand.
fn server_settings(report: &Report, page: &mut String) {
    let Some(server) = &report.server else { return };
    let settings = server.settings.iter().map(|(name, value)| format!("{name} = '{value}'"));
    let settings: Vec<String> = settings.collect();
    let _ = writeln!(
        page,
        "<dt>Server settings</dt><dd><details><summary>{} settings</summary>{}</details></dd>",
        settings.len(),
        escape(&settings.join(", "))
    );
}

/// How cold the cold cases were, and how warm the cached ones.
fn cache_state(report: &Report) -> String {
    let of = |cache: Cache| {
        let cases = report.measurements.iter().filter(|case| case.key.cache == Some(cache));
        let percent = cases.filter_map(|case| case.cached_percent);
        percent.reduce(|percent, other| cache.worse(percent, other))
    };
    let mut parts: Vec<String> = [
        of(Cache::Cold).map(|most| format!("cold cases began with at most {most} % of the table")),
        of(Cache::Cached).map(|least| format!("cached cases with at least {least} %")),
    ]
    .into_iter()
    .flatten()
    .collect();
    parts.extend(report.cache_warnings());
    if parts.is_empty() { "not used".to_owned() } else { parts.join("; ") }
}

pub(crate) fn figure(plot: &Plot, page: &mut String) -> Result<(), MeasureError> {
    let _ = write!(page, "<figure><figcaption>{}</figcaption>{}", escape(&plot.title), plot.svg()?);
    *page += "<div class=\"key\">";
    for line in &plot.lines {
        let (red, green, blue) = line.rgb();
        let colour = format!("rgb({red},{green},{blue})");
        let name = escape(&line.name);
        let stroke = if line.dashed { "dashed" } else { "solid" };
        let style = format!("border-top:3px {stroke} {colour}");
        let _ = write!(page, "<span><i style=\"{style}\"></i>{name}</span>");
    }
    *page += "</div></figure>\n";
    Ok(())
}

/// The fastest method of each system, side by side.
fn best(report: &Report, page: &mut String) {
    let Some(server) = report.server.as_ref().filter(|_| !report.best.is_empty()) else { return };
    let _ = write!(
        page,
        "<h2>Fastest methods</h2>\n<p>Our time divided by that of {}: the median of pairs with its \
         95 % confidence interval. Below 1, we are faster.</p>\n<div class=\"scroll\"><table><thead><tr>",
        escape(&server.name)
    );
    for name in ["workload", "scan", "rows, %", "cache", "concurrency", "combine"] {
        let _ = write!(page, "<th>{name}</th>");
    }
    *page += "<th>trunkline</th><th>seconds</th><th>server</th><th>seconds</th><th>ratio</th>\
              <th>interval</th><th>pairs</th><th></th></tr></thead><tbody>\n";
    for best in &report.best {
        let versus = best.versus.as_ref();
        let cells = [
            best.workload.clone(),
            best.scan.clone(),
            best.selectivity_percent.map(|percent| percent.to_string()).unwrap_or_default(),
            best.cache.map_or("", Cache::name).to_owned(),
            best.concurrency.to_string(),
            best.combine_blocks.to_string(),
            best.ours.clone(),
            best.seconds.to_string(),
            best.server.clone(),
            best.server_seconds.to_string(),
            versus.map(|it| it.ratio.median.to_string()).unwrap_or_default(),
            versus.map(|it| format!("{}–{}", it.ratio.low, it.ratio.high)).unwrap_or_default(),
            versus.map(|it| it.pairs.to_string()).unwrap_or_default(),
            versus.map_or("too few pairs", |it| it.ratio.verdict()).to_owned(),
        ];
        row(&cells, page);
    }
    *page += "</tbody></table></div>\n";
}

/// The server's configurations: what differs between them, and how fast they are.
fn settings(report: &Report, page: &mut String) {
    let Some(server) = report.server.as_ref().filter(|it| !it.configurations.is_empty()) else {
        return;
    };
    let _ = write!(
        page,
        "<h2>Settings</h2>\n<p>What {} showed after its start, for the settings of the file and \
         others that differ.</p>\n<div class=\"scroll\"><table><thead><tr><th>setting</th>",
        escape(&server.name)
    );
    for configuration in &server.configurations {
        let _ = write!(page, "<th>{}</th>", escape(&configuration.name));
    }
    *page += "</tr></thead><tbody>\n";
    for (name, values) in server.compared_settings() {
        row(&[vec![name], values].concat(), page);
    }
    *page += "</tbody></table></div>\n<p>Its time with the settings divided by that with its \
              defaults: the median of pairs with its 95 % confidence interval. Faster: the interval \
              is below 1. Not slower: it ends at 1.05 or below. Slower: it begins above 1.05. There \
              is no verdict if the page cache was not in the wanted state (!) when a repetition \
              began.</p>\n<div class=\"scroll\"><table><thead><tr><th>workload</th><th>scan</th>\
              <th>rows, %</th><th>cache</th><th>defaults</th><th>seconds</th><th>settings</th>\
              <th>seconds</th><th>ratio</th><th>interval</th><th>pairs</th><th></th></tr></thead>\
              <tbody>\n";
    for (defaults, settings) in report.settings_pairs() {
        let over = settings.over_defaults.as_ref();
        let key = &defaults.key;
        let cells = [
            key.workload.clone(),
            key.scan.clone(),
            key.selectivity_percent.map(|percent| percent.to_string()).unwrap_or_default(),
            Measurement::cache_cell(&[defaults, settings]),
            defaults.plan.clone().unwrap_or_default(),
            defaults.seconds.median.to_string(),
            settings.plan.clone().unwrap_or_default(),
            settings.seconds.median.to_string(),
            over.map(|it| it.ratio.median.to_string()).unwrap_or_default(),
            over.map(|it| format!("{}–{}", it.ratio.low, it.ratio.high)).unwrap_or_default(),
            over.map(|it| it.pairs.to_string()).unwrap_or_default(),
            over.map_or("too few pairs", OverDefaults::verdict_name).to_owned(),
        ];
        row(&cells, page);
    }
    *page += "</tbody></table></div>\n";
}

/// A row of a table.
fn row(cells: &[String], page: &mut String) {
    let cells: Vec<String> =
        cells.iter().map(|cell| format!("<td>{}</td>", escape(cell))).collect();
    let _ = writeln!(page, "<tr>{}</tr>", cells.concat());
}

fn table(report: &Report, page: &mut String) {
    *page += "<h2>Numbers</h2>\n<div class=\"scroll\"><table><thead><tr>";
    for (name, _) in COLUMNS {
        let _ = write!(page, "<th>{name}</th>");
    }
    *page += "</tr></thead><tbody>\n";
    for case in &report.measurements {
        *page += "<tr>";
        for (_, text) in COLUMNS {
            let _ = write!(page, "<td>{}</td>", escape(&text(report, case)));
        }
        *page += "</tr>\n";
    }
    *page += "</tbody></table></div>\n";
}

fn skipped(report: &Report, page: &mut String) {
    if report.skipped.is_empty() {
        return;
    }
    *page += "<h2>Not measured</h2>\n<ul>\n";
    for (text, count) in report.skipped_groups() {
        let _ = writeln!(page, "<li>{} (cases: {count})</li>", escape(&text));
    }
    *page += "</ul>\n";
}

/// Text in HTML.
pub(crate) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => escaped += "&amp;",
            '<' => escaped += "&lt;",
            '>' => escaped += "&gt;",
            '"' => escaped += "&quot;",
            letter => escaped.push(letter),
        }
    }
    escaped
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::estimate::Estimate;
    use crate::latency::Percentiles;
    use crate::machine::Machine;
    use crate::repetition::{Ended, RepetitionRule};
    use crate::report::{
        Key, MeasuredConfiguration, MeasuredServer, MeasuredTable, Measurement, Times,
    };
    use crate::rounding::rounded;
    use crate::versus::{OverDefaults, Verdict};

    fn case(method: &str, concurrency: u32, selectivity: f64) -> Measurement {
        let seconds = rounded(selectivity / f64::from(concurrency) + 0.123_457, 6);
        Measurement {
            key: Key {
                system: "trunkline".into(),
                workload: "uniform".into(),
                scan: "index".into(),
                selectivity_percent: Some(selectivity),
                io_method: method.into(),
                io_workers: None,
                io_direct: true,
                cache: Some(Cache::Cold),
                concurrency: Some(concurrency),
                combine_blocks: Some(16),
                sessions: 1,
            },
            repetitions: 7,
            steady: selectivity < 1.0,
            ended: if selectivity < 1.0 { Ended::Steady } else { Ended::Time },
            seconds: Times {
                median: seconds,
                low: Some(rounded(0.9 * seconds, 6)),
                high: Some(rounded(1.1 * seconds, 6)),
            },
            cpu_seconds: Some(0.5),
            blocks: 100,
            hits: 0,
            ios: Some(90),
            ios_per_second: Some(900.0 * f64::from(concurrency)),
            bytes_per_second: 1e6,
            in_flight: Some(3.25),
            device_seconds: Some(0.7),
            wait_seconds: Some(0.1),
            device_micros: Some(Percentiles {
                count: 5000,
                p50: 80.1,
                p99: Some(200.5),
                p999: Some(999.9),
            }),
            wait_micros: None,
            cached_percent: Some(0.3),
            cache_held: Some(true),
            samples: vec![seconds; 7],
            against: None,
            versus: None,
            over_defaults: None,
            plan: None,
        }
    }

    pub(crate) fn report() -> Report {
        let each =
            |method| [1, 4, 16].map(|depth| [0.1, 10.0].map(|part| case(method, depth, part)));
        Report {
            schema: Report::SCHEMA,
            command: "bench".into(),
            command_line: "trunkline bench --table 'a<b>&c'".into(),
            program: "1".into(),
            started: 0,
            machine: Machine::describe(std::path::Path::new("/proc")),
            table: MeasuredTable { name: "a<b>&\"c".into(), blocks: 1000, rows_per_page: 61 },
            shared_buffers: 100,
            io_min_workers: 3,
            io_max_workers: 8,
            slow_disk: None,
            server: None,
            seed: 1,
            rule: RepetitionRule::default(),
            complete: true,
            against: None,
            measurements: ["worker", "io_uring"].map(each).concat().concat(),
            best: Vec::new(),
            skipped: Vec::new(),
        }
    }

    /// The cells of the page's table.
    fn cells(page: &str) -> Vec<Vec<String>> {
        let rows = page.split("<tr>").skip(2);
        let text = |cell: &str| cell.split("</td>").next().unwrap_or_default().to_owned();
        rows.map(|row| row.split("<td>").skip(1).map(text).collect()).collect()
    }

    #[test]
    fn page_csv_and_json_have_the_same_numbers() {
        let report = report();
        let page = to_html(&report).expect("a page");
        let csv = crate::columns::to_csv(&report).expect("CSV");
        let mut reader = csv::Reader::from_reader(csv.as_bytes());
        let names = reader.headers().expect("names").clone();
        let records: Vec<csv::StringRecord> =
            reader.records().collect::<Result<_, _>>().expect("records");
        assert_eq!(records.len(), 12);
        let of_page = cells(&page);
        assert_eq!(of_page.len(), records.len());
        let json: serde_json::Value =
            serde_json::from_str(&report.to_json().expect("JSON")).expect("parsed");
        for (at, record) in records.iter().enumerate() {
            assert!(record.iter().eq(of_page[at].iter().map(String::as_str)), "{record:?}");
            let case = &json["measurements"][at];
            let pairs = [
                ("seconds", &case["seconds"]["median"]),
                ("seconds_low", &case["seconds"]["low"]),
                ("seconds_high", &case["seconds"]["high"]),
                ("device_p999_micros", &case["device_micros"]["p999"]),
                ("ios_per_second", &case["ios_per_second"]),
                ("in_flight", &case["in_flight"]),
                ("selectivity_percent", &case["selectivity_percent"]),
                ("blocks", &case["blocks"]),
            ];
            for (name, value) in pairs {
                let column = names.iter().position(|known| known == name).expect(name);
                let number: f64 = record[column].parse().expect("a number");
                assert_eq!(Some(number), value.as_f64(), "{name}");
            }
        }
    }

    #[test]
    fn the_page_is_one_file_and_shows_texts_as_they_are() {
        let page = to_html(&report()).expect("a page");
        assert!(page.contains("a&lt;b&gt;&amp;&quot;c") && !page.contains("a<b>"), "{page}");
        assert!(!page.contains("<script") && !page.contains("<link") && !page.contains("src="));
        assert!(page.contains("Not steady: 6 of 12 cases"));
        // Two scans of selectivity at each of three depths, linear and logarithmic: 6. Two plots
        // against depth for each of two selectivities: 4. Latency against load for each of two
        // methods and selectivities: 4. Repetitions: the first group and three that aren't steady.
        assert_eq!(page.matches("<figure>").count(), 6 + 4 + 4 + 4);
        // The throughput grows with the depth and the latency doesn't, so there is no knee.
        assert_eq!(page.matches("no knee up to concurrency 16").count(), 4);
        assert!(!page.contains("knee: "));
        let mut report = report();
        for case in report.measurements.iter_mut().filter(|case| case.key.concurrency == Some(16)) {
            case.device_micros.as_mut().expect("times").p50 = 800.0;
        }
        let page = to_html(&report).expect("a page");
        assert_eq!(page.matches("knee: concurrency 4").count(), 4);
        assert!(!page.contains("no knee"));
    }

    #[test]
    fn a_stored_run_is_compared_case_by_case() {
        let stored = report();
        let mut faster = report();
        for case in &mut faster.measurements {
            case.samples.iter_mut().for_each(|seconds| *seconds /= 2.0);
        }
        faster.measurements[0].samples.truncate(6);
        faster.measurements[1].key.concurrency = Some(99);
        let path = std::path::Path::new("run.json");
        let doubts = faster.compare(&stored, path);
        assert!(
            doubts.len() == 1 && doubts[0].starts_with("2 cases can't be compared"),
            "{doubts:?}"
        );
        assert!(faster.measurements[..2].iter().all(|case| case.against.is_none()));
        for case in &faster.measurements[2..] {
            let change = case.against.expect("compared");
            assert_eq!((change.ratio.median, change.ratio.verdict()), (0.5, "faster"));
        }
        let mut same = report();
        assert_eq!(same.compare(&stored, path), [""; 0]);
        assert!(
            same.measurements
                .iter()
                .all(|case| { case.against.expect("compared").ratio.verdict() == "no difference" })
        );
        same.table.blocks = 7;
        same.machine.kernel = "9.9".into();
        same.io_max_workers = 32;
        let doubts = same.compare(&stored, path);
        assert!(doubts[0].contains("(7 blocks, ") && doubts.len() == 3, "{doubts:?}");
        assert_eq!(doubts[1], "io_max_workers differs: 32; in the stored run: 8");
        assert!(doubts[2].starts_with("kernel differs: Linux 9.9; "), "{doubts:?}");
        let page = to_html(&same).expect("a page");
        assert!(page.contains("run.json, started 1970-01-01T00:00:00Z; table differs"), "{page}");
    }

    /// A report of a server in two configurations, each of which was measured once.
    fn of_configurations() -> Report {
        let mut report = report();
        let shown = |values: [&str; 4]| {
            let names = ["io_workers", "io_method", "random_page_cost", "x.y"];
            let pairs = names.into_iter().zip(values).map(|(a, b)| (a.to_owned(), b.to_owned()));
            pairs.filter(|(_, value)| !value.is_empty()).collect::<Vec<_>>()
        };
        let configuration = |name: &str, lines, values| MeasuredConfiguration {
            name: name.to_owned(),
            lines,
            shown: shown(values),
        };
        // One line has the default, and a setting differs without a line.
        let lines = [("random_page_cost", "4"), ("x.y", "1<2")];
        let lines = lines.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
        report.server = Some(MeasuredServer {
            name: "PostgreSQL 18".to_owned(),
            settings: Vec::new(),
            configurations: vec![
                configuration("defaults", Vec::new(), ["3", "worker", "4", ""]),
                configuration("settings", lines, ["12", "worker", "4", "1<2"]),
            ],
            linear_10: report.table.clone(),
        });
        let case = |name: &str, plan: &str| {
            let mut case = case(name, 1, 0.1);
            case.key.system = "PostgreSQL 18".to_owned();
            case.key.concurrency = None;
            case.plan = Some(plan.to_owned());
            case
        };
        let mut settings = case("settings", "Index Scan");
        settings.over_defaults = Some(OverDefaults {
            ratio: Estimate { median: 1.01, low: 0.97, high: 1.04 },
            pairs: 9,
            verdict: Some(Verdict::NotSlower),
        });
        report.measurements = vec![case("defaults", "Seq Scan"), settings];
        report
    }

    #[test]
    fn configurations_are_compared_by_setting_and_by_case() {
        let mut report = of_configurations();
        let server = report.server.clone().expect("a server");
        let rows: Vec<(String, String)> = (server.compared_settings().into_iter())
            .map(|(name, values)| (name, values.join(" | ")))
            .collect();
        let expected = [("io_workers", "3 | 12"), ("random_page_cost", "4 | 4"), ("x.y", " | 1<2")];
        assert_eq!(rows, expected.map(|(name, values)| (name.to_owned(), values.to_owned())));
        let page = to_html(&report).expect("a page");
        assert!(page.contains("<tr><td>x.y</td><td></td><td>1&lt;2</td></tr>"), "{page}");
        let row = "<td>1.01</td><td>0.97–1.04</td><td>9</td><td>not slower</td></tr>";
        assert!(page.contains(row) && page.contains("<td>Seq Scan</td>"), "{page}");
        // Only the server has worked, so its lines are alone.
        assert!(page.contains("PostgreSQL 18, defaults") && !page.contains("Fastest methods"));
        let csv = crate::columns::to_csv(&report).expect("CSV");
        assert!(csv.contains(",Index Scan,1.01,0.97,1.04,9,not slower,"), "{csv}");
        // Another file of settings is a doubt when runs are compared.
        let stored = of_configurations();
        assert_eq!(report.compare(&stored, std::path::Path::new("run.json"))[..], [""; 0]);
        let server = report.server.as_mut().expect("a server");
        server.configurations[1].lines[0].1 = "1.1".to_owned();
        let doubts = report.compare(&stored, std::path::Path::new("run.json"));
        let expected = "settings of the server differs: random_page_cost = 1.1, x.y = 1<2; in the";
        assert!(doubts.len() == 1 && doubts[0].starts_with(expected), "{doubts:?}");
        // A cache that wasn't held leaves no verdict.
        let case = &mut report.measurements[1];
        (case.key.cache, case.cache_held) = (Some(Cache::Cold), Some(false));
        case.over_defaults.as_mut().expect("compared").verdict = None;
        report.measurements[0].key.cache = Some(Cache::Cold);
        let page = to_html(&report).expect("a page");
        assert!(page.contains("<td>cold!</td>") && page.contains("<td>cache not held</td></tr>"));
        // One whose other half has failed isn't a pair.
        report.measurements.pop();
        assert!(report.settings_pairs().is_empty());
    }

    #[test]
    fn a_stored_run_without_configurations_is_still_read() {
        let json = of_configurations().to_json().expect("JSON");
        let mut old: serde_json::Value = serde_json::from_str(&json).expect("parsed");
        old["server"].as_object_mut().expect("an object").remove("configurations");
        for case in old["measurements"].as_array_mut().expect("a list") {
            let case = case.as_object_mut().expect("an object");
            assert!(case.remove("plan").is_some() && case.remove("over_defaults").is_some());
        }
        let home = tempfile::tempdir().expect("a directory");
        let path = home.path().join("run.json");
        std::fs::write(&path, old.to_string()).expect("written");
        let read = Report::load(&path).expect("read");
        assert!(read.server.expect("a server").configurations.is_empty());
        assert!(read.measurements.iter().all(|case| case.plan.is_none()));
    }

    #[test]
    fn a_report_is_read_back_as_it_was_written() {
        let home = tempfile::tempdir().expect("a directory");
        let path = home.path().join("run.json");
        let text = report().to_json().expect("JSON");
        std::fs::write(&path, &text).expect("written");
        let read = Report::load(&path).expect("read");
        assert!(read.to_json().expect("JSON") == text, "not what was written");
        for (text, expected) in [("{}", "is not a report"), ("{\"schema\": 7}", "expected 2")] {
            std::fs::write(&path, text).expect("written");
            let error = Report::load(&path).expect_err("refused").to_string();
            assert!(error.contains("run.json") && error.contains(expected), "{error}");
        }
    }
}
