//! **Generator**: the state of random generation, and the choices that all parts make with it, for
//! example `generator.chance(30)` or `generator.pick(&["=", "<"])`.

use trunkline_aio::facade::random::Rng;

use super::kinds::Kind;
use super::tables::Table;

/// Generates one query after another.
pub(crate) struct Generator<'a> {
    rng: Rng,
    pub(super) tables: &'a [Table],
    aliases: u32,
}

/// The columns that an expression can use, written with their relation's alias.
#[derive(Debug, Clone, Default)]
pub(super) struct Scope<'a> {
    pub(super) columns: Vec<Visible<'a>>,
    /// About how often the expression is evaluated.
    pub(super) rows: u64,
}

/// A column in scope.
#[derive(Debug, Clone)]
pub(super) struct Visible<'a> {
    pub(super) name: String,
    pub(super) kind: Kind,
    /// Texts of some of its values; none if it isn't a table's column.
    pub(super) samples: &'a [String],
}

impl<'a> Generator<'a> {
    /// A generator of queries over these tables, of which there must be at least one.
    pub(crate) fn new(tables: &'a [Table], seed: u64) -> Self {
        assert!(!tables.is_empty(), "random queries need a table");
        Self { rng: Rng::new(seed), tables, aliases: 0 }
    }

    /// A number below `bound`.
    pub(super) fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.rng.below(bound as u64)).expect("less than bound")
    }

    /// True with this probability, in percent.
    pub(super) fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    pub(super) fn pick<'b, T>(&mut self, values: &'b [T]) -> &'b T {
        &values[self.below(values.len())]
    }

    /// A name that no other relation of the query has.
    pub(super) fn alias(&mut self) -> String {
        self.aliases += 1;
        format!("t{}", self.aliases)
    }

    /// Starts to count aliases anew.
    pub(super) fn begin(&mut self) {
        self.aliases = 0;
    }
}

impl Scope<'_> {
    pub(super) fn of(&self, kind: Kind) -> Vec<&str> {
        let columns = self.columns.iter().filter(|column| column.kind == kind);
        columns.map(|column| column.name.as_str()).collect()
    }
}
