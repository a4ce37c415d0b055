//! Where replay starts, and when the files are consistent.
//!
//! | Files | Starts at | Consistent |
//! |---|---|---|
//! | shut down, no label | nothing to replay | yes |
//! | shut down, and a signal file asks for the log of an archive | redo of the control file's checkpoint | there |
//! | crashed, or a snapshot of all files at one moment | redo of the control file's checkpoint | at the end of the log |
//! | standby, or an interrupted recovery of a backup | redo of the last restart point | at `minRecoveryPoint`, and after the record of the backup's end |
//! | base backup of a primary (`backup_label`) | redo of the label | after the record of the backup's end |
//! | base backup of a standby | redo of the label | at `minRecoveryPoint` |
//! | `pg_rewind` | redo of the label | at `minRecoveryPoint` |
//!
//! Before that point, the files contain pages of different moments, so no page may be shown.
//!
//! This module decides from values only. Mirrors `InitWalRecovery` and `CheckRecoveryConsistency` in
//! PostgreSQL's `access/transam/xlogrecovery.c`.

use trunkline_format::backup_label::BackupLabel;
use trunkline_format::{ClusterState, ControlFile, Lsn};

/// What a directory says about itself.
#[derive(Debug, Clone, Copy)]
pub struct Situation<'s> {
    /// The control file.
    pub control: &'s ControlFile,
    /// `backup_label`, if there is one.
    pub label: Option<&'s BackupLabel>,
    /// Whether there is a `recovery.signal` or a `standby.signal`.
    pub has_signal: bool,
    /// Whether log is also taken from folders besides `pg_wal`.
    pub has_archive: bool,
}

/// Where and how a log is replayed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReplayStart {
    /// The first record to replay.
    pub redo: Lsn,
    /// The checkpoint record, which must name `redo`.
    pub checkpoint: Lsn,
    /// The timeline of the checkpoint.
    pub timeline: u32,
    /// The timeline that is followed.
    pub target: TimelineTarget,
    /// When the files are consistent.
    pub consistency: Consistency,
}

/// The timeline that is followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimelineTarget {
    /// This one.
    Exactly(u32),
    /// The newest that has a history file, from this one on.
    NewestFrom(u32),
    /// The newest of them that the files fit. Nothing asks for another timeline than this one, but an archive may have
    /// one.
    NewestThatFits(u32),
}

/// When the files are consistent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Consistency {
    /// At the end of the log.
    EndOfLog {
        /// The checkpoint record, which the log must have.
        checkpoint: Lsn,
        /// Where the log must not end before: `minRecoveryPoint`.
        at_least: Lsn,
    },
    /// At this position.
    At(Lsn),
    /// Behind the record that a backup which began at `start` has ended, and not before `at_least`.
    BackupEnd {
        /// The redo position of the backup.
        start: Lsn,
        /// `minRecoveryPoint`, or the redo position.
        at_least: Lsn,
    },
}

/// Why a directory can't be replayed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum StartError {
    /// An incremental backup.
    #[error(
        "backup_label is of an incremental backup from {from}, which must be combined with the \
         backup it is based on"
    )]
    Incremental {
        /// Where the increment begins.
        from: Lsn,
    },
    /// A label of a standby in a directory that isn't one.
    #[error(
        "backup_label is of a backup of a standby, but global/pg_control says \"{state}\", \
         expected \"in archive recovery\" or \"shut down in recovery\""
    )]
    NotAStandby {
        /// The state in the control file.
        state: ClusterState,
    },
    /// The control file contains an undefined state.
    #[error("global/pg_control has the state \"{state}\"")]
    State {
        /// The state.
        state: ClusterState,
    },
    /// The checkpoint would be before its own redo position.
    #[error("the checkpoint at {checkpoint} has a later redo position, {redo}")]
    Order {
        /// The checkpoint record.
        checkpoint: Lsn,
        /// Its redo position.
        redo: Lsn,
    },
}

impl Situation<'_> {
    /// Decides where replay starts. `None` if the files are complete as they are.
    ///
    /// # Errors
    /// [`StartError`].
    pub fn start(&self) -> Result<Option<ReplayStart>, StartError> {
        let checkpoint = &self.control.checkpoint;
        let start = match self.label {
            Some(label) => ReplayStart {
                redo: label.redo,
                checkpoint: label.checkpoint,
                timeline: label.timeline,
                target: self.target(),
                consistency: self.of_label(label)?,
            },
            None => {
                let Some(consistency) = self.of_state()? else { return Ok(None) };
                ReplayStart {
                    redo: checkpoint.redo,
                    checkpoint: checkpoint.location,
                    timeline: checkpoint.timeline,
                    target: self.target(),
                    consistency,
                }
            }
        };
        if start.checkpoint < start.redo {
            let ReplayStart { checkpoint, redo, .. } = start;
            return Err(StartError::Order { checkpoint, redo });
        }
        Ok(Some(start))
    }

    /// Without a signal file, a server follows the timeline of the control file; otherwise the
    /// newest one (`recovery_target_timeline = latest`). A backup with an archive is read as if it had the signal
    /// file: a server would need one to read the archive. But the archive may also have timelines that were begun
    /// before this backup.
    fn target(&self) -> TimelineTarget {
        let ControlFile { checkpoint, min_recovery_point, min_recovery_timeline, .. } =
            self.control;
        let mut timeline = checkpoint.timeline;
        if *min_recovery_point > Lsn(0) {
            timeline = timeline.max(*min_recovery_timeline);
        }
        if self.has_signal {
            TimelineTarget::NewestFrom(timeline)
        } else if self.label.is_some() && self.has_archive {
            TimelineTarget::NewestThatFits(timeline)
        } else {
            TimelineTarget::Exactly(timeline)
        }
    }

    fn of_label(&self, label: &BackupLabel) -> Result<Consistency, StartError> {
        if let Some(from) = label.incremental_from {
            return Err(StartError::Incremental { from });
        }
        let (state, min) = (self.control.state, self.control.min_recovery_point);
        if label.is_of_standby {
            let is_standby =
                matches!(state, ClusterState::InArchiveRecovery | ClusterState::ShutDownInRecovery);
            if !is_standby {
                return Err(StartError::NotAStandby { state });
            }
            return Ok(Consistency::At(min.max(label.redo)));
        }
        Ok(match label.is_streamed {
            true => Consistency::BackupEnd { start: label.redo, at_least: label.redo },
            false => Consistency::At(min.max(label.redo)),
        })
    }

    fn of_state(&self) -> Result<Option<Consistency>, StartError> {
        let control = self.control;
        let min = control.min_recovery_point;
        // A recovery of a backup that did not get to the backup's end has kept what the label said.
        let at_least = min.max(control.checkpoint.redo);
        // A backup of a standby has no record of its end, whatever `backupEndRequired` says.
        let (start, end) = (control.backup_start, control.backup_end);
        let backup = match control.backup_end_required {
            _ if end > Lsn(0) => Some(Consistency::At(at_least.max(end))),
            true => Some(Consistency::BackupEnd { start, at_least }),
            false if start > Lsn(0) => Some(Consistency::At(at_least)),
            false => None,
        };
        match control.state {
            ClusterState::ShutDown if self.has_signal => Ok(Some(Consistency::At(at_least))),
            ClusterState::ShutDown => Ok(None),
            ClusterState::ShutDownInRecovery | ClusterState::InArchiveRecovery => {
                Ok(Some(backup.unwrap_or(Consistency::At(at_least))))
            }
            ClusterState::StartingUp
            | ClusterState::ShuttingDown
            | ClusterState::InCrashRecovery
            | ClusterState::InProduction => Ok(Some(match backup {
                Some(backup) => backup,
                None => {
                    let checkpoint = control.checkpoint.location;
                    Consistency::EndOfLog { checkpoint, at_least: min }
                }
            })),
            state @ ClusterState::Unrecognized(_) => Err(StartError::State { state }),
        }
    }
}

impl Consistency {
    /// Whether files are consistent before the log's end, so that replay may stop there.
    pub fn allows_stopping(&self) -> bool {
        !matches!(self, Self::EndOfLog { .. })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LABEL: BackupLabel = BackupLabel {
        redo: Lsn(0x200),
        checkpoint: Lsn(0x280),
        timeline: 1,
        is_streamed: true,
        is_of_standby: false,
        incremental_from: None,
    };

    /// The control file of a real cluster.
    fn real_control() -> ControlFile {
        let hex = include_str!("../../../trunkline-format/testdata/control-18.hex");
        let digits: Vec<u8> = hex.bytes().filter(u8::is_ascii_hexdigit).collect();
        let byte = |pair: &[u8]| {
            u8::from_str_radix(std::str::from_utf8(pair).expect("digits"), 16).expect("digits")
        };
        let bytes: Vec<u8> = digits.chunks(2).map(byte).collect();
        ControlFile::parse(&bytes).expect("valid")
    }

    /// A control file whose checkpoint at 0/180 on timeline 2 has the redo position 0/100.
    fn control(state: ClusterState) -> ControlFile {
        let mut control = real_control();
        control.state = state;
        control.checkpoint.location = Lsn(0x180);
        control.checkpoint.redo = Lsn(0x100);
        control.checkpoint.timeline = 2;
        control.min_recovery_point = Lsn(0);
        control.min_recovery_timeline = 0;
        control.backup_start = Lsn(0);
        control.backup_end = Lsn(0);
        control.backup_end_required = false;
        control
    }

    fn situation<'s>(
        control: &'s ControlFile,
        label: Option<&'s BackupLabel>,
        has_signal: bool,
    ) -> Situation<'s> {
        Situation { control, label, has_signal, has_archive: false }
    }

    fn start(
        control: &ControlFile,
        label: Option<&BackupLabel>,
    ) -> Result<Option<Consistency>, StartError> {
        let start = situation(control, label, false).start()?;
        Ok(start.map(|start| start.consistency))
    }

    #[test]
    fn the_state_decides_without_a_label() {
        use ClusterState::*;
        assert_eq!(start(&control(ShutDown), None), Ok(None));
        for state in [StartingUp, ShuttingDown, InCrashRecovery, InProduction] {
            let control = control(state);
            let expected = ReplayStart {
                redo: Lsn(0x100),
                checkpoint: Lsn(0x180),
                timeline: 2,
                target: TimelineTarget::Exactly(2),
                consistency: Consistency::EndOfLog { checkpoint: Lsn(0x180), at_least: Lsn(0) },
            };
            let found = situation(&control, None, false).start();
            assert_eq!(found, Ok(Some(expected)), "{state}");
        }
        for state in [ShutDownInRecovery, InArchiveRecovery] {
            let mut standby = control(state);
            standby.min_recovery_point = Lsn(0x300);
            assert_eq!(start(&standby, None), Ok(Some(Consistency::At(Lsn(0x300)))), "{state}");
            standby.min_recovery_point = Lsn(0);
            assert_eq!(start(&standby, None), Ok(Some(Consistency::At(Lsn(0x100)))), "{state}");
            // A recovery of a backup that was cut short: of a primary, and of a standby.
            standby.min_recovery_point = Lsn(0x300);
            standby.backup_start = Lsn(0xF0);
            standby.backup_end_required = true;
            let expected = Consistency::BackupEnd { start: Lsn(0xF0), at_least: Lsn(0x300) };
            assert_eq!(start(&standby, None), Ok(Some(expected)));
            standby.backup_end = Lsn(0x400);
            for is_required in [true, false] {
                standby.backup_end_required = is_required;
                assert_eq!(start(&standby, None), Ok(Some(Consistency::At(Lsn(0x400)))));
            }
        }
        let error = start(&control(Unrecognized(9)), None).expect_err("undefined");
        assert_eq!(error, StartError::State { state: Unrecognized(9) });
    }

    #[test]
    fn a_label_decides_whatever_the_state() {
        use ClusterState::*;
        let expected = Consistency::BackupEnd { start: Lsn(0x200), at_least: Lsn(0x200) };
        for state in [ShutDown, InProduction, InArchiveRecovery] {
            assert_eq!(start(&control(state), Some(&LABEL)), Ok(Some(expected)), "{state}");
        }
        let rewound = BackupLabel { is_streamed: false, ..LABEL };
        let mut standby = control(InArchiveRecovery);
        standby.min_recovery_point = Lsn(0x500);
        assert_eq!(start(&standby, Some(&rewound)), Ok(Some(Consistency::At(Lsn(0x500)))));
        let of_standby = BackupLabel { is_of_standby: true, ..LABEL };
        assert_eq!(start(&standby, Some(&of_standby)), Ok(Some(Consistency::At(Lsn(0x500)))));
        let error = start(&control(InProduction), Some(&of_standby)).expect_err("no standby");
        assert_eq!(error, StartError::NotAStandby { state: InProduction });
        let incremental = BackupLabel { incremental_from: Some(Lsn(0x50)), ..LABEL };
        let error = start(&standby, Some(&incremental)).expect_err("incremental");
        assert_eq!(error, StartError::Incremental { from: Lsn(0x50) });
        let reversed = BackupLabel { redo: Lsn(0x300), ..LABEL };
        assert!(matches!(start(&standby, Some(&reversed)), Err(StartError::Order { .. })));
    }

    #[test]
    fn a_signal_file_asks_for_the_log_of_an_archive() {
        let control = control(ClusterState::ShutDown);
        let found = situation(&control, None, true).start();
        let expected = ReplayStart {
            redo: Lsn(0x100),
            checkpoint: Lsn(0x180),
            timeline: 2,
            target: TimelineTarget::NewestFrom(2),
            consistency: Consistency::At(Lsn(0x100)),
        };
        assert_eq!(found, Ok(Some(expected)));
    }

    #[test]
    fn a_signal_file_asks_for_the_newest_timeline() {
        let mut standby = control(ClusterState::InArchiveRecovery);
        let target = |control: &ControlFile, has_signal| {
            let found = situation(control, None, has_signal).start();
            found.expect("valid").expect("needed").target
        };
        assert_eq!(target(&standby, false), TimelineTarget::Exactly(2));
        assert_eq!(target(&standby, true), TimelineTarget::NewestFrom(2));
        // So does an archive, but only for a backup.
        for (label, expected) in
            [(None, TimelineTarget::Exactly(2)), (Some(&LABEL), TimelineTarget::NewestThatFits(2))]
        {
            let with_archive = Situation { has_archive: true, ..situation(&standby, label, false) };
            assert_eq!(with_archive.start().expect("valid").expect("needed").target, expected);
        }
        (standby.min_recovery_point, standby.min_recovery_timeline) = (Lsn(0x300), 3);
        assert_eq!(target(&standby, false), TimelineTarget::Exactly(3));
    }
}
