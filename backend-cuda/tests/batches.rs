//! What a batch costs in driver calls, graphs, and state beyond four GiB.

#[path = "support/stand_in.rs"]
mod stand_in;

use hopwise_backend_cuda::{CudaOptions, DRIVER_SYMBOLS, GraphUse};
use hopwise_core::abi::{inbox, outbox};
use hopwise_core::conformance::{Incoming, Kernel, output, programs};
use hopwise_core::device::{Device, InitialState, InstanceRequest, PeerCopy, Step, StepOutcome};
use hopwise_core::program::{Grid, Program};
use stand_in::StandIn;

const MACHINE: &str = "
    gpu memory_mib=512
    gpu memory_mib=6144
    gpu memory_mib=6144
    peers all
";

/// Calls that make or give back something.
fn is_allocation(call: &str) -> bool {
    ["Alloc", "Create", "Load", "Free", "Destroy", "Unload"].iter().any(|part| call.contains(part))
}

fn counts(stand_in: &StandIn) -> Vec<(&'static str, u64)> {
    DRIVER_SYMBOLS.iter().map(|call| (*call, stand_in.count(call))).collect()
}

/// The calls of one batch of so many kernels, after batches of the same kind.
fn calls_of_a_batch(graphs: GraphUse, kernels: usize) -> Vec<(&'static str, u64)> {
    let stand_in = StandIn::with_machine(MACHINE);
    let options = CudaOptions::new().with_graphs(graphs);
    let device = stand_in.backend(options).open_cuda(0).expect("it opens");
    let make = |_| Kernel::try_new(&*device, &programs::fold(), &[], &[0; 16]).expect("room");
    let mut kernels: Vec<_> = (0..kernels).map(make).collect();
    let mut run = || {
        let step = |kernel: &mut Kernel| kernel.step(false, &[Incoming::words(1, &[2])]);
        let mut steps: Vec<_> = kernels.iter_mut().map(step).collect();
        device.run_batch(&mut steps).expect("it works");
        assert!(steps.iter().all(|step| step.outcome == StepOutcome::Applied));
    };
    run();
    run();
    let before = counts(stand_in);
    run();
    let after = counts(stand_in);
    let made =
        before.into_iter().zip(after).map(|((call, before), (_, after))| (call, after - before));
    made.filter(|(call, made)| *made > 0 && !call.contains("Query")).collect()
}

#[test]
fn a_batch_of_one_program_is_one_launch_whatever_its_kernels() {
    let _alone = stand_in::alone();
    for kernels in [1, 100] {
        let calls = calls_of_a_batch(GraphUse::Never, kernels);
        let expected = [
            ("cuCtxPushCurrent_v2", 1),
            ("cuCtxPopCurrent_v2", 1),
            ("cuMemcpyHtoDAsync_v2", 1),
            ("cuMemcpyDtoHAsync_v2", 1),
            ("cuEventRecord", 1),
            ("cuLaunchKernel", 1),
        ];
        assert_eq!(calls.len(), expected.len(), "{calls:?}");
        for call in expected {
            assert!(calls.contains(&call), "{call:?} is not among {calls:?}");
        }
    }
}

#[test]
fn a_graph_is_kept_and_updated() {
    let _alone = stand_in::alone();
    let calls = calls_of_a_batch(GraphUse::Always, 100);
    let made = |name: &str| calls.iter().find(|(call, _)| *call == name).map_or(0, |(_, n)| *n);
    assert_eq!((made("cuGraphLaunch"), made("cuGraphExecUpdate_v2")), (1, 1), "{calls:?}");
    assert_eq!(made("cuGraphInstantiateWithFlags"), 0, "{calls:?}");
    // Only the recording is made and destroyed.
    let allocations: Vec<_> = calls.iter().filter(|(call, _)| is_allocation(call)).collect();
    assert_eq!(allocations, [&("cuGraphDestroy", 1)], "{calls:?}");
}

#[test]
fn a_graph_of_another_form_is_made_anew() {
    let _alone = stand_in::alone();
    let stand_in = StandIn::with_machine(MACHINE);
    let options = CudaOptions::new().with_graphs(GraphUse::Always);
    let device = stand_in.backend(options).open_cuda(0).expect("it opens");
    stand_in.control("fail cuGraphExecUpdate_v2 910 1 3");
    let mut kernel = Kernel::try_new(&*device, &programs::fold(), &[], &[0; 16]).expect("room");
    for number in 1..=5 {
        let mut steps = [kernel.step(false, &[Incoming::words(number, &[2])])];
        device.run_batch(&mut steps).expect("it works");
        assert_eq!(kernel.state()[0], number);
    }
    stand_in.control("heal");
}

#[test]
fn both_ways_are_timed_and_reported() {
    let _alone = stand_in::alone();
    let stand_in = StandIn::with_machine(MACHINE);
    let device = stand_in.backend(CudaOptions::new()).open_cuda(0).expect("it opens");
    let mut kernel = Kernel::try_new(&*device, &programs::passes(), &[7], &[1; 16]).expect("room");
    for _ in 0..64 {
        let mut steps = [kernel.step(true, &[])];
        device.run_batch(&mut steps).expect("it works");
    }
    let trials = device.graph_trials();
    assert_eq!(trials.len(), 1);
    assert_eq!(trials[0].launches, 3, "one for each pass");
    let (plain, graph) = (trials[0].plain_us.expect("timed"), trials[0].graph_us.expect("timed"));
    assert_eq!(trials[0].uses_graph, graph < plain);
}

/// Adds one to the last word of its state.
fn last_word() -> std::sync::Arc<Program> {
    Program::builder("last-word")
        .pass("last", Grid::Fixed(1))
        .cuda_c(
            "HW_PASS(last) {
                 const hw_u64 last = hw_state_words(hw) - 1u;
                 if (hw_index(hw) == 0u) hw_set_state(hw, last, hw_state(hw, last) + 1u);
             }",
        )
        .build()
        .expect("a well-formed program")
}

/// Little of it is touched, so it takes address space and hardly any memory.
#[test]
fn a_state_larger_than_four_gib_is_read_written_stepped_and_copied() {
    let _alone = stand_in::alone();
    const BYTES: u64 = (4 << 30) + (64 << 10);
    let stand_in = StandIn::with_machine(MACHINE);
    let backend = stand_in.backend(CudaOptions::new());
    let devices = [1, 2].map(|ordinal| backend.open_cuda(ordinal).expect("it opens"));
    let program = last_word();
    let [here, there] = [0, 1].map(|at| {
        let compiled = devices[at].compile(&program).expect("it compiles");
        let (parameters, initial) = (&[][..], InitialState::Undefined);
        let request = InstanceRequest { parameters, state_bytes: BYTES, initial };
        devices[at].create_instance(&compiled, &request).expect("there is room")
    });
    here.write_state(BYTES - 8, &[1, 0, 0, 0, 41, 0, 0, 0]).expect("the end can be written");
    let (mut inbox_words, mut outbox_words) = (Vec::new(), Vec::new());
    inbox::begin(&mut inbox_words, program.inbox_slot_words(), 1, true);
    outbox::begin(&mut outbox_words, &program);
    let mut steps = [Step::new(std::sync::Arc::clone(&here), inbox_words, outbox_words)];
    devices[0].run_batch(&mut steps).expect("it works");
    output(&program, &steps[0]).expect("the program does no wrong");
    devices[0].copy_state(&*here, &*there, BYTES - 4096, 4096).expect("the GPUs reach each other");
    let mut end = [0; 8];
    there.read_state(BYTES - 8, &mut end).expect("the end can be read");
    assert_eq!(end, [1, 0, 0, 0, 42, 0, 0, 0]);
    let mut before = [9; 8];
    there.read_state((4 << 30) - 4, &mut before).expect("the middle can be read");
    assert_eq!(before, [0; 8], "offsets are not cut to 32 bits");
}
