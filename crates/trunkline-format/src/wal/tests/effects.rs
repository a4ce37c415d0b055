//! Effects of all records of two logs of real servers, compared with their descriptions, which are
//! those of `pg_waldump`.

use std::collections::BTreeMap;

use super::servers::{START, log_of};
use crate::control::PgVersion;
use crate::ids::Lsn;
use crate::wal::resource_manager::number;
use crate::wal::test_log::{RecordBytes, megabyte};
use crate::wal::{
    Effect, LogChunk, LogEvent, LogIdentity, LogReader, Outcome, Record, Truncation, describe,
};

/// The kind of an effect, and parts that the description of its record must have.
fn expected(effect: &Effect<'_>) -> (&'static str, Vec<String>) {
    match effect {
        Effect::Checkpoint { checkpoint, is_shutdown } => {
            let xid = checkpoint.next_xid as u32;
            let kind = if *is_shutdown { "shutdown" } else { "online" };
            ("checkpoint", vec![format!(":{xid}; oid {}", checkpoint.next_oid), kind.to_owned()])
        }
        Effect::CheckpointRedo => ("redo", vec!["wal_level".to_owned()]),
        Effect::NextOid(oid) => ("oid", vec![oid.to_string()]),
        Effect::BackupEnd { start } => ("backup end", vec![start.to_string()]),
        Effect::RestorePoint { name, .. } => {
            ("restore point", vec![String::from_utf8_lossy(name).into_owned()])
        }
        Effect::Parameters(parameters) => {
            let limits = parameters.limits;
            let (first, last) = (limits[0], limits[4]);
            let first = format!("max_connections={first} ");
            ("parameters", vec![first, format!("max_locks_per_xact={last} ")])
        }
        Effect::FullPageWrites(is_on) => ("full page writes", vec![is_on.to_string()]),
        Effect::EndOfRecovery { timeline, previous_timeline } => {
            ("end of recovery", vec![format!("tli {timeline}; prev tli {previous_timeline}")])
        }
        Effect::TransactionEnd(end) => match end.outcome {
            Outcome::Committed => ("commit", vec![]),
            Outcome::Aborted => ("abort", vec![]),
        },
        Effect::Prepare(prepared) => {
            ("prepare", vec![String::from_utf8_lossy(&prepared.gid).into_owned()])
        }
        Effect::Create { relation, .. } => {
            ("create", vec![format!("/{}/{}", relation.database, relation.number)])
        }
        Effect::Truncate(truncation) => {
            let Truncation { blocks, main, visibility_map, free_space_map, .. } = *truncation;
            let flags =
                u8::from(main) + 2 * u8::from(visibility_map) + 4 * u8::from(free_space_map);
            ("truncate", vec![format!("to {blocks} blocks flags {flags}")])
        }
        Effect::ZeroCommitLog { page } => ("zero commit log", vec![format!("page {page}")]),
        Effect::TruncateCommitLog { oldest_xid, .. } => {
            ("truncate commit log", vec![format!("oldestXact {oldest_xid}")])
        }
        Effect::ZeroOffsets { page } => ("zero offsets", vec![page.to_string()]),
        Effect::ZeroMembers { page } => ("zero members", vec![page.to_string()]),
        Effect::CreateMultixact(multixact) => {
            let (multi, first) = (multixact.multi, multixact.first_member);
            let count = multixact.members.len();
            ("multixact", vec![format!("{multi} offset {first} nmembers {count}:")])
        }
        Effect::TruncateMultixacts { oldest, .. } => {
            ("truncate multixacts", vec![oldest.to_string()])
        }
        Effect::CopyDatabase { to, from } => {
            let text = format!("copy dir {}/{} to {}/{}", from.0, from.1, to.0, to.1);
            ("copy database", vec![text])
        }
        Effect::CreateDatabase { tablespace, database } => {
            ("create database", vec![format!("create dir {tablespace}/{database}")])
        }
        Effect::DropDatabase { database, tablespaces } => {
            let dirs = tablespaces.iter().map(|tablespace| format!("{tablespace}/{database}"));
            ("drop database", dirs.collect())
        }
        Effect::CreateTablespace { tablespace, path } => {
            let path = String::from_utf8_lossy(path);
            ("create tablespace", vec![format!("{tablespace} \"{path}\"")])
        }
        Effect::DropTablespace { tablespace } => ("drop tablespace", vec![tablespace.to_string()]),
        Effect::ReplaceRelationMap { database, tablespace, bytes } => {
            let size = bytes.len();
            let text = format!("database {database} tablespace {tablespace} size {size}");
            ("relation map", vec![text])
        }
        Effect::RunningTransactions { next_xid, oldest_running } => {
            let text = format!("nextXid {next_xid} ");
            ("running", vec![text, format!("oldestRunningXid {oldest_running}")])
        }
    }
}

/// Returns how many effects of each kind the log has.
fn check(version: PgVersion) -> BTreeMap<&'static str, u32> {
    let bytes = log_of(version);
    let log = LogIdentity { segment_size: megabyte(), system_identifier: None };
    let mut reader = LogReader::new(log, START);
    let chunk = LogChunk { start: START, bytes: &bytes };
    let mut kinds = BTreeMap::new();
    while let Some(LogEvent::Record(found)) = reader.next(&chunk) {
        let description = describe(&found.record, found.version, &mut ());
        let effect = Effect::of(&found.record, found.version);
        let effect = effect.unwrap_or_else(|error| panic!("{}: {error}", found.start));
        let Some(effect) = effect else { continue };
        let (kind, parts) = expected(&effect);
        for part in parts {
            let text = &description.text;
            assert!(text.contains(&part), "{}: {effect:?}, described as {text}", found.start);
        }
        *kinds.entry(kind).or_insert(0) += 1;
    }
    kinds
}

#[test]
fn effects_are_those_that_pg_waldump_describes() {
    for version in [PgVersion::V18, PgVersion::V19] {
        let kinds = check(version);
        for kind in
            ["abort", "checkpoint", "commit", "create", "multixact", "prepare", "redo", "running"]
        {
            assert!(kinds.contains_key(kind), "{version:?} has no {kind}: {kinds:?}");
        }
    }
}

/// Fields that moved between versions, and lists that are longer than their record.
#[test]
fn every_version_has_its_own_fields() {
    let effect = |manager, info, data: &[u8], version| {
        let bytes = RecordBytes::plain(manager, info, data).build(Lsn(0));
        let record = Record::parse(&bytes).expect("a record");
        Effect::of(&record, version).map(|effect| format!("{effect:?}"))
    };
    let page = |bytes: &[u8], version| effect(number::CLOG, 0x00, bytes, version);
    let zero = |page: u64| Ok(format!("Some(ZeroCommitLog {{ page: {page} }})"));
    assert_eq!(page(&7_i32.to_le_bytes(), PgVersion::V16), zero(7));
    assert_eq!(page(&(7_i64 << 32).to_le_bytes(), PgVersion::V17), zero(7 << 32));
    for (bytes, version) in [(&[0; 4][..], PgVersion::V17), (&[0xFF; 8], PgVersion::V18)] {
        let error = page(bytes, version).expect_err("no page number").to_string();
        assert!(error.starts_with("record ZEROPAGE of CLOG has"), "{error}");
    }
    let cut = [7_u32, 1663, 5, 16384, 3].map(u32::to_le_bytes).concat();
    let found = effect(number::STORAGE, 0x20, &cut, PgVersion::V15).expect("a truncation");
    let parts = ["blocks: 7", "main: true", "visibility_map: true", "free_space_map: false"];
    assert!(parts.iter().all(|part| found.contains(part)), "{found}");
    // Unknown operations are refused, not skipped: they may change anything.
    let error =
        effect(number::STORAGE, 0x50, &[], PgVersion::V18).expect_err("unknown").to_string();
    assert!(error.starts_with("record 0x50 of Storage has 0 bytes"), "{error}");
    assert!(effect(number::XLOG, 0xC0, &[], PgVersion::V18).is_err());
    assert!(effect(number::XLOG, 0xC0, &[], PgVersion::V19).is_ok());
    let members = [&5_u32.to_le_bytes()[..], &[0; 4], &1000_i32.to_le_bytes(), &[0; 16]].concat();
    assert!(effect(number::MULTIXACT, 0x20, &members, PgVersion::V18).is_err());
}
