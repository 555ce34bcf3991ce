//! JSON between other text, and where in it things stand.

use super::*;

fn keys(value: &Value<'_>) -> Vec<String> {
    value.object().unwrap().into_iter().map(|(key, _)| key.into_owned()).collect()
}

#[test]
fn values_know_their_lines_and_keep_repeated_keys() {
    let text =
        "[root@node ~]# tool --json\n{\"a\": \"x\\ny\", \"a\": 2,\n \"b\": [true,\n null]}\n$ \n";
    let document = Document::new(text);
    let (values, error) = document.values();
    assert_eq!(error, None);
    assert_eq!(values.len(), 1);
    assert_eq!(keys(&values[0]), ["a", "a", "b"]);
    let entries = values[0].object().unwrap();
    let texts: Vec<_> = entries.iter().map(|(_, value)| value.text()).collect();
    assert_eq!(texts[0].as_deref(), Some("x\ny"));
    assert_eq!(texts[1].as_deref(), Some("2"));
    assert_eq!(texts[2], None);
    let items = entries[2].1.list().unwrap();
    assert_eq!(items[0].text().as_deref(), Some("true"));
    assert_eq!((items[0].line(), items[1].line(), items[1].text()), (3, 4, None));
    assert!(items[0].object().is_none() && items[0].list().is_none());
}

#[test]
fn several_values_are_read_up_to_the_one_that_is_broken() {
    let document = Document::new("{\"a\": 1}\n{\"b\": 2}\n{\"c\": ...}\n");
    let (values, error) = document.values();
    assert_eq!(values.len(), 2);
    assert_eq!(error.map(|error| error.line), Some(3));
}

#[test]
fn commas_before_closing_brackets_are_overlooked() {
    let document = Document::new("{\"a\": [1, 2 , ],\n\"b\": \"c,}\\\"\",\n}");
    let (values, error) = document.values();
    assert_eq!(error, None);
    assert_eq!(keys(&values[0]), ["a", "b"]);
    let text = values[0].object().unwrap()[1].1.text().map(Cow::into_owned);
    assert_eq!(text.as_deref(), Some("c,}\""));
}

#[test]
fn a_text_without_json_has_no_start() {
    for text in ["", "[root@node ~]#\n", "a {\"b\": 1}"] {
        let document = Document::new(text);
        assert!(!document.has_start(), "{text}");
        assert!(document.values().0.is_empty());
    }
    assert!(Document::new("  [\n {}]").has_start());
}

#[test]
fn depth_costs_no_stack() {
    let text = "[".repeat(200_000);
    let document = Document::new(&text);
    let (values, error) = document.values();
    assert!(values.is_empty() && error.is_some());
    let closed = text + &"]".repeat(200_000);
    let document = Document::new(&closed);
    let (values, _) = document.values();
    assert!(values.iter().all(|value| value.list().is_some()));
}
