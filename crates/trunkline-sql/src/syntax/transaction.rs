//! **Transaction control**: BEGIN, COMMIT, ROLLBACK, savepoints, and the modes of a transaction.
//!
//! `START TRANSACTION ISOLATION LEVEL SERIALIZABLE, READ ONLY` has two modes. The comma may be left out.

use super::parser::Parser;
use super::statement::{TransactionMode, TransactionStatement};
use crate::error::SqlError;

impl Parser<'_> {
    /// Reads a statement that begins with one of these words.
    pub(super) fn transaction(&mut self) -> Result<TransactionStatement, SqlError> {
        let word = self.word(0);
        self.advance();
        Ok(match word {
            "begin" => {
                self.accept_one(&["work", "transaction"]);
                TransactionStatement::Begin(self.transaction_modes()?)
            }
            "start" => {
                self.expect("transaction")?;
                TransactionStatement::Start(self.transaction_modes()?)
            }
            "savepoint" => TransactionStatement::Savepoint(self.column_id()?),
            "release" => {
                if self.at("savepoint") && self.is_name(1, super::parser::is_column_id) {
                    self.advance();
                }
                TransactionStatement::Release(self.column_id()?)
            }
            "prepare" => {
                self.expect("transaction")?;
                TransactionStatement::Prepare(self.string()?)
            }
            "commit" if self.accept("prepared") => {
                TransactionStatement::CommitPrepared(self.string()?)
            }
            "rollback" if self.accept("prepared") => {
                TransactionStatement::RollbackPrepared(self.string()?)
            }
            "commit" | "end" => {
                self.accept_one(&["work", "transaction"]);
                TransactionStatement::Commit { chain: self.chain()? }
            }
            _ => {
                self.accept_one(&["work", "transaction"]);
                if word == "rollback" && self.accept("to") {
                    if self.at("savepoint") && self.is_name(1, super::parser::is_column_id) {
                        self.advance();
                    }
                    return Ok(TransactionStatement::RollbackTo(self.column_id()?));
                }
                TransactionStatement::Rollback { chain: self.chain()? }
            }
        })
    }

    /// Reads AND CHAIN or AND NO CHAIN.
    fn chain(&mut self) -> Result<bool, SqlError> {
        if !self.accept("and") {
            return Ok(false);
        }
        let chain = !self.accept("no");
        self.expect("chain")?;
        Ok(chain)
    }

    /// Reads the modes of a transaction, or none.
    pub(super) fn transaction_modes(&mut self) -> Result<Vec<TransactionMode>, SqlError> {
        let mut modes = Vec::new();
        loop {
            let mode = if self.accept("isolation") {
                self.expect("level")?;
                TransactionMode::IsolationLevel(self.isolation_level()?)
            } else if self.accept("read") {
                let read_only = self.accept("only");
                if !read_only {
                    self.expect("write")?;
                }
                TransactionMode::ReadOnly(read_only)
            } else if self.accept("deferrable") {
                TransactionMode::Deferrable(true)
            } else if self.accept_words(&["not", "deferrable"]) {
                TransactionMode::Deferrable(false)
            } else {
                return Ok(modes);
            };
            modes.push(mode);
            if self.at_symbol(",") {
                self.advance();
                if !matches!(self.word(0), "isolation" | "read" | "deferrable" | "not") {
                    return Err(self.unexpected());
                }
            }
        }
    }

    fn isolation_level(&mut self) -> Result<&'static str, SqlError> {
        let levels: &[(&[&str], &'static str)] = &[
            (&["read", "uncommitted"], "read uncommitted"),
            (&["read", "committed"], "read committed"),
            (&["repeatable", "read"], "repeatable read"),
            (&["serializable"], "serializable"),
        ];
        for (words, level) in levels {
            if self.accept_words(words) {
                return Ok(level);
            }
        }
        if matches!(self.word(0), "read" | "repeatable") {
            self.advance();
        }
        Err(self.unexpected())
    }
}
