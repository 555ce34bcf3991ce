//! Messages through a fleet beside the queue that they could at best be as fast as.
//!
//! `cargo bench -p hopwise-core --bench messages` prints, after criterion's own lines, one `ratio`
//! line for each case: time a message through the fleet divided by time a message through the limit.

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use criterion::{Criterion, Throughput};
use crossbeam_queue::ArrayQueue;
use hopwise_core::fleet::{Endpoint, Fleet, HostSender, KernelSpec};
use hopwise_core::host::{HostBackend, HostOptions};
use hopwise_core::message::Message;
use hopwise_core::program::Program;

/// Messages in one measured round.
const ROUND: u32 = 4096;

/// Passes every message on.
fn relay(max_message_bytes: u32) -> Arc<Program> {
    let words = max_message_bytes as usize / 4;
    Program::builder(format!("relay-{max_message_bytes}"))
        .in_port("in", max_message_bytes)
        .out_port("out", max_message_bytes)
        .inbox_slots(256)
        .outbox_slots(256)
        .host(move |step| {
            for (key, message) in (0..).zip(step.inbox.messages()) {
                step.outbox.send(0, key, message.tag, &message.words[..words]);
            }
            Ok(())
        })
        .build()
        .expect("a well-formed program")
}

/// A chain of relays on as many devices, from a sender to an endpoint.
struct Chain {
    fleet: Fleet,
    sender: HostSender,
    out: Endpoint,
    message: Message,
}

impl Chain {
    fn new(relays: usize, payload_bytes: u32) -> Self {
        let backend = HostBackend::new(HostOptions::new(relays).with_workers(1));
        let builder = Fleet::builder().backend(&backend).expect("host devices open");
        let fleet = builder.build().expect("host devices");
        let program = relay(payload_bytes);
        let launch = |_| {
            let spec = KernelSpec::new("relay", Arc::clone(&program), 4);
            fleet.launch(spec.with_mailbox_capacity(1024)).expect("room")
        };
        let kernels: Vec<_> = (0..relays).map(launch).collect();
        for pair in kernels.windows(2) {
            fleet.connect(&pair[0], "out", &pair[1], "in").expect("ports");
        }
        let out = fleet.endpoint("out", 1024);
        fleet.connect_endpoint(&kernels[relays - 1], "out", &out).expect("a port");
        let sender = fleet.sender("bench", &kernels[0], "in").expect("a port");
        let message = Message::new(0, vec![7; payload_bytes as usize]);
        Self { fleet, sender, out, message }
    }

    /// Sends a round from one thread, receives it on another.
    fn round(&self) {
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for _ in 0..ROUND {
                    self.sender.send(self.message.clone()).expect("the relay runs");
                }
            });
            for _ in 0..ROUND {
                black_box(self.out.recv().expect("a message"));
            }
        });
    }
}

/// A round through a bare queue between two threads, both spinning.
fn queue_round(queue: &ArrayQueue<Message>, message: &Message) {
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..ROUND {
                let mut message = message.clone();
                while let Err(back) = queue.push(message) {
                    message = back;
                    std::thread::yield_now();
                }
            }
        });
        for _ in 0..ROUND {
            while queue.pop().map(black_box).is_none() {
                std::thread::yield_now();
            }
        }
    });
}

/// The least time of one call among several, in nanoseconds a message: noise only adds.
fn best_ns(mut round: impl FnMut()) -> f64 {
    let best = (0..20).map(|_| {
        let start = Instant::now();
        round();
        start.elapsed()
    });
    best.min().unwrap_or_default().as_secs_f64() * 1e9 / f64::from(ROUND)
}

#[expect(clippy::print_stdout, reason = "a benchmark reports")]
fn main() {
    let mut criterion = Criterion::default()
        .sample_size(10)
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(1))
        .configure_from_args();
    let mut ratios = Vec::new();
    for payload_bytes in [32, 4096] {
        let message = Message::new(0, vec![7; payload_bytes as usize]);
        let queue = ArrayQueue::new(1024);
        let mut group = criterion.benchmark_group(format!("{payload_bytes} bytes"));
        group.throughput(Throughput::Elements(u64::from(ROUND)));
        group.bench_function("bare ArrayQueue, two threads", |bencher| {
            bencher.iter(|| queue_round(&queue, &message));
        });
        let limit = best_ns(|| queue_round(&queue, &message));
        for relays in [1, 2] {
            let chain = Chain::new(relays, payload_bytes);
            let name = format!("host -> {relays} kernel(s) -> host");
            group.bench_function(&name, |bencher| bencher.iter(|| chain.round()));
            // A message crosses one mailbox more than there are kernels.
            let hops = [1.0, 2.0, 3.0][relays];
            let ours = best_ns(|| chain.round()) / hops;
            ratios.push((format!("{payload_bytes} bytes, {name}"), ours, limit));
            chain.fleet.shutdown(Duration::from_secs(10));
        }
        group.finish();
    }
    criterion.final_summary();
    for (name, ours, limit) in ratios {
        println!("ratio  {name}: {:.1} ({ours:.0} ns a hop, {limit:.0} ns limit)", ours / limit);
    }
}
