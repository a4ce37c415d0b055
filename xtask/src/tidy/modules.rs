//! **Module order** inside a crate: there must be no cycles between files, and a lower module must
//! not refer to a higher module.
//!
//! The compiler enforces the order of crates, but it doesn't check the order of modules within a
//! crate, so we have to do that here. `xtask/order/CRATE.txt` lists the modules of a crate from
//! bottom to top, with one layer per line. Both rules use the graph that `graph.rs` builds.
//! `cargo xtask tidy circles` prints the cycles and the upward edges.
//!
//! ```text
//! state  limits        a layer: its modules may name each other, but not in a circle
//! handle               may name state and limits
//! pool/clock           pool/clock.rs and everything below pool/clock/
//! ```

use super::finding::Findings;
use super::graph::{Arrow, Graph};
use super::sources::{Source, Sources};

/// Directory of the order files.
const ORDERS: &str = "xtask/order/";

/// No two files of a crate may depend on each other, directly or indirectly.
pub(super) fn circles(sources: &Sources, findings: &mut Findings) {
    for (package, _) in sources.packages() {
        let graph = Graph::read(sources, &src_of(package));
        for circle in graph.circles() {
            if let Some(&file) = circle.first() {
                report_circle(&graph, &src_of(package), circle.len(), file, findings);
            }
        }
    }
}

/// Reports a finding at the first edge of a shortest cycle through `file`.
fn report_circle(graph: &Graph, src: &str, length: usize, file: usize, findings: &mut Findings) {
    let way = way_round(graph, file);
    let names: Vec<&str> = way.iter().map(|arrow| graph.name(arrow.from, src)).collect();
    if let (Some(arrow), Some(first)) = (way.first(), names.first()) {
        let text = format!("circle of {length} files: {} → {first}", names.join(" → "));
        findings.add(&graph.files[arrow.from], arrow.line, text);
    }
}

/// Every file must belong to a layer in the order of its crate, and no edge may point upwards.
pub(super) fn order(sources: &Sources, findings: &mut Findings) {
    for (package, order) in orders(sources) {
        let src = src_of(package);
        let graph = Graph::read(sources, &src);
        let ranks = order.ranks(&graph, &src);
        for (file, path) in graph.files.iter().enumerate() {
            if ranks[file].is_none() {
                findings.add(path, 1, format!("no place in {}", order.source.path));
            }
        }
        for (arrow, [low, high]) in upwards(&graph, &ranks) {
            let text = format!("{} is below {}, yet names {}", low.entry, high.entry, arrow.path);
            findings.add(&graph.files[arrow.from], arrow.line, text);
        }
    }
}

/// Prints the cycles and the upward edges of one crate, or of all crates for which there is an
/// order.
pub(super) fn list(sources: &Sources, only: &str) {
    let known: Vec<(&str, Order<'_>)> = orders(sources);
    for (package, _) in sources.packages().filter(|(package, _)| package.contains(only)) {
        let src = src_of(package);
        let graph = Graph::read(sources, &src);
        let circles = graph.circles();
        for circle in &circles {
            println!("{package}: circle of {} files", circle.len());
            let inside =
                |arrow: &&Arrow| circle.contains(&arrow.from) && circle.contains(&arrow.to);
            graph.arrows.iter().filter(inside).for_each(|arrow| print(&graph, &src, arrow));
        }
        let order = known.iter().find(|(ordered, _)| *ordered == package);
        let mut up = 0;
        if let Some((_, order)) = order {
            let ranks = order.ranks(&graph, &src);
            for (file, _) in ranks.iter().enumerate().filter(|(_, rank)| rank.is_none()) {
                println!("{package}: {} has no place in the order", graph.name(file, &src));
            }
            let upwards = upwards(&graph, &ranks);
            up = upwards.len();
            println!("{package}: {up} arrows upwards");
            upwards.iter().for_each(|(arrow, _)| print(&graph, &src, arrow));
        }
        let (files, arrows) = (graph.files.len(), graph.arrows.len());
        let counts: Vec<usize> = circles.iter().map(Vec::len).collect();
        println!(
            "{package}: {files} files, {arrows} arrows, circles of {counts:?}, {up} upwards\n"
        );
    }
}

fn print(graph: &Graph, src: &str, arrow: &Arrow) {
    let (from, to) = (graph.name(arrow.from, src), graph.name(arrow.to, src));
    println!("  {from} → {to}   {}:{} {}", graph.files[arrow.from], arrow.line, arrow.path);
}

impl Graph {
    /// A file's name in order files: `pool/state`.
    fn name<'a>(&'a self, file: usize, src: &str) -> &'a str {
        let path = &self.files[file];
        path.strip_prefix(src).unwrap_or(path).trim_end_matches(".rs")
    }
}

/// One crate's layers.
struct Order<'a> {
    source: &'a Source,
    /// Entries, each with its layer.
    entries: Vec<(&'a str, usize)>,
}

/// A file's layer.
#[derive(Debug, Clone, Copy)]
struct Rank<'a> {
    entry: &'a str,
    layer: usize,
}

impl<'a> Order<'a> {
    fn read(source: &'a Source) -> Self {
        let layers = source.text.lines().filter(|line| !line.starts_with('#')).enumerate();
        let entries = layers
            .flat_map(|(layer, line)| line.split_whitespace().map(move |entry| (entry, layer)))
            .collect();
        Self { source, entries }
    }

    /// The layer of every file; `None` for a file without an entry.
    fn ranks(&self, graph: &Graph, src: &str) -> Vec<Option<Rank<'a>>> {
        (0..graph.files.len()).map(|file| self.rank(graph.name(file, src))).collect()
    }

    /// `pool/clock/hand` belongs to the same layer as `pool/clock`, or to the layer of `pool` if
    /// the order doesn't list any children of `pool`. `lib` is always above all layers.
    fn rank(&self, name: &str) -> Option<Rank<'a>> {
        if name == "lib" {
            return Some(Rank { entry: "lib", layer: usize::MAX });
        }
        let (mut prefix, mut rest) = (name, "");
        loop {
            if let Some(&(entry, layer)) = self.entries.iter().find(|(entry, _)| *entry == prefix) {
                let folder = format!("{entry}/");
                let listed = self.entries.iter().any(|(other, _)| other.starts_with(&folder));
                return (rest.is_empty() || !listed).then_some(Rank { entry, layer });
            }
            (prefix, rest) = prefix.rsplit_once('/')?;
        }
    }
}

fn orders(sources: &Sources) -> Vec<(&str, Order<'_>)> {
    let ordered = sources.files.iter().filter_map(|source| {
        let package = source.path.strip_prefix(ORDERS)?.strip_suffix(".txt")?;
        Some((package, Order::read(source)))
    });
    ordered.collect()
}

fn src_of(package: &str) -> String {
    if package == "xtask" { "xtask/src/".to_owned() } else { format!("crates/{package}/src/") }
}

/// Edges that point to a higher layer, with both layers.
fn upwards<'g, 'o>(
    graph: &'g Graph,
    ranks: &[Option<Rank<'o>>],
) -> Vec<(&'g Arrow, [Rank<'o>; 2])> {
    let upward = |arrow: &'g Arrow| {
        let (from, to) = (ranks[arrow.from]?, ranks[arrow.to]?);
        (to.layer > from.layer).then_some((arrow, [from, to]))
    };
    graph.arrows.iter().filter_map(upward).collect()
}

/// The edges of a shortest cycle through a file.
fn way_round(graph: &Graph, start: usize) -> Vec<&Arrow> {
    let mut ways: Vec<Vec<&Arrow>> = vec![Vec::new()];
    let mut seen = vec![false; graph.files.len()];
    while !ways.is_empty() {
        let mut longer = Vec::new();
        for way in ways {
            let end = way.last().map_or(start, |arrow| arrow.to);
            for arrow in graph.arrows.iter().filter(|arrow| arrow.from == end) {
                if arrow.to == start {
                    return [&way[..], &[arrow]].concat();
                }
                if !std::mem::replace(&mut seen[arrow.to], true) {
                    longer.push([&way[..], &[arrow]].concat());
                }
            }
        }
        ways = longer;
    }
    Vec::new()
}
