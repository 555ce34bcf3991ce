//! Programs that are wrong, as a device refuses them: file, line, column and remedy.

#[path = "support/kernels.rs"]
mod kernels;

use hopwise_backend_wgpu::WgpuOptions;
use hopwise_core::device::{Device, InitialState};
use hopwise_core::error::{CompileError, DeviceError, StepFault};
use hopwise_core::program::{Grid, Program};
use kernels::{Kernel, open};

fn refusal(device: &dyn Device, wgsl: &str) -> CompileError {
    let program = Program::builder("bad").pass("main", Grid::Fixed(1)).wgsl(wgsl);
    let program = program.build().expect("the declaration is right");
    device.compile(&program).expect_err("the source is wrong")
}

#[test]
fn wrong_sources_name_file_line_column_and_remedy() {
    let Some(device) = open(WgpuOptions::new()) else { return };
    let correct = "correct the WGSL here";
    let cases = [
        (
            "@compute @workgroup_size(1)\nfn main() {\n  let x = ;\n}",
            (3, 11),
            "expected expression",
            correct,
        ),
        (
            "@compute @workgroup_size(1)\nfn main() {\n  hw_set_state(0u, true);\n}",
            (3, 20),
            "u32",
            correct,
        ),
        ("@compute @workgroup_size(1)\nfn main() {\n  hw_no();\n}", (3, 3), "hw_no", correct),
        ("@compute @workgroup_size(1)\nfn mian() {}", (1, 1), "`main`", "add one with @compute"),
        (
            "@group(0) @binding(7)\nvar<storage, read_write> mine: array<u32>;\n\
             @compute @workgroup_size(1) fn main() { mine[0] = 1u; }",
            (2, 1),
            "`mine`",
            "remove it",
        ),
        (
            "\n@compute @workgroup_size(65536)\nfn main() {}",
            (3, 1),
            "65536 invocations",
            "write a smaller",
        ),
        (
            "var<workgroup> shared_words: array<u32, 1000000>;\n\
             @compute @workgroup_size(1)\nfn main() { shared_words[0] = 1u; }",
            (3, 1),
            "workgroup",
            "declare smaller",
        ),
    ];
    for (wgsl, place, part, remedy) in cases {
        let refusal = refusal(&*device, wgsl);
        eprintln!("{refusal}");
        let CompileError::Source { program, file, line, column, message } = &refusal else {
            panic!("{refusal}");
        };
        assert_eq!((program.as_str(), file.as_str()), ("bad", "bad.wgsl"));
        assert_eq!((*line, *column), place, "{message}");
        assert!(message.contains(part), "{message}");
        assert!(message.contains(remedy), "{message}");
    }
    assert!(device.memory().is_ok(), "a wrong program is no loss");
}

#[test]
fn boxes_that_fit_no_binding_are_refused_by_the_name_of_the_limit() {
    let Some(device) = open(WgpuOptions::new()) else { return };
    let program = Program::builder("wide")
        .in_port("in", 1 << 20)
        .inbox_slots(1020)
        .out_port("out", 1 << 20)
        .outbox_slots(1020)
        .pass("main", Grid::Fixed(1))
        .wgsl("@compute @workgroup_size(1) fn main() {}")
        .build()
        .unwrap();
    match device.compile(&program) {
        Err(CompileError::Limit { limit, wanted, offered, .. }) => {
            assert!(limit.contains("max_storage_buffer_binding_size"), "{limit}");
            assert!(wanted > offered);
        }
        Ok(_) => eprintln!("the device has room for boxes of 2 GiB"),
        Err(other) => panic!("{other}"),
    }
}

#[test]
fn a_grid_that_no_device_can_index_stops_its_kernel_alone() {
    let Some(device) = open(WgpuOptions::new()) else { return };
    let build = |name: &str, count| {
        let program = Program::builder(name).pass("main", Grid::Fixed(count));
        program.wgsl("@compute @workgroup_size(1) fn main() { hw_set_state(0u, 1u); }").build()
    };
    let (huge, small) = (build("huge", u32::MAX).unwrap(), build("small", 1).unwrap());
    let [mut huge, mut small] =
        [huge, small].map(|program| Kernel::new(&*device, &program, 4, InitialState::Zeroed));
    match huge.run(&*device) {
        Err(StepFault::Device(DeviceError::Driver { message })) => {
            assert!(message.contains("4294967295 invocations"), "{message}");
        }
        other => panic!("{other:?}"),
    }
    small.run(&*device).unwrap();
    assert_eq!((huge.words(0, 1), small.words(0, 1)), (vec![0], vec![1]));
}
