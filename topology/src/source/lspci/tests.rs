//! Trees that lspci draws: of all versions, with and without names, whole and damaged.

use super::{read, recognizes};
use crate::{NodeKind, Observations, Tool};

mod damage;
mod names;

/// What a tree gives, which has nothing wrong with it.
fn clean(text: &str) -> Observations {
    let observed = read(text).unwrap();
    assert_eq!(observed.warnings, []);
    observed
}

/// Addresses of the nodes of a kind.
fn addresses(observed: &Observations, kind: NodeKind) -> Vec<String> {
    let nodes = observed.nodes.iter().filter(|node| node.kind == kind);
    nodes.filter_map(|node| node.pci).map(|pci| pci.to_string()).collect()
}

/// For each GPU the kinds and addresses of what it hangs on.
fn above_gpus(observed: &Observations) -> Vec<Vec<String>> {
    let gpus = observed.nodes.iter().filter(|node| node.kind == NodeKind::Gpu);
    gpus.map(|gpu| {
        let parents = std::iter::successors(gpu.parent, |&at| observed.nodes[at].parent);
        parents
            .map(|at| {
                let node = &observed.nodes[at];
                format!("{:?} {}", node.kind, node.pci.unwrap())
            })
            .collect()
    })
    .collect()
}

/// Two GPUs and a network card behind two switches, another GPU on a root bus of its own.
const MACHINE: &str = r"
-+-[0000:c0]-+-00.0  Intel Corporation Ice Lake Memory Map/VT-d
 |           \-02.0-[c1]--+-00.0  NVIDIA Corporation GA100 [A100 PCIe 40GB]
 |                        \-00.1  NVIDIA Corporation GA102 High Definition Audio Controller
 \-[0000:00]-+-00.0  Intel Corporation Ice Lake Memory Map/VT-d
             +-01.0-[01-09]----00.0-[02-09]--+-00.0-[03-06]----00.0-[04-06]--+-00.0-[05]----00.0  NVIDIA Corporation GA100 [A100 PCIe 40GB]
             |                               |                               \-10.0-[06]----00.0  NVIDIA Corporation GA100 [A100 PCIe 40GB]
             |                               +-04.0-[07]----00.0  Mellanox Technologies MT28908 Family [ConnectX-6]
             |                               +-08.0-[08]--
             |                               \-1f.0-[09]----00.0  Broadcom / LSI PCIe Switch management endpoint
             \-1f.0  Intel Corporation C620 Series Chipset LPC/eSPI Controller
";

#[test]
fn devices_hang_on_switches_and_host_bridges() {
    assert!(recognizes(MACHINE));
    let observed = clean(MACHINE);
    let gpus = ["0000:05:00.0", "0000:06:00.0", "0000:c1:00.0"];
    assert_eq!(addresses(&observed, NodeKind::Gpu), gpus);
    assert_eq!(addresses(&observed, NodeKind::Nic), ["0000:07:00.0"]);
    let inner = ["PcieSwitch 0000:03:00.0", "PcieSwitch 0000:01:00.0", "HostBridge 0000:00:00.0"];
    let above = above_gpus(&observed);
    assert_eq!((&above[0][..], &above[1][..]), (&inner.map(str::to_owned)[..], &above[0][..]));
    assert_eq!(above[2], ["HostBridge 0000:c0:00.0"]);
    let bridge = observed.nodes.iter().find(|node| node.kind == NodeKind::HostBridge).unwrap();
    assert_eq!(bridge.label(Tool::Os), Some("pci0000:00"));
    assert!(observed.nodes.iter().all(|node| node.numa_nodes.is_empty()));
}

#[test]
fn other_texts_are_not_taken_for_a_tree() {
    for text in [
        "",
        "01:00.0 VGA compatible controller: NVIDIA Corporation GA102",
        "0000:01:00.0 3D controller [0302]: NVIDIA Corporation GV100GL [10de:1db1]",
        "  +-- GPU 0\n  \\-- GPU 1\n",
        "-[x]-",
        "\tGPU0\tGPU1\n",
    ] {
        assert!(!recognizes(text), "{text}");
        let error = read(text).unwrap_err().to_string();
        assert!(error.contains("lspci -tv"), "{error}");
    }
}

#[test]
fn old_trees_have_no_domain() {
    let text = "-[00]-+-00.0  Intel Corporation 5520 I/O Hub to ESI Port\n      \
                +-03.0-[04]----00.0  nVidia Corporation GT200GL [Tesla C1060]\n      \
                \\-1f.2  Intel Corporation 82801JI SATA AHCI Controller\n";
    let observed = clean(text);
    assert_eq!(addresses(&observed, NodeKind::Gpu), ["0000:04:00.0"]);
    assert_eq!(above_gpus(&observed), [["HostBridge 0000:00:00.0"]]);
}

#[test]
fn domains_are_drawn_one_after_the_other_or_as_branches() {
    let gpu = "NVIDIA Corporation GV100GL [Tesla V100 SXM2 16GB]";
    let chain = format!("[0035:00]---00.0-[01-09]----00.0-[02-09]--+-04.0-[03]----00.0  {gpu}\n");
    let end = format!("\\-05.0-[04]----00.0  {gpu}\n");
    let other = format!("[0004:00]---00.0-[01]----00.0  {gpu}\n");
    let disk = "[10000:e0]---06.0-[e1]----00.0  Samsung Electronics Co Ltd NVMe SSD\n";
    let one_tree = format!("-+-{chain} |{:43}{end} +-{disk} \\-{other}", "");
    let several = format!("-{other}-{chain}{:43}{end}-{disk}", "");
    for text in [one_tree, several] {
        let observed = clean(&text);
        let gpus = ["0004:01:00.0", "0035:03:00.0", "0035:04:00.0"];
        assert_eq!(addresses(&observed, NodeKind::Gpu), gpus, "{text}");
        assert_eq!(above_gpus(&observed)[1][0], "PcieSwitch 0035:01:00.0");
    }
}

#[test]
fn several_buses_behind_one_bridge_state_their_numbers() {
    let text = r"
-[0000:00]-+-00.0  Intel Corporation Host Bridge
           \-01.0-[01-05]--+-[0000:04]---00.0  NVIDIA Corporation GP102 [TITAN X]
                           \-[0000:01]-+-00.0  NVIDIA Corporation GP102 [TITAN X]
                                       \-00.1  NVIDIA Corporation GP102 HDMI Audio Controller
";
    let observed = clean(text);
    assert_eq!(addresses(&observed, NodeKind::Gpu), ["0000:01:00.0", "0000:04:00.0"]);
}

#[test]
fn a_tree_may_start_in_its_middle() {
    let text = r"
0000:16:02.0-[17-1d]----00.0-[18-1d]--+-04.0-[19]----00.0  NVIDIA Corporation GH100 [H100 SXM5 80GB]
                                      \-08.0-[1a]----00.0  Mellanox Technologies MT2910 Family
";
    assert!(recognizes(text));
    let observed = clean(text);
    assert_eq!(addresses(&observed, NodeKind::Gpu), ["0000:19:00.0"]);
    assert_eq!(addresses(&observed, NodeKind::Nic), ["0000:1a:00.0"]);
    assert_eq!(above_gpus(&observed), [[""; 0]], "what is above is not shown");
}

#[test]
fn without_names_the_tree_itself_is_known() {
    let text = r"
# lspci -t
-[0000:00]-+-00.0
           +-01.1-[01]--+-00.0
           |            \-00.1
           \-02.1-[02-04]----00.0-[03-04]--+-00.0-[04]----00.0
                                           \-03.0-[05]--
";
    let observed = read(text).unwrap();
    let devices = ["0000:01:00.0", "0000:01:00.1", "0000:04:00.0"];
    assert_eq!(addresses(&observed, NodeKind::PciDevice), devices);
    assert_eq!(addresses(&observed, NodeKind::PcieSwitch), ["0000:02:00.0"]);
    // Bus 05 is not among those above it.
    assert_eq!(observed.warnings.len(), 1, "{:?}", observed.warnings);
}

#[test]
fn memory_lines_and_other_output_do_not_matter() {
    let text = format!(
        "user@host:~$ lspci -tvv\n{}\nuser@host:~$ nvidia-smi\n+-----+\n| A100 |\n+=====+\n",
        MACHINE.trim_start_matches('\n').replace(
            " |                        \\-00.1",
            " |                        |  Memory at da000000 (32-bit, non-prefetchable)\n \
             |                        \\-00.1"
        )
    );
    assert_eq!(addresses(&clean(&text), NodeKind::Gpu).len(), 3);
}

#[test]
fn quoted_indented_and_trimmed_trees_are_read() {
    let lines: Vec<&str> = MACHINE.trim_matches('\n').lines().collect();
    let quoted: String = lines.iter().map(|line| format!("> {line}\r\n")).collect();
    let indented: String = lines.iter().map(|line| format!("    {line}\n")).collect();
    let without_first_space: String = lines
        .iter()
        .map(|line| format!("  {}\n", line.strip_prefix(' ').unwrap_or(line)))
        .collect();
    let tabbed = quoted.replace("> ", "\t");
    let noted = MACHINE.replace("40GB]\n", "40GB]   # GPU\n # a note\n");
    let trimmed = indented.trim_start().to_owned();
    for text in [quoted, tabbed, indented, trimmed, without_first_space, noted] {
        assert_eq!(clean(&text).nodes, clean(MACHINE).nodes, "{text}");
    }
}

#[test]
fn of_a_tree_that_is_there_twice_the_one_with_names_is_read() {
    let without_names: String =
        MACHINE.lines().map(|line| line.split("  N").next().unwrap().to_owned() + "\n").collect();
    for text in [MACHINE.to_owned() + &without_names, without_names + MACHINE] {
        let observed = read(&text).unwrap();
        assert_eq!(addresses(&observed, NodeKind::Gpu).len(), 3);
        assert_eq!(observed.warnings.len(), 1);
    }
}

#[test]
fn a_bridge_that_is_not_set_up_has_nothing_below() {
    let text = "-[0000:00]-+-01.0-[00]--\n           +-02.0-\n           \
                \\-03.0-[03]----00.0  NVIDIA Corporation AD102 [GeForce RTX 4090]\n";
    assert_eq!(addresses(&clean(text), NodeKind::Gpu), ["0000:03:00.0"]);
}

#[test]
fn huge_drawings_take_no_time() {
    let branches = "-[0000:00]-".to_owned() + &"+-".repeat(200_000);
    let lines = "\n+-00.0".repeat(200_000);
    let observed = read(&(branches + &lines)).unwrap();
    assert!(observed.nodes.is_empty());
    let deep = "-[0000:00]-".to_owned() + &"--00.0-[01-ff]-".repeat(100_000);
    assert!(read(&deep).unwrap().nodes.is_empty());
}
