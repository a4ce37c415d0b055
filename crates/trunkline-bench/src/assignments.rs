//! `-c name=value` assignments, checked against the rows that will run.
//!
//! We reject a setting that none of the chosen rows uses, because results measured under a silently
//! ignored setting would be misleading. For example, `-c checkpoint_timeout=30s` is valid for
//! `checkpoint-spread`, but not for `extend`.

use crate::failure::Result;
use crate::rows::{ROWS, Row};
use trunkline_engine::settings::Settings;

/// Parses the assignments into [`Settings`]. Fails if an assignment is malformed or if no chosen
/// row reads its setting.
pub(crate) fn read(assignments: &[String], rows: &[&Row]) -> Result<Settings> {
    let mut settings = Settings::default();
    let of_use = |row: &Row, name: &str| row.settings.contains(&name);
    for assignment in assignments {
        settings.set_assignment(assignment)?;
        let name = name(assignment);
        if !rows.iter().any(|row| of_use(row, &name)) {
            let others: Vec<&str> =
                ROWS.iter().filter(|row| of_use(row, &name)).map(|row| row.name).collect();
            let only = match others.is_empty() {
                true => "to no row".into(),
                false => format!("only to {}", others.join(", ")),
            };
            return Err(format!("setting \"{name}\" makes a difference {only}").into());
        }
    }
    Ok(settings)
}

/// Does any assignment set `wanted`?
pub(crate) fn contain(assignments: &[String], wanted: &str) -> bool {
    assignments.iter().any(|assignment| name(assignment) == wanted)
}

/// The setting's name, spelled as in the settings table.
fn name(assignment: &str) -> String {
    let name = assignment.split_once('=').map_or(assignment, |(name, _)| name);
    name.replace('-', "_").to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(assignment: &str, names: &[&str]) -> Option<String> {
        let rows: Vec<&Row> = ROWS.iter().filter(|row| names.contains(&row.name)).collect();
        read(&[assignment.into()], &rows).err().map(|error| error.to_string())
    }

    #[test]
    fn what_makes_no_difference_is_refused_by_name() {
        let checkpoint = ["checkpoint"];
        for taken in ["checkpoint_flush_after=0", "Checkpoint-Flush-After=1MB"] {
            assert_eq!(refused(taken, &checkpoint), None, "{taken}");
        }
        let cases = [
            ("checkpoint_timeout=1min", "\"checkpoint_timeout\"", "only to checkpoint-spread"),
            ("bgwriter-delay=1s", "\"bgwriter_delay\"", "only to bgwriter, bgwriter-paced"),
            ("io_method=sync", "\"io_method\"", "to no row"),
            ("io_workers=3", "\"io_workers\"", "to no row"),
        ];
        for (assignment, name, difference) in cases {
            let expected = format!("setting {name} makes a difference {difference}");
            assert_eq!(refused(assignment, &checkpoint), Some(expected));
        }
        let both = ["checkpoint", "checkpoint-spread"];
        assert_eq!(refused("checkpoint_timeout=1min", &both), None);
        assert!(refused("nonsense=1", &both).is_some_and(|text| text.contains("nonsense")));
    }

    #[test]
    fn assignments_are_found_however_they_are_written() {
        let assignments = ["Checkpoint-Timeout=30s".into()];
        assert!(contain(&assignments, "checkpoint_timeout"));
        assert!(!contain(&assignments, "checkpoint_flush_after"));
    }
}
