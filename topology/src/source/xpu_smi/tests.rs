//! Our own matrices and tables of xpu-smi.

use super::{read, recognizes};
use crate::{NodeKind, Statement};

#[test]
fn a_matrix_is_read_with_bars_or_spaces() {
    for bar in ["|", " "] {
        let text = format!(
            "         GPU 0/0{bar}GPU 1/0{bar}CPU Affinity\nGPU 0/0 {bar}S{bar}XL16{bar}0-3\n\
             GPU 1/0 {bar}XL16{bar}S{bar}4-7\n"
        );
        assert!(recognizes(&text));
        let all = read(&text).unwrap();
        assert_eq!(all.warnings, []);
        assert_eq!(all.nodes.len(), 2, "a device of one tile needs no card");
        assert_eq!(all.nodes[1].cpu_affinity.as_deref(), Some("4-7"));
        let Statement::Class(class) = all.pairs[0].statement else { panic!() };
        assert_eq!(class.class_name(), "XL16");
    }
}

#[test]
fn rows_that_do_not_fit_are_left_out() {
    let text = "GPU 0/0 GPU 0/1\nGPU 0/0 S\nGPU 0/1 MDF S\nGPU 0/1 SYS S\n";
    let all = read(text).unwrap();
    assert_eq!(all.pairs.len(), 1);
    assert_eq!(all.warnings.len(), 2);
    assert_eq!(all.nodes[0].card, Some(2));
}

#[test]
fn a_table_is_read() {
    let text = "+---+---+\n| Device ID | Topology Information |\n\
                | 3 | Local CPU List: 0-11 |\n|   | PCIe Switch Count: 1 |\n";
    assert!(recognizes(text));
    let all = read(text).unwrap();
    assert_eq!(all.nodes[0].cpu_affinity.as_deref(), Some("0-11"));
    assert_eq!(all.nodes[all.nodes[0].parent.unwrap()].kind, NodeKind::PcieSwitch);
    assert!(read("| a | b |\n").is_err());
}
