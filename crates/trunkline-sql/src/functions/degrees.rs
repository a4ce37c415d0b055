//! Trigonometric functions of degrees, which are exact where the result is: `sind(30)` is 0.5.
//!
//! Results near the angles with exact values are scaled so that they meet these values, which needs the
//! same steps as PostgreSQL's `float.c` has.

/// `RADIANS_PER_DEGREE`.
pub(super) const RADIANS_PER_DEGREE: f64 = 0.017_453_292_519_943_295;

/// The sine of an angle from 0 to 30 degrees.
fn small_sine(x: f64) -> f64 {
    let half = (30.0 * RADIANS_PER_DEGREE).sin();
    (x * RADIANS_PER_DEGREE).sin() / half / 2.0
}

/// The cosine of an angle from 0 to 60 degrees.
fn small_cosine(x: f64) -> f64 {
    let half = 1.0 - (60.0 * RADIANS_PER_DEGREE).cos();
    1.0 - (1.0 - (x * RADIANS_PER_DEGREE).cos()) / half / 2.0
}

/// The sine of an angle from 0 to 90 degrees.
fn quadrant_sine(x: f64) -> f64 {
    if x <= 30.0 { small_sine(x) } else { small_cosine(90.0 - x) }
}

/// The cosine of an angle from 0 to 90 degrees.
fn quadrant_cosine(x: f64) -> f64 {
    if x <= 60.0 { small_cosine(x) } else { small_sine(90.0 - x) }
}

/// An angle reduced to 0 to 90 degrees, and whether it was negative, above 180 and above 90 before.
fn reduce(x: f64) -> (f64, [bool; 3]) {
    let mut x = x % 360.0;
    let negative = x < 0.0;
    if negative {
        x = -x;
    }
    let lower = x > 180.0;
    if lower {
        x = 360.0 - x;
    }
    let left = x > 90.0;
    if left {
        x = 180.0 - x;
    }
    (x, [negative, lower, left])
}

fn signed(value: f64, negative: bool) -> f64 {
    if negative { -value } else { value }
}

/// `dsind`.
pub(super) fn sine(x: f64) -> f64 {
    let (x, [negative, lower, _]) = reduce(x);
    signed(quadrant_sine(x), negative != lower)
}

/// `dcosd`.
pub(super) fn cosine(x: f64) -> f64 {
    let (x, [_, _, left]) = reduce(x);
    signed(quadrant_cosine(x), left)
}

/// `dtand`. It is never -0.
pub(super) fn tangent(x: f64) -> f64 {
    let (x, [negative, lower, left]) = reduce(x);
    let unit = quadrant_sine(45.0) / quadrant_cosine(45.0);
    let tangent = quadrant_sine(x) / quadrant_cosine(x) / unit;
    signed(tangent, negative ^ lower ^ left) + 0.0
}

/// `dcotd`. It is never -0.
pub(super) fn cotangent(x: f64) -> f64 {
    let (x, [negative, lower, left]) = reduce(x);
    let unit = quadrant_cosine(45.0) / quadrant_sine(45.0);
    let cotangent = quadrant_cosine(x) / quadrant_sine(x) / unit;
    signed(cotangent, negative ^ lower ^ left) + 0.0
}

/// The inverse sine of a number from 0 to 1.
fn quadrant_inverse_sine(x: f64) -> f64 {
    match x <= 0.5 {
        true => x.asin() / 0.5_f64.asin() * 30.0,
        false => 90.0 - x.acos() / 0.5_f64.acos() * 60.0,
    }
}

/// `dasind`.
pub(super) fn inverse_sine(x: f64) -> f64 {
    if x.is_nan() {
        return x;
    }
    if x >= 0.0 { quadrant_inverse_sine(x) } else { -quadrant_inverse_sine(-x) }
}

/// `dacosd`.
pub(super) fn inverse_cosine(x: f64) -> f64 {
    if x.is_nan() {
        x
    } else if x < 0.0 {
        90.0 + quadrant_inverse_sine(-x)
    } else if x <= 0.5 {
        90.0 - x.asin() / 0.5_f64.asin() * 30.0
    } else {
        x.acos() / 0.5_f64.acos() * 60.0
    }
}

/// An angle in radians that an inverse tangent returned, in degrees.
pub(super) fn of_angle(angle: f64) -> f64 {
    angle / 1.0_f64.atan() * 45.0
}
