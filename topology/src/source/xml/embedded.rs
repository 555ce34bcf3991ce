//! Elements in a text that is no document of its own: a log, a paste of several commands, a
//! fragment.

use quick_xml::events::Event;
use quick_xml::reader::Reader;

use super::{Builder, Document, Element, Lines};

/// How often reading starts anew behind a tag that cannot be read, at most. Each time costs one
/// look at the rest of the text.
const MOST_RESTARTS: usize = 16;

/// Finds the elements of these names, whatever stands before, between and behind them. None of
/// them is looked for within another: where one starts inside another, the other was cut.
///
/// Tags that do not fit are warned of, and reading goes on: an element whose end tag is missing is
/// not `closed`, and what may have been moved by that is `doubtful`.
pub(in crate::source) fn parse_embedded(text: &str, names: &[&str]) -> Document {
    let builder = Builder { lines: Lines::new(text), ..Builder::default() };
    let mut embedded = Embedded { text, names, restarts_left: MOST_RESTARTS, builder };
    let mut at = 0;
    while let Some(start) = embedded.next_root(at) {
        at = embedded.read_root(start);
    }
    embedded.builder.finish()
}

struct Embedded<'a> {
    text: &'a str,
    names: &'a [&'a str],
    restarts_left: usize,
    builder: Builder,
}

/// Where reading stopped.
enum Stop {
    /// What was open is complete, or will not be completed.
    End(usize),
    /// A tag cannot be read.
    Damage(usize),
}

impl Embedded<'_> {
    /// Where the next element of the names starts, outside comments.
    fn next_root(&self, from: usize) -> Option<usize> {
        let mut at = from;
        let mut comments_end = true;
        loop {
            at += self.text.get(at..)?.find('<')?;
            let rest = &self.text[at..];
            if self.is_root(rest) {
                return Some(at);
            }
            let comment = (comments_end && rest.starts_with("<!--")).then(|| rest.find("-->"));
            match comment {
                Some(Some(length)) => at += length,
                Some(None) => comments_end = false,
                None => {}
            }
            at += 1;
        }
    }

    /// Whether a text starts with the start of one of the elements.
    fn is_root(&self, text: &str) -> bool {
        let behind = |name: &&str| text.strip_prefix('<')?.strip_prefix(*name)?.chars().next();
        self.names.iter().filter_map(behind).any(|next| next.is_whitespace() || "/>".contains(next))
    }

    /// Reads the element that starts here; where to look for the next one.
    fn read_root(&mut self, start: usize) -> usize {
        let mut from = start;
        loop {
            let damaged = match self.read_part(from) {
                Stop::End(end) => {
                    self.builder.close_cut();
                    return end;
                }
                Stop::Damage(position) => position,
            };
            let next = self.text.bytes().skip(damaged + 1).position(|byte| byte == b'<');
            match next {
                Some(distance) if self.restarts_left > 0 => from = damaged + 1 + distance,
                _ => {
                    self.builder.close_cut();
                    return self.text.len();
                }
            }
            self.restarts_left -= 1;
        }
    }

    fn read_part(&mut self, from: usize) -> Stop {
        let mut reader = Reader::from_str(&self.text[from..]);
        let config = reader.config_mut();
        config.allow_dangling_amp = true;
        config.allow_unmatched_ends = true;
        config.check_end_names = false;
        let position = |offset: u64| usize::try_from(offset).unwrap_or(usize::MAX) + from;
        loop {
            let start = position(reader.buffer_position());
            let event = match reader.read_event() {
                Ok(event) => event,
                Err(error) => {
                    let damaged = position(reader.error_position());
                    let text = format!("{error}; reading goes on behind it");
                    self.builder.warn(as_offset(damaged), text);
                    return Stop::Damage(damaged);
                }
            };
            if matches!(event, Event::Eof) {
                return Stop::End(self.text.len());
            }
            let is_tag = matches!(event, Event::Start(_) | Event::Empty(_));
            if is_tag && !self.builder.open.is_empty() && self.is_root(&self.text[start..]) {
                return Stop::End(start);
            }
            // No tag may hold the start of another: what ends this one is lost.
            let holds_another = {
                let end = position(reader.buffer_position());
                self.text[start..end].bytes().skip(1).any(|byte| byte == b'<')
            };
            if holds_another && (is_tag || matches!(event, Event::End(_))) {
                let text = "a tag starts within a tag; the outer one is left out";
                self.builder.warn(as_offset(start), text.to_owned());
                return Stop::Damage(start);
            }
            if !self.take(event, start) {
                return Stop::End(self.text.len());
            }
            if self.builder.open.is_empty() {
                return Stop::End(position(reader.buffer_position()));
            }
        }
    }

    /// Takes an event; false if nothing more is to be read.
    fn take(&mut self, event: Event<'_>, start: usize) -> bool {
        match event {
            Event::Start(tag) | Event::Empty(tag) if !is_name(tag.name().into_inner()) => {
                // Logs hold such things as `<0>` behind addresses.
                true
            }
            Event::End(tag) => {
                self.builder.end(tag.name().into_inner(), as_offset(start));
                true
            }
            Event::Comment(comment) if comment.contains("<!--") => {
                let text = "a comment starts within a comment; elements in it are not read";
                self.builder.warn(as_offset(start), text.to_owned());
                true
            }
            event => self.builder.take(event, as_offset(start)),
        }
    }
}

impl Builder {
    /// Takes an end tag, which may belong to an outer element, or to none.
    fn end(&mut self, name: &str, start: u64) {
        let Some(position) = self.open.iter().rposition(|element| element.name == name) else {
            if let Some(innermost) = self.open.last_mut() {
                innermost.doubtful = true;
                self.warn(
                    start,
                    format!("</{name}> ends nothing; what hangs on what is uncertain"),
                );
            }
            return;
        };
        if let Some(lost) = self.open.get(position + 1) {
            let text = format!(
                "</{name}> comes before the end of <{}>, which starts in line {}; what hangs on \
                 what is uncertain",
                lost.name, lost.line
            );
            self.warn(start, text);
        }
        while self.open.len() > position + 1 {
            if let Some(element) = self.open.pop() {
                self.close(Element { doubtful: true, ..element });
            }
        }
        if let Some(element) = self.open.pop() {
            self.close(Element { closed: true, ..element });
        }
    }
}

fn is_name(text: &str) -> bool {
    text.starts_with(|first: char| first.is_alphabetic() || first == '_')
}

fn as_offset(position: usize) -> u64 {
    u64::try_from(position).unwrap_or(u64::MAX)
}
