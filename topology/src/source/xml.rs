//! XML as a tree of elements, with the line of each.
//!
//! No entity but the five predefined ones is resolved, so a document cannot grow by reading it;
//! depth, size and the number of elements are bounded. A text that was cut gives what stands
//! before the cut.
//!
//! [`parse`] reads a text that is a document, and stops at the first tag that does not fit.
//! [`parse_embedded`] finds elements in a text that holds other things too, and goes on behind
//! what does not fit.

use quick_xml::XmlVersion;
use quick_xml::events::{BytesStart, Event};
use quick_xml::reader::Reader;

use crate::SourceWarning;

pub(super) use embedded::parse_embedded;

mod embedded;
#[cfg(test)]
mod tests;

/// Elements within elements, at most. hwloc nests some twenty.
const MOST_DEPTH: usize = 128;

/// Elements in a document, at most. A recorded machine has some thousands.
const MOST_ELEMENTS: usize = 1_000_000;

/// Attributes of an element, at most; looking for repeated ones costs the square of that.
const MOST_ATTRIBUTES: usize = 256;

/// An element and all that is in it.
#[derive(Clone, Debug, Default)]
pub(super) struct Element {
    pub(super) name: String,
    attributes: Vec<(String, String)>,
    pub(super) children: Vec<Self>,
    /// All text directly in it, trimmed.
    pub(super) text: String,
    /// Where it starts, from 1.
    pub(super) line: usize,
    /// Whether all of it is there: its own end tag was read.
    pub(super) closed: bool,
    /// An end tag in it or of it is missing or too many: what is in it may belong elsewhere. Only
    /// [`parse_embedded`] reads on behind such a tag.
    pub(super) doubtful: bool,
}

impl Element {
    /// The value of an attribute.
    pub(super) fn attribute(&self, name: &str) -> Option<&str> {
        self.attributes.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// The children of this name.
    pub(super) fn children_named(&self, name: &str) -> impl Iterator<Item = &Self> {
        self.children.iter().filter(move |child| child.name == name)
    }
}

/// A document, or as much of it as there is.
#[derive(Debug, Default)]
pub(super) struct Document {
    /// The outermost elements; one, in a document that is in order.
    pub(super) roots: Vec<Element>,
    /// What is wrong with it.
    pub(super) warnings: Vec<SourceWarning>,
}

/// Reads a document.
pub(super) fn parse(text: &str) -> Document {
    let mut builder = Builder { lines: Lines::new(text), ..Builder::default() };
    let mut reader = Reader::from_str(text);
    loop {
        let start = reader.buffer_position();
        match reader.read_event() {
            Ok(Event::Eof) => break,
            Ok(event) => {
                if !builder.take(event, start) {
                    break;
                }
            }
            Err(error) => {
                builder.warn(reader.error_position(), format!("{error}; what follows is not read"));
                break;
            }
        }
    }
    builder.finish()
}

#[derive(Default)]
struct Builder {
    lines: Lines,
    open: Vec<Element>,
    elements: usize,
    document: Document,
}

impl Builder {
    /// Takes an event; false if nothing more is to be read.
    fn take(&mut self, event: Event<'_>, start: u64) -> bool {
        match event {
            Event::Start(tag) => {
                let element = self.element(&tag, start);
                self.open.push(element);
            }
            Event::Empty(tag) => {
                let element = self.element(&tag, start);
                self.close(Element { closed: true, ..element });
            }
            Event::End(_) => {
                if let Some(element) = self.open.pop() {
                    self.close(Element { closed: true, ..element });
                }
            }
            Event::Text(content) => {
                if let Some(element) = self.open.last_mut() {
                    element.text.push_str(content.trim());
                }
            }
            _ => {}
        }
        self.is_within_bounds(start)
    }

    fn is_within_bounds(&mut self, start: u64) -> bool {
        if self.open.len() > MOST_DEPTH || self.elements > MOST_ELEMENTS {
            self.warn(
                start,
                format!(
                    "more than {MOST_DEPTH} levels or {MOST_ELEMENTS} elements; \
                     what follows is not read"
                ),
            );
            return false;
        }
        true
    }

    fn element(&mut self, tag: &BytesStart<'_>, start: u64) -> Element {
        self.elements += 1;
        let name: &str = tag.name().into_inner();
        let mut element =
            Element { name: name.to_owned(), line: self.lines.of(start), ..Element::default() };
        for (number, attribute) in tag.attributes().enumerate() {
            if number == MOST_ATTRIBUTES {
                let text = format!("<{}> has more than {number} attributes", element.name);
                self.warn(start, text);
                break;
            }
            let pair = attribute.map_err(quick_xml::Error::from).and_then(|attribute| {
                let key: &str = attribute.key.into_inner();
                let value = attribute.normalized_value(XmlVersion::Implicit1_0)?;
                Ok((key.to_owned(), value.into_owned()))
            });
            match pair {
                Ok(pair) => element.attributes.push(pair),
                Err(error) => {
                    let text = format!("an attribute of <{}> is left out: {error}", element.name);
                    self.warn(start, text);
                }
            }
        }
        element
    }

    fn close(&mut self, element: Element) {
        match self.open.last_mut() {
            Some(parent) => parent.children.push(element),
            None => self.document.roots.push(element),
        }
    }

    fn warn(&mut self, position: u64, text: String) {
        let line = Some(self.lines.of(position));
        self.document.warnings.push(SourceWarning { line, text });
    }

    fn finish(mut self) -> Document {
        self.close_cut();
        self.document
    }

    /// Closes what is still open, since the text ends there.
    fn close_cut(&mut self) {
        if let Some(innermost) = self.open.last() {
            let text = format!(
                "the text ends inside <{}>, which starts here; what stood after that is missing",
                innermost.name
            );
            let line = Some(innermost.line);
            self.document.warnings.push(SourceWarning { line, text });
        }
        while let Some(element) = self.open.pop() {
            self.close(element);
        }
    }
}

/// Where the lines of a text start.
#[derive(Default)]
struct Lines {
    starts: Vec<u64>,
}

impl Lines {
    fn new(text: &str) -> Self {
        let newlines = text.bytes().zip(1..).filter(|&(byte, _)| byte == b'\n');
        Self { starts: std::iter::once(0).chain(newlines.map(|(_, next)| next)).collect() }
    }

    /// The line of a byte, from 1.
    fn of(&self, position: u64) -> usize {
        self.starts.partition_point(|&start| start <= position).max(1)
    }
}
