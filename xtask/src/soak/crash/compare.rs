//! **Comparison** of the crash soak: the rows of every table of every database, as `trunkline copy` reads them from
//! a directory and as `COPY` of a running server has them.
//!
//! Rows are compared as sorted lines, because `COPY` has no order. Lists of databases and tables, the values of
//! sequences, and some catalogs are compared too. A difference is text for the report; a program that can't be
//! run at all is a failure.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use super::cluster::{Cluster, last_lines};
use crate::failure::Failure;
use crate::invocation::{Invocation, Outcome};

/// Catalogs whose rows are compared.
const CATALOGS: [&str; 16] = [
    "pg_class",
    "pg_attribute",
    "pg_attrdef",
    "pg_type",
    "pg_enum",
    "pg_index",
    "pg_inherits",
    "pg_constraint",
    "pg_depend",
    "pg_shdepend",
    "pg_namespace",
    "pg_description",
    "pg_sequence",
    "pg_database",
    "pg_largeobject_metadata",
    "pg_largeobject",
];

/// What was compared.
#[derive(Debug, Default)]
pub(super) struct Compared {
    pub(super) tables: u64,
    pub(super) rows: u64,
    /// Pages, by the result of their comparison.
    pub(super) pages: BTreeMap<String, u64>,
    pub(super) differences: Vec<String>,
}

impl Compared {
    pub(super) fn add(&mut self, other: Self) {
        self.tables += other.tables;
        self.rows += other.rows;
        for (result, count) in other.pages {
            *self.pages.entry(result).or_default() += count;
        }
        self.differences.extend(other.differences);
    }
}

/// The program that is tested, reading one directory.
pub(super) struct Reader<'a> {
    pub(super) program: &'a Path,
    /// A directory of the home, which contains `data`.
    pub(super) copy: &'a str,
    /// Further options, such as `--until`.
    pub(super) options: String,
}

impl Reader<'_> {
    /// Runs a command of the program.
    pub(super) fn run(&self, cluster: &Cluster, command: &str) -> Result<Outcome, Failure> {
        let data = cluster.home.join(self.copy).join("data");
        let call = Invocation::new(&cluster.home, "timeout", "300").arg(self.program);
        let call =
            command.split(' ').chain(self.options.split_whitespace()).fold(call, Invocation::arg);
        call.arg("--no-progress").arg("-D").arg(data).capture()
    }
}

/// Compares everything that the running server of `cluster` has with what `reader` reads.
pub(super) fn compare(cluster: &Cluster, reader: &Reader<'_>) -> Result<Compared, Failure> {
    let mut compared = Compared::default();
    let listed = reader.run(cluster, "tables --list --json")?;
    if !listed.success() {
        compared.differences.push(format!("tables --list: {}", last_lines(&listed)));
        return Ok(compared);
    }
    let names = cluster.sql("postgres", "select datname from pg_database")?;
    let (expected, ours): (BTreeSet<&str>, BTreeSet<&str>) =
        (names.lines().collect(), databases(&listed.text));
    if expected != ours {
        compared.differences.push(format!("databases {ours:?}, expected {expected:?}"));
    }
    let usable = "select datname from pg_database where datallowconn and datconnlimit <> -2";
    cluster.run("rm -rf server && mkdir server")?;
    let own = cluster.home.join("ours");
    let _ = fs::remove_dir_all(&own);
    for database in cluster.sql("postgres", usable)?.lines() {
        compared.add(of_database(cluster, reader, database)?);
    }
    let verified = reader.run(cluster, "verify --deep")?;
    if !verified.success() {
        // Between two blank lines; the rest is counts.
        let findings = verified.text.split("\n\n").nth(1).unwrap_or(&verified.text);
        let lines: Vec<&str> = findings.lines().take(12).collect();
        compared.differences.push(format!("verify: {:?}: {}", verified.code, lines.join(" / ")));
    }
    Ok(compared)
}

/// What the example `compare_replay` has printed: a line with counts, lines with notes, and a line for each difference.
pub(super) fn of_pages(outcome: &Outcome) -> Result<Compared, Failure> {
    let mut compared = Compared::default();
    let (counts, rest) = outcome.text.split_once('\n').unwrap_or((&outcome.text, ""));
    for part in counts.split(", ") {
        let count =
            part.split_once(' ').and_then(|(count, what)| Some((count.parse::<u64>().ok()?, what)));
        let Some((count, what)) = count else {
            return Err(Failure::new(format!("pages: {}", last_lines(outcome))));
        };
        *compared.pages.entry(what.to_owned()).or_default() += count;
    }
    for line in rest.lines() {
        match line.strip_prefix("note: ") {
            Some(note) => println!("pages: {note}"),
            None => compared.differences.push(format!("pages: {line}")),
        }
    }
    if !outcome.success() && compared.differences.is_empty() {
        compared.differences.push(format!("pages: {:?}", outcome.code));
    }
    Ok(compared)
}

/// Compares one database.
fn of_database(
    cluster: &Cluster,
    reader: &Reader<'_>,
    database: &str,
) -> Result<Compared, Failure> {
    let (server, ours) = (format!("server/{database}"), format!("ours/{database}"));
    let mut compared = Compared::default();
    let sequences = expected(cluster, database, &server)?;
    let folder = cluster.home.join(&ours);
    fs::create_dir_all(&folder).map_err(|error| Failure::io(folder.display(), error))?;
    let output = folder.display();
    let catalogs = CATALOGS.map(|name| format!(" pg_catalog.{name}")).concat();
    for what in [format!(" --all -o {output}/tables"), format!("{catalogs} -o {output}/catalogs")] {
        let copied = reader.run(cluster, &format!("copy -d {database}{what}"))?;
        if !copied.success() {
            let text =
                format!("{database}: copy{what}: {:?}: {}", copied.code, last_lines(&copied));
            compared.differences.push(text);
        }
    }
    let mut theirs = files(&cluster.home.join(&server))?;
    let mut found = files(&folder.join("tables"))?;
    found.append(&mut files(&folder.join("catalogs"))?);
    let script = fs::read_to_string(folder.join("tables/load.sql")).unwrap_or_default();
    let values = sequence_values(&script);
    if values != sequences {
        let text = format!("{database}: sequences {values:?}, expected {sequences:?}");
        compared.differences.push(text);
    }
    // On a standby, unlogged tables can't be read. We read them as empty.
    let standby = cluster.sql(database, "select pg_is_in_recovery()")?.trim() == "t";
    if standby {
        let unlogged = "select n.nspname || '.' || relname || '.copy' from pg_class c join pg_namespace n \
                        on n.oid = relnamespace where relkind = 'r' and relpersistence = 'u'";
        for name in cluster.sql(database, unlogged)?.lines() {
            theirs.insert(name.to_owned(), Vec::new());
        }
    }
    for (name, expected) in &theirs {
        compared.tables += 1;
        compared.rows += expected.len() as u64;
        match found.remove(name) {
            None => compared.differences.push(format!("{database}: {name} is missing")),
            Some(rows) if rows == *expected => {}
            Some(rows) => {
                compared
                    .differences
                    .push(format!("{database}: {name}: {}", difference(&rows, expected)));
            }
        }
    }
    compared.differences.extend(found.keys().map(|name| format!("{database}: {name} isn't there")));
    Ok(compared)
}

/// Writes the rows that the server has into a directory, and returns the values of sequences.
fn expected(cluster: &Cluster, database: &str, folder: &str) -> Result<BTreeSet<String>, Failure> {
    let path = cluster.home.join(folder);
    let path = path.display();
    let catalogs = CATALOGS.map(|name| format!("'{name}'")).join(", ");
    let list = format!(
        "select format('\\copy (select * from only %I.%I) to ''{path}/%s.%s.copy''', nspname, relname, nspname, \
         relname) from pg_class c join pg_namespace n on n.oid = relnamespace where case when nspname = \
         'pg_catalog' then relname in ({catalogs}) else relkind in ('r', 'm') and nspname <> \
         'information_schema' and nspname not like 'pg_temp%' and not (relpersistence = 'u' and \
         pg_is_in_recovery()) end"
    );
    let script = cluster.sql(database, &list)?;
    let file = cluster.home.join("copies.sql");
    fs::write(&file, script).map_err(|error| Failure::io(file.display(), error))?;
    cluster.run(&format!("mkdir {folder} && {} -f copies.sql", cluster.psql(database)))?;
    let sequences = "select format('select ''%s.%s, '' || last_value || '', '' || is_called from %1$I.%2$I', nspname, \
                     relname) from pg_class c join pg_namespace n on n.oid = relnamespace where relkind = 'S' \
                     and nspname not like 'pg_temp%' \\gexec";
    Ok(cluster.sql(database, sequences)?.lines().map(str::to_owned).collect())
}

/// The names in what `tables --list --json` prints.
fn databases(json: &str) -> BTreeSet<&str> {
    let parts = json.split("{\"name\":\"").skip(1);
    parts.filter_map(|part| part.split('"').next()).collect()
}

/// The values that a load script sets, as `schema.name, value, is_called`.
fn sequence_values(script: &str) -> BTreeSet<String> {
    let calls = script.lines().filter_map(|line| line.strip_prefix("SELECT setval("));
    calls.filter_map(|call| Some(call.split(')').next()?.replace(['\'', '"'], ""))).collect()
}

/// The sorted lines of all copied tables in a directory.
fn files(folder: &Path) -> Result<BTreeMap<String, Vec<Vec<u8>>>, Failure> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if !name.contains(".copy") {
            continue;
        }
        let bytes = fs::read(entry.path()).map_err(|error| Failure::io(&name, error))?;
        let mut lines: Vec<Vec<u8>> =
            bytes.split_inclusive(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
        lines.sort();
        found.insert(name, lines);
    }
    Ok(found)
}

/// How two lists of rows differ.
fn difference(ours: &[Vec<u8>], expected: &[Vec<u8>]) -> String {
    let only = |these: &[Vec<u8>], those: &[Vec<u8>]| {
        let those: BTreeSet<&Vec<u8>> = those.iter().collect();
        let lines: Vec<&Vec<u8>> = these.iter().filter(|line| !those.contains(line)).collect();
        let first = lines.first().map_or(String::new(), |line| {
            let text: String = String::from_utf8_lossy(line).trim_end().chars().take(300).collect();
            format!(", such as {text:?}")
        });
        format!("{}{first}", lines.len())
    };
    format!(
        "{} rows, expected {}; only ours: {}; only the server's: {}",
        ours.len(),
        expected.len(),
        only(ours, expected),
        only(expected, ours)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_values_are_read() {
        let json = r#"{"schema":1,"databases":[{"name":"a","oid":1},{"name":"b","oid":2}]}"#;
        assert_eq!(databases(json), BTreeSet::from(["a", "b"]));
        let script = "SELECT 1;\nSELECT setval('\"public\".\"s\"', 7, true) \\gset\n";
        assert_eq!(sequence_values(script), BTreeSet::from(["public.s, 7, true".to_owned()]));
    }

    #[test]
    fn counts_and_differences_of_pages_are_read() {
        let outcome = |text: &str, code| Outcome { text: text.to_owned(), code: Some(code) };
        let text = "5 pages equal, 2 of Hash not replayed\nnote: masked\nbase/5/7, block 3: byte Some(8) differs\n";
        let found = of_pages(&outcome(text, 1)).unwrap();
        assert_eq!(found.pages.get("of Hash not replayed"), Some(&2));
        assert_eq!(found.pages.get("pages equal"), Some(&5));
        assert_eq!(found.differences, ["pages: base/5/7, block 3: byte Some(8) differs"]);
        assert!(of_pages(&outcome("Error: it was shut down\n", 1)).is_err());
        assert_eq!(of_pages(&outcome("5 pages equal\n", 124)).unwrap().differences.len(), 1);
    }

    #[test]
    fn a_difference_names_a_row_of_each_side() {
        let lines =
            |text: &str| text.split_inclusive('\n').map(Vec::from).collect::<Vec<Vec<u8>>>();
        let text = difference(&lines("a\nb\n"), &lines("b\nc\nd\n"));
        let expected =
            "2 rows, expected 3; only ours: 1, such as \"a\"; only the server's: 2, such as \"c\"";
        assert_eq!(text, expected);
    }
}
