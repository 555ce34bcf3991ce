//! The check of peer copies in a process of its own: what is sound, what is not kept, what hangs, and
//! that a verdict only forbids.

#[path = "support/child.rs"]
mod child;
#[path = "support/stand_in.rs"]
mod stand_in;

use std::env;
use std::process::Command;
use std::time::Duration;

use hopwise_backend_cuda::{
    CudaOptions, PeerVerdict, verdict_line, verify_pair, verify_pair_in_child,
};
use hopwise_core::device::PeerCopy;
use stand_in::StandIn;

/// Four GPUs that all reach each other, but 3 to 0.
const MACHINE: &str = "
    gpu memory_mib=64 uuid=00000000000000000000000000000000
    gpu memory_mib=64 uuid=11000000000000000000000000000000
    gpu memory_mib=64 uuid=22000000000000000000000000000000
    gpu memory_mib=64 uuid=33000000000000000000000000000000
    peers all
";

fn uuid(gpu: u32) -> String {
    format!("GPU-{gpu}{gpu}000000-0000-0000-0000-000000000000")
}

/// The child: checks the pair that its environment names, after the stand-in was told what to do.
fn in_child() {
    let stand_in = StandIn::with_machine(MACHINE);
    let variable = |name: &str| env::var(name).expect("the parent sets it");
    for command in variable("TEST_CONTROL").split(';').filter(|command| !command.is_empty()) {
        stand_in.control(command);
    }
    if variable("TEST_CONTROL") == "crash" {
        std::process::abort();
    }
    let verdict = verify_pair(&stand_in.libraries(), &variable("TEST_FROM"), &variable("TEST_TO"));
    #[expect(clippy::print_stdout, reason = "the parent reads it")]
    {
        println!("{}", verdict_line(&verdict));
    }
}

fn check(from: u32, to: u32, control: &str, limit: Duration) -> PeerVerdict {
    let mut command = Command::new(env::current_exe().expect("a test knows its program"));
    command.args(["--exact", "pairs_are_checked_in_a_process_of_their_own", "--nocapture"]);
    command.env("HOPWISE_TEST_PART", "pair").env("TEST_CONTROL", control);
    command.env("TEST_FROM", uuid(from)).env("TEST_TO", uuid(to));
    verify_pair_in_child(command, limit).expect("this program can be started")
}

#[test]
fn pairs_are_checked_in_a_process_of_their_own() {
    if child::is("pair") {
        return in_child();
    }
    let patience = Duration::from_secs(60);
    assert_eq!(check(0, 1, "", patience), PeerVerdict::Sound);
    assert_eq!(
        check(0, 1, "peer 0 1 off", patience),
        PeerVerdict::NotOffered,
        "2 is no relay here"
    );
    let wrong = check(0, 1, "corrupt 0 1", patience);
    assert!(matches!(wrong, PeerVerdict::Wrong { words } if words > 0), "{wrong:?}");
    assert_eq!(check(1, 0, "corrupt 0 1", patience), PeerVerdict::Sound, "the way back is kept");
    let failed = check(0, 1, "fail cuMemcpyPeerAsync 719 1", patience);
    assert!(
        matches!(&failed, PeerVerdict::Failed { reason } if reason.contains("719")),
        "{failed}"
    );
    assert_eq!(check(0, 1, "hang-copies 0", Duration::from_millis(500)), PeerVerdict::Hung);
    let died = check(0, 1, "crash", patience);
    assert!(matches!(died, PeerVerdict::Died { .. }), "{died}");
    assert!(wrong.forbids() && failed.forbids() && died.forbids());
    assert!(wrong.remedy().is_some_and(|remedy| remedy.contains("iommu=pt")));
}

#[test]
fn a_verdict_forbids_a_pair_and_no_other() {
    if child::is_any() {
        return;
    }
    let stand_in = StandIn::with_machine(MACHINE);
    let forbidden = [(uuid(0), uuid(1)), (uuid(0), uuid(2)), (uuid(0), uuid(3))];
    let options = CudaOptions::new().with_forbidden_peers(forbidden);
    let backend = stand_in.backend(options);
    let [first, second] = [0, 1].map(|ordinal| backend.open_cuda(ordinal).expect("it opens"));
    assert!(!first.reaches(&*second), "nor through another");
    assert!(second.reaches(&*first));
}
