//! Our own small matrices, one quirk each.

use super::{read, recognizes};
use crate::{InterconnectType, Observations, Statement, Tool};

fn class(all: &Observations, from: &str, to: &str) -> String {
    let position = |name: &str| {
        let is_it = |node: &crate::Node| node.labels.iter().any(|label| label.name == name);
        all.nodes.iter().position(is_it).unwrap()
    };
    let (from, to) = (position(from), position(to));
    let stated = all.pairs.iter().find(|pair| (pair.from, pair.to) == (from, to));
    match stated.map(|pair| &pair.statement) {
        Some(Statement::Class(class)) => class.class_name(),
        Some(other) => panic!("{other:?}"),
        None => "?".to_owned(),
    }
}

#[test]
fn a_whole_matrix_is_read_with_its_columns_and_legend() {
    let all = read(
        "\tGPU0\tGPU1\tNIC0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\n\
         GPU0\t X \tNV4\tPIX\t0-7,16\t0\t\tN/A\n\
         GPU1\tNV4\t X \tSYS\t\t1\t\tN/A\n\
         NIC0\tPIX\tSYS\t X \t\t\t\t\n\n\
         NIC Legend:\n\n  NIC0: mlx5_bond_0\n",
    )
    .unwrap();
    assert_eq!(all.warnings, []);
    assert_eq!(class(&all, "GPU0", "NIC0"), "PIX");
    assert_eq!(class(&all, "NIC0", "GPU1"), "SYS");
    let affinity = |at: usize| all.nodes[at].cpu_affinity.as_deref();
    assert_eq!((affinity(0), affinity(1)), (Some("0-7,16"), None));
    assert_eq!((all.nodes[0].numa_node(), all.nodes[1].numa_node()), (Some(0), Some(1)));
    assert_eq!(all.nodes[2].label(Tool::Os), Some("mlx5_bond_0"));
}

#[test]
fn every_way_of_pasting_gives_the_same() {
    let texts = [
        "\tGPU0\tGPU1\nGPU0\t X \tNV12\nGPU1\tNV12\t X \n",
        "\t\u{1b}[4mGPU0\tGPU1\u{1b}[0m\nGPU0\t X \tNV12\nGPU1\tNV12\t X \n",
        "\u{1b}[4m\tGPU0\tGPU1\u{1b}[0m\nGPU0\t X \tNV12\nGPU1\tNV12\t X \n",
        "GPU0\tGPU1\nGPU0\t X \tNV12\nGPU1\tNV12\t X",
        "GPU0GPU1\nGPU0 X NV12\nGPU1 NV12 X\n",
        "   GPU0 GPU1\n   GPU0 XNV12\n   GPU1 NV12X\n",
        "| | GPU0 | GPU1 |\n|---|---|---|\n| GPU0 | X | NV12 |\n| GPU1 | NV12 | X |\n",
        "# nvidia-smi topo -m\n        GPU0    GPU1\nGPU1    NV12     X\nGPU0     X      NV12\n",
        "\tGPU0\tGPU1\r\nGPU0\t X \tNV12\r\nGPU1\tNV12\t X \r\n",
    ];
    for text in texts {
        let all = read(text).unwrap();
        assert_eq!(
            (class(&all, "GPU0", "GPU1"), class(&all, "GPU1", "GPU0")),
            ("NV12".into(), "NV12".into()),
            "{text}"
        );
        assert!(recognizes(text), "{text}");
    }
}

#[test]
fn what_does_not_fit_is_taken_from_the_mirrored_cell_or_left_out() {
    let all = read(
        "\tGPU0\tGPU1\tGPU2\n\
         GPU0\t X \tNV4\tPH#\n\
         GPU1\tNV4\t X \n\
         GPU2\tPHB\tPI\t X \n",
    )
    .unwrap();
    assert_eq!(class(&all, "GPU0", "GPU1"), "NV4");
    assert_eq!(class(&all, "GPU0", "GPU2"), "?", "its row and the mirrored one are in doubt");
    assert_eq!(class(&all, "GPU1", "GPU2"), "?");
    assert_eq!(all.warnings.len(), 3, "{:?}", all.warnings);
}

#[test]
fn cells_that_contradict_are_kept_and_told() {
    let all = read("\tGPU0\tGPU1\nGPU0\t X \tNV4\nGPU1\tSYS\t X \n").unwrap();
    assert_eq!(
        (class(&all, "GPU0", "GPU1"), class(&all, "GPU1", "GPU0")),
        ("NV4".into(), "SYS".into())
    );
    let warning = all.warnings[0].to_string();
    assert!(
        warning.contains("NV4") && warning.contains("SYS") && warning.contains("line 3"),
        "{warning}"
    );
}

#[test]
fn the_first_whole_one_of_several_matrices_is_read() {
    let one = "\tGPU0\tGPU1\nGPU0\t X \tNV4\n";
    let two = "\tGPU0\tGPU1\nGPU0\t X \tPIX\nGPU1\tPIX\t X \n";
    let all = read(&format!("{one}\n{two}\n{one}")).unwrap();
    assert_eq!(class(&all, "GPU0", "GPU1"), "PIX");
    assert!(all.warnings[0].text.contains("3 matrices"));
}

#[test]
fn complaints_are_quoted_with_a_remedy() {
    let cases = [
        ("NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.", "load"),
        ("Failed to initialize NVML: Driver/library version mismatch", "reload"),
        ("No devices were found", "no GPU"),
        ("bash: nvidia-smi: command not found", "install"),
    ];
    for (text, remedy) in cases {
        assert!(recognizes(text));
        let error = read(text).unwrap_err().to_string();
        assert!(error.contains(&text[..20]) && error.contains(remedy), "{error}");
    }
    assert!(!recognizes("GPU0 0 XGMI\nGPU1 XGMI 0\n"));
    assert!(read("hello").unwrap_err().to_string().contains("topo -m"));
}

#[test]
fn huge_numbers_and_counts_are_no_names() {
    for text in ["GPU99999999999999999999 GPU1\nGPU1 X\n", "GPU0 GPU0\nGPU0 X NV1\n"] {
        assert!(read(text).is_err());
    }
    let all = read("\tGPU0\tGPU1\nGPU0\t X \tNV0\nGPU1\tNV18\t X \n").unwrap();
    let eighteen = InterconnectType::NvLink { generation: None, links: 18 };
    assert_eq!(class(&all, "GPU0", "GPU1"), eighteen.class_name());
}
