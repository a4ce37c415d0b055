//! The cells of a block of rows: texts, and the options of a table.

/// The cells of some rows.
#[derive(Debug, Default)]
pub(super) struct Cells {
    /// The bytes of all cells.
    bytes: Vec<u8>,
    /// Where each cell ends.
    ends: Vec<usize>,
    /// How many rows there are.
    rows: usize,
}

impl Cells {
    /// Appends a cell, which `write` appends to the bytes.
    pub(super) fn push<E>(
        &mut self,
        write: impl FnOnce(&mut Vec<u8>) -> Result<(), E>,
    ) -> Result<(), E> {
        write(&mut self.bytes)?;
        self.ends.push(self.bytes.len());
        Ok(())
    }

    /// Ends a row.
    pub(super) fn end_row(&mut self) {
        self.rows += 1;
    }

    /// How many rows there are.
    pub(super) fn rows(&self) -> usize {
        self.rows
    }

    /// How many bytes of text there are.
    pub(super) fn size(&self) -> usize {
        self.bytes.len()
    }

    /// Removes all rows.
    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
        self.rows = 0;
    }

    /// All cells, row by row.
    pub(super) fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        let ranges = starts.zip(&self.ends);
        ranges.map(|(start, end)| self.bytes.get(start..*end).unwrap_or_default())
    }
}

/// A table in the text formats.
#[derive(Debug)]
pub(super) struct Table {
    /// The names of the columns.
    pub(super) names: Vec<Vec<u8>>,
    /// Which columns are aligned to the right.
    pub(super) right: Vec<bool>,
    /// Whether only the rows are printed.
    pub(super) tuples_only: bool,
    /// How many rows were printed before this block.
    pub(super) printed: usize,
}

/// Which part of a result a block is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Part {
    /// It begins the result.
    pub(super) first: bool,
    /// It ends the result.
    pub(super) last: bool,
}

impl Table {
    /// `(2 rows)`.
    pub(super) fn footer(&self, cells: &Cells) -> String {
        match self.printed + cells.rows() {
            1 => "(1 row)".to_owned(),
            rows => format!("({rows} rows)"),
        }
    }
}
