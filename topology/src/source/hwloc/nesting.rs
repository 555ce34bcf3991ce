//! Whether objects stand in the objects that they belong to.
//!
//! All objects have the same tags, so an XML reader does not see that a tag is missing: what
//! follows seems to stand one level off.

use super::super::xml::Element;
use super::bitmap::Bitmap;
use super::object::{children, is_io, set};

/// Whether each object that starts ends, and the CPUs of objects nest. A text that was cut may
/// lack ends.
pub(super) fn is_sound(text: &str, objects: &[&Element]) -> bool {
    let starts = text.match_indices("<object").filter(|&(at, name)| {
        let rest = &text[at + name.len()..];
        let tag = rest.find(['<', '>']).map_or(rest, |end| &rest[..end]);
        !tag.ends_with('/')
    });
    let (starts, ends) = (starts.count(), text.matches("</object").count());
    let was_cut = !text.contains("</topology");
    (starts == ends || was_cut && starts > ends)
        && objects.len() == 1
        && sets_nest(objects[0], None)
}

fn sets_nest(object: &Element, around: Option<&Bitmap>) -> bool {
    let own = set(object, "cpuset");
    own.as_ref().zip(around).is_none_or(|(own, around)| own.is_within(around))
        && children(object).all(|child| {
            (is_io(child) || !is_io(object)) && sets_nest(child, own.as_ref().or(around))
        })
}
