//! Tests that what is wrong with a scenario is told, with line and key, before anything runs.

use std::path::Path;

use super::*;
use crate::scenario::document;
use crate::scenario::plan::{Action, LinkEnd, Mark};

/// Two kernels, an endpoint, a channel each way.
const RIGHT: &str = r#"
[[device]]
kind = "host"
count = 2
[[kernel]]
name = "a"
program = "counter"
state_words = 4
[[kernel]]
name = "b"
program = "counter"
state = [1, 2, 3, 4]
device = 1
start = true
[[endpoint]]
name = "out"
[[channel]]
from = "a.total"
to = "b.add"
[[channel]]
from = "b.total"
to = "out"
[[send]]
to = "a.add"
words = [1, 2]
count = 3
[[event]]
after = { endpoint = "out", messages = 2 }
migrate = "b"
to = 0
"#;

fn parse(text: &str) -> Result<Scenario, String> {
    let checked =
        document::read(text).map_err(|problem| vec![problem]).and_then(|document| check(&document));
    checked.map_err(|problems| {
        let problems = problems.iter().map(|problem| problem.describe(Path::new("s.toml"), text));
        problems.collect::<Vec<_>>().join("\n")
    })
}

/// What is said when `from` is replaced in a right scenario.
fn refused(from: &str, to: &str) -> String {
    assert!(RIGHT.contains(from), "{from}");
    let text = RIGHT.replacen(from, to, 1);
    parse(&text).map(|_| format!("accepted: {to}")).unwrap_or_else(|problems| problems)
}

#[track_caller]
fn assert_told(problems: &str, words: &[&str]) {
    for word in words {
        assert!(problems.contains(word), "{problems:?} does not say {word:?}");
    }
}

#[test]
fn a_right_scenario_becomes_indices() {
    let scenario = parse(RIGHT).unwrap();
    assert_eq!(scenario.devices.len(), 2);
    assert_eq!(scenario.starts, [1]);
    assert_eq!(scenario.kernels[0].state, vec![0; 16]);
    assert_eq!(scenario.kernels[1].state[..8], [1, 0, 0, 0, 2, 0, 0, 0]);
    assert_eq!(scenario.kernels[1].options.preferred_devices, [1]);
    assert_eq!(scenario.channels[0].to, LinkEnd::Kernel(1, "add".to_owned()));
    assert_eq!(scenario.channels[1].to, LinkEnd::Endpoint(0));
    assert_eq!((scenario.sends[0].count, scenario.sends[0].message.payload.len()), (3, 8));
    let event = &scenario.events[0];
    assert_eq!(event.mark, Mark::Messages { endpoint: 0, messages: 2 });
    assert_eq!(event.action, Action::Migrate { kernel: 1, device: 0 });
    assert_eq!(event.text, "migrate b to device 0 after 2 messages at out");
}

#[test]
fn syntax_types_and_keys_are_told_with_line_and_key() {
    assert_told(&refused("count = 2", "count = "), &["s.toml, line 4", "count ="]);
    assert_told(&refused("count = 2", "count = \"2\""), &["line 4", "count", "invalid type"]);
    let unknown = refused("count = 2", "cuont = 2");
    assert_told(&unknown, &["line 4", "unknown field `cuont`", "`count`", "`memory_bytes`"]);
    assert_told(&refused("name = \"a\"\n", ""), &["line 5", "missing field `name`"]);
    assert_told(&refused("count = 2", "count = -2"), &["line 4", "count = -2"]);
}

#[test]
fn unknown_names_are_told_with_those_that_exist() {
    let cases: [(&str, &str, &[&str]); 11] = [
        ("kind = \"host\"", "kind = \"wgpu\"\nworkers = 2", &["line 3", "belongs to host devices"]),
        ("kind = \"host\"", "kind = \"metal\"", &["line 3", "`metal`", "allowed: host"]),
        ("device = 1", "device = 2", &["line 13", "no device 2", "0 to 1"]),
        ("\"counter\"", "\"conter\"", &["line 7", "`conter`", "token_ring", "test-panic"]),
        ("\"b.add\"", "\"c.add\"", &["line 19", "`c`", "the kernels are a, b"]),
        ("\"b.add\"", "\"b.sum\"", &["line 19", "in-port `sum`", "add, query"]),
        ("\"a.total\"", "\"a.add\"", &["line 18", "out-port `add`", "total, report"]),
        ("to = \"out\"", "to = \"in\"", &["line 22", "`in`", "the endpoints are out"]),
        ("\"a.add\"", "\"a\"", &["line 24", "KERNEL.PORT"]),
        ("endpoint = \"out\"", "endpoint = \"x\"", &["line 28", "`x`", "out"]),
        ("migrate = \"b\"", "migrate = \"x\"", &["line 29", "`x`", "a, b"]),
    ];
    for (from, to, words) in cases {
        assert_told(&refused(from, to), words);
    }
}

#[test]
fn sizes_are_told_with_what_is_allowed() {
    let cases: [(&str, &str, &[&str]); 9] = [
        ("words = [1, 2]", "words = [1, 2, 3]", &["line 24", "12 bytes", "allows 8"]),
        ("\"a.total\"", "\"a.report\"", &["line 19", "up to 16 bytes", "takes 8"]),
        ("state_words = 4", "state_words = 0", &["line 6", "state_words = N"]),
        ("state_words = 4", "", &["line 6", "state_words = N"]),
        ("state_words = 4", "state_words = 4000000000", &["line 8", "does not fit"]),
        ("state_words = 4", "state_words = 4\nparameters = [1]", &["line 9", "at most 0"]),
        ("state_words = 4", "state_words = 4\nversion = 9", &["line 9", "version 1"]),
        ("state_words = 4", "state_words = 4\nmailbox = 0", &["line 9", "1 to 1048576"]),
        ("count = 3", "count = 0", &["line 26", "1 to 1000000000"]),
    ];
    for (from, to, words) in cases {
        assert_told(&refused(from, to), words);
    }
}

#[test]
fn names_are_unique_and_plain() {
    assert_told(&refused("name = \"b\"", "name = \"a\""), &["line 10", "another kernel"]);
    assert_told(&refused("name = \"a\"", "name = \"a.b\""), &["line 6", "letters, digits"]);
    let long = format!("name = \"{}\"", "x".repeat(21));
    assert_told(&refused("name = \"a\"", &long), &["line 6", "1 to 20"]);
    let twice = refused("[[send]]", "[[endpoint]]\nname = \"out\"\n[[send]]");
    assert_told(&twice, &["line 24", "another endpoint"]);
    assert_told(&refused("\"b.total\"", "\"a.total\""), &["line 21", "has a channel already"]);
}

#[test]
fn an_event_has_one_mark_and_one_action() {
    let one = "an event has one action";
    assert_told(&refused("migrate = \"b\"\nto = 0", ""), &["line 28", one]);
    assert_told(&refused("to = 0", "to = 0\ndrain = 1"), &["line 28", one]);
    assert_told(&refused("migrate = \"b\"\nto = 0", "migrate = \"b\""), &["belong together"]);
    assert_told(&refused("messages = 2", "steps = 2"), &["line 28", "a mark is"]);
    assert_told(&refused("endpoint = \"out\", messages = 2", ""), &["line 28", "a mark is"]);
}

#[test]
fn all_problems_are_told_at_once() {
    let text = RIGHT.replace("device = 1", "device = 7").replace("b.add", "b.sum");
    let problems = parse(&text).unwrap_err();
    assert_told(&problems, &["line 13", "line 19"]);
    assert_eq!(problems.lines().count(), 2);
    assert_told(&parse("").unwrap_err(), &["s.toml: there is no device"]);
}

#[test]
fn devices_have_as_many_workers_as_they_say() {
    let text = "[[device]]\nkind = \"host\"\ncount = 200\n[[device]]\nkind = \"host\"\nworkers = 3";
    let devices = parse(text).unwrap().devices;
    assert_eq!((devices.len(), devices[200].workers), (201, Some(3)));
    assert!(devices[..200].iter().all(|device| device.workers.is_none()));
    let many = text.replace("workers = 3", "count = 100");
    assert_told(&parse(&many).unwrap_err(), &["300 devices", "at most 256"]);
}
