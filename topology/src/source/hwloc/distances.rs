//! Matrices of distances: `<distances2>` and, between objects of several kinds,
//! `<distances2hetero>`.

use super::super::xml::Element;
use super::object::decimal;
use crate::Observations;

/// A square of values between objects.
pub(super) struct Matrix<'a> {
    pub(super) name: &'a str,
    pub(super) line: usize,
    /// The objects by their numbers that are unique in a file.
    pub(super) ends: Vec<u64>,
    /// Row by row, from one object to all; `None` for a value that is not readable.
    values: Vec<Option<u64>>,
}

impl<'a> Matrix<'a> {
    /// The matrix of an element. One that does not fit together is left out, since it is not
    /// known which value is whose.
    pub(super) fn of(element: &'a Element, observed: &mut Observations) -> Option<Self> {
        let name = element.attribute("name")?;
        if element.attribute("indexing").is_some_and(|indexing| indexing != "gp") {
            return None;
        }
        match read(name, element) {
            Ok(matrix) => {
                let unreadable = matrix.values.iter().filter(|value| value.is_none()).count();
                if unreadable > 0 {
                    let text = format!("{unreadable} values of {name} are no numbers");
                    observed.warn(element.line, text);
                }
                Some(matrix)
            }
            Err(reason) => {
                observed.warn(element.line, format!("{name} is left out: {reason}"));
                None
            }
        }
    }

    /// Values between two different objects, with the positions of both among the ends.
    pub(super) fn values(&self) -> impl Iterator<Item = (usize, usize, u64)> {
        let size = self.ends.len().max(1);
        self.values.iter().enumerate().filter_map(move |(at, value)| {
            let (from, to) = (at / size, at % size);
            (from != to).then_some((from, to, (*value)?))
        })
    }
}

fn read<'a>(name: &'a str, element: &Element) -> Result<Matrix<'a>, String> {
    let stated: Option<usize> = element.attribute("nbobjs").and_then(decimal);
    let indexes = words(element, "indexes")?;
    let size = indexes.len();
    if stated != Some(size) {
        return Err(format!(
            "it should be between as many objects as nbobjs says, and is of {size}"
        ));
    }
    let words = words(element, "u64values")?;
    if size.checked_mul(size) != Some(words.len()) {
        return Err(format!(
            "{size} objects need the square of that in values, not {}",
            words.len()
        ));
    }
    // `OSDev:802`, or the number alone where all are of one kind.
    let end = |word: &str| decimal(word.rsplit(':').next()?);
    let ends: Option<Vec<u64>> = indexes.into_iter().map(end).collect();
    let ends = ends.ok_or("an object in its indexes is no number")?;
    let values = words.into_iter().map(decimal).collect();
    Ok(Matrix { name, line: element.line, ends, values })
}

/// The words of all elements of a name. Each states how long it is: every word with a space.
fn words<'a>(element: &'a Element, name: &str) -> Result<Vec<&'a str>, String> {
    let mut words = Vec::new();
    for part in element.children_named(name) {
        let start = words.len();
        words.extend(part.text.split_whitespace());
        let length: usize = words[start..].iter().map(|word| word.len() + 1).sum();
        let stated: Option<usize> = part.attribute("length").and_then(decimal);
        if stated.is_some_and(|stated| stated != length) {
            return Err(format!("line {} does not have the length that it states", part.line));
        }
    }
    Ok(words)
}
