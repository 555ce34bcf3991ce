//! The pipeline on instances that watch it.

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::{Condvar, Mutex};
use proptest::prelude::*;

use super::*;

const PATIENCE: Duration = Duration::from_secs(60);

/// Bytes of the states that are not yet at the target, as both ends of a copy see them.
#[derive(Debug, Default)]
struct Gauge {
    read: AtomicU64,
    in_host_memory: AtomicU64,
    most_in_host_memory: AtomicU64,
    changed: Condvar,
    lock: Mutex<()>,
}

#[derive(Debug)]
struct Memory {
    bytes: Mutex<Vec<u8>>,
    gauge: Arc<Gauge>,
    /// A write waits until so many bytes have been read.
    write_waits_for: u64,
    fails_at: Option<u64>,
}

impl Memory {
    fn new(bytes: Vec<u8>, gauge: &Arc<Gauge>) -> Self {
        let gauge = Arc::clone(gauge);
        Self { bytes: Mutex::new(bytes), gauge, write_waits_for: 0, fails_at: None }
    }

    fn fail_at(&self, offset_bytes: u64) -> Result<(), TransferError> {
        match self.fails_at {
            Some(at) if at == offset_bytes => Err(TransferError::Busy { waited_ms: 0 }),
            _ => Ok(()),
        }
    }
}

impl KernelInstance for Memory {
    fn state_bytes(&self) -> u64 {
        self.bytes.lock().len() as u64
    }

    fn read_state(&self, offset_bytes: u64, into: &mut [u8]) -> Result<(), TransferError> {
        self.fail_at(offset_bytes)?;
        let (start, length) = (usize::try_from(offset_bytes).unwrap(), into.len());
        into.copy_from_slice(&self.bytes.lock()[start..start + length]);
        let gauge = &self.gauge;
        let now = gauge.in_host_memory.fetch_add(length as u64, Ordering::SeqCst) + length as u64;
        gauge.most_in_host_memory.fetch_max(now, Ordering::SeqCst);
        let _guard = gauge.lock.lock();
        gauge.read.fetch_add(length as u64, Ordering::SeqCst);
        gauge.changed.notify_all();
        Ok(())
    }

    fn write_state(&self, offset_bytes: u64, from: &[u8]) -> Result<(), TransferError> {
        let gauge = &self.gauge;
        let mut guard = gauge.lock.lock();
        while gauge.read.load(Ordering::SeqCst) < self.write_waits_for {
            let waited = gauge.changed.wait_for(&mut guard, PATIENCE);
            assert!(!waited.timed_out(), "nobody reads ahead");
        }
        drop(guard);
        self.fail_at(offset_bytes)?;
        gauge.in_host_memory.fetch_sub(from.len() as u64, Ordering::SeqCst);
        let start = usize::try_from(offset_bytes).unwrap();
        self.bytes.lock()[start..start + from.len()].copy_from_slice(from);
        Ok(())
    }

    fn chunk_digests(&self, _: u64) -> Result<Vec<u64>, TransferError> {
        unreachable!("a copy digests nothing")
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

fn ends<'a>(source: &'a Memory, target: &'a Memory) -> Ends<'a> {
    Ends { source, source_device: 3, target, target_device: 5 }
}

fn pattern(length: usize) -> Vec<u8> {
    (0..=250).cycle().take(length).collect()
}

fn go_on() -> Result<(), MigrationCause> {
    Ok(())
}

proptest! {
    #[test]
    fn a_copy_is_whole_and_never_holds_more_than_its_buffers(
        words in 1usize..200,
        chunk_words in 1u64..50,
        buffers in 1usize..6,
    ) {
        let gauge = Arc::new(Gauge::default());
        let source = Memory::new(pattern(words * 4), &gauge);
        let target = Memory::new(vec![0; words * 4], &gauge);
        let chunks = Chunks { state_bytes: words as u64 * 4, chunk_bytes: chunk_words * 4 };
        staged(&ends(&source, &target), chunks, 0..chunks.count(), buffers, &go_on).unwrap();
        prop_assert_eq!(&*source.bytes.lock(), &*target.bytes.lock());
        let most = gauge.most_in_host_memory.load(Ordering::SeqCst);
        prop_assert!(most <= buffers as u64 * chunks.chunk_bytes, "{most}");
    }

    #[test]
    fn chunks_cover_a_state_once(state in 1u64..10_000, chunk in 1u64..300) {
        let chunks = Chunks { state_bytes: state, chunk_bytes: chunk };
        let mut end = 0;
        for index in 0..chunks.count() {
            let span = chunks.span(index);
            prop_assert_eq!(span.offset_bytes, end);
            prop_assert!(span.length_bytes > 0 && span.length_bytes <= chunk);
            end += span.length_bytes;
        }
        prop_assert_eq!(end, state);
    }
}

#[test]
fn offsets_beyond_four_gib_do_not_wrap() {
    let chunks = Chunks { state_bytes: (1 << 40) + 4, chunk_bytes: 1 << 30 };
    assert_eq!(chunks.count(), 1025);
    assert_eq!(chunks.span(1024), Span { offset_bytes: 1 << 40, length_bytes: 4 });
}

#[test]
fn reading_goes_on_while_a_write_is_under_way() {
    let gauge = Arc::new(Gauge::default());
    let source = Memory::new(pattern(400), &gauge);
    let mut target = Memory::new(vec![0; 400], &gauge);
    // The first write ends only when the second chunk has been read.
    target.write_waits_for = 200;
    let chunks = Chunks { state_bytes: 400, chunk_bytes: 100 };
    staged(&ends(&source, &target), chunks, 0..4, 2, &go_on).unwrap();
    assert_eq!(*target.bytes.lock(), pattern(400));
}

#[test]
fn only_the_chunks_asked_for_are_copied() {
    let gauge = Arc::new(Gauge::default());
    let source = Memory::new(vec![1; 40], &gauge);
    let target = Memory::new(vec![0; 40], &gauge);
    let chunks = Chunks { state_bytes: 40, chunk_bytes: 16 };
    staged(&ends(&source, &target), chunks, [0, 2].into_iter(), 3, &go_on).unwrap();
    let expected: Vec<u8> = (0..40).map(|at| u8::from(!(16..32).contains(&at))).collect();
    assert_eq!(*target.bytes.lock(), expected);
}

#[test]
fn an_error_at_any_chunk_of_either_end_stops_both_threads() {
    for buffers in 1..4 {
        for chunk in 0..6 {
            for reads in [true, false] {
                let gauge = Arc::new(Gauge::default());
                let mut source = Memory::new(pattern(60), &gauge);
                let mut target = Memory::new(vec![0; 60], &gauge);
                let failing = if reads { &mut source } else { &mut target };
                failing.fails_at = Some(chunk * 10);
                let chunks = Chunks { state_bytes: 60, chunk_bytes: 10 };
                let ends = ends(&source, &target);
                let error = staged(&ends, chunks, 0..6, buffers, &go_on).unwrap_err();
                match error {
                    MigrationCause::Read { device: 3, .. } => assert!(reads),
                    MigrationCause::Write { device: 5, .. } => assert!(!reads),
                    other => panic!("{other}"),
                }
            }
        }
    }
}

#[test]
fn the_check_stops_a_copy_between_two_chunks() {
    for buffers in [1, 3] {
        for after in 0..5 {
            let gauge = Arc::new(Gauge::default());
            let source = Memory::new(pattern(60), &gauge);
            let target = Memory::new(vec![0; 60], &gauge);
            let asked = AtomicU64::new(0);
            let check = || match asked.fetch_add(1, Ordering::SeqCst) {
                times if times < after => Ok(()),
                _ => Err(MigrationCause::Cancelled),
            };
            let chunks = Chunks { state_bytes: 60, chunk_bytes: 10 };
            let stopped = staged(&ends(&source, &target), chunks, 0..6, buffers, &check);
            assert!(matches!(stopped, Err(MigrationCause::Cancelled)));
            assert_eq!(gauge.read.load(Ordering::SeqCst), after * 10);
        }
    }
}
