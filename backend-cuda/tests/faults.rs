//! Every call of the driver fails once in every way that matters, and nothing is left behind.

#[path = "support/stand_in.rs"]
mod stand_in;

use std::panic::{AssertUnwindSafe, catch_unwind};

use hopwise_backend_cuda::{CudaOptions, DRIVER_SYMBOLS, GraphUse};
use hopwise_core::conformance::{Incoming, Kernel, output, programs};
use hopwise_core::device::{Device, PeerCopy, StepOutcome};
use stand_in::StandIn;

const MACHINE: &str = "
    gpu memory_mib=64
    gpu memory_mib=64
    peers all
";

/// A code that leaves the context as it is and that no driver has had so far, one that says that memory
/// is used up, and one that stays.
const CODES: [i32; 3] = [12_345, 2, 719];

const KINDS: [&str; 7] =
    ["memory", "host-memory", "streams", "events", "modules", "graphs", "peers"];

fn text(error: &dyn std::fmt::Display) -> String {
    error.to_string()
}

/// Every operation, in an order in which each needs what came before.
fn tour(stand_in: &StandIn, graphs: GraphUse) -> Result<(), String> {
    let backend = stand_in.backend(CudaOptions::new().with_graphs(graphs));
    let [here, there] = [backend.open_cuda(0), backend.open_cuda(1)];
    let here = here.map_err(|error| text(&error))?;
    let there = there.map_err(|error| text(&error))?;
    here.memory().map_err(|error| text(&error))?;
    let mut kernel = Kernel::try_new(&*here, &programs::fold(), &[], &[1; 64])?;
    let other = Kernel::try_new(&*there, &programs::fold(), &[], &[2; 64])?;
    for tag in 0..2 {
        let mut steps = [kernel.step(false, &[Incoming::words(tag, &[3, 4])])];
        let ran = here.run_batch(&mut steps);
        if let Err(error) = ran {
            assert_ne!(steps[0].outcome, StepOutcome::Applied, "{error}");
            return Err(text(&error));
        }
        let sent = output(&kernel.program, &steps[0]).map_err(|error| text(&error))?;
        assert_eq!(sent.messages.len(), 1);
    }
    let mut bytes = [0; 256];
    kernel.instance.read_state(0, &mut bytes).map_err(|error| text(&error))?;
    assert_eq!(bytes[..4], 3_u32.to_le_bytes(), "what goes well is right");
    kernel.instance.write_state(0, &[7; 256]).map_err(|error| text(&error))?;
    let digests = kernel.instance.chunk_digests(64).map_err(|error| text(&error))?;
    assert_eq!(digests.len(), 4);
    assert!(digests.iter().all(|digest| *digest != digests[0]) || digests[0] == digests[3]);
    if here.reaches(&*there) {
        let (from, to) = (&*kernel.instance, &*other.instance);
        here.copy_state(from, to, 0, 256).map_err(|error| text(&error))?;
        let digests_there = other.instance.chunk_digests(64).map_err(|error| text(&error))?;
        assert_eq!(digests_there, digests);
    }
    Ok(())
}

/// What a device owns after a loss is left behind; when it is opened again the driver frees it.
fn settle(stand_in: &StandIn, after: &str) {
    stand_in.control("heal");
    tour(stand_in, GraphUse::Never).unwrap_or_else(|error| panic!("{after}: {error}"));
    for kind in KINDS {
        assert_eq!(stand_in.count(&format!("live {kind}")), 0, "{kind} is left after {after}");
    }
}

/// Whether a call gives something back, or is made to give something back: when the driver refuses
/// that, the thing stays until the context ends.
fn is_release(call: &str) -> bool {
    let parts = ["Free", "Destroy", "Unload", "Disable", "Release", "PushCurrent"];
    parts.iter().any(|part| call.contains(part))
}

fn calls(stand_in: &StandIn, graphs: GraphUse) -> Vec<(&'static str, u64)> {
    let before: Vec<_> = DRIVER_SYMBOLS.iter().map(|call| stand_in.count(call)).collect();
    tour(stand_in, graphs).expect("no fault is armed");
    let after = DRIVER_SYMBOLS.iter().map(|call| stand_in.count(call));
    let made = after.zip(before).map(|(after, before)| after - before);
    DRIVER_SYMBOLS.iter().copied().zip(made).collect()
}

fn every_call_fails_once(graphs: GraphUse) {
    let stand_in = StandIn::with_machine(MACHINE);
    tour(stand_in, graphs).expect("no fault is armed");
    settle(stand_in, "a tour");
    let calls = calls(stand_in, graphs);
    let uses_graphs = graphs == GraphUse::Always;
    let made = |name| calls.iter().any(|(call, count)| *call == name && *count > 0);
    assert_eq!(made("cuGraphLaunch"), uses_graphs);
    assert!(made("cuMemcpyPeerAsync") && made("cuCtxEnablePeerAccess"));
    for (call, count) in calls {
        for at in 1..=count {
            for code in CODES.into_iter().filter(|code| *code != 2 || call.contains("Alloc")) {
                stand_in.control(&format!("fail {call} {code} {at}"));
                let ended = catch_unwind(AssertUnwindSafe(|| tour(stand_in, graphs)));
                let ended = ended.unwrap_or_else(|_| panic!("call {at} of {call} gave {code}"));
                // What is only a question, or has another way, need not fail the tour.
                if let Err(error) = ended {
                    let says = error.contains(&code.to_string())
                        || error.contains("out of device memory")
                        || error.contains("refused though the quota allows them");
                    assert!(says, "call {at} of {call} gave {code}: {error}");
                }
                if is_release(call) && code != 719 {
                    stand_in.control("sticky 0 719");
                    stand_in.control("sticky 1 719");
                }
                settle(stand_in, &format!("call {at} of {call} gave {code}"));
            }
        }
    }
}

#[test]
fn every_call_can_fail_and_leaves_nothing_behind() {
    let _alone = stand_in::alone();
    every_call_fails_once(GraphUse::Never);
}

#[test]
fn every_call_of_graphs_can_fail_and_leaves_nothing_behind() {
    let _alone = stand_in::alone();
    every_call_fails_once(GraphUse::Always);
}
