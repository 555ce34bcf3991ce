//! The text of a program without its comments, for who looks for words in it.

/// What ends a comment that begins with two slashes.
const LINE_BREAKS: [char; 7] = ['\n', '\u{b}', '\u{c}', '\r', '\u{85}', '\u{2028}', '\u{2029}'];

/// Puts spaces in the place of comments, so that everything else stays where it is. WGSL has no
/// texts in quotes in which a comment could only seem to begin.
pub(super) fn blank(wgsl: &str) -> String {
    let mut code = String::with_capacity(wgsl.len());
    let mut rest = wgsl;
    while let Some(at) = rest.find('/') {
        let (before, from) = rest.split_at(at);
        code.push_str(before);
        let length = comment_length(from);
        if length == 0 {
            code.push('/');
        }
        code.extend(std::iter::repeat_n(' ', length));
        rest = &from[length.max(1)..];
    }
    code + rest
}

/// Bytes of the comment that a text begins with; 0 where it begins with none.
fn comment_length(text: &str) -> usize {
    if text.starts_with("//") {
        return text.find(LINE_BREAKS).unwrap_or(text.len());
    }
    if !text.starts_with("/*") {
        return 0;
    }
    // Comments of this kind nest.
    let (mut depth, mut at) = (1, 2);
    while depth > 0 {
        let next = [text[at..].find("/*"), text[at..].find("*/")];
        let (step, change) = match next {
            [Some(open), Some(close)] if open < close => (open, 1),
            [_, Some(close)] => (close, -1),
            _ => return text.len(),
        };
        at += step + 2;
        depth += change;
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_become_spaces_and_nothing_moves() {
        let cases = [
            ("a // b\nc", "a     \nc"),
            ("a // b", "a     "),
            ("a/b", "a/b"),
            ("a /* b /* c */ d */ e", "a                   e"),
            ("a /*/ b */ c", "a          c"),
            ("a /* b", "a     "),
            ("// \u{e4}\u{2028}a", "     \u{2028}a"),
        ];
        for (wgsl, code) in cases {
            assert_eq!(blank(wgsl), code);
        }
    }
}
