//! XML in order, cut, nested without end, and with entities.

use super::{MOST_DEPTH, parse};

#[test]
fn elements_attributes_and_lines_are_read() {
    let document =
        parse("\n<!-- a --><system version='1'>\n <cpu numaid=\"0\">t</cpu>\n</system>\n");
    assert!(document.warnings.is_empty(), "{:?}", document.warnings);
    let [system] = &document.roots[..] else { panic!("{document:?}") };
    assert_eq!((system.name.as_str(), system.line), ("system", 2));
    let cpu = system.children_named("cpu").next().unwrap();
    assert_eq!((cpu.attribute("numaid"), cpu.line, cpu.text.as_str()), (Some("0"), 3, "t"));
    assert_eq!(cpu.attribute("numa"), None);
}

#[test]
fn a_cut_text_gives_what_stands_before_the_cut() {
    let document = parse("<system>\n<cpu numaid=\"0\">\n<pci busid=\"0000:18:00.0\"/><pci bus");
    assert_eq!(document.roots[0].children[0].children.len(), 1);
    assert!(!document.warnings.is_empty());
}

#[test]
fn an_unknown_entity_is_not_resolved() {
    let bomb =
        "<!DOCTYPE x [<!ENTITY a \"aaaa\"><!ENTITY b \"&a;&a;\">]><x y=\"&b;\" z=\"1\">&b;</x>";
    let document = parse(bomb);
    let [x] = &document.roots[..] else { panic!("{document:?}") };
    assert_eq!((x.attribute("y"), x.attribute("z"), x.text.as_str()), (None, Some("1"), ""));
    assert_eq!(document.warnings.len(), 1);
}

#[test]
fn depth_is_bounded() {
    let document = parse(&"<a>".repeat(100_000));
    assert!(document.warnings[0].text.contains(&MOST_DEPTH.to_string()));
}
