//! NVML through the real loader and the real wrapper, against a stand-in (`stand_in/nvml.rs`).
#![cfg(target_os = "linux")]

use std::env;
use std::fs;
use std::path::Path;
use std::process::Command;

use hopwise_backend_cuda::nvml::{Condition, Effect, Happening, Nvml, Xid};
use hopwise_backend_cuda::{Libraries, LibraryOutcome, Probe};
use hopwise_core::health::DegradationKind;
use hopwise_topology::{Format, InterconnectType, Machine, Node, NodeKind, Reading};
use libloading::Library;

/// Compiles the stand-in and returns its path.
fn stand_in() -> String {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/stand_in/nvml.rs");
    let library = Path::new(env!("CARGO_TARGET_TMPDIR")).join("libhopwise-stand-in-nvml.so");
    fs::create_dir_all(env!("CARGO_TARGET_TMPDIR")).expect("the target folder can be written");
    let status = Command::new(env::var("RUSTC").unwrap_or_else(|_| "rustc".into()))
        .args(["--edition=2024", "--crate-type=cdylib", "-Cpanic=abort", "-o"])
        .args([&library, &source])
        .status()
        .expect("rustc can be started");
    assert!(status.success(), "the stand-in for NVML does not compile");
    library.display().to_string()
}

/// Changes the stand-in's machine, or asks it.
struct Control(Library);

impl Control {
    fn call(&self, what: u32, value: u64) -> u32 {
        type Function = unsafe extern "C" fn(u32, u64) -> u32;
        // SAFETY: the stand-in declares it with this type.
        let function = unsafe { self.0.get::<Function>("hw_nvml_control") };
        // SAFETY: it takes any numbers.
        unsafe { function.expect("the stand-in has it")(what, value) }
    }

    fn lose(&self, gpu: u64) {
        self.call(0, gpu);
    }

    fn report_xid(&self, number: u64) {
        self.call(1, number);
    }

    fn event_sets(&self) -> u32 {
        self.call(2, 0)
    }
}

/// One test, since a process has one stand-in, and what it loses stays lost.
#[test]
fn a_machine_with_nvml() {
    let path = stand_in();
    let names = vec!["libhopwise-no-such-nvml.so".to_owned(), path.clone()];
    // SAFETY: the library was compiled above with the signatures of nvml.h.
    let libraries = unsafe { Libraries::custom(Vec::new(), Vec::new(), names) };
    assert_eq!(
        Probe::with_libraries(&libraries).nvml,
        LibraryOutcome::Found { name: path.clone() }
    );
    let nvml = Nvml::open(&libraries).expect("the stand-in starts");
    // SAFETY: as above; it is loaded already.
    let control = Control(unsafe { Library::new(&path) }.expect("it is loaded"));

    links_are_observed(&nvml);
    facts_are_told(&nvml);
    conditions_are_told(&nvml);
    events_are_heard(&nvml, &control);
    control.lose(0);
    the_lost_gpu_leaves_the_others(&nvml);
    assert!(Nvml::open(&libraries).is_ok(), "it opens again, with what is left");
}

fn links_are_observed(nvml: &Nvml) {
    let observations = nvml.links();
    let texts: Vec<_> = observations.warnings.iter().map(|warning| &warning.text).collect();
    assert!(texts.is_empty(), "{texts:?}");
    let machine = Machine::merge(&[Reading { format: Format::Nvml, observations }]);
    let of = |kind| machine.nodes().iter().filter(move |node| node.kind == kind);
    let uuids: Vec<_> = of(NodeKind::Gpu).filter_map(|node| node.uuid.as_deref()).collect();
    assert_eq!(
        uuids,
        [
            "GPU-00000000-0000-0000-0000-000000000000",
            "MIG-00000000-0000-0000-0000-000000000000",
            "MIG-00000002-0000-0000-0000-000000000000",
            "GPU-00000002-0000-0000-0000-000000000000"
        ]
    );
    assert_eq!(
        of(NodeKind::Card).next().and_then(|node| node.uuid.as_deref()),
        Some("GPU-00000001-0000-0000-0000-000000000000")
    );
    assert_eq!(of(NodeKind::NvSwitch).count(), 2, "the far ends are switches, not unknown");
    let first: &Node = &machine.nodes()[machine.gpus()[0]];
    assert_eq!((first.nvlinks_up, first.nvlink_gb_per_s.value()), (Some(2), Some(26.562)));
    assert_eq!(first.architecture.as_deref(), Some("sm90"));
    let link = machine.links().iter().find(|link| link.from == machine.gpus()[0]);
    let kind = InterconnectType::NvLink { generation: Some(4), links: 1 };
    assert_eq!(link.map(|link| link.kind), Some(kind), "NVML's version 6 is generation 4");
    let last = machine.gpus()[3];
    assert_eq!(machine.nodes()[last].numa_nodes, [65]);
    assert_eq!(machine.nodes()[last].nvlinks_up, Some(0));
    assert_eq!(machine.class(machine.gpus()[0], last), InterconnectType::System);
    assert_eq!(machine.peer_access(machine.gpus()[0], last), Some(true));
    assert_eq!(machine.peer_access(last, machine.gpus()[0]), Some(false));
}

fn facts_are_told(nvml: &Nvml) {
    let (facts, _) = nvml.facts();
    assert_eq!(facts.len(), 3);
    assert_eq!(facts[0].memory_free_bytes, Some(79 << 30));
    assert_eq!((facts[0].pcie_now, facts[0].pcie_max), (Some((1, 16)), Some((5, 16))));
    let divided: Vec<_> = facts.iter().map(|gpu| gpu.is_divided).collect();
    assert_eq!(divided, [Some(false), Some(true), None]);
    assert_eq!(facts[1].instances[1].uuid, "MIG-00000002-0000-0000-0000-000000000000");
    assert_eq!(
        facts[1].instances[1].parent_uuid.as_deref(),
        Some("GPU-00000001-0000-0000-0000-000000000000")
    );
}

fn conditions_are_told(nvml: &Nvml) {
    assert_eq!(nvml.condition("GPU-00000000-0000-0000-0000-000000000000"), Condition::Sound);
    let kinds = |uuid| -> Vec<DegradationKind> {
        let condition = nvml.condition(uuid);
        let Condition::Degraded(found) = condition else { panic!("{uuid} is {condition:?}") };
        found.iter().map(|one| one.kind).collect()
    };
    assert_eq!(
        kinds("MIG-00000002-0000-0000-0000-000000000000"),
        [DegradationKind::Memory],
        "rows wait to be replaced"
    );
    assert_eq!(kinds("GPU-00000002-0000-0000-0000-000000000000"), [DegradationKind::Pcie]);
}

fn events_are_heard(nvml: &Nvml, control: &Control) {
    let mut watcher = nvml.watch();
    assert_eq!(
        watcher.heard().collect::<Vec<_>>(),
        ["GPU-00000000-0000-0000-0000-000000000000", "GPU-00000001-0000-0000-0000-000000000000"]
    );
    assert_eq!(control.event_sets(), 2, "the set of the GPU that refuses is freed");
    let events = watcher.poll();
    assert_eq!(
        (events.len(), events[0].uuid.as_str()),
        (1, "GPU-00000002-0000-0000-0000-000000000000")
    );
    assert!(matches!(events[0].what, Happening::Unheard { .. }));
    assert!(watcher.poll().is_empty());
    control.report_xid(48);
    let events = watcher.poll();
    assert_eq!((events.len(), &events[0].what), (1, &Happening::Xid(Xid(48))));
    assert!(matches!(events[0].effect(), Effect::Degraded(_)));
    drop(watcher);
    assert_eq!(control.event_sets(), 0, "all are freed");
}

fn the_lost_gpu_leaves_the_others(nvml: &Nvml) {
    assert!(matches!(
        nvml.condition("GPU-00000000-0000-0000-0000-000000000000"),
        Condition::Lost { .. }
    ));
    assert!(matches!(
        nvml.condition("GPU-00000002-0000-0000-0000-000000000000"),
        Condition::Degraded(_)
    ));
    let said = nvml.links();
    let uuids: Vec<_> = said.nodes.iter().filter_map(|node| node.uuid.as_deref()).collect();
    assert_eq!(
        uuids,
        [
            "GPU-00000001-0000-0000-0000-000000000000",
            "MIG-00000000-0000-0000-0000-000000000000",
            "MIG-00000002-0000-0000-0000-000000000000",
            "GPU-00000002-0000-0000-0000-000000000000"
        ]
    );
    let text = &said.warnings[0].text;
    assert!(text.contains("GPU0: the GPU is lost (the other GPUs are shown)"), "{text}");
    let mut watcher = nvml.watch();
    assert_eq!(watcher.heard().collect::<Vec<_>>(), ["GPU-00000001-0000-0000-0000-000000000000"]);
    assert_eq!(watcher.poll().len(), 2);
}
