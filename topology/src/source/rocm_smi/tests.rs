//! Tests of reading what rocm-smi and hy-smi print.

use super::*;
use crate::{Figure, InterconnectType, NodeKind, PeerCapability, PeerStatus, Statement, Tool};

mod damaged;

const XGMI: Statement = Statement::Class(InterconnectType::InfinityFabric { links: 1 });
const PCIE: Statement = Statement::Class(InterconnectType::Pcie { generation: None, lanes: None });
const UNKNOWN: Statement = Statement::Class(InterconnectType::Unknown);

/// All statements, with the numbers of the GPUs.
fn statements(text: &str) -> Vec<(usize, usize, Statement)> {
    let observations = read(text).unwrap();
    observations.pairs.into_iter().map(|pair| (pair.from, pair.to, pair.statement)).collect()
}

/// The warnings as a person sees them.
fn warnings(text: &str) -> Vec<String> {
    read(text).unwrap().warnings.iter().map(ToString::to_string).collect()
}

fn numa_nodes(text: &str) -> Vec<Option<u32>> {
    read(text).unwrap().nodes.iter().map(crate::Node::numa_node).collect()
}

#[test]
fn the_three_matrices_and_the_numa_nodes_are_read() {
    let observations = read(
        "=== Weight between two GPUs ===\n\
         \x20      GPU0         GPU1         \n\
         GPU0   0            40           \n\
         GPU1   40           0            \n\n\
         === Hops between two GPUs ===\n\
         \x20      GPU0         GPU1         \n\
         GPU0   0            2            \n\
         GPU1   2            0            \n\n\
         === Link Type between two GPUs ===\n\
         \x20      GPU0         GPU1         \n\
         GPU0   0            PCIE         \n\
         GPU1   PCIE         0            \n\n\
         === Numa Nodes ===\n\
         GPU[0]\t\t: (Topology) Numa Node: 0\n\
         GPU[0]\t\t: (Topology) Numa Affinity: 0\n\
         GPU[1]\t\t: (Topology) Numa Node: 1\n\
         GPU[1]\t\t: (Topology) Numa Affinity: 1\n\
         === End of ROCm SMI Log ===\n",
    )
    .unwrap();
    let there: Vec<_> =
        observations.pairs[..3].iter().map(|pair| (pair.statement.clone(), pair.line)).collect();
    assert_eq!(
        there,
        [(PCIE, Some(13)), (Statement::Weight(40), Some(3)), (Statement::Hops(2), Some(8))]
    );
    assert_eq!(observations.pairs.len(), 6);
    assert!(observations.nodes.iter().all(|node| node.kind == NodeKind::Gpu));
    assert_eq!(observations.nodes[1].label(Tool::RocmSmi), Some("GPU1"));
    assert_eq!(observations.nodes[1].numa_nodes, [1]);
    assert_eq!(observations.warnings, []);
}

#[test]
fn spacing_quoting_and_tables_of_wikis_make_no_difference() {
    for text in [
        "= Link Type between two GPUs =\nGPU0 GPU1\nGPU0 0 XGMI\nGPU1 XGMI 0\n",
        "= Link Type between two GPUs =\n\n   GPU0 GPU1\n\n   GPU0 0 XGMI\n\n   GPU1 XGMI 0\n",
        "= Link Type between two GPUs =\n\tGPU0\tGPU1\nGPU0\t0\tXGMI\nGPU1\tXGMI\t0\n",
        "> = Link Type between two GPUs =\r\n> GPU0 GPU1\r\n> GPU0 0 XGMI\r\n> GPU1 XGMI 0\r\n",
        "**Link Type Between Two GPUs**\n\n| | GPU0 | GPU1 |\n| :--- | :--: | :--: |\n\
         | **GPU0** | 0 | XGMI |\n| **GPU1** | XGMI | 0 |\n",
        "------ Link Type between two GPUs ------\n\u{1b}[4mGPU0 GPU1\u{1b}[0m\nGPU0 0 XGMI\n\
         GPU1 XGMI 0\n",
        "GPU0 GPU1\nGPU0 0 XGMI\nGPU1 XGMI 0\n",
    ] {
        assert!(recognizes(text), "{text}");
        assert_eq!(statements(text), [(0, 1, XGMI), (1, 0, XGMI)], "{text}");
        assert_eq!(warnings(text), [] as [&str; 0], "{text}");
    }
}

#[test]
fn cells_count_for_more_than_the_banner() {
    let text = "=== Weight between two GPUs ===\n\
                ERROR: GPU[1]   : Cannot read Link Weight: Not supported on this machine\n\n\
                GPU0 GPU1 GPU2\nGPU0 0 XGMI XGMI\nGPU1 XGMI 0 XXXX\nGPU2 XGMI XXXX 0\n";
    let expected =
        [(0, 1, XGMI), (0, 2, XGMI), (1, 0, XGMI), (1, 2, UNKNOWN), (2, 0, XGMI), (2, 1, UNKNOWN)];
    assert_eq!(statements(text), expected);
    let warnings = warnings(text);
    assert!(warnings[0].starts_with("line 2: the tool says `ERROR: GPU[1]"), "{warnings:?}");
    assert!(warnings[1].contains("line 4: the title says weights"), "{warnings:?}");
}

#[test]
fn numbers_without_a_certain_title_are_left_out() {
    for text in [
        // The banner over the second matrix is lost.
        "= Weight between two GPUs =\nGPU0 GPU1\nGPU0 0 15\nGPU1 15 0\n\n\
         GPU0 GPU1\nGPU0 0 1\nGPU1 1 0\n",
        // So is its header; rows go on behind a whole matrix.
        "= Weight between two GPUs =\nGPU0 GPU1\nGPU0 0 15\nGPU1 15 0\n\nGPU0 0 1\nGPU1 1 0\n",
    ] {
        let weight = Statement::Weight(15);
        assert_eq!(statements(text), [(0, 1, weight.clone()), (1, 0, weight)], "{text}");
        assert!(!warnings(text).is_empty());
    }
    let two_banners = "= Weight between two GPUs =\n\n= Hops between two GPUs =\n\
                       GPU0 GPU1\nGPU0 0 1\nGPU1 1 0\n";
    assert_eq!(statements(two_banners), []);
    assert!(warnings(two_banners)[0].contains("line 4: a matrix of numbers"));
}

#[test]
fn access_and_bandwidths_are_read() {
    let access = "= Link accessibility between two GPUs =\nGPU0 GPU1\nGPU0 True False\n\
                  GPU1 True True\n";
    let peer = |capability, status| Statement::Peer { capability, status };
    let (read, write) = (PeerCapability::Read, PeerCapability::Write);
    let expected = [
        (0, 1, peer(read, PeerStatus::NotSupported)),
        (0, 1, peer(write, PeerStatus::NotSupported)),
        (1, 0, peer(read, PeerStatus::Supported)),
        (1, 0, peer(write, PeerStatus::Supported)),
    ];
    assert_eq!(statements(access), expected);
    let bandwidth = "=== Bandwidth ===\nGPU0 GPU1 GPU2\nGPU0 N/A 50000-200000 0-0\n\
                     GPU1 50000-200000 N/A 9-8\nGPU2 0-0 50000-50000 N/A\n\
                     Format: min-max; Units: mps\n";
    let figure = |value| Statement::Bandwidth(Figure::reported(value, "rocm-smi").unwrap());
    let expected = [(0, 1, figure(200.0)), (1, 0, figure(200.0)), (2, 1, figure(50.0))];
    assert_eq!(statements(bandwidth), expected);
    assert_eq!(
        warnings(bandwidth),
        ["line 4: from GPU1 to GPU2 stands `9-8`, which is none of the bandwidths; it is left out"]
    );
}

#[test]
fn the_node_counts_and_the_affinity_stands_in() {
    let text = "=== Numa Nodes ===\n\
                GPU[0] : (Topology) Numa Node: 0\nGPU[0] : (Topology) Numa Affinity: -1\n\
                GPU[1] : (Topology) Numa Affinity: 1\n\
                GPU[2] : (Topology) Numa Node: 4294967295\nGPU[2] : (Topology) Numa Affinity: 2\n\
                GPU[3] : (Topology) Numa Node: 0\nGPU[3] : (Topology) Numa Affinity: 3\n\
                GPU 4  : (Topology) Numa Node: -1\n\
                HCU[5] : (Topology) Numa Node  7\n\
                GPU[6] : (Topology) Numa Node: 6\nGPU[6] : (Topology) Numa Node: 5\n\
                GPU[7] : (Topology) Numa Node: 70000\n";
    let expected = [Some(0), Some(1), Some(2), Some(0), None, Some(7), None, None];
    assert_eq!(numa_nodes(text), expected);
    assert_eq!(
        warnings(text),
        [
            "line 7: GPU3 is linked to NUMA node 0, but its affinity is 3; 0 is taken",
            "line 12: the NUMA node of GPU6 is stated in two ways; none is taken",
            "line 13: the NUMA node of GPU7 cannot be `70000`; it is left out",
        ]
    );
}

#[test]
fn what_else_is_said_about_gpus_is_taken() {
    let text = "= Link Type between two GPUs =\nGPU0 GPU1\nGPU0 0 XGMI\nGPU1 XGMI 0\n\
                GPU[0] : PCI Bus: 0000:C1:00.0\nGPU[1] : PCI Bus: 0000:C5:00.0\n\
                GPU[0] : Card Series: \t\tAMD Instinct MI300X OAM\nGPU[0] : GFX Version: \tgfx942\n\
                GPU[9] : PCI Bus: 0000:C9:00.0\n";
    let observations = read(text).unwrap();
    let [first, second] = &observations.nodes[..] else { panic!("{:?}", observations.nodes) };
    assert_eq!(first.pci.unwrap().to_string(), "0000:c1:00.0");
    assert_eq!(first.model.as_deref(), Some("AMD Instinct MI300X OAM"));
    assert_eq!(first.architecture.as_deref(), Some("gfx942"));
    assert_eq!(second.pci.unwrap().to_string(), "0000:c5:00.0");
    assert_eq!(warnings(text), ["line 9: no matrix shows GPU9; what is said about it is left out"]);
    // A known fault with partitions: one address for several of them.
    let shared = "GPU[0] : PCI Bus: 0000:01:00.1\nGPU[1] : PCI Bus: 0000:01:00.1\n\
                  GPU[0] : (Topology) Numa Node: 0\n";
    assert!(read(shared).unwrap().nodes.iter().all(|node| node.pci.is_none()));
}

#[test]
fn rows_that_do_not_fit_give_what_is_certain() {
    let header = "=== Weight between two GPUs ===\n       GPU0         GPU1         GPU2\n";
    // Two cells are glued: what stands before them is certain.
    let glued = format!("{header}GPU2   15           300\n");
    assert_eq!(statements(&glued), []);
    let glued = format!("{header}GPU1   15           030\n");
    assert_eq!(statements(&glued), []);
    let split = format!("{header}GPU1   15           0            3 0\n");
    assert_eq!(statements(&split), [(1, 0, Statement::Weight(15))]);
    // A cell is lost, nobody knows which.
    let lost = format!("{header}GPU0   0            15\nGPU1   15           0            30\n");
    assert_eq!(statements(&lost), [(1, 0, Statement::Weight(15)), (1, 2, Statement::Weight(30))]);
    assert_eq!(warnings(&lost), ["line 3: only 0 of 3 cells of GPU0 are certain"]);
    // The text ends within a cell.
    let cut = format!("{header}GPU0   0            15           3");
    assert_eq!(statements(&cut), [(0, 1, Statement::Weight(15))]);
    let cut = format!("{header}GPU0   0            15");
    assert_eq!(statements(&cut), []);
    let cut = format!("{header}GPU0   0            15 ");
    assert_eq!(statements(&cut), [(0, 1, Statement::Weight(15))]);
}

#[test]
fn a_wrong_label_does_not_move_a_row() {
    let row = |label: &str| {
        format!(
            "= Hops between two GPUs =\nGPU0 GPU1 GPU2\nGPU0 0 1 2\n{label} 1 0 3\nGPU2 2 3 0\n"
        )
    };
    let of_first_row = |(from, ..): &(usize, usize, Statement)| *from == 0;
    assert_eq!(statements(&row("GPU1")).len(), 6);
    assert_eq!(statements(&row("GPU1")).iter().filter(|pair| of_first_row(pair)).count(), 2);
    // GPU2 has two rows then, neither of which is certain.
    assert!(statements(&row("GPU2")).iter().all(of_first_row));
    // GPU1 is then in doubt itself.
    let observations = read(&row("GPU7")).unwrap();
    assert_eq!(observations.nodes.len(), 2);
    assert_eq!(observations.pairs.len(), 2);
}

#[test]
fn directions_that_contradict_each_other_are_both_left_out() {
    let text = "= Hops between two GPUs =\nGPU0 GPU1 GPU2\nGPU0 0 1 2\nGPU1 3 0 1\nGPU2 2 1 0\n";
    assert_eq!(statements(text).len(), 4);
    assert_eq!(
        warnings(text),
        ["line 3: from GPU0 to GPU1 stands 1 hops, but back 3 hops (line 4); neither is taken"]
    );
}

#[test]
fn figures_that_cannot_be_are_left_out() {
    let text = "= Weight between two GPUs =\nGPU0 GPU1\nGPU0 0 1\nGPU1 15 0\n\
                = Hops between two GPUs =\nGPU0 GPU1\nGPU0 0 255\nGPU1 15 0\n";
    assert_eq!(statements(text), [(1, 0, Statement::Weight(15))]);
    assert_eq!(
        warnings(text),
        [
            "line 3: from GPU0 to GPU1 stands `1`, which is none of the weights; it is left out",
            "line 8: from GPU1 to GPU0 stands `15`, which is none of the hops; it is left out",
        ]
    );
}

#[test]
fn zero_is_no_weight() {
    let text = "= Weight between two GPUs =\nGPU0 GPU1\nGPU0 0 0\nGPU1 0 0\n";
    assert_eq!(statements(text), []);
    assert_eq!(
        warnings(text),
        ["line 3: 0 among the weights of different GPUs (first from GPU0 to GPU1) is taken as \
          unknown"]
    );
}

#[test]
fn json_says_each_pair_for_both_directions() {
    let text = "WARNING: AMD GPU device(s) is/are in a low-power state\n\
                {\"card0\": {\"(Topology) Numa Node\": \"0\", \"(Topology) Numa Affinity\": \"0\"},\n\
                \"card1\": {\"(Topology) Numa Node\": 1, \"PCI Bus\": \"0000:C1:00.0\"},\n\
                \"system\": {\"(Topology) Weight between DRM devices 0 and 1\": \"15\",\n\
                \"(Topology) Hops between DRM devices 0 and 1\": \"1\",\n\
                \"(Topology) Link type between DRM devices 0 and 1\": \"XGMI\",\n\
                \"(Topology) Link type between DRM devices 0 and 9\": \"XGMI\"}}\n";
    assert!(recognizes(text));
    let observations = read(text).unwrap();
    assert_eq!(observations.nodes.len(), 2);
    assert_eq!(observations.nodes[1].numa_nodes, [1]);
    assert!(observations.nodes[1].pci.is_some());
    let pair = |from, to| {
        let there = [XGMI, Statement::Weight(15), Statement::Hops(1)];
        there.map(|statement| (from, to, statement)).to_vec()
    };
    assert_eq!(statements(text), [pair(0, 1), pair(1, 0)].concat());
    assert_eq!(observations.pairs[1].line, Some(4));
    let warnings = warnings(text);
    assert!(
        warnings
            .contains(&"line 7: there is no card9; what is said about it is left out".to_owned())
    );
}

#[test]
fn json_that_is_no_json_is_an_error_with_its_line() {
    let error =
        read("\n{\"card0\":{\"(Topology) Numa Node\":\"0\"},\n\"card1\":{...}}\n").unwrap_err();
    assert_eq!(error.line(), Some(3));
    assert!(error.to_string().starts_with("rocm-smi: line 3: "), "{error}");
    // Commas that a person left are no matter.
    assert_eq!(numa_nodes("{\"card0\":{\"(Topology) Numa Node\":\"3\",},}"), [Some(3)]);
}

#[test]
fn messages_in_place_of_an_output_are_errors_with_a_remedy() {
    for (text, remedy) in [
        ("bash: rocm-smi: command not found\n", "install ROCm"),
        ("sh: 1: hy-smi: not found", "/opt/hyhal/bin/hy-smi"),
        ("ERROR:root:Driver not initialized (amdgpu not found in modules)\n", "modprobe amdgpu"),
        ("Unable to open /dev/kfd read-write: Permission denied\n", "groups render"),
        (
            "ERROR: GPU[0] : Cannot read Link Weight: Not supported on this machine\n",
            "kfd/topology",
        ),
    ] {
        assert!(recognizes(text), "{text}");
        let error = read(text).unwrap_err();
        assert_eq!(error.line(), Some(1), "{text}");
        assert!(error.to_string().contains(remedy), "{error}");
    }
    let error = read("nothing of the kind").unwrap_err();
    assert!(error.to_string().contains("rocm-smi --showtopo"), "{error}");
}

#[test]
fn other_tools_are_not_recognized() {
    for text in [
        "",
        "\tGPU0\tGPU1\tCPU Affinity\nGPU0\t X \tNV12\t0-15\nGPU1\tNV12\t X \t0-15\n",
        " \tGPU0\tGPU1\n GPU0\tX\tOK\n GPU1\tOK\tX\n",
        "LINK TYPE TABLE:\n0000:01:00.0 0000:02:00.0\n0000:01:00.0 SELF XGMI\n",
        "         GPU 0/0  GPU 1/0  CPU Affinity\nGPU 0/0  S        XL24     0-143\n",
        "======= Concise Info =======\n0  2  0x74a2, 1017  43.0C\n",
    ] {
        assert!(!recognizes(text), "{text}");
    }
}

#[test]
fn a_huge_number_costs_nothing() {
    let text = "= Hops between two GPUs =\nGPU0 GPU4000000000\nGPU0 0 1\nGPU4000000000 1 0\n";
    assert_eq!(statements(text).len(), 2);
    assert_eq!(read(&text.replace('4', "999")).unwrap_err().line(), None);
}
