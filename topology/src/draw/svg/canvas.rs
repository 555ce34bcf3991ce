//! SVG elements, written one after the other.

use std::fmt::Write;

use super::style::STYLE;

/// An SVG document in the making.
pub(super) struct Canvas {
    text: String,
    /// What is added to every position.
    origin: [f64; 2],
}

impl Canvas {
    pub(super) fn new(width: f64, height: f64, title: &str) -> Self {
        let title = escaped(title);
        let text = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" \
             width=\"{width:.0}\" height=\"{height:.0}\" role=\"img\" aria-label=\"{title}\">\n\
             <title>{title}</title>\n<style>{STYLE}</style>\n\
             <rect class=\"paper\" width=\"{width:.0}\" height=\"{height:.0}\" rx=\"10\"/>\n"
        );
        Self { text, origin: [0.0, 0.0] }
    }

    pub(super) fn move_to(&mut self, x: f64, y: f64) {
        self.origin = [x, y];
    }

    /// A rounded rectangle.
    pub(super) fn rectangle(&mut self, class: &str, [x, y]: [f64; 2], [width, height]: [f64; 2]) {
        let [x, y] = self.placed([x, y]);
        let _ = writeln!(
            self.text,
            "<rect class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" \
             height=\"{height:.1}\" rx=\"6\"/>"
        );
    }

    pub(super) fn text(&mut self, class: &str, at: [f64; 2], text: &str) {
        let [x, y] = self.placed(at);
        let text = escaped(text);
        let _ =
            writeln!(self.text, "<text class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\">{text}</text>");
    }

    /// A line through points: straight for two, a curve with two control points for four. `hint`
    /// is shown when someone points at it.
    pub(super) fn line(&mut self, class: &str, width: f64, points: &[[f64; 2]], hint: &str) {
        let mut path = String::new();
        for (number, &point) in points.iter().enumerate() {
            let [x, y] = self.placed(point);
            let command = match (number, points.len()) {
                (0, _) => "M",
                (1, 4) => " C",
                (1, _) => " L",
                _ => " ",
            };
            let _ = write!(path, "{command}{x:.1} {y:.1}");
        }
        let hint = escaped(hint);
        let _ = writeln!(
            self.text,
            "<path class=\"link {class}\" stroke-width=\"{width:.1}\" d=\"{path}\">\
             <title>{hint}</title></path>"
        );
    }

    fn placed(&self, [x, y]: [f64; 2]) -> [f64; 2] {
        [x + self.origin[0], y + self.origin[1]]
    }

    pub(super) fn finish(mut self) -> String {
        self.text.push_str("</svg>\n");
        self.text
    }
}

/// A text as XML wants it. Control characters, which XML cannot hold, become spaces.
fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '&' => safe.push_str("&amp;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&apos;"),
            '\u{fffe}' | '\u{ffff}' => safe.push(' '),
            _ if letter.is_control() => safe.push(' '),
            _ => safe.push(letter),
        }
    }
    safe
}
