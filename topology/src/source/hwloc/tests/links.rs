//! Distances that are links.

use super::{
    clean, device, file, host_bridge, nvml, of_kind, os_device, package, read, small_machine,
};
use crate::{Figure, InterconnectType, NodeKind, Observations, Statement, Tool};

/// Words in elements of a name, each with its length, `per_element` in one.
fn elements(name: &str, words: &[String], per_element: usize) -> String {
    let element = |words: &[String]| {
        let text: String = words.iter().map(|word| format!("{word} ")).collect();
        format!("<{name} length=\"{}\">{text}</{name}>\n", text.len())
    };
    words.chunks(per_element).map(element).collect()
}

/// Distances between objects of one kind.
pub(super) fn matrix(name: &str, ends: &[u32], values: &[u64]) -> String {
    let ends: Vec<String> = ends.iter().map(u32::to_string).collect();
    let values: Vec<String> = values.iter().map(u64::to_string).collect();
    format!(
        "<distances2 type=\"OSDev\" nbobjs=\"{}\" kind=\"9\" name=\"{name}\" indexing=\"gp\">\n\
         {}{}</distances2>\n",
        ends.len(),
        elements("indexes", &ends, 10),
        elements("u64values", &values, 4)
    )
}

pub(super) fn nvlink_matrix(ends: &[u32], values: &[u64]) -> String {
    matrix("NVLinkBandwidth", ends, values)
}

/// GPUs named by NVML on one bus, their objects numbered from 900, and what follows.
fn gpus_with(models: &[&str], behind: &str) -> String {
    let gpu = |(number, model): (u32, &&str)| {
        device(&format!("00:{number:02x}.0"), "0302 [10de:ffff]", &nvml(number, model))
    };
    let gpus: String = (0..).zip(models).map(gpu).collect();
    file("2.0", &package(0, &host_bridge("00-00", &gpus)), behind)
}

/// Links as labels of their ends, kinds and bandwidths.
fn links(observed: &Observations) -> Vec<(String, String, InterconnectType, Option<f64>)> {
    let name = |at: usize| {
        let node = &observed.nodes[at];
        let label = [Tool::NvidiaSmi, Tool::Numa].into_iter().find_map(|tool| node.label(tool));
        label.map_or_else(|| node.pci.unwrap().to_string(), str::to_owned)
    };
    let mut links: Vec<_> = observed
        .links
        .iter()
        .map(|link| (name(link.from), name(link.to), link.kind, link.bandwidth.value()))
        .collect();
    links.sort_by(|a, b| (&a.0, &a.1).cmp(&(&b.0, &b.1)));
    links
}

fn nvlink(generation: u8, links: u16) -> InterconnectType {
    InterconnectType::NvLink { generation: Some(generation), links }
}

#[test]
fn bandwidths_are_numbers_of_links() {
    let observed = clean(&small_machine());
    let link = |from: &str, to: &str, links, gb_per_s| {
        (from.to_owned(), to.to_owned(), nvlink(2, links), Some(gb_per_s))
    };
    assert_eq!(
        links(&observed),
        [
            link("GPU0", "GPU1", 2, 50.0),
            link("GPU0", "GPU2", 1, 25.0),
            link("GPU1", "GPU0", 2, 50.0),
            link("GPU1", "GPU2", 1, 25.0),
            link("GPU2", "GPU0", 1, 25.0),
            link("GPU2", "GPU1", 1, 25.0),
        ]
    );
    let by = Figure::reported(50.0, "hwloc NVLinkBandwidth").unwrap();
    assert!(observed.links.iter().any(|link| link.bandwidth == by));
}

#[test]
fn the_model_tells_how_fast_one_link_is() {
    let between = |model: &str, value: u64| {
        let behind = nvlink_matrix(&[900, 901], &[1_000_000, value, value, 1_000_000]);
        read(&gpus_with(&[model, model], &behind)).unwrap()
    };
    for (model, value, generation, count) in [
        ("Tesla P100-SXM2-16GB", 40_000, 1, 2),
        ("Tesla V100-SXM3-32GB-H", 25_000, 2, 1),
        ("Quadro RTX 6000", 50_000, 2, 2),
        ("NVIDIA A100-SXM4-40GB", 300_000, 3, 12),
        ("NVIDIA H100 80GB HBM3", 150_000, 4, 6),
        ("NVIDIA GH200 480GB", 450_000, 4, 18),
        ("NVIDIA B200", 900_000, 5, 18),
    ] {
        let observed = between(model, value);
        assert_eq!(observed.links[0].kind, nvlink(generation, count), "{model}");
        assert_eq!(observed.warnings, [], "{model}");
    }
    // No such card, no such number of links, or no multiple: the figure stands, uncounted.
    for (model, value) in [
        ("NVIDIA RTX 6000 Ada Generation", 100_000),
        ("Tesla P100-SXM2-16GB", 100_000),
        ("Tesla V100-SXM2-16GB", 30_000),
        ("Tesla T4", 25_000),
    ] {
        let observed = between(model, value);
        assert!(observed.links.is_empty(), "{model}");
        assert_eq!(observed.pairs.len(), 2, "{model}");
        assert_eq!(observed.warnings.len(), 1, "{model}");
    }
}

#[test]
fn links_lead_to_switches_and_processors() {
    let gpu = device("00:01.0", "0302 [10de:15f9]", &nvml(0, "Tesla P100-SXM2-16GB"));
    let switch = |address, pci_type, subtype| {
        device(address, pci_type, "").replace("gp_index=\"", &format!("{subtype}gp_index=\"7"))
    };
    let switches = switch("00:02.0", "0680 [10de:1ac2]", "")
        + &switch("00:03.0", "0000 [0000:0000]", "subtype=\"NVSwitch\" ");
    let number = |text: &str, address: &str| -> String {
        let line = text.lines().find(|line| line.contains(address)).unwrap();
        line.split("gp_index=\"").nth(1).unwrap().split('"').next().unwrap().to_owned()
    };
    let ends = [
        "OSDev:900".to_owned(),
        "Package:10".to_owned(),
        format!("PCIDev:{}", number(&switches, "00:02.0")),
        format!("PCIDev:{}", number(&switches, "00:03.0")),
    ];
    let values = [0, 40_000, 20_000, 20_000, 40_000, 0, 0, 0, 20_000, 0, 0, 9, 0, 0, 0, 0];
    let values: Vec<String> = values.iter().map(u64::to_string).collect();
    let behind = format!(
        "<distances2hetero nbobjs=\"4\" kind=\"25\" name=\"NVLinkBandwidth\">\n{}{}\
         </distances2hetero>\n",
        elements("indexes", &ends, 3),
        elements("u64values", &values, 10)
    );
    let bus = host_bridge("00-00", &(gpu + &switches));
    let observed = clean(&file("2.0", &(package(0, &bus) + &package(1, "")), &behind));
    assert_eq!(of_kind(&observed, NodeKind::NvSwitch).len(), 2);
    let link = |from: &str, to: &str, links, gb_per_s| {
        (from.to_owned(), to.to_owned(), nvlink(1, links), Some(gb_per_s))
    };
    // One way only where it is stated one way only.
    assert_eq!(
        links(&observed),
        [
            link("0", "GPU0", 2, 40.0),
            link("0000:00:02.0", "GPU0", 1, 20.0),
            link("GPU0", "0", 2, 40.0),
            link("GPU0", "0000:00:02.0", 1, 20.0),
            link("GPU0", "0000:00:03.0", 1, 20.0),
        ]
    );
}

#[test]
fn xgmi_is_stated_about_pairs() {
    let gcd = |number: u32, peers: &str| {
        let infos = [("GPUModel", "AMD INSTINCT MI200"), ("XGMIPeers", peers)];
        let names = os_device(&format!("rsmi{number}"), 900 + number, &infos);
        device(&format!("00:{number:02x}.0"), "0380 [1002:7408]", &names)
    };
    let gcds = gcd(0, "rsmi1 ") + &gcd(1, "rsmi0 rsmi7 ") + &gcd(2, "");
    let behind = matrix(
        "XGMIBandwidth",
        &[900, 901, 902],
        &[1_000_000, 200_000, 50_000, 200_000, 1_000_000, 0, 50_000, 0, 1_000_000],
    ) + &matrix("XGMIHops", &[900, 901, 902], &[0, 1, 2, 1, 0, 0, 2, 0, 0]);
    let observed = read(&file("2.0", &host_bridge("00-00", &gcds), &behind)).unwrap();
    assert!(observed.links.is_empty());
    let about = |from: usize, to: usize| -> Vec<&Statement> {
        let first = observed.nodes.iter().position(|node| node.kind == NodeKind::Gpu).unwrap();
        let pairs = observed.pairs.iter();
        let about = pairs.filter(|pair| (pair.from, pair.to) == (first + from, first + to));
        about.map(|pair| &pair.statement).collect()
    };
    let class = Statement::Class(InterconnectType::InfinityFabric { links: 1 });
    let bandwidth =
        |value| Statement::Bandwidth(Figure::reported(value, "hwloc XGMIBandwidth").unwrap());
    assert_eq!(about(0, 1), [&bandwidth(200.0), &Statement::Hops(1), &class]);
    assert_eq!(about(0, 2), [&bandwidth(50.0), &Statement::Hops(2), &class]);
    assert!(about(1, 2).is_empty());
    let [warning] = &observed.warnings[..] else { panic!("{:?}", observed.warnings) };
    assert!(warning.text.contains("rsmi7"));
}

#[test]
fn a_matrix_that_does_not_fit_together_is_left_out() {
    let whole = small_machine();
    for (from, to) in [
        ("nbobjs=\"3\"", "nbobjs=\"4000000000\""),
        ("nbobjs=\"3\"", ""),
        ("900 901 902 ", "900 901 9x2 "),
        // A digit is missing, and a space.
        ("0 50000 25000 50000 ", "0 5000 25000 50000 "),
        ("0 50000 25000 50000 ", "050000 25000 50000 "),
        ("<u64values length=\"2\">0 </u64values>\n", ""),
        ("u64values", "values"),
    ] {
        let text = whole.replace(from, to);
        assert_ne!(text, whole, "{from}");
        let observed = read(&text).unwrap();
        assert!(observed.links.is_empty() && observed.pairs.is_empty(), "{from}");
        assert!(observed.warnings[0].text.starts_with("NVLinkBandwidth is left out"), "{from}");
    }
    // One value that is none costs that value.
    let observed = read(&whole.replacen(">0 50000", ">0 5000o", 1)).unwrap();
    assert_eq!((observed.links.len(), observed.warnings.len()), (5, 1));
    // So does an object that is not there.
    let observed = read(&whole.replacen("900 901 902", "900 901 999", 1)).unwrap();
    assert_eq!(observed.links.len(), 2);
}

#[test]
fn matrices_of_other_things_are_no_links() {
    let behind = matrix("NUMALatency", &[20, 21], &[10, 21, 21, 10])
        + &matrix("MyDistances", &[900, 901], &[1, 2, 3, 4]);
    let observed = clean(&gpus_with(&["Tesla V100", "Tesla V100"], &behind));
    assert!(observed.links.is_empty() && observed.pairs.is_empty());
    let behind = matrix("XeLinkBandwidth", &[900, 901], &[0, 50, 50, 0]);
    let observed = read(&gpus_with(&["A", "B"], &behind)).unwrap();
    assert!(observed.links.is_empty() && observed.pairs.is_empty());
    assert_eq!(observed.warnings.len(), 1);
}
