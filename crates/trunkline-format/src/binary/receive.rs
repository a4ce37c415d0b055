//! Receive functions of the types whose values don't contain values of other types.
//!
//! A receive function reads a message of exactly the length that its sender gave. Too few bytes are
//! an error of the protocol (08P01), and bytes that are left over are 22P03.
//!
//! Mirrors the functions `…recv` of PostgreSQL's `utils/adt`.

use super::message::Message;
use crate::numeric::{INFINITY, MINUS_INFINITY, NAN};
use crate::text_input::compound::valid_text;
use crate::text_input::date_time::{DATE_END, FIRST_DATE, FIRST_TIMESTAMP, TIMESTAMP_END, round};
use crate::text_input::error::InputError;
use crate::text_input::geometry::corners;
use crate::text_input::interval::adjust;
use crate::text_input::json::{Check, parse};
use crate::text_input::jsonb::jsonb;
use crate::text_input::network::{V4, V6, host_is_zero};
use crate::text_input::numeric::{Decimal, Modifier, write_fitted, write_special};
use crate::text_input::scalars::check_length;
use crate::text_input::strings;
use crate::text_output::{Base, StringType};

type Result<T> = std::result::Result<T, InputError>;

/// Microseconds in a day.
const DAY_US: i64 = 86_400_000_000;
/// `PG_SNAPSHOT_MAX_NXIP`: the most transactions of a snapshot.
const SNAPSHOT_MAX: i32 = 134_217_724;
/// `TZDISP_LIMIT`: offsets from UTC are below 16 hours.
const ZONE_END_S: i32 = 16 * 3600;

pub(super) fn invalid(message: impl Into<String>) -> InputError {
    InputError::new("22P03", message)
}

/// Reads a value of a common type.
pub(super) fn receive_base(
    base: Base,
    message: &mut Message<'_>,
    typmod: i32,
    major: u32,
    out: &mut Vec<u8>,
) -> Result<()> {
    match base {
        Base::Int2 => out.extend_from_slice(&message.number::<2>()?),
        Base::Int4 | Base::Float4 | Base::U32(_) | Base::RegType(_) => {
            out.extend_from_slice(&message.number::<4>()?);
        }
        Base::Int8 | Base::Float8 | Base::Money | Base::U64(_) | Base::Lsn => {
            out.extend_from_slice(&message.number::<8>()?);
        }
        Base::Bool => out.push(u8::from(message.byte()? != 0)),
        Base::Char => out.push(message.byte()?),
        Base::Text(kind) => return string(kind, message, typmod, out),
        Base::Bytea => out.extend_from_slice(message.rest()),
        Base::Numeric => return numeric(message, typmod, out),
        Base::Date => {
            let day = message.int()?;
            let valid = (FIRST_DATE..DATE_END).contains(&i64::from(day));
            if !valid && !matches!(day, i32::MIN | i32::MAX) {
                return Err(InputError::new("22008", "date out of range"));
            }
            out.extend_from_slice(&day.to_le_bytes());
        }
        Base::Time => out.extend_from_slice(&round(time(message)?, typmod).to_le_bytes()),
        Base::Timetz => {
            let micros = time(message)?;
            let west = message.int()?;
            if west <= -ZONE_END_S || west >= ZONE_END_S {
                return Err(InputError::new("22009", "time zone displacement out of range"));
            }
            out.extend_from_slice(&round(micros, typmod).to_le_bytes());
            out.extend_from_slice(&west.to_le_bytes());
        }
        Base::Timestamp | Base::Timestamptz => {
            let micros = i64::from_le_bytes(message.number()?);
            let valid = (FIRST_TIMESTAMP..TIMESTAMP_END).contains(&micros);
            if !valid && !matches!(micros, i64::MIN | i64::MAX) {
                return Err(InputError::new("22008", "timestamp out of range"));
            }
            out.extend_from_slice(&round(micros, typmod).to_le_bytes());
        }
        Base::Interval => {
            let value = (i64::from_le_bytes(message.number()?), message.int()?, message.int()?);
            let range = || InputError::new("22008", "interval out of range");
            let (micros, days, months) = adjust(value, typmod).ok_or_else(range)?;
            out.extend_from_slice(&micros.to_le_bytes());
            out.extend_from_slice(&days.to_le_bytes());
            out.extend_from_slice(&months.to_le_bytes());
        }
        _ => return receive_rare(base, message, typmod, major, out),
    }
    Ok(())
}

fn receive_rare(
    base: Base,
    message: &mut Message<'_>,
    typmod: i32,
    major: u32,
    out: &mut Vec<u8>,
) -> Result<()> {
    match base {
        Base::Name => {
            let name = valid_text(message.rest())?;
            if name.len() >= 64 {
                let detail = "Identifier must be less than 64 characters.";
                return Err(InputError::new("42622", "identifier too long").with_detail(detail));
            }
            strings::name(name, out);
        }
        Base::Uuid => out.extend_from_slice(message.take(16)?),
        Base::Macaddr => out.extend_from_slice(&message.octets::<6>()?),
        Base::Macaddr8 if message.left() == 6 => {
            out.extend_from_slice(message.take(3)?);
            out.extend_from_slice(&[0xFF, 0xFE]);
            out.extend_from_slice(message.take(3)?);
        }
        Base::Macaddr8 => out.extend_from_slice(&message.octets::<8>()?),
        Base::Tid => {
            let (block, item) = (message.int()? as u32, message.number::<2>()?);
            for half in [(block >> 16) as u16, block as u16] {
                out.extend_from_slice(&half.to_le_bytes());
            }
            out.extend_from_slice(&item);
        }
        Base::Inet => return address("inet", message, out),
        Base::Cidr => return address("cidr", message, out),
        Base::Bits(name) => return bits(name == "bit", message, typmod, out),
        Base::Jsonb => match u8::from_le_bytes(message.number()?) {
            1 => return jsonb(valid_text(message.rest())?, major, out),
            version => {
                let text = format!("unsupported jsonb version number {version}");
                return Err(InputError::new("XX000", text));
            }
        },
        Base::Points(name) => return points(name, message, out),
        Base::Path => {
            let closed = message.byte()?;
            let count = message.int()?;
            if count <= 0 || count >= (i32::MAX - 16) / 16 {
                return Err(invalid("invalid number of points in external \"path\" value"));
            }
            for word in [count, i32::from(closed != 0), 0] {
                out.extend_from_slice(&word.to_le_bytes());
            }
            message.doubles(count as usize * 2)?.iter().for_each(|n| out.extend(n.to_le_bytes()));
        }
        Base::Polygon => return polygon(message, out),
        Base::Snapshot => return snapshot(message, out),
        _ => {
            let name = format!("{base:?}").to_ascii_lowercase();
            let what = format!("receiving values of type {name} is not supported by trunkline");
            return Err(InputError::unsupported(what));
        }
    }
    Ok(())
}

fn string(
    kind: StringType,
    message: &mut Message<'_>,
    typmod: i32,
    out: &mut Vec<u8>,
) -> Result<()> {
    let text = valid_text(message.rest())?;
    match kind {
        StringType::Text => out.extend_from_slice(text.as_bytes()),
        StringType::Varchar => strings::varchar(text, typmod, out)?,
        StringType::Bpchar => strings::bpchar(text, typmod, out)?,
        StringType::Json => {
            parse(text, &mut Check)?;
            out.extend_from_slice(text.as_bytes());
        }
        StringType::NodeTree => {
            return Err(InputError::new("0A000", "cannot accept a value of type pg_node_tree"));
        }
    }
    Ok(())
}

fn time(message: &mut Message<'_>) -> Result<i64> {
    let micros = i64::from_le_bytes(message.number()?);
    match micros {
        0..=DAY_US => Ok(micros),
        _ => Err(InputError::new("22008", "time out of range")),
    }
}

/// The number of digits, the weight, sign and scale, and the digits.
fn numeric(message: &mut Message<'_>, typmod: i32, out: &mut Vec<u8>) -> Result<()> {
    let mut word = || message.number::<2>().map(u16::from_le_bytes);
    let (count, weight, sign) = (word()?, word()? as i16, word()?);
    if !matches!(sign, 0 | 0x4000 | NAN | INFINITY | MINUS_INFINITY) {
        return Err(invalid("invalid sign in external \"numeric\" value"));
    }
    let scale = word()?;
    if scale > 0x3FFF {
        return Err(invalid("invalid scale in external \"numeric\" value"));
    }
    let mut digits = Vec::with_capacity(usize::from(count).min(message.left() / 2) * 4);
    for _ in 0..count {
        let digit = message.number::<2>().map(u16::from_le_bytes)?;
        if digit >= 10_000 {
            return Err(invalid("invalid digit in external \"numeric\" value"));
        }
        digits.extend(
            [digit / 1000, digit / 100 % 10, digit / 10 % 10, digit % 10].map(|digit| digit as u8),
        );
    }
    if sign & 0xC000 == 0xC000 {
        return write_special(sign, Modifier::new(typmod), out);
    }
    let (point, scale) = ((i32::from(weight) + 1) * 4, i32::from(scale));
    let mut decimal = Decimal { negative: sign != 0, digits, point, scale };
    // Digits beyond the scale are cut off, without rounding.
    let kept = usize::try_from(point + scale).unwrap_or(0);
    decimal.digits.truncate(kept);
    write_fitted(decimal, typmod, out)
}

/// The family, the length in bits, whether it is a `cidr`, the number of octets, and the octets.
fn address(name: &str, message: &mut Message<'_>, out: &mut Vec<u8>) -> Result<()> {
    let wrong = |what: &str| Err(invalid(format!("invalid {what} in external \"{name}\" value")));
    let family = message.byte()?;
    let size = match family {
        V4 => 4,
        V6 => 16,
        _ => return wrong("address family"),
    };
    let bits = message.byte()?;
    if usize::from(bits) > size * 8 {
        return wrong("bits");
    }
    message.byte()?;
    if usize::from(message.byte()?) != size {
        return wrong("length");
    }
    let mut octets = [0; 16];
    let octets = octets.get_mut(..size).unwrap_or_default();
    for octet in octets.iter_mut() {
        *octet = message.byte()?;
    }
    if name == "cidr" && !host_is_zero(octets, bits.into()) {
        let detail = "Value has bits set to right of mask.";
        return Err(invalid("invalid external \"cidr\" value").with_detail(detail));
    }
    out.extend_from_slice(&[family, bits]);
    out.extend_from_slice(octets);
    Ok(())
}

/// The length in bits, and the bits, of which those after the last one are cleared.
fn bits(fixed: bool, message: &mut Message<'_>, typmod: i32, out: &mut Vec<u8>) -> Result<()> {
    let count = message.int()?;
    let length = usize::try_from(count).ok().filter(|_| count <= i32::MAX - 7);
    let length = length.ok_or_else(|| invalid("invalid length in external bit string"))?;
    check_length(length, fixed, typmod)?;
    out.extend_from_slice(&count.to_le_bytes());
    out.extend_from_slice(message.take(length.div_ceil(8))?);
    if let Some(last) = out.last_mut().filter(|_| length % 8 != 0) {
        *last &= 0xFF << (8 - length % 8);
    }
    Ok(())
}

/// A geometric type of fixed length.
fn points(name: &str, message: &mut Message<'_>, out: &mut Vec<u8>) -> Result<()> {
    let mut numbers = match name {
        "point" => message.doubles(2)?,
        "line" | "circle" => message.doubles(3)?,
        _ => message.doubles(4)?,
    };
    match (name, numbers.as_slice()) {
        ("circle", &[_, _, radius]) if radius < 0.0 => {
            return Err(invalid("invalid radius in external \"circle\" value"));
        }
        ("line", &[a, b, _]) if a.abs() <= 1e-6 && b.abs() <= 1e-6 => {
            return Err(invalid("invalid line specification: A and B cannot both be zero"));
        }
        ("box", &[a, b, c, d]) => {
            let [high, low] = corners(&[(a, b), (c, d)]);
            numbers = vec![high.0, high.1, low.0, low.1];
        }
        _ => {}
    }
    numbers.iter().for_each(|number| out.extend(number.to_le_bytes()));
    Ok(())
}

fn polygon(message: &mut Message<'_>, out: &mut Vec<u8>) -> Result<()> {
    let count = message.int()?;
    if count <= 0 || count >= (i32::MAX - 40) / 16 {
        return Err(invalid("invalid number of points in external \"polygon\" value"));
    }
    let numbers = message.doubles(count as usize * 2)?;
    let points: Vec<(f64, f64)> = numbers.as_chunks::<2>().0.iter().map(|&[x, y]| (x, y)).collect();
    out.extend_from_slice(&count.to_le_bytes());
    let corners = corners(&points);
    for (x, y) in corners.into_iter().chain(points) {
        out.extend_from_slice(&x.to_le_bytes());
        out.extend_from_slice(&y.to_le_bytes());
    }
    Ok(())
}

fn snapshot(message: &mut Message<'_>, out: &mut Vec<u8>) -> Result<()> {
    let invalid = || invalid("invalid external pg_snapshot data");
    let count = message.int()?;
    if !(0..=SNAPSHOT_MAX).contains(&count) {
        return Err(invalid());
    }
    let mut next = || message.number::<8>().map(u64::from_le_bytes);
    let (xmin, xmax) = (next()?, next()?);
    if xmin as u32 == 0 || xmax as u32 == 0 || xmax < xmin {
        return Err(invalid());
    }
    let mut running: Vec<u64> = Vec::new();
    for _ in 0..count {
        let xid = next()?;
        let last = running.last().copied().unwrap_or(0);
        if xid < last || xid < xmin || xmax < xid {
            return Err(invalid());
        }
        if xid != last {
            running.push(xid);
        }
    }
    out.extend_from_slice(&(running.len() as u32).to_le_bytes());
    for xid in [xmin, xmax].into_iter().chain(running) {
        out.extend_from_slice(&xid.to_le_bytes());
    }
    Ok(())
}
