//! Payloads that stay on a GPU: fetched by receivers from where they are, directly or through a third
//! GPU, and from host memory where there is no way.

#[path = "support/stand_in.rs"]
mod stand_in;

use std::sync::Arc;
use std::time::Duration;

use hopwise_backend_cuda::{CudaBackend, CudaOptions};
use hopwise_core::fleet::{ChannelLedger, Endpoint, Fleet, HostSender, KernelSpec, MessageTotals};
use hopwise_core::id::KernelId;
use hopwise_core::message::Message;
use hopwise_core::program::{Grid, Program};
use stand_in::StandIn;

/// GPUs 0 and 1 reach each other, 1 and 2 too, 3 reaches nobody.
const MACHINE: &str = "
    gpu memory_mib=64
    gpu memory_mib=64
    gpu memory_mib=64
    gpu memory_mib=64
    peer 0 1
    peer 1 0
    peer 1 2
    peer 2 1
";

const WORDS: u32 = 256;
const PATIENCE: Duration = Duration::from_secs(60);

/// Adds one to every word of each message and passes it on.
fn increment() -> Arc<Program> {
    Program::builder("increment")
        .in_port("in", 4 * WORDS)
        .out_port("out", 4 * WORDS)
        .inbox_slots(8)
        .outbox_slots(8)
        .pass("increment", Grid::Fixed(8))
        .cuda_c(
            "HW_PASS(increment) {
                 const hw_u32 message = (hw_u32)hw_index(hw);
                 if (message >= hw_message_count(hw)) return;
                 const hw_u32 bytes = hw_length(hw, message);
                 const hw_u32 sent = hw_send(hw, 0u, message, hw_tag(hw, message), bytes);
                 for (hw_u32 word = 0u; word < bytes / 4u; word++) {
                     hw_put(hw, sent, word, hw_payload(hw, message, word) + 1u);
                 }
             }",
        )
        .build()
        .expect("a well-formed program")
}

/// Kernels in a row on these devices, with an endpoint behind the last.
struct Row {
    fleet: Fleet,
    kernels: Vec<KernelId>,
    sender: HostSender,
    end: Endpoint,
}

impl Row {
    fn new(backend: &CudaBackend, devices: &[usize]) -> Self {
        let fleet = Fleet::builder().backend(backend).expect("it opens").build().expect("starts");
        let launch = |(place, device): (usize, &usize)| {
            let mut spec = KernelSpec::new(format!("place-{place}"), increment(), 4);
            spec.options = spec.options.with_preferred_devices([*device]);
            fleet.launch(spec).expect("there is room")
        };
        let kernels: Vec<_> = devices.iter().enumerate().map(launch).collect();
        for pair in kernels.windows(2) {
            fleet.connect(&pair[0], "out", &pair[1], "in").expect("the ports fit");
        }
        let end = fleet.endpoint("end", 64);
        fleet.connect_endpoint(&kernels[kernels.len() - 1], "out", &end).expect("the port exists");
        let sender = fleet.sender("begin", &kernels[0], "in").expect("the port exists");
        Self { fleet, kernels, sender, end }
    }

    /// Sends one message and says what arrives at the end, less what the kernels added.
    fn pass(&self, tag: u32, words: &[u32]) -> Vec<u32> {
        self.sender.send(Message::from_words(tag, words)).expect("the kernel lives");
        let came = self.end.recv_timeout(PATIENCE).expect("the kernels live");
        assert_eq!(came.message.tag, tag);
        let added = u32::try_from(self.kernels.len()).expect("few kernels");
        came.message.payload.to_words().iter().map(|word| word.wrapping_sub(added)).collect()
    }

    /// The ledgers of the channels between kernels, in their order.
    fn between(&self) -> Vec<ChannelLedger> {
        self.fleet.wait_idle(PATIENCE).expect("nothing hangs");
        let ledgers = self.fleet.ledgers();
        assert!(MessageTotals::of(&ledgers).is_clean());
        let from = |kernel: &KernelId| {
            let is_from =
                |ledger: &&ChannelLedger| ledger.from.to_string() == format!("{kernel}.out");
            ledgers.iter().find(is_from).expect("every kernel sends").clone()
        };
        self.kernels[..self.kernels.len() - 1].iter().map(from).collect()
    }
}

fn backend() -> CudaBackend {
    let options = CudaOptions::new().with_payloads_on_device(Some(64), 1 << 20);
    StandIn::with_machine(MACHINE).backend(options)
}

fn words(tag: u32) -> Vec<u32> {
    (0..WORDS).map(|word| word.wrapping_mul(0x9e37_79b9) ^ tag).collect()
}

#[test]
fn payloads_take_the_way_that_there_is() {
    let _alone = stand_in::alone();
    let row = Row::new(&backend(), &[0, 0, 1, 2, 0, 3]);
    for tag in 0..20 {
        assert_eq!(row.pass(tag, &words(tag)), words(tag));
    }
    let ways = row.between();
    let of = |ledger: &ChannelLedger| {
        [ledger.same_device, ledger.direct_p2p, ledger.multi_hop, ledger.host_mediated]
    };
    assert_eq!(of(&ways[0]), [20, 0, 0, 0], "on one GPU");
    assert_eq!(of(&ways[1]), [0, 20, 0, 0], "0 to 1");
    assert_eq!(of(&ways[2]), [0, 20, 0, 0], "1 to 2");
    assert_eq!(of(&ways[3]), [0, 0, 20, 0], "2 to 0, through 1");
    assert_eq!(ways[3].relays, [1]);
    assert_eq!(of(&ways[4]), [0, 0, 0, 20], "0 to 3, which reaches nobody");
}

#[test]
fn small_payloads_and_those_of_odd_size_go_through_the_host() {
    let _alone = stand_in::alone();
    let row = Row::new(&backend(), &[0, 1]);
    assert_eq!(row.pass(1, &[1, 2, 3]), [1, 2, 3]);
    row.sender.send(Message::new(2, vec![7; 101])).expect("the kernel lives");
    let came = row.end.recv_timeout(PATIENCE).expect("the kernels live");
    // The kernels add to 25 whole words; the program leaves out the rest.
    assert_eq!(came.message.payload.len(), 101);
    let ledger = &row.between()[0];
    assert_eq!((ledger.direct_p2p, ledger.host_mediated), (0, 2));
}

#[test]
fn the_bytes_really_come_from_the_other_gpu() {
    let _alone = stand_in::alone();
    let stand_in = StandIn::with_machine(MACHINE);
    let row = Row::new(&backend(), &[0, 1]);
    assert_eq!(row.pass(1, &words(1)), words(1));
    // A bus that loses what the driver promises shows in what the receiver computes.
    stand_in.control("corrupt 0 1");
    assert_ne!(row.pass(2, &words(2)), words(2));
}

#[test]
fn a_copy_that_fails_and_a_relay_that_falls_leave_the_way_over_the_host() {
    let _alone = stand_in::alone();
    let stand_in = StandIn::with_machine(MACHINE);
    let row = Row::new(&backend(), &[0, 1]);
    stand_in.control("fail cuMemcpyPeerAsync 1 1");
    assert_eq!(row.pass(1, &words(1)), words(1));
    assert_eq!(row.between()[0].host_mediated, 1);
    drop(row);
    let row = Row::new(&backend(), &[0, 2]);
    assert_eq!(row.pass(1, &words(1)), words(1));
    let relay = row.fleet.device(1).expect("it is of the fleet");
    relay.health().latch(hopwise_core::error::DeviceError::Lost { cause: "a test".to_owned() });
    assert_eq!(row.pass(2, &words(2)), words(2));
    let ledger = &row.between()[0];
    assert_eq!((ledger.multi_hop, ledger.host_mediated), (1, 1));
}

#[test]
fn messages_outlive_the_gpu_that_sent_them() {
    let _alone = stand_in::alone();
    let stand_in = StandIn::with_machine(MACHINE);
    let row = Row::new(&backend(), &[0, 1]);
    let hold = row.fleet.hold(&row.kernels[1], PATIENCE).expect("no step runs");
    row.sender.send(Message::from_words(9, &words(9))).expect("the kernel lives");
    while row.fleet.status(&row.kernels[1]).expect("it is there").mailbox_depth == 0 {
        std::thread::sleep(Duration::from_millis(1));
    }
    stand_in.control("lose 0 719");
    while row.fleet.device(0).expect("it is of the fleet").health().is_working() {
        std::thread::sleep(Duration::from_millis(1));
    }
    hold.release();
    let came = row.end.recv_timeout(PATIENCE).expect("the receiver lives");
    let expected: Vec<u32> = words(9).iter().map(|word| word.wrapping_add(2)).collect();
    assert_eq!(came.message.payload.to_words(), expected);
}

#[test]
fn memory_for_payloads_is_bounded_and_used_again() {
    let _alone = stand_in::alone();
    let stand_in = StandIn::with_machine(MACHINE);
    let options = CudaOptions::new().with_payloads_on_device(Some(64), 2048);
    let row = Row::new(&stand_in.backend(options), &[0, 1]);
    row.pass(0, &words(0));
    let before = stand_in.count("cuMemAlloc_v2");
    for tag in 1..50 {
        assert_eq!(row.pass(tag, &words(tag)), words(tag));
    }
    assert!(stand_in.count("cuMemAlloc_v2") - before <= 2, "at most the second piece of memory");
    let ledger = &row.between()[0];
    assert_eq!(ledger.direct_p2p + ledger.host_mediated, 50);
}
