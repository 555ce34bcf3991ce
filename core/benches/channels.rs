//! What a message costs on its way, beside the bare queues that it could at best be as fast as.
//!
//! `cargo bench -p hopwise-core --bench channels` prints, after criterion's own lines, one `ratio`
//! line for each case. Ours and the limit are measured in turn, several rounds of each; the ratio is
//! that of the medians.

use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use criterion::{Criterion, Throughput};
use crossbeam_queue::ArrayQueue;
use hopwise_core::fleet::{Fleet, KernelSpec};
use hopwise_core::host::{HostBackend, HostOptions};
use hopwise_core::message::{Message, Payload};
use hopwise_core::program::Program;

/// Messages that a queue holds, ours or the limit's.
const CAPACITY: usize = 1024;

/// Payload of most cases, in bytes.
const SMALL_BYTES: u32 = 32;

/// Payload of the case that must not be copied, in bytes.
const LARGE_BYTES: u32 = 64 * 1024;

/// How long a steady state is watched for one figure.
const WATCHED: Duration = Duration::from_millis(150);

/// Rounds of ours and of the limit, in turn.
const ROUNDS: usize = 9;

fn main() {
    let mut criterion = Criterion::default()
        .sample_size(10)
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(1))
        .configure_from_args();
    let ratios = [
        one_thread(&mut criterion),
        two_kernels(&mut criterion, "one message a step, bare ArrayQueue", 1, queue_limit),
        two_kernels(&mut criterion, "64 sends a step, bare ArrayQueue", 64, queue_limit),
        two_kernels(&mut criterion, "batches of 64, bare rtrb", 64, ring_limit),
        large_payloads(&mut criterion),
    ];
    criterion.final_summary();
    for ratio in ratios {
        ratio.print();
    }
}

/// Nanoseconds a message, ours and the limit's.
struct Ratio {
    name: String,
    ours_ns: f64,
    limit_ns: f64,
}

impl Ratio {
    /// Measures both in turn, so that a busy neighbour slows both.
    fn measure(
        name: String,
        mut ours: impl FnMut() -> f64,
        mut limit: impl FnMut() -> f64,
    ) -> Self {
        let (mut of_ours, mut of_limit) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            of_ours.push(ours());
            of_limit.push(limit());
        }
        Self { name, ours_ns: median(of_ours), limit_ns: median(of_limit) }
    }

    #[expect(clippy::print_stdout, reason = "a benchmark reports")]
    fn print(&self) {
        let Self { name, ours_ns, limit_ns } = self;
        println!(
            "ratio  {name}: time {:.2} x, throughput {:.2} x ({ours_ns:.1} ns, limit {limit_ns:.1} ns)",
            ours_ns / limit_ns,
            limit_ns / ours_ns,
        );
    }
}

fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures[figures.len() / 2]
}

fn per_message_ns(elapsed: Duration, messages: u64) -> f64 {
    elapsed.as_secs_f64() * 1e9 / messages as f64
}

/// Time of one call of `work`, as the mean over many.
fn mean_ns(mut work: impl FnMut()) -> f64 {
    const CALLS: u64 = 50_000;
    let start = Instant::now();
    for _ in 0..CALLS {
        work();
    }
    per_message_ns(start.elapsed(), CALLS)
}

fn small() -> Message {
    Message::new(0, [7; SMALL_BYTES as usize].as_slice())
}

/// A send and a receive of one thread, beside a push and a pop.
fn one_thread(criterion: &mut Criterion) -> Ratio {
    let backend = HostBackend::new(HostOptions::new(1));
    let builder = Fleet::builder().backend(&backend).expect("host devices open");
    let fleet = builder.build().expect("a host device");
    let endpoint = fleet.endpoint("out", CAPACITY);
    let sender = fleet.sender_to_endpoint("bench", &endpoint);
    let queue = ArrayQueue::new(CAPACITY);
    let ours = || {
        sender.send(black_box(small())).expect("room");
        black_box(endpoint.try_recv().expect("a message"));
    };
    let limit = || {
        queue.push(black_box(small())).expect("room");
        black_box(queue.pop().expect("a message"));
    };
    let mut group = criterion.benchmark_group("one thread, 32 bytes");
    group.bench_function("send and receive", |bencher| bencher.iter(ours));
    group.bench_function("bare ArrayQueue, push and pop", |bencher| bencher.iter(limit));
    group.finish();
    Ratio::measure("send + receive, one thread".to_owned(), || mean_ns(ours), || mean_ns(limit))
}

/// A kernel that sends as long as it exists, to one that takes what comes, on two devices.
struct Pair {
    fleet: Fleet,
}

impl Pair {
    fn new(source: Arc<Program>, sink: Arc<Program>) -> Self {
        let backend = HostBackend::new(HostOptions::new(2).with_workers(1));
        let builder = Fleet::builder().backend(&backend).expect("host devices open");
        let fleet = builder.build().expect("host devices");
        let sink = KernelSpec::new("sink", sink, 8).with_mailbox_capacity(CAPACITY);
        let sink = fleet.launch(sink).expect("room");
        let source = fleet.launch(KernelSpec::new("source", source, 8)).expect("room");
        fleet.connect(&source, "out", &sink, "in").expect("ports");
        let start = fleet.sender("bench", &source, "start").expect("a port");
        start.send(Message::default()).expect("the source runs");
        Self { fleet }
    }

    fn delivered(&self) -> u64 {
        self.fleet.ledgers().iter().map(|ledger| ledger.delivered).sum()
    }

    /// Time a message in the steady state.
    fn message_ns(&self) -> f64 {
        let (start, before) = (Instant::now(), self.delivered());
        std::thread::sleep(WATCHED);
        per_message_ns(start.elapsed(), self.delivered() - before)
    }
}

/// Sends `burst` messages a step, for ever.
fn source(burst: u32) -> Arc<Program> {
    Program::builder(format!("source-{burst}"))
        .in_port("start", 0)
        .out_port("out", SMALL_BYTES)
        .inbox_slots(1)
        .outbox_slots(burst)
        .host(move |step| {
            for key in 0..burst {
                step.outbox.send(0, key, 0, &[7; SMALL_BYTES as usize / 4]);
            }
            step.outbox.run_again();
            Ok(())
        })
        .build()
        .expect("a well-formed program")
}

/// Takes messages and looks at their first word.
fn sink(max_message_bytes: u32) -> Arc<Program> {
    Program::builder(format!("sink-{max_message_bytes}"))
        .in_port("in", max_message_bytes)
        .inbox_slots(256)
        .host(|step| {
            for message in step.inbox.messages() {
                step.state[0] = step.state[0].wrapping_add(message.words[0]);
            }
            Ok(())
        })
        .build()
        .expect("a well-formed program")
}

fn two_kernels(criterion: &mut Criterion, name: &str, burst: u32, limit: fn() -> f64) -> Ratio {
    let pair = Pair::new(source(burst), sink(SMALL_BYTES));
    let mut group = criterion.benchmark_group(format!("two kernels, 32 bytes, {name}"));
    group.throughput(Throughput::Elements(1));
    // Criterion asks for a number of messages; the steady state is watched for a time, and scaled.
    let scaled = |iterations: u64, message_ns: f64| {
        Duration::from_secs_f64(iterations as f64 * message_ns * 1e-9)
    };
    group.bench_function("kernels", |bencher| {
        bencher.iter_custom(|iterations| scaled(iterations, pair.message_ns()));
    });
    group.finish();
    // While the limit is measured the kernels rest: both use both cores.
    drop(pair);
    let ours = || Pair::new(source(burst), sink(SMALL_BYTES)).message_ns();
    Ratio::measure(format!("two kernels, {name}"), ours, limit)
}

/// Two threads with a bare queue between them, in the steady state.
fn watch(produce: impl FnMut() -> u64 + Send, mut consume: impl FnMut() -> u64) -> f64 {
    let stop = AtomicBool::new(false);
    let mut produce = produce;
    std::thread::scope(|scope| {
        let stop = &stop;
        scope.spawn(move || {
            while !stop.load(Ordering::Relaxed) {
                if produce() == 0 {
                    std::thread::yield_now();
                }
            }
        });
        let (start, mut received) = (Instant::now(), 0);
        while start.elapsed() < WATCHED {
            for _ in 0..256 {
                let count = consume();
                received += count;
                if count == 0 {
                    std::thread::yield_now();
                }
            }
        }
        stop.store(true, Ordering::Relaxed);
        per_message_ns(start.elapsed(), received)
    })
}

fn queue_limit() -> f64 {
    let queue = ArrayQueue::new(CAPACITY);
    let produce = || u64::from(queue.push(black_box(small())).is_ok());
    watch(produce, || queue.pop().map(black_box).map_or(0, |_| 1))
}

fn ring_limit() -> f64 {
    const BATCH: usize = 64;
    let (mut producer, mut consumer) = rtrb::RingBuffer::<Message>::new(CAPACITY);
    let produce = move || {
        let Ok(chunk) = producer.write_chunk_uninit(BATCH) else { return 0 };
        chunk.fill_from_iter(std::iter::repeat_with(|| black_box(small()))) as u64
    };
    watch(produce, move || {
        let Ok(chunk) = consumer.read_chunk(BATCH) else { return 0 };
        chunk.into_iter().map(black_box).count() as u64
    })
}

/// Payloads of 64 KiB from kernel to kernel, beside one copy of as many bytes.
fn large_payloads(criterion: &mut Criterion) -> Ratio {
    let copied = Arc::new(AtomicU64::new(0));
    let pair = || {
        let payload = Payload::from(vec![7; LARGE_BYTES as usize]);
        let at = payload.as_bytes().as_ptr() as usize;
        let source = Program::builder("source-64k")
            .in_port("start", 0)
            .out_port("out", LARGE_BYTES)
            .inbox_slots(1)
            .outbox_slots(1)
            .host(move |step| {
                step.outbox.send_payload(0, 0, 0, &payload);
                step.outbox.run_again();
                Ok(())
            });
        let copied = Arc::clone(&copied);
        let sink = Program::builder("sink-64k").in_port("in", LARGE_BYTES).inbox_slots(64).host(
            move |step| {
                let messages = step.inbox.messages();
                let elsewhere = messages.filter(|message| message.words.as_ptr() as usize != at);
                copied.fetch_add(elsewhere.count() as u64, Ordering::Relaxed);
                Ok(())
            },
        );
        Pair::new(source.build().expect("well-formed"), sink.build().expect("well-formed"))
    };
    let from = vec![7_u8; LARGE_BYTES as usize];
    let mut to = vec![0_u8; LARGE_BYTES as usize];
    let mut copy = || black_box(&mut to).copy_from_slice(black_box(&from));
    let mut group = criterion.benchmark_group("64 KiB payloads");
    group.throughput(Throughput::Bytes(LARGE_BYTES.into()));
    group.bench_function("memcpy", |bencher| bencher.iter(&mut copy));
    group.finish();
    let ours = || pair().message_ns();
    let ratio =
        Ratio::measure("64 KiB payloads, one memcpy".to_owned(), ours, || mean_ns(&mut copy));
    assert_eq!(copied.load(Ordering::Relaxed), 0, "no payload was copied");
    ratio
}
