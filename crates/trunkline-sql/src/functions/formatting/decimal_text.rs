//! Decimal numbers as text: rounding, and moving the decimal point.
//!
//! For example, `-12.345` rounded to two decimals is `-12.35`.

/// A finite number in decimal digits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct DecimalText {
    pub(super) negative: bool,
    /// Digits before the decimal point, without leading zeros.
    whole: Vec<u8>,
    /// Digits after it.
    fraction: Vec<u8>,
}

impl DecimalText {
    /// Reads a number such as `-12.50`.
    pub(super) fn parse(text: &str) -> Self {
        let (negative, digits) = match text.strip_prefix('-') {
            Some(digits) => (true, digits),
            None => (false, text),
        };
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
        let whole = whole.trim_start_matches('0').as_bytes().to_vec();
        Self { negative, whole, fraction: fraction.as_bytes().to_vec() }
    }

    /// Multiplies by ten to the power of `places`.
    pub(super) fn shifted(mut self, places: usize) -> Self {
        for _ in 0..places {
            let digit = if self.fraction.is_empty() { b'0' } else { self.fraction.remove(0) };
            if digit != b'0' || !self.whole.is_empty() {
                self.whole.push(digit);
            }
        }
        self
    }

    /// Rounds half away from zero to `places` decimals, or fills up with zeros.
    pub(super) fn rounded(mut self, places: usize) -> Self {
        let up = self.fraction.get(places).is_some_and(|digit| *digit >= b'5');
        self.fraction.resize(places, b'0');
        if up {
            self.increment();
        }
        self
    }

    /// Adds one to the last digit.
    fn increment(&mut self) {
        let digits = self.fraction.iter_mut().rev().chain(self.whole.iter_mut().rev());
        for digit in digits {
            if *digit < b'9' {
                *digit += 1;
                return;
            }
            *digit = b'0';
        }
        self.whole.insert(0, b'1');
    }

    fn is_zero(&self) -> bool {
        self.whole.iter().chain(&self.fraction).all(|digit| *digit == b'0')
    }

    /// The sign, of which zero has none.
    pub(super) fn is_negative(&self) -> bool {
        self.negative && !self.is_zero()
    }

    /// The digits without a sign, with a zero before the decimal point if there is no other digit.
    pub(super) fn digits(&self) -> String {
        let text = |digits: &[u8]| String::from_utf8_lossy(digits).into_owned();
        let whole = if self.whole.is_empty() { "0".to_owned() } else { text(&self.whole) };
        match self.fraction.is_empty() {
            true => whole,
            false => format!("{whole}.{}", text(&self.fraction)),
        }
    }

    /// The number as `numeric_out_sci` prints it: one digit, `places` decimals and an exponent.
    pub(super) fn scientific(&self, places: usize) -> String {
        let all: Vec<u8> = self.whole.iter().chain(&self.fraction).copied().collect();
        let lead = all.iter().position(|digit| *digit != b'0');
        let sign = if self.is_negative() { "-" } else { "" };
        let Some(lead) = lead else {
            let zeros = "0".repeat(places);
            let point = if places > 0 { "." } else { "" };
            return format!("{sign}0{point}{zeros}e+00");
        };
        let exponent = self.whole.len() as i64 - lead as i64 - 1;
        let significant = all.get(lead..).unwrap_or_default();
        let (first, rest) = significant.split_at(1.min(significant.len()));
        let number = Self { negative: false, whole: first.to_vec(), fraction: rest.to_vec() };
        // As on the server, rounding up to ten doesn't change the exponent.
        let number = number.rounded(places);
        let exponent_sign = if exponent < 0 { '-' } else { '+' };
        format!("{sign}{}e{exponent_sign}{:02}", number.digits(), exponent.abs())
    }
}
