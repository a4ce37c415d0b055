//! **Statements.** Queries and the utility commands that a reader needs are trees; a command that
//! writes is reduced to its command tag, because all that is left to do is to refuse it.
//!
//! `insert into t values (1)` is [`Statement::Write`] with the tag `INSERT`, from which the executor
//! makes "cannot execute INSERT in a read-only transaction".

use super::names::{Name, QualifiedName, TypeName};
use super::parse_nodes::{Expression, SelectStatement};
use super::span::Span;

/// A statement of any kind.
#[derive(Clone, Debug, PartialEq)]
pub enum Statement {
    /// SELECT, VALUES, TABLE, WITH.
    Select(Box<SelectStatement>),
    /// EXPLAIN.
    Explain {
        /// `(ANALYZE, FORMAT json)`; the words of the old syntax are options too.
        options: Vec<CommandOption>,
        /// What is explained.
        statement: Box<Statement>,
    },
    /// SET and RESET.
    VariableSet {
        /// `SET LOCAL`.
        local: bool,
        /// What is set.
        action: VariableAction,
    },
    /// `SET TRANSACTION`, or `SET SESSION CHARACTERISTICS AS TRANSACTION`.
    SetTransaction {
        /// SESSION CHARACTERISTICS.
        session: bool,
        /// The modes.
        modes: Vec<TransactionMode>,
    },
    /// `SHOW name`; none for `SHOW ALL`.
    VariableShow(Option<SettingName>),
    /// ALTER SYSTEM.
    AlterSystem(VariableAction),
    /// BEGIN, COMMIT, SAVEPOINT and their like.
    Transaction(TransactionStatement),
    /// PREPARE.
    Prepare {
        /// The name of the prepared statement.
        name: Name,
        /// The declared types of its parameters.
        argument_types: Vec<TypeName>,
        /// The statement.
        statement: Box<Statement>,
    },
    /// EXECUTE.
    Execute {
        /// The name of the prepared statement.
        name: Name,
        /// The values of its parameters.
        parameters: Vec<Expression>,
    },
    /// `DEALLOCATE name`; none for `DEALLOCATE ALL`.
    Deallocate(Option<Name>),
    /// `DECLARE … CURSOR FOR`.
    DeclareCursor(DeclareCursor),
    /// FETCH and MOVE.
    Fetch(FetchStatement),
    /// `CLOSE name`; none for `CLOSE ALL`.
    ClosePortal(Option<Name>),
    /// `COPY … TO`.
    CopyTo(CopyTo),
    /// DISCARD.
    Discard(DiscardTarget),
    /// CREATE EXTENSION, which answers that an extension is built in.
    CreateExtension {
        /// IF NOT EXISTS.
        if_not_exists: bool,
        /// The extension.
        name: Name,
        /// SCHEMA, VERSION, CASCADE.
        options: Vec<CommandOption>,
    },
    /// CHECKPOINT.
    Checkpoint,
    /// LISTEN.
    Listen(Name),
    /// NOTIFY, with its payload.
    Notify(Name, Option<String>),
    /// `UNLISTEN name`; none for `UNLISTEN *`.
    Unlisten(Option<Name>),
    /// A command that writes, or that takes locks for writing.
    Write {
        /// The command tag, such as `CREATE TABLE`.
        command: &'static str,
    },
}

/// What SET, RESET and ALTER SYSTEM do to a setting.
#[derive(Clone, Debug, PartialEq)]
pub enum VariableAction {
    /// `SET name TO value, …`.
    Set {
        /// The setting.
        name: SettingName,
        /// The values; never empty.
        values: Vec<SettingValue>,
    },
    /// `SET name TO DEFAULT`.
    SetDefault(SettingName),
    /// `RESET name`.
    Reset(SettingName),
    /// `RESET ALL`.
    ResetAll,
}

/// The name of a setting, which may contain dots. `SET TIME ZONE` sets `timezone`, and so on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingName {
    /// The name.
    pub text: String,
    /// Where it is written.
    pub span: Span,
}

/// A value of a setting.
#[derive(Clone, Debug, PartialEq)]
pub struct SettingValue {
    /// What is written.
    pub value: OptionValue,
    /// Where.
    pub span: Span,
}

/// An option of a command, such as `FORMAT json`.
#[derive(Clone, Debug, PartialEq)]
pub struct CommandOption {
    /// The option's name.
    pub name: Name,
    /// Its value.
    pub value: OptionValue,
    /// From the name to the value.
    pub span: Span,
}

/// The value of an option or a setting.
#[derive(Clone, Debug, PartialEq)]
pub enum OptionValue {
    /// Nothing is written. For an option this means true.
    None,
    /// TRUE, FALSE, ON, OFF, or any other word; PostgreSQL keeps words as text.
    Word(String),
    /// A string constant.
    String(String),
    /// An integer.
    Integer(i32),
    /// Any other number, as it is written.
    Float(String),
    /// `SET TIME ZONE INTERVAL '…' …`: the string, and the type with its fields.
    Interval(String, Box<TypeName>),
    /// `*`
    Star,
    /// Several values in parentheses.
    List(Vec<OptionValue>),
    /// Several names, as of columns.
    Names(Vec<Name>),
}

/// A mode of BEGIN and SET TRANSACTION.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TransactionMode {
    /// ISOLATION LEVEL, as PostgreSQL shows it: `read committed`.
    IsolationLevel(&'static str),
    /// READ ONLY or READ WRITE.
    ReadOnly(bool),
    /// DEFERRABLE or NOT DEFERRABLE.
    Deferrable(bool),
    /// `SET TRANSACTION SNAPSHOT 'id'`.
    Snapshot(String),
}

/// Commands that begin and end transactions and savepoints.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TransactionStatement {
    /// BEGIN.
    Begin(Vec<TransactionMode>),
    /// START TRANSACTION, which differs in its command tag only.
    Start(Vec<TransactionMode>),
    /// COMMIT or END.
    Commit {
        /// AND CHAIN.
        chain: bool,
    },
    /// ROLLBACK or ABORT.
    Rollback {
        /// AND CHAIN.
        chain: bool,
    },
    /// SAVEPOINT.
    Savepoint(Name),
    /// RELEASE.
    Release(Name),
    /// ROLLBACK TO.
    RollbackTo(Name),
    /// PREPARE TRANSACTION.
    Prepare(String),
    /// COMMIT PREPARED.
    CommitPrepared(String),
    /// ROLLBACK PREPARED.
    RollbackPrepared(String),
}

/// `DECLARE … CURSOR FOR`.
#[derive(Clone, Debug, PartialEq)]
pub struct DeclareCursor {
    /// The cursor.
    pub name: Name,
    /// BINARY.
    pub binary: bool,
    /// `Some(true)` is SCROLL, `Some(false)` NO SCROLL.
    pub scroll: Option<bool>,
    /// `Some(true)` is INSENSITIVE, `Some(false)` ASENSITIVE.
    pub insensitive: Option<bool>,
    /// WITH HOLD.
    pub hold: bool,
    /// The query.
    pub query: Box<SelectStatement>,
}

/// FETCH or MOVE.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FetchStatement {
    /// MOVE: no rows are returned.
    pub is_move: bool,
    /// In which direction, or how, `count` is counted.
    pub direction: FetchDirection,
    /// How many rows or which row. `None` is ALL.
    pub count: Option<i32>,
    /// The cursor.
    pub cursor: Name,
}

/// The direction of FETCH. FIRST is `Absolute` 1, LAST `Absolute` -1, PRIOR `Backward` 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the variants are the words of the command")]
pub enum FetchDirection {
    Forward,
    Backward,
    Absolute,
    Relative,
}

/// `COPY … TO`.
#[derive(Clone, Debug, PartialEq)]
pub struct CopyTo {
    /// What is copied.
    pub source: CopySource,
    /// Where to.
    pub target: CopyTarget,
    /// `(FORMAT csv, HEADER)`; the words of the older syntax are options too.
    pub options: Vec<CommandOption>,
}

/// What COPY copies.
#[derive(Clone, Debug, PartialEq)]
pub enum CopySource {
    /// A relation and some of its columns; none means all.
    Relation(QualifiedName, Vec<Name>),
    /// A query.
    Query(Box<SelectStatement>),
}

/// Where COPY copies to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CopyTarget {
    /// STDOUT, and STDIN likewise.
    Stdout,
    /// A file of the server.
    File(String),
    /// A program of the server.
    Program(String),
}

/// What DISCARD discards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the variants are the words of the command")]
pub enum DiscardTarget {
    All,
    Plans,
    Sequences,
    Temporary,
}
