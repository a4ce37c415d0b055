//! **Commands that write**, of which only the tag is kept. Their grammar is not checked: a read-only
//! program refuses them in any case.
//!
//! `create unlogged table if not exists t (a int)` is `CREATE TABLE`, `create temp table t as select 1`
//! is `CREATE TABLE AS`. The body of `create function … begin atomic select 1; end` belongs to the command
//! although it contains a semicolon.

use super::parser::Parser;
use super::statement::Statement;
use super::token::TokenKind;
use crate::error::SqlError;

/// The kinds of objects, with the tags of the commands that create, alter and drop them.
struct Objects {
    words: &'static [&'static str],
    create: &'static str,
    alter: &'static str,
    drop: &'static str,
}

macro_rules! objects {
    ($($($word:literal)+ => $name:literal;)*) => {
        const OBJECTS: &[Objects] = &[$(Objects {
            words: &[$($word),+],
            create: concat!("CREATE ", $name),
            alter: concat!("ALTER ", $name),
            drop: concat!("DROP ", $name),
        }),*];
    };
}

// Of two entries that begin alike, the longer one comes first.
objects! {
    "access" "method" => "ACCESS METHOD";
    "aggregate" => "AGGREGATE";
    "cast" => "CAST";
    "collation" => "COLLATION";
    "conversion" => "CONVERSION";
    "database" => "DATABASE";
    "default" "privileges" => "DEFAULT PRIVILEGES";
    "domain" => "DOMAIN";
    "event" "trigger" => "EVENT TRIGGER";
    "extension" => "EXTENSION";
    "foreign" "data" "wrapper" => "FOREIGN DATA WRAPPER";
    "foreign" "table" => "FOREIGN TABLE";
    "function" => "FUNCTION";
    "group" => "ROLE";
    "index" => "INDEX";
    "language" => "LANGUAGE";
    "large" "object" => "LARGE OBJECT";
    "materialized" "view" => "MATERIALIZED VIEW";
    "operator" "class" => "OPERATOR CLASS";
    "operator" "family" => "OPERATOR FAMILY";
    "operator" => "OPERATOR";
    "owned" => "OWNED";
    "policy" => "POLICY";
    "procedure" => "PROCEDURE";
    "publication" => "PUBLICATION";
    "role" => "ROLE";
    "routine" => "ROUTINE";
    "rule" => "RULE";
    "schema" => "SCHEMA";
    "sequence" => "SEQUENCE";
    "server" => "SERVER";
    "statistics" => "STATISTICS";
    "subscription" => "SUBSCRIPTION";
    "table" => "TABLE";
    "tablespace" => "TABLESPACE";
    "text" "search" "configuration" => "TEXT SEARCH CONFIGURATION";
    "text" "search" "dictionary" => "TEXT SEARCH DICTIONARY";
    "text" "search" "parser" => "TEXT SEARCH PARSER";
    "text" "search" "template" => "TEXT SEARCH TEMPLATE";
    "transform" => "TRANSFORM";
    "trigger" => "TRIGGER";
    "type" => "TYPE";
    "user" "mapping" => "USER MAPPING";
    "user" => "ROLE";
    "view" => "VIEW";
}

/// Words between CREATE and the kind of object.
const CREATE_MODIFIERS: &[&str] = &[
    "or",
    "replace",
    "global",
    "local",
    "temporary",
    "temp",
    "unlogged",
    "recursive",
    "unique",
    "trusted",
    "procedural",
    "constraint",
];

/// Commands of one tag, by their first words.
const COMMANDS: &[(&[&str], &str)] = &[
    (&["truncate"], "TRUNCATE TABLE"),
    (&["comment", "on"], "COMMENT"),
    (&["security", "label"], "SECURITY LABEL"),
    (&["reassign", "owned"], "REASSIGN OWNED"),
    (&["import", "foreign", "schema"], "IMPORT FOREIGN SCHEMA"),
    (&["refresh", "materialized", "view"], "REFRESH MATERIALIZED VIEW"),
    (&["lock"], "LOCK TABLE"),
    (&["vacuum"], "VACUUM"),
    (&["analyze"], "ANALYZE"),
    (&["analyse"], "ANALYZE"),
    (&["cluster"], "CLUSTER"),
    (&["reindex"], "REINDEX"),
];

impl Parser<'_> {
    /// The tag of the command that changes rows and is next, if any.
    pub(super) fn row_command(&self) -> Option<&'static str> {
        match self.word(0) {
            "insert" => Some("INSERT"),
            "update" => Some("UPDATE"),
            "delete" => Some("DELETE"),
            "merge" => Some("MERGE"),
            _ => None,
        }
    }

    /// The tag of the command that is next, if it writes and is not one that changes rows.
    pub(super) fn write_command(&self) -> Option<&'static str> {
        match self.word(0) {
            "create" => self.create_command(),
            "alter" => self.object(1).map(|object| object.alter),
            "drop" => self.object(1).map(|object| object.drop),
            "grant" => Some(if self.grants_object() { "GRANT" } else { "GRANT ROLE" }),
            "revoke" => Some(if self.grants_object() { "REVOKE" } else { "REVOKE ROLE" }),
            _ => {
                let found = COMMANDS.iter().find(|(words, _)| self.at_words(words));
                found.map(|&(_, command)| command)
            }
        }
    }

    /// The kind of object named by the words `ahead` of the next one.
    fn object(&self, ahead: usize) -> Option<&'static Objects> {
        let matches = |object: &&Objects| {
            let mut words = object.words.iter().enumerate();
            words.all(|(index, &word)| self.word(ahead + index) == word)
        };
        OBJECTS.iter().find(matches)
    }

    fn create_command(&self) -> Option<&'static str> {
        let mut ahead = 1;
        while CREATE_MODIFIERS.contains(&self.word(ahead))
            || (self.word(ahead) == "default" && self.word(ahead + 1) == "conversion")
        {
            ahead += 1;
        }
        let create = self.object(ahead)?.create;
        Some(match create {
            "CREATE TABLE" if self.top_level_word("as") => "CREATE TABLE AS",
            // Without a handler, it creates the extension of that name.
            "CREATE LANGUAGE" if !self.top_level_word("handler") => "CREATE EXTENSION",
            _ => create,
        })
    }

    /// Whether a GRANT or REVOKE is about an object rather than about roles.
    fn grants_object(&self) -> bool {
        self.top_level_word("on")
    }

    /// Whether a word occurs in the statement outside parentheses.
    fn top_level_word(&self, word: &str) -> bool {
        let mut depth = 0_usize;
        for ahead in 0.. {
            match self.symbol(ahead) {
                "(" => depth += 1,
                ")" => depth = depth.saturating_sub(1),
                ";" if depth == 0 => return false,
                _ => {}
            }
            if matches!(self.peek(ahead), TokenKind::End | TokenKind::Malformed(_)) {
                return false;
            }
            if depth == 0 && self.word(ahead) == word {
                return true;
            }
        }
        false
    }

    /// Steps to the end of a command that writes, and returns its statement.
    pub(super) fn rest_of_write(&mut self, statement: Statement) -> Result<Statement, SqlError> {
        let mut depth = 0_usize;
        // The levels of BEGIN ATOMIC and CASE, inside which a semicolon ends no command.
        let mut blocks = 0_usize;
        loop {
            match self.peek(0) {
                TokenKind::End => return Ok(statement),
                TokenKind::Stray | TokenKind::Malformed(_) => return Err(self.unexpected()),
                _ => {}
            }
            match self.symbol(0) {
                "(" => depth += 1,
                ")" => depth = depth.saturating_sub(1),
                ";" if depth == 0 && blocks == 0 => return Ok(statement),
                _ => {}
            }
            match self.word(0) {
                "begin" if self.word(1) == "atomic" => blocks += 1,
                "case" if blocks > 0 => blocks += 1,
                "end" => blocks = blocks.saturating_sub(1),
                _ => {}
            }
            self.advance();
        }
    }
}
