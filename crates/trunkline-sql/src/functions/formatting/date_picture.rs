//! Format pictures of dates, times and intervals, such as `YYYY-MM-DD HH24:MI:SS`.
//!
//! ```text
//!   "FMDDth Month"  ──▶  Field(DD, FM, th)  Space  Field(Month)
//! ```
//!
//! A picture is read from left to right, and the first keyword in the table that fits is taken, so
//! longer keywords come before those that they begin with. Text in double quotes is literal.
//!
//! Mirrors `parse_format` and `DCH_keywords` of PostgreSQL's `utils/adt/formatting.c`.

/// What a keyword stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Key {
    /// AM or PM; with dots if true.
    Meridian(bool),
    /// AD or BC; with dots if true.
    Era(bool),
    Century,
    DayName,
    DayOfYear,
    Day,
    DayShort,
    Weekday,
    /// The first digits of a second's fraction.
    Fraction(u32),
    /// `FX`: input must have the widths of the picture.
    Exact,
    Hour24,
    Hour12,
    IsoDayOfYear,
    IsoWeekday,
    IsoWeek,
    /// The last digits of the ISO year.
    IsoYear(u32),
    Julian,
    Minute,
    Month,
    MonthName,
    MonthShort,
    Millisecond,
    Offset,
    Quarter,
    RomanMonth,
    SecondsOfDay,
    Second,
    ZoneHours,
    ZoneMinutes,
    Zone,
    Microsecond,
    WeekOfYear,
    WeekOfMonth,
    /// `Y,YYY`.
    YearWithComma,
    /// The last digits of the year.
    Year(u32),
}

/// The keywords in the order in which they are tried. Keywords in lower case are the same fields.
const KEYWORDS: &[(&str, Key)] = &[
    ("A.D.", Key::Era(true)),
    ("A.M.", Key::Meridian(true)),
    ("AD", Key::Era(false)),
    ("AM", Key::Meridian(false)),
    ("B.C.", Key::Era(true)),
    ("BC", Key::Era(false)),
    ("CC", Key::Century),
    ("DAY", Key::DayName),
    ("DDD", Key::DayOfYear),
    ("DD", Key::Day),
    ("DY", Key::DayShort),
    ("Day", Key::DayName),
    ("Dy", Key::DayShort),
    ("D", Key::Weekday),
    ("FF1", Key::Fraction(1)),
    ("FF2", Key::Fraction(2)),
    ("FF3", Key::Fraction(3)),
    ("FF4", Key::Fraction(4)),
    ("FF5", Key::Fraction(5)),
    ("FF6", Key::Fraction(6)),
    ("FX", Key::Exact),
    ("HH24", Key::Hour24),
    ("HH12", Key::Hour12),
    ("HH", Key::Hour12),
    ("IDDD", Key::IsoDayOfYear),
    ("ID", Key::IsoWeekday),
    ("IW", Key::IsoWeek),
    ("IYYY", Key::IsoYear(4)),
    ("IYY", Key::IsoYear(3)),
    ("IY", Key::IsoYear(2)),
    ("I", Key::IsoYear(1)),
    ("J", Key::Julian),
    ("MI", Key::Minute),
    ("MM", Key::Month),
    ("MONTH", Key::MonthName),
    ("MON", Key::MonthShort),
    ("MS", Key::Millisecond),
    ("Month", Key::MonthName),
    ("Mon", Key::MonthShort),
    ("OF", Key::Offset),
    ("P.M.", Key::Meridian(true)),
    ("PM", Key::Meridian(false)),
    ("Q", Key::Quarter),
    ("RM", Key::RomanMonth),
    ("SSSSS", Key::SecondsOfDay),
    ("SSSS", Key::SecondsOfDay),
    ("SS", Key::Second),
    ("TZH", Key::ZoneHours),
    ("TZM", Key::ZoneMinutes),
    ("TZ", Key::Zone),
    ("US", Key::Microsecond),
    ("WW", Key::WeekOfYear),
    ("W", Key::WeekOfMonth),
    ("Y,YYY", Key::YearWithComma),
    ("YYYY", Key::Year(4)),
    ("YYY", Key::Year(3)),
    ("YY", Key::Year(2)),
    ("Y", Key::Year(1)),
];

/// An ordinal suffix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ordinal {
    /// `ST`, `ND`, `RD`, `TH`.
    Upper,
    /// `st`, `nd`, `rd`, `th`.
    Lower,
}

impl Ordinal {
    /// The suffix of a number that is given by its last digits.
    pub(super) fn suffix(self, digits: &str) -> &'static str {
        let (last, before) = match digits.as_bytes() {
            [.., before, last] => (*last, Some(*before)),
            [last] => (*last, None),
            [] => (b'0', None),
        };
        let at = match last {
            // The teens.
            _ if before == Some(b'1') => 3,
            b'1' => 0,
            b'2' => 1,
            b'3' => 2,
            _ => 3,
        };
        match self {
            Self::Upper => ["ST", "ND", "RD", "TH"][at],
            Self::Lower => ["st", "nd", "rd", "th"][at],
        }
    }
}

/// A field of a picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Field {
    pub(super) key: Key,
    /// The keyword in upper case, or as `Month`.
    name: &'static str,
    /// Whether the keyword is in lower case.
    is_lower: bool,
    /// `FM`: without padding.
    pub(super) fill: bool,
    /// `TM`: names of days and months in the language of the session.
    pub(super) translated: bool,
    pub(super) ordinal: Option<Ordinal>,
}

impl Field {
    /// The keyword as it was written.
    pub(super) fn name(&self) -> String {
        if self.is_lower { self.name.to_ascii_lowercase() } else { self.name.to_owned() }
    }

    /// The length of the keyword.
    pub(super) fn len(&self) -> usize {
        self.name.len()
    }

    /// A text in the case of the keyword.
    pub(super) fn in_case(&self, text: &str) -> String {
        match self.is_lower {
            true => text.to_ascii_lowercase(),
            false if self.name.bytes().any(|byte| byte.is_ascii_lowercase()) => text.to_owned(),
            false => text.to_ascii_uppercase(),
        }
    }
}

/// A part of a picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Node {
    Field(Field),
    /// Printable ASCII that is neither a letter nor a digit.
    Separator(char),
    Space(char),
    /// Any other character, and all in double quotes.
    Literal(char),
}

/// Whether a character is printable ASCII and neither a letter nor a digit.
pub(super) fn is_separator(c: char) -> bool {
    c.is_ascii_graphic() && !c.is_ascii_alphanumeric()
}

/// C's `isspace`.
pub(super) fn is_space(c: char) -> bool {
    c.is_ascii_whitespace() || c == '\x0B'
}

fn field(rest: &str) -> Option<Field> {
    let (key, name, is_lower) = KEYWORDS.iter().find_map(|&(name, key)| {
        let head = rest.get(..name.len())?;
        let is_lower = head.bytes().all(|byte| !byte.is_ascii_uppercase())
            && head.eq_ignore_ascii_case(name)
            && name.bytes().all(|byte| !byte.is_ascii_lowercase());
        (head == name || is_lower).then_some((key, name, is_lower && head != name))
    })?;
    Some(Field { key, name, is_lower, fill: false, translated: false, ordinal: None })
}

/// Reads a picture. Every text is one.
pub(super) fn parse(picture: &str) -> Vec<Node> {
    let mut nodes = Vec::new();
    let mut rest = picture;
    while !rest.is_empty() {
        let (mut fill, mut translated) = (false, false);
        if let Some(after) = strip_either(rest, "FM", "fm") {
            (fill, rest) = (true, after);
        } else if let Some(after) = strip_either(rest, "TM", "tm") {
            (translated, rest) = (true, after);
        }
        if let Some(field) = field(rest) {
            rest = rest.get(field.len()..).unwrap_or_default();
            let mut field = Field { fill, translated, ..field };
            if let Some(after) = rest.strip_prefix("TH") {
                (field.ordinal, rest) = (Some(Ordinal::Upper), after);
            } else if let Some(after) = rest.strip_prefix("th") {
                (field.ordinal, rest) = (Some(Ordinal::Lower), after);
            } else if let Some(after) = rest.strip_prefix("SP") {
                // Spelling numbers is accepted and does nothing.
                rest = after;
            }
            nodes.push(Node::Field(field));
        } else {
            rest = literal(rest, &mut nodes);
        }
    }
    nodes
}

fn strip_either<'a>(text: &'a str, upper: &str, lower: &str) -> Option<&'a str> {
    text.strip_prefix(upper).or_else(|| text.strip_prefix(lower))
}

/// Reads one character, or a text in double quotes, and returns what is left.
fn literal<'a>(rest: &'a str, nodes: &mut Vec<Node>) -> &'a str {
    let Some(quoted) = rest.strip_prefix('"') else {
        // A backslash is special only before a quote.
        let rest = if rest.starts_with("\\\"") { rest.get(1..).unwrap_or_default() } else { rest };
        let mut chars = rest.chars();
        if let Some(c) = chars.next() {
            nodes.push(match c {
                _ if is_separator(c) => Node::Separator(c),
                _ if is_space(c) => Node::Space(c),
                _ => Node::Literal(c),
            });
        }
        return chars.as_str();
    };
    let mut chars = quoted.chars();
    while let Some(mut c) = chars.next() {
        if c == '"' {
            break;
        }
        if c == '\\' {
            c = chars.next().unwrap_or(c);
        }
        nodes.push(Node::Literal(c));
    }
    chars.as_str()
}
