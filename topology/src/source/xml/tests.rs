//! XML in order, cut, nested without end, and with entities.

use super::{MOST_DEPTH, parse, parse_embedded};

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

#[test]
fn what_was_cut_is_not_closed() {
    let document = parse("<system><cpu/><pci><gpu/>");
    let [system] = &document.roots[..] else { panic!("{document:?}") };
    let closed: Vec<bool> = system.children.iter().map(|child| child.closed).collect();
    assert_eq!((system.closed, &closed[..]), (false, &[true, false][..]));
    assert!(system.children[1].children[0].closed);
}

#[test]
fn elements_are_found_in_a_log() {
    let log =
        "eth0:10.0.0.1<0> & more\n<!-- <b/> --><systemd/>\n<b>\n<0>\n<c/></b> <0>\n<b x='1'/>";
    let document = parse_embedded(log, &["b", "system"]);
    assert!(document.warnings.is_empty(), "{:?}", document.warnings);
    let [first, second] = &document.roots[..] else { panic!("{document:?}") };
    assert_eq!((first.line, first.children[0].line, first.children.len()), (3, 5, 1));
    assert_eq!((second.line, second.attribute("x")), (6, Some("1")));
}

#[test]
fn a_second_start_ends_a_cut_element() {
    let document = parse_embedded("<b>\n<c>\nprose <b>\n<d/></b>", &["b"]);
    let [first, second] = &document.roots[..] else { panic!("{document:?}") };
    assert_eq!((first.closed, first.children[0].closed), (false, false));
    assert_eq!((second.closed, second.children[0].name.as_str()), (true, "d"));
    assert_eq!(document.warnings.len(), 1);
}

#[test]
fn a_missing_end_tag_puts_the_nesting_in_doubt() {
    let document = parse_embedded("<b>\n<c><d>\n<d/>\n</c><c/></b>", &["b"]);
    let [lost, last] = &document.roots[0].children[..] else { panic!("{document:?}") };
    assert!(lost.closed && !lost.doubtful && last.closed);
    let [d] = &lost.children[..] else { panic!("{lost:?}") };
    assert!(!d.closed && d.doubtful && d.children[0].closed);
    assert_eq!(document.warnings[0].line, Some(4));
}

#[test]
fn an_end_tag_too_many_puts_the_nesting_in_doubt() {
    let document = parse_embedded("<b>\n<c/>\n</d>\n<c/></b>", &["b"]);
    let [b] = &document.roots[..] else { panic!("{document:?}") };
    assert!(b.closed && b.doubtful);
    assert_eq!((b.children.len(), document.warnings[0].line), (2, Some(3)));
}

#[test]
fn a_lost_quote_costs_one_tag() {
    let document = parse_embedded("<b>\n<c x=\"1/>\n<c x=\"2\"/>\n</b>", &["b"]);
    let [b] = &document.roots[..] else { panic!("{document:?}") };
    let [c] = &b.children[..] else { panic!("{b:?}") };
    assert_eq!((b.closed, c.attribute("x")), (true, Some("2")));
    assert_eq!(document.warnings[0].line, Some(2));
}

#[test]
fn damage_everywhere_is_read_in_bounded_time() {
    for piece in ["<b \"", "<!--", "<b", "<![CDATA[", "</b>", "<b>", "<?x", "<!x", "&", "<b></b>"] {
        parse_embedded(&format!("<b>{}", piece.repeat(50_000)), &["b"]);
    }
}

#[test]
fn attributes_are_bounded() {
    let attributes: String = (0..100_000).map(|number| format!(" a{number}='1'")).collect();
    let document = parse(&format!("<x{attributes}/>"));
    assert_eq!(document.roots[0].attribute("a0"), Some("1"));
    assert_eq!(document.warnings.len(), 1);
}
