//! The text of one description, and where it gets the names of relations from.

use std::fmt::{self, Display, Write as _};

use crate::control::PgVersion;
use crate::ids::Fork;
use crate::wal::locator::RelFileLocator;

/// Knows names of relations. `()` knows none.
pub trait RelationNames {
    /// The name of a relation, if it is known.
    fn name(&mut self, relation: RelFileLocator) -> Option<String>;
}

impl RelationNames for () {
    fn name(&mut self, _: RelFileLocator) -> Option<String> {
        None
    }
}

/// Collects a description.
pub(super) struct Text<'t> {
    text: String,
    version: PgVersion,
    names: &'t mut dyn RelationNames,
}

impl<'t> Text<'t> {
    pub(super) fn new(version: PgVersion, names: &'t mut dyn RelationNames) -> Self {
        Self { text: String::new(), version, names }
    }

    pub(super) fn push(&mut self, text: &str) {
        self.text.push_str(text);
    }

    /// Appends without a separator.
    pub(super) fn write(&mut self, arguments: fmt::Arguments<'_>) {
        let _ = self.text.write_fmt(arguments);
    }

    /// Appends behind a comma, unless it is the first part.
    pub(super) fn part(&mut self, arguments: fmt::Arguments<'_>) {
        if !self.text.is_empty() {
            self.text.push_str(", ");
        }
        self.write(arguments);
    }

    /// Appends ` a b c`, or nothing for an empty list.
    pub(super) fn words<T: Display>(&mut self, words: impl IntoIterator<Item = T>) {
        for word in words {
            self.write(format_args!(" {word}"));
        }
    }

    /// The name of a relation, or else the path of its file.
    pub(super) fn relation(&mut self, relation: RelFileLocator, fork: Fork) {
        match self.names.name(relation) {
            Some(name) if fork == Fork::Main => self.push(&name),
            Some(name) => self.write(format_args!("{name} fork {fork}")),
            None => self.write(format_args!("{}{}", relation.path(self.version), fork.suffix())),
        }
    }

    pub(super) fn finish(self) -> String {
        self.text
    }
}
