//! Drawings of recorded machines, written into the target folder to be looked at.
//!
//! ```text
//! cargo test -p hopwise-topology --test drawings && ls target/drawings
//! ```

#![allow(missing_docs, clippy::print_stdout, clippy::unwrap_used, reason = "a test")]

use std::fs;
use std::path::PathBuf;

use hopwise_topology::{Machine, read_path};
use quick_xml::events::Event;
use quick_xml::reader::Reader;

/// Machines of every sort: one GPU and many, every fabric, with and without a PCI tree.
const DRAWN: [&str; 14] = [
    "nvidia-smi-topo/1gpu-1nic-kvm.txt",
    "nvidia-smi-topo/v100-8gpu-hybrid-cube-1nic-renamed.txt",
    "nvidia-smi-topo/dgx1-v100-mlx5-column-labels.txt",
    "nvidia-smi-topo/h200-8gpu-10nic-ansi-raw.txt",
    "nvidia-smi-topo/gb200-4gpu-6nic-ansi-empty-affinity.txt",
    "nvidia-smi-topo/a100-pcie-4gpu-bridge-pairs-nv12.txt",
    "nvidia-smi-topo/5gpu-mixed-5090-4090-numa1-first.txt",
    "nvidia-smi-topo/polaris-4xa100-mixed-tab-space-header.txt",
    "kfd/mi210-8gpu-xgmi-and-pcie.tar.gz",
    "kfd/mi300x-cpx-63-partitions.tar.gz",
    "xpu-smi/max-2card-2tile-matrix-pipes.txt",
    "nccl-xml/oci-h100-8gpu-16net-nvswitch.xml",
    "nccl-xml/l20-16gpu-pcie-switch-tree.xml",
    "hwloc-xml/power9-lassen-4xv100-v2.xml",
];

/// Fails unless the text is XML with as many ends as beginnings.
fn assert_well_formed(name: &str, text: &str) {
    let mut reader = Reader::from_str(text);
    let mut depth = 0_i32;
    loop {
        match reader.read_event() {
            Ok(Event::Start(_)) => depth += 1,
            Ok(Event::End(_)) => depth -= 1,
            Ok(Event::Eof) => break,
            Ok(_) => {}
            Err(error) => panic!("{name}: {error}"),
        }
    }
    assert_eq!(depth, 0, "{name}");
}

/// The drawings of the README are those of our fixtures as they are drawn now.
///
/// To write them anew: `HOPWISE_WRITE_IMAGES=1 cargo test -p hopwise-topology --test drawings`.
#[test]
fn the_images_of_the_readme_are_up_to_date() {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    for name in ["hybrid-cube", "nvswitch"] {
        let fixture = root.join(format!("tests/fixtures/{name}.txt"));
        let machine = Machine::merge(&read_path(&fixture, None).unwrap());
        assert_eq!(machine.warnings(), [], "{name}");
        let svg = machine.svg();
        assert_well_formed(name, &svg);
        let image = root.join(format!("../docs/images/{name}.svg"));
        if std::env::var_os("HOPWISE_WRITE_IMAGES").is_some() {
            fs::write(&image, &svg).unwrap();
        }
        assert_eq!(fs::read_to_string(&image).unwrap(), svg, "{name} is out of date");
    }
}

#[test]
fn recorded_machines_are_drawn() {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let corpus = root.join("../../shared/corpus");
    if !corpus.is_dir() {
        println!("skipped: there is no corpus at {}", corpus.display());
        return;
    }
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or(root.join("../target"), PathBuf::from);
    let folder = target.join("drawings");
    fs::create_dir_all(&folder).unwrap();
    for path in DRAWN {
        let machine = Machine::merge(&read_path(&corpus.join(path), None).unwrap());
        let svg = machine.svg();
        assert_well_formed(path, &svg);
        for &gpu in machine.gpus() {
            assert!(svg.contains(&machine.name(gpu)), "{path} lacks {}", machine.name(gpu));
        }
        let name = path.rsplit('/').next().unwrap().split('.').next().unwrap();
        fs::write(folder.join(format!("{name}.svg")), svg).unwrap();
    }
}
