//! How long a statement took, as psql prints it.

use std::time::Duration;

/// `Time: 12.345 ms`, and minutes, hours and days if there are any.
pub(super) fn time(taken: Duration) -> String {
    let ms = taken.as_secs_f64() * 1000.0;
    let mut text = format!("Time: {ms:.3} ms");
    if ms < 1000.0 {
        return text;
    }
    let total = taken.as_secs();
    let seconds = taken.as_secs_f64() - (total / 60 * 60) as f64;
    let (days, hours, minutes) = (total / 86_400, total / 3600 % 24, total / 60 % 60);
    text += &match (days, hours) {
        (0, 0) => format!(" ({minutes:02}:{seconds:06.3})"),
        (0, _) => format!(" ({hours:02}:{minutes:02}:{seconds:06.3})"),
        _ => format!(" ({days} d {hours:02}:{minutes:02}:{seconds:06.3})"),
    };
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn longer_units_appear_when_they_are_reached() {
        for (ms, expected) in [
            (12, "Time: 12.000 ms"),
            (1500, "Time: 1500.000 ms (00:01.500)"),
            (3_661_000, "Time: 3661000.000 ms (01:01:01.000)"),
            (90_061_001, "Time: 90061001.000 ms (1 d 01:01:01.001)"),
        ] {
            assert_eq!(time(Duration::from_millis(ms)), expected);
        }
    }
}
