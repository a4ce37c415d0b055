//! Commands that change or show the session: SET, RESET, SHOW, SET TRANSACTION, DISCARD, DEALLOCATE.

use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, StringViewArray};
use arrow_schema::{DataType, Field, Schema};
use trunkline_format::text_output::write_identifier;
use trunkline_sql::bound::SqlType;
use trunkline_sql::catalog::oids;
use trunkline_sql::syntax::{
    DiscardTarget, Name, OptionValue, SettingName, SettingValue, TransactionMode,
    TransactionStatement, VariableAction,
};
use trunkline_sql::values::Carrier;
use trunkline_sql::{SqlError, SqlState};

use super::outcome::{Notice, Outcome, Severity, TransactionStatus};
use super::refusal::check_modes;
use super::session::Session;
use crate::statement::{ResultColumn, Rows};

impl Session {
    /// SET and RESET.
    pub(super) fn set_variable(
        &mut self,
        local: bool,
        action: &VariableAction,
    ) -> Result<Outcome, SqlError> {
        if local && self.transaction_status() == TransactionStatus::Idle {
            self.warn(
                SqlState::NO_ACTIVE_SQL_TRANSACTION,
                "SET LOCAL can only be used in transaction blocks",
            );
        }
        let mut store = self.store.lock();
        let tag = match action {
            VariableAction::Set { name, values } => {
                let value = joined(&name.text, values, self.settings.major)?;
                store.set(&name.text, &value, local)?;
                "SET"
            }
            VariableAction::SetDefault(name) => {
                store.reset(&name.text, local)?;
                "SET"
            }
            VariableAction::Reset(name) => {
                store.reset(&name.text, local)?;
                "RESET"
            }
            VariableAction::ResetAll => {
                store.reset_all();
                "RESET"
            }
        };
        Ok(Outcome::Command(tag.to_owned()))
    }

    /// ALTER SYSTEM.
    pub(super) fn alter_system(&mut self, action: &VariableAction) -> Result<Outcome, SqlError> {
        if self.transaction_status() != TransactionStatus::Idle {
            let message = "ALTER SYSTEM cannot run inside a transaction block";
            return Err(SqlError::new(SqlState::ACTIVE_SQL_TRANSACTION, message));
        }
        let changed = |name: &SettingName, value: Option<String>| {
            self.store.lock().check_for_file(&name.text, value.as_deref())?;
            let key = name.text.to_ascii_lowercase();
            self.instance().change_configuration(|values| match value {
                Some(value) => {
                    values.insert(key, value);
                }
                None => {
                    values.remove(&key);
                }
            })
        };
        match action {
            VariableAction::Set { name, values } => {
                let value = joined(&name.text, values, self.settings.major)?;
                changed(name, Some(value))?;
            }
            VariableAction::SetDefault(name) | VariableAction::Reset(name) => changed(name, None)?,
            VariableAction::ResetAll => self.instance().change_configuration(|all| all.clear())?,
        }
        Ok(Outcome::Command("ALTER SYSTEM".to_owned()))
    }

    /// `SET TRANSACTION` and `SET SESSION CHARACTERISTICS`.
    pub(super) fn set_transaction(
        &mut self,
        session: bool,
        modes: &[TransactionMode],
    ) -> Result<Outcome, SqlError> {
        if !session && self.transaction_status() == TransactionStatus::Idle {
            self.warn(
                SqlState::NO_ACTIVE_SQL_TRANSACTION,
                "SET TRANSACTION can only be used in transaction blocks",
            );
        }
        check_modes(modes)?;
        let prefix = if session { "default_transaction_" } else { "transaction_" };
        let mut store = self.store.lock();
        for mode in modes {
            if let TransactionMode::IsolationLevel(level) = mode {
                store.set(&format!("{prefix}isolation"), level, !session)?;
            }
        }
        Ok(Outcome::Command("SET".to_owned()))
    }

    /// What a transaction command does to the settings, after it was executed with this tag.
    pub(super) fn follow_transaction(
        &mut self,
        command: &TransactionStatement,
        tag: &str,
    ) -> Result<(), SqlError> {
        let savepoints = self.transaction.savepoints();
        let is_in_block = self.transaction_status() != TransactionStatus::Idle;
        let mut store = self.store.lock();
        match command {
            TransactionStatement::Begin(modes) | TransactionStatement::Start(modes) => {
                if savepoints == 0 && !store.is_in_block() {
                    store.begin();
                }
                for mode in modes {
                    if let TransactionMode::IsolationLevel(level) = mode {
                        store.set("transaction_isolation", level, true)?;
                    }
                }
            }
            TransactionStatement::Commit { .. } | TransactionStatement::Rollback { .. } => {
                let isolation = store.value("transaction_isolation");
                store.end(tag == "COMMIT");
                if is_in_block {
                    store.begin();
                    store.set("transaction_isolation", &isolation, true)?;
                }
            }
            TransactionStatement::Savepoint(_) => store.save(),
            TransactionStatement::Release(_) => store.release(savepoints),
            TransactionStatement::RollbackTo(_) => store.return_to(savepoints.saturating_sub(1)),
            _ => {}
        }
        drop(store);
        match command {
            // A transaction that ends takes its portals with it, even if another one follows.
            TransactionStatement::Commit { .. } | TransactionStatement::Rollback { .. } => {
                self.pipeline_start = None;
                self.portals.clear();
                self.end_transaction_of_cursors(tag == "COMMIT");
            }
            TransactionStatement::Release(_) => self.follow_savepoint(false),
            TransactionStatement::RollbackTo(_) => self.follow_savepoint(true),
            _ => {}
        }
        Ok(())
    }

    /// SHOW.
    pub(super) fn show(&self, name: Option<&SettingName>) -> Result<Outcome, SqlError> {
        let columns = self.show_columns(name)?;
        let store = self.store.lock();
        let texts: Vec<Vec<String>> = match name {
            Some(name) => vec![vec![store.show(&name.text)?.1]],
            None => {
                let all = store.all().into_iter();
                all.map(|(name, value, short)| vec![name, value, short]).collect()
            }
        };
        let fields: Vec<Field> = (0..columns.len())
            .map(|number| Field::new(format!("r{number}"), DataType::Utf8View, true))
            .collect();
        let arrays = (0..columns.len()).map(|column| {
            let texts = texts.iter().filter_map(|row| row.get(column));
            Arc::new(StringViewArray::from_iter_values(texts)) as ArrayRef
        });
        let batch = RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays.collect());
        let batch = batch.map_err(|error| SqlError::internal(error.to_string()))?;
        Ok(Outcome::Rows { rows: Rows::in_memory(columns, vec![batch]), tag: "SHOW" })
    }

    /// The columns that SHOW returns.
    ///
    /// # Errors
    /// 42704: there is no such setting.
    pub(super) fn show_columns(
        &self,
        name: Option<&SettingName>,
    ) -> Result<Vec<ResultColumn>, SqlError> {
        let column = |name: String| ResultColumn {
            name: name.into(),
            ty: SqlType::new(oids::TEXT),
            carrier: Carrier::Text,
            origin: None,
        };
        Ok(match name {
            Some(name) => vec![column(self.store.lock().show(&name.text)?.0)],
            None => ["name", "setting", "description"].map(|name| column(name.to_owned())).into(),
        })
    }

    /// DISCARD.
    pub(super) fn discard(&mut self, target: DiscardTarget) -> Result<Outcome, SqlError> {
        let tag = match target {
            DiscardTarget::All => {
                if self.transaction_status() != TransactionStatus::Idle {
                    let message = "DISCARD ALL cannot run inside a transaction block";
                    return Err(SqlError::new(SqlState::ACTIVE_SQL_TRANSACTION, message));
                }
                self.portals.clear();
                self.cursors.clear();
                Arc::make_mut(&mut self.prepared).clear();
                self.store.lock().reset_all();
                "DISCARD ALL"
            }
            // A plan is made for each execution, there are no temporary tables, and no sequence has
            // been advanced.
            DiscardTarget::Plans => "DISCARD PLANS",
            DiscardTarget::Sequences => "DISCARD SEQUENCES",
            DiscardTarget::Temporary => "DISCARD TEMP",
        };
        Ok(Outcome::Command(tag.to_owned()))
    }

    /// DEALLOCATE.
    pub(super) fn deallocate(&mut self, name: Option<&Name>) -> Result<Outcome, SqlError> {
        let Some(name) = name else {
            Arc::make_mut(&mut self.prepared).clear();
            return Ok(Outcome::Command("DEALLOCATE ALL".to_owned()));
        };
        self.prepared(&name.text)?;
        Arc::make_mut(&mut self.prepared).remove(&name.text);
        Ok(Outcome::Command("DEALLOCATE".to_owned()))
    }

    fn warn(&mut self, code: SqlState, message: &str) {
        let fields = SqlError::new(code, message);
        self.notify(Notice { severity: Severity::Warning, fields });
    }
}

/// The values of SET as one text.
fn joined(name: &str, values: &[SettingValue], major: u32) -> Result<String, SqlError> {
    let is_path = name.eq_ignore_ascii_case("search_path");
    let is_list = is_path || name.eq_ignore_ascii_case("datestyle");
    if values.len() > 1 && !is_list {
        let message = format!("SET {name} takes only one argument");
        return Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message));
    }
    let mut texts = Vec::new();
    for value in values {
        texts.push(match &value.value {
            OptionValue::Word(text) | OptionValue::String(text) if is_path => {
                let mut quoted = Vec::new();
                write_identifier(text.as_bytes(), major, &mut quoted);
                String::from_utf8_lossy(&quoted).into_owned()
            }
            OptionValue::Word(text) | OptionValue::String(text) | OptionValue::Float(text) => {
                text.clone()
            }
            OptionValue::Integer(number) => number.to_string(),
            OptionValue::Interval(..) => {
                let message = "SET TIME ZONE INTERVAL is not supported by trunkline";
                return Err(
                    SqlError::unsupported(message).with_hint("Write the hours as a number.")
                );
            }
            _ => return Err(SqlError::internal("a value of SET that isn't one")),
        });
    }
    Ok(texts.join(", "))
}
