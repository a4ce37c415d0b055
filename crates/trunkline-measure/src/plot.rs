//! **One plot** as SVG, for light and dark pages.
//!
//! The plotting crate writes fixed colours. Text, axes and grid are drawn in one colour that nothing
//! else has, and then replaced by `currentColor`, so that they follow the page. The lines have
//! colours of medium brightness, which are visible on both backgrounds.

use plotters::coord::ranged1d::{AsRangedCoord, ValueFormatter};
use plotters::prelude::*;

use crate::error::MeasureError;

/// Size in pixels. Small, so that labels are still readable when a phone scales the plot down.
const SIZE: (u32, u32) = (480, 320);
/// Replaced by the page's text colour.
const INK: RGBColor = RGBColor(1, 2, 3);
/// How the SVG backend writes it.
const INK_TEXT: &str = "#010203";

/// Colours of the lines.
const COLOURS: [(u8, u8, u8); 8] = [
    (37, 126, 235),
    (230, 120, 20),
    (30, 150, 95),
    (160, 90, 220),
    (220, 70, 80),
    (20, 150, 170),
    (150, 120, 40),
    (200, 80, 160),
];

/// A plot: lines over numbers.
#[derive(Debug, Clone, Default)]
pub(crate) struct Plot {
    pub(crate) title: String,
    pub(crate) x_label: String,
    pub(crate) y_label: String,
    pub(crate) log_x: bool,
    pub(crate) log_y: bool,
    pub(crate) lines: Vec<Line>,
    /// Points to mark, with a text.
    pub(crate) marks: Vec<(f64, f64, String)>,
}

/// A line of a plot.
#[derive(Debug, Clone)]
pub(crate) struct Line {
    pub(crate) name: String,
    pub(crate) points: Vec<(f64, f64)>,
    /// Which of [`COLOURS`] it has; larger numbers start again.
    pub(crate) colour: usize,
    /// Drawn with dashes and hollow points.
    pub(crate) dashed: bool,
}

impl Line {
    /// A solid line.
    pub(crate) fn solid(name: impl Into<String>, colour: usize, points: Vec<(f64, f64)>) -> Self {
        Self { name: name.into(), points, colour, dashed: false }
    }

    /// Red, green and blue.
    pub(crate) fn rgb(&self) -> (u8, u8, u8) {
        COLOURS[self.colour % COLOURS.len()]
    }
}

impl Plot {
    /// The plot as an SVG element.
    pub(crate) fn svg(&self) -> Result<String, MeasureError> {
        let mut text = String::new();
        {
            let area = SVGBackend::with_string(&mut text, SIZE).into_drawing_area();
            let ((x0, x1), (y0, y1)) = (self.range(0), self.range(1));
            let drawn = match (self.log_x, self.log_y) {
                (false, false) => self.draw(&area, x0..x1, y0..y1),
                (true, false) => self.draw(&area, (x0..x1).log_scale(), y0..y1),
                (false, true) => self.draw(&area, x0..x1, (y0..y1).log_scale()),
                (true, true) => self.draw(&area, (x0..x1).log_scale(), (y0..y1).log_scale()),
            };
            drawn.and_then(|()| area.present().map_err(|error| error.to_string()))
        }
        .map_err(MeasureError::Text)?;
        // The page sets the size; the view box keeps the proportions.
        let size = format!("<svg width=\"{}\" height=\"{}\" ", SIZE.0, SIZE.1);
        Ok(text.replace(INK_TEXT, "currentColor").replacen(&size, "<svg ", 1))
    }

    /// Smallest and largest number in one dimension, with some room.
    fn range(&self, dimension: usize) -> (f64, f64) {
        let is_log = [self.log_x, self.log_y][dimension];
        let numbers = self.lines.iter().flat_map(|line| &line.points);
        let numbers = numbers.map(|point| [point.0, point.1][dimension]);
        let numbers: Vec<f64> =
            numbers.filter(|number| number.is_finite() && (!is_log || *number > 0.0)).collect();
        let (low, high) =
            numbers.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |ends, number| {
                (ends.0.min(*number), ends.1.max(*number))
            });
        match (numbers.is_empty(), is_log) {
            (true, _) => (1.0, 2.0),
            (false, true) => with_labels(low / 1.3, high * 1.3),
            // Bars and lines that begin above zero exaggerate differences.
            (false, false) if dimension == 1 => (0.0, if high > 0.0 { high * 1.1 } else { 1.0 }),
            (false, false) => {
                (low - (high - low).max(1.0) * 0.05, high + (high - low).max(1.0) * 0.05)
            }
        }
    }

    fn draw<X, Y>(
        &self,
        area: &DrawingArea<SVGBackend<'_>, plotters::coord::Shift>,
        x: X,
        y: Y,
    ) -> Result<(), String>
    where
        X: AsRangedCoord<Value = f64>,
        Y: AsRangedCoord<Value = f64>,
        X::CoordDescType: Ranged<ValueType = f64> + ValueFormatter<f64>,
        Y::CoordDescType: Ranged<ValueType = f64> + ValueFormatter<f64>,
    {
        let fail = |error: &dyn std::fmt::Display| error.to_string();
        let font = |size: u32| ("sans-serif", size).into_font().color(&INK);
        let mut chart = ChartBuilder::on(area)
            .margin(6)
            .x_label_area_size(42)
            .y_label_area_size(64)
            .build_cartesian_2d(x, y)
            .map_err(|error| fail(&error))?;
        chart
            .configure_mesh()
            .axis_style(INK.mix(0.6))
            .bold_line_style(INK.mix(0.15))
            .light_line_style(INK.mix(0.0))
            .label_style(font(15))
            .axis_desc_style(font(15))
            .x_desc(self.x_label.as_str())
            .y_desc(self.y_label.as_str())
            .x_labels(6)
            .y_labels(6)
            .x_label_formatter(&|number| short(*number))
            .y_label_formatter(&|number| short(*number))
            .draw()
            .map_err(|error| fail(&error))?;
        for line in &self.lines {
            let (red, green, blue) = line.rgb();
            let colour = RGBColor(red, green, blue);
            let points = || line.points.iter().copied();
            let (stroke, hollow) = (colour.stroke_width(2), colour.stroke_width(1));
            let drawn = match line.dashed {
                true => chart.draw_series(DashedLineSeries::new(points(), 5, 4, stroke)),
                false => chart.draw_series(LineSeries::new(points(), stroke)),
            };
            drawn.map_err(|error| fail(&error))?;
            let dot = if line.dashed { hollow } else { colour.filled() };
            chart
                .draw_series(points().map(|point| Circle::new(point, 3, dot)))
                .map_err(|error| fail(&error))?;
        }
        let marks = self.marks.iter().map(|(x, y, text)| {
            EmptyElement::at((*x, *y))
                + Circle::new((0, 0), 7, INK.stroke_width(2))
                + Text::new(text.clone(), (10, -6), font(13))
        });
        chart.draw_series(marks).map_err(|error| fail(&error))?;
        Ok(())
    }
}

/// A range of a logarithmic axis with at least two labels, which are at powers of ten.
fn with_labels(low: f64, high: f64) -> (f64, f64) {
    let (first, last) = (low.log10().ceil(), high.log10().floor());
    if last > first {
        return (low, high);
    }
    // A little more, so that rounding doesn't lose a label.
    (10_f64.powf(low.log10().floor()) / 1.001, 10_f64.powf(high.log10().ceil()) * 1.001)
}

/// A number for an axis: few digits, and k, M or G for large ones.
fn short(number: f64) -> String {
    let (value, unit) = match number.abs() {
        size if size >= 1e9 => (number / 1e9, "G"),
        size if size >= 1e6 => (number / 1e6, "M"),
        size if size >= 1e4 => (number / 1e3, "k"),
        _ => (number, ""),
    };
    // Three significant digits, without zeros at the end.
    let digits = if value == 0.0 { 0 } else { 2 - value.abs().log10().floor() as i32 };
    let text = format!("{value:.*}", digits.clamp(0, 9) as usize);
    let text = if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    };
    text + unit
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_on_axes_are_short() {
        for (number, expected) in [
            (0.0, "0"),
            (0.01, "0.01"),
            (0.000_123_4, "0.000123"),
            (1.5, "1.5"),
            (1234.0, "1234"),
            (16_000.0, "16k"),
            (2_500_000.0, "2.5M"),
            (3e9, "3G"),
        ] {
            assert_eq!(short(number), expected);
        }
    }

    #[test]
    fn a_logarithmic_axis_has_two_labels() {
        assert_eq!(with_labels(0.05, 30.0), (0.05, 30.0));
        for (low, high, least, most) in [(0.02, 0.4, 0.01, 1.0), (2.0, 3.0, 1.0, 10.0)] {
            let (from, to) = with_labels(low, high);
            assert!(from < least && from > 0.9 * least, "{from}");
            assert!(to > most && to < 1.1 * most, "{to}");
        }
    }

    #[test]
    fn a_plot_follows_the_page_and_shows_each_point() {
        for (log_x, log_y) in [(false, false), (true, false), (false, true), (true, true)] {
            let line = |name: &str, factor: f64| Line {
                name: name.into(),
                points: [0.01, 0.1, 1.0].map(|x| (x, x * factor)).to_vec(),
                colour: 9,
                dashed: factor > 2.0,
            };
            let lines = vec![line("a", 1.0), line("b", 3.0)];
            let marks = vec![(0.1, 0.1, "knee".to_owned())];
            let plot = Plot { log_x, log_y, lines, marks, ..Plot::default() };
            let svg = plot.svg().expect("drawn");
            assert!(svg.starts_with("<svg viewBox=") && svg.contains("currentColor"), "{svg}");
            assert!(!svg.contains(INK_TEXT) && !svg.contains("http://www.w3.org/1999/xlink"));
            // Three points of two lines, and a mark.
            assert_eq!(svg.matches("<circle").count(), 7, "{svg}");
            assert!(svg.contains("knee"));
        }
    }

    #[test]
    fn a_plot_without_points_is_still_drawn() {
        let plot = Plot { log_x: true, log_y: true, ..Plot::default() };
        assert!(plot.svg().expect("drawn").contains("</svg>"));
        let one = Line { name: "one".into(), points: vec![(16.0, 0.0)], colour: 0, dashed: false };
        let plot = Plot { lines: vec![one], ..Plot::default() };
        assert_eq!(plot.svg().expect("drawn").matches("<circle").count(), 1);
    }
}
