//! Tests of reading what amd-smi prints.

use proptest::prelude::*;

use super::*;
use crate::source::matrix_text::damage::{Line, Role, damage, damages};
use crate::{Figure, InterconnectType, PeerCapability, PeerStatus, Statement};

const XGMI: Statement = Statement::Class(InterconnectType::InfinityFabric { links: 1 });
const PCIE: Statement = Statement::Class(InterconnectType::Pcie { generation: None, lanes: None });

fn statements(text: &str) -> Vec<(usize, usize, Statement)> {
    let observations = read(text).unwrap();
    observations.pairs.into_iter().map(|pair| (pair.from, pair.to, pair.statement)).collect()
}

fn warnings(text: &str) -> Vec<String> {
    read(text).unwrap().warnings.iter().map(ToString::to_string).collect()
}

fn peer(capability: PeerCapability, status: PeerStatus) -> Statement {
    Statement::Peer { capability, status }
}

#[test]
fn all_tables_are_read() {
    let table = |title: &str, itself: &str, other: &str| {
        format!(
            "{title} TABLE:\n             0000:05:00.0 0001:26:00.0\n\
             0000:05:00.0 {itself:<12} {other}\n0001:26:00.0 {other:<12} {itself}\n"
        )
    };
    let text = [
        table("ACCESS", "ENABLED", "DISABLED"),
        table("WEIGHT", "0", "40"),
        table("HOPS", "0", "2"),
        table("LINK TYPE", "SELF", "PCIE"),
        table("NUMA BW", "N/A", "25000-50000"),
        table("CACHE COHERANCY", "SELF", "NC"),
        table("ATOMICS", "SELF", "64,32"),
        table("DMA", "SELF", "T"),
        table("BI-DIRECTIONAL", "SELF", "F"),
        "Legend:\n  SELF = Current GPU\n  64,32 = 64 bit and 32 bit atomic support\n".to_owned(),
    ]
    .concat();
    assert!(recognizes(&text));
    let observations = read(&text).unwrap();
    let addresses: Vec<_> =
        observations.nodes.iter().map(|node| node.pci.unwrap().to_string()).collect();
    assert_eq!(addresses, ["0000:05:00.0", "0001:26:00.0"]);
    assert!(observations.nodes.iter().all(|node| node.labels.is_empty()));
    let there: Vec<Statement> = observations
        .pairs
        .iter()
        .filter(|pair| pair.from == 0)
        .map(|pair| pair.statement.clone())
        .collect();
    let expected = [
        PCIE,
        Statement::Weight(40),
        Statement::Hops(2),
        Statement::Bandwidth(Figure::reported(50.0, "amd-smi").unwrap()),
        peer(PeerCapability::Read, PeerStatus::NotSupported),
        peer(PeerCapability::Write, PeerStatus::NotSupported),
        peer(PeerCapability::Atomics, PeerStatus::Supported),
    ];
    assert_eq!(there, expected);
    assert_eq!(observations.pairs.len(), 2 * expected.len());
    assert_eq!(observations.warnings, []);
}

#[test]
fn other_commands_in_the_paste_name_the_gpus() {
    let text = "$ amd-smi list\nGPU: 0\n    BDF: 0000:05:00.0\n    UUID: 6bff74a0-0000-1000-8012\n\
                \n$ amd-smi xgmi\nGPU1   0000:26:00.0 32 Gb/s  512 Gb/s      XGMI\n\
                LINK TYPE TABLE:\n0000:05:00.0 0000:26:00.0\n0000:05:00.0 SELF XGMI\n\
                0000:26:00.0 XGMI SELF\n";
    let observations = read(text).unwrap();
    let [first, second] = &observations.nodes[..] else { panic!("{:?}", observations.nodes) };
    assert_eq!(first.label(Tool::RocmSmi), Some("GPU0"));
    assert_eq!(first.uuid.as_deref(), Some("6bff74a0-0000-1000-8012"));
    assert_eq!(second.label(Tool::RocmSmi), Some("GPU1"));
    assert_eq!(statements(text), [(0, 1, XGMI), (1, 0, XGMI)]);
    // Two GPUs with one number have none.
    let doubtful = text.replace("GPU1 ", "GPU0 ");
    assert!(read(&doubtful).unwrap().nodes.iter().all(|node| node.labels.is_empty()));
}

#[test]
fn a_table_without_its_title_counts_if_its_cells_tell() {
    let text = "WEIGHT TABLE:\n0000:05:00.0 0000:26:00.0\n0000:05:00.0 0 15\n0000:26:00.0 15 0\n\
                0000:05:00.0 0000:26:00.0\n0000:05:00.0 0 1\n0000:26:00.0 1 0\n\
                0000:05:00.0 0000:26:00.0\n0000:05:00.0 SELF XGMI\n0000:26:00.0 XGMI SELF\n";
    let weight = Statement::Weight(15);
    let expected = [(0, 1, XGMI), (0, 1, weight.clone()), (1, 0, XGMI), (1, 0, weight)];
    assert_eq!(statements(text), expected);
    assert_eq!(
        warnings(text),
        ["line 5: a matrix of numbers, and it is not certain whether they are weights or hops; \
          they are left out"]
    );
}

#[test]
fn a_label_that_one_header_has_alone_is_no_gpu() {
    let text = "HOPS TABLE:\n0000:05:00.0 0000:26:00.0\n0000:05:00.0 0 1\n0000:26:00.0 1 0\n\
                LINK TYPE TABLE:\n0000:05:00.0 0000:66:00.0\n0000:05:00.0 SELF XGMI\n";
    assert_eq!(read(text).unwrap().nodes.len(), 2);
    assert_eq!(statements(text), [(0, 1, Statement::Hops(1)), (1, 0, Statement::Hops(1))]);
}

#[test]
fn json_has_numbers_and_addresses() {
    let text = "$ amd-smi topology --json\n[\n\
        {\"gpu\": 0, \"bdf\": \"0000:05:00.0\", \"links\": [\n\
        {\"gpu\": 0, \"bdf\": \"0000:05:00.0\", \"weight\": 0, \"link_status\": \"ENABLED\", \
         \"link_type\": \"SELF\", \"num_hops\": 0, \"bandwidth\": \"N/A\"},\n\
        {\"gpu\": 1, \"bdf\": \"0000:26:00.0\", \"weight\": 15, \"link_status\": \"ENABLED\", \
         \"link_type\": \"XGMI\", \"num_hops\": \"1\", \"bandwidth\": \"50000-100000\",},\n]},\n\
        {\"gpu\": 1, \"bdf\": \"0000:26:00.0\", \"links\": [\n\
        {\"gpu\": 0, \"bdf\": \"0000:05:00.0\", \"weight\": \"N/A\", \"link_type\": \"XGMY\"}]}]\n";
    assert!(recognizes(text));
    let observations = read(text).unwrap();
    assert_eq!(observations.nodes[1].label(Tool::RocmSmi), Some("GPU1"));
    assert_eq!(observations.nodes[1].pci.unwrap().to_string(), "0000:26:00.0");
    let expected = [
        (0, 1, XGMI),
        (0, 1, Statement::Weight(15)),
        (0, 1, Statement::Hops(1)),
        (0, 1, Statement::Bandwidth(Figure::reported(100.0, "amd-smi").unwrap())),
        (0, 1, peer(PeerCapability::Read, PeerStatus::Supported)),
        (0, 1, peer(PeerCapability::Write, PeerStatus::Supported)),
    ];
    assert_eq!(statements(text), expected);
    assert_eq!(observations.pairs[0].line, Some(5));
    assert_eq!(warnings(text), ["line 8: `XGMY` is none of the kinds of links; it is left out"]);
}

#[test]
fn the_earlier_json_is_read_too() {
    let gpu = |number: u32, cells: [&str; 2], types: [&str; 2]| {
        format!(
            "{{\"gpu\": {number}, \"link_accessibility\": {{\"gpu_0\": \"ENABLED\", \
             \"gpu_1\": \"ENABLED\"}}, \"weight\": {{\"gpu_0\": {}, \"gpu_1\": {}}}, \
             \"link_type\": {{\"gpu_0\": \"{}\", \"gpu_1\": \"{}\"}}, \
             \"numa_bandwidth\": {{\"gpu_0\": \"N/A\"}}}}",
            cells[0], cells[1], types[0], types[1]
        )
    };
    let text = format!(
        "[{},\n{}]",
        gpu(0, ["0", "40"], ["SELF", "PCIE"]),
        gpu(1, ["40", "0"], ["PCIE", "SELF"])
    );
    assert!(recognizes(&text));
    let there: Vec<_> = statements(&text).into_iter().filter(|(from, ..)| *from == 0).collect();
    let access = |capability| (0, 1, peer(capability, PeerStatus::Supported));
    let expected = [
        (0, 1, PCIE),
        (0, 1, Statement::Weight(40)),
        access(PeerCapability::Read),
        access(PeerCapability::Write),
    ];
    assert_eq!(there, expected);
    // An object whose diagonal is elsewhere is about another GPU.
    let moved = text.replace("{\"gpu\": 1,", "{\"gpu\": 0,");
    assert_eq!(statements(&moved), []);
    assert!(!warnings(&moved).is_empty());
}

#[test]
fn a_link_whose_number_and_address_disagree_is_left_out() {
    let text = "[{\"gpu\":0,\"bdf\":\"0000:05:00.0\",\"links\":[\n\
                {\"gpu\":2,\"bdf\":\"0000:26:00.0\",\"link_type\":\"XGMI\"},\n\
                {\"gpu\":2,\"bdf\":\"0000:46:00.0\",\"link_type\":\"PCIE\"}]},\n\
                {\"gpu\":1,\"bdf\":\"0000:26:00.0\",\"links\":[]},\n\
                {\"gpu\":2,\"bdf\":\"0000:46:00.0\",\"links\":[]}]";
    assert_eq!(statements(text), [(0, 2, PCIE)]);
    assert_eq!(
        warnings(text),
        ["line 2: it is not certain to which GPU this link leads; it is left out"]
    );
    let shared = text.replace("{\"gpu\":1,", "{\"gpu\":2,");
    assert_eq!(read(&shared).unwrap().nodes.len(), 1);
}

#[test]
fn json_that_is_no_json_is_an_error_with_its_line() {
    let text = "[\n{\"gpu\": 0, \"bdf\": \"0000:05:00.0\", \"links\": [\n...\n]}]";
    let error = read(text).unwrap_err();
    assert_eq!(error.line(), Some(3));
    assert!(error.to_string().contains("amd-smi topology --json"), "{error}");
}

#[test]
fn messages_in_place_of_an_output_are_errors_with_a_remedy() {
    for (text, remedy) in [
        ("amd-smi: command not found", "/opt/rocm/bin/amd-smi"),
        (
            "ERROR:root:Unable to get devices, driver not initialized (amdgpu not found in modules)",
            "modprobe",
        ),
        ("Unable to detect any GPU devices, check amdgpu version and module status", "modprobe"),
        ("Error code: 34 | AMDSMI_STATUS_DRIVER_NOT_LOADED - Driver not loaded", "/dev/kfd"),
    ] {
        assert!(recognizes(text), "{text}");
        let error = read(text).unwrap_err();
        assert!(error.to_string().contains(remedy), "{error}");
    }
}

#[test]
fn other_tools_are_not_recognized() {
    for text in [
        "",
        "\tGPU0\tGPU1\tCPU Affinity\nGPU0\t X \tNV12\t0-15\nGPU1\tNV12\t X \t0-15\n",
        "=== Link Type between two GPUs ===\nGPU0 GPU1\nGPU0 0 XGMI\nGPU1 XGMI 0\n",
        "{\"card0\": {\"(Topology) Numa Node\": \"0\"}}",
        "{\"topo_list\": [{\"link_type\": \"S\", \"local_device_id\": 0}]}",
        "LINK METRIC TABLE:\n  bdf  bit_rate 0000:05:00.0\nGPU0 0000:05:00.0 32 Gb/s\n",
    ] {
        assert!(!recognizes(text), "{text}");
    }
}

/// A machine in order, as amd-smi prints it.
fn machine() -> impl Strategy<Value = Vec<Line>> {
    let pairs = prop::collection::vec((1_u32..4, 0_u32..2, any::<bool>()), 36);
    (1_usize..6, pairs, prop::sample::select(vec![13_usize, 1])).prop_map(|(gpus, pairs, width)| {
        let pair = |from: usize, to: usize| pairs[usize::min(from, to) * 6 + usize::max(from, to)];
        let mut lines = Vec::new();
        for title in ["ACCESS", "WEIGHT", "HOPS", "LINK TYPE", "NUMA BW"] {
            lines.push(Line::new(format!("{title} TABLE:"), Role::Other));
            lines.extend(table(gpus, width, |from, to| cell(title, pair(from, to), from == to)));
        }
        lines.push(Line::new("", Role::Other));
        lines.push(Line::new("Legend:", Role::Other));
        lines
    })
}

fn cell(
    title: &str,
    (hops, kind, is_enabled): (u32, u32, bool),
    is_self: bool,
) -> (String, Vec<Statement>) {
    let weight = 15 * hops + 5 * kind;
    let status = if is_enabled { PeerStatus::Supported } else { PeerStatus::NotSupported };
    let (itself, other, says) = match title {
        "ACCESS" => (
            "ENABLED",
            if is_enabled { "ENABLED" } else { "DISABLED" }.to_owned(),
            vec![peer(PeerCapability::Read, status), peer(PeerCapability::Write, status)],
        ),
        "WEIGHT" => ("0", weight.to_string(), vec![Statement::Weight(weight)]),
        "HOPS" => ("0", hops.to_string(), vec![Statement::Hops(hops)]),
        "LINK TYPE" if kind == 0 => ("SELF", "PCIE".to_owned(), vec![PCIE]),
        "LINK TYPE" => ("SELF", "XGMI".to_owned(), vec![XGMI]),
        _ => {
            let figure = Figure::reported(f64::from(hops) * 50.0, "amd-smi").unwrap();
            let text = format!("50000-{}", 50000 * hops);
            ("N/A", text, vec![Statement::Bandwidth(figure)])
        }
    };
    if is_self { (itself.to_owned(), Vec::new()) } else { (other, says) }
}

fn address(gpu: usize) -> String {
    format!("0000:{}5:00.0", gpu + 1)
}

fn table(
    gpus: usize,
    width: usize,
    cell: impl Fn(usize, usize) -> (String, Vec<Statement>),
) -> Vec<Line> {
    let header: Vec<String> =
        std::iter::once(String::new()).chain((0..gpus).map(address)).collect();
    let mut lines = vec![Line::of_fields(&header, width, " ", Role::Header)];
    for from in 0..gpus {
        let (texts, cells): (Vec<_>, Vec<_>) = (0..gpus).map(|to| cell(from, to)).unzip();
        let fields: Vec<String> = std::iter::once(address(from)).chain(texts).collect();
        lines.push(Line::of_fields(&fields, width, " ", Role::Row { from, cells }));
    }
    lines
}

fn index(node: &Node) -> Option<usize> {
    let pci = node.pci?;
    (0..6).find(|gpu| address(*gpu) == pci.to_string())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn a_machine_in_order_is_read_whole(lines in machine()) {
        let whole = damage(&lines, &[], None);
        let observations = read(&whole.text).unwrap();
        whole.assert_true(&lines, &observations, index);
        let gpus = observations.nodes.len();
        prop_assert_eq!(observations.pairs.len(), 6 * gpus * (gpus - 1));
        prop_assert_eq!(observations.warnings, []);
    }

    #[test]
    fn damage_never_makes_a_statement_untrue(
        lines in machine(),
        damages in damages(),
        cut in prop::option::of(0_usize..1000),
    ) {
        let damaged = damage(&lines, &damages, cut);
        recognizes(&damaged.text);
        if let Ok(observations) = read(&damaged.text) {
            damaged.assert_true(&lines, &observations, index);
        }
    }

    #[test]
    fn anything_is_read_or_refused(
        text in "([0-9a-f:.]{0,12}|TABLE:|\"(gpu|bdf|links|weight)\"|[\\[\\]{}:, \n]){0,60}",
    ) {
        recognizes(&text);
        let _ = read(&text);
    }
}
