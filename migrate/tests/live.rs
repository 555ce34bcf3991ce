//! Live migration on host devices: while senders send and other kernels step.

#[path = "support/fleets.rs"]
mod support;

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use hopwise_core::fleet::{Fleet, KernelSpec};
use hopwise_core::message::Message;
use hopwise_migrate::{
    CancelToken, KernelMigrator, MigrationCause, MigrationOptions, TransferPath,
};
use proptest::prelude::*;
use support::{
    PATIENCE, Recorder, check_ledgers, check_settled, host_fleet, noise, spec_on, spinner,
    to_bytes, within_time,
};

/// Small chunks, so that small states have many.
fn small_chunks() -> MigrationOptions {
    MigrationOptions::new().with_chunk_bytes(64)
}

/// Runs `body` while a kernel on `device` steps without end.
fn beside_a_spinner<T>(fleet: &Fleet, device: usize, body: impl FnOnce() -> T) -> T {
    let mut spec = KernelSpec::new("spinner", spinner(), 4).started();
    spec.options = spec.options.with_preferred_devices([device]);
    let kernel = fleet.launch(spec).expect("room");
    let result = body();
    let stop = fleet.sender("stop", &kernel, "stop").expect("the port exists");
    stop.send(Message::default()).expect("the kernel lives");
    fleet.wait_idle(PATIENCE).expect("the spinner stops");
    fleet.remove(&kernel).expect("nobody holds it");
    result
}

#[test]
fn a_kernel_moves_back_and_forth_while_senders_send() {
    within_time(|| {
        for peer_copy in [true, false] {
            let fleet = host_fleet(3);
            let recorder = Recorder::launch(&fleet, 0, 1000);
            let options = small_chunks().with_peer_copy(peer_copy);
            let migrator = KernelMigrator::new(&fleet).with_options(options);
            let (count, moving) = (500, AtomicBool::new(true));
            let (mut elsewhere, mut moves) = (0, 0);
            beside_a_spinner(&fleet, 2, || {
                thread::scope(|scope| {
                    scope.spawn(|| recorder.send(1, count));
                    scope.spawn(|| {
                        recorder.receive(1, count);
                        moving.store(false, Ordering::Release);
                    });
                    while moving.load(Ordering::Acquire) || elsewhere == 0 || moves < 3 {
                        let target = 1 - moves % 2;
                        let report = migrator.migrate(&recorder.kernel, target).unwrap();
                        assert_eq!((report.source, report.target), (1 - target, target));
                        assert_eq!((report.bytes, report.chunks), (4000, 63));
                        let path =
                            if peer_copy { TransferPath::Peer } else { TransferPath::Staged };
                        assert_eq!((report.path, report.repaired_chunks), (path, 0));
                        assert!(report.steps_elsewhere >= report.steps_elsewhere_in_hold);
                        assert!(report.total_us >= report.hold_us);
                        elsewhere += report.steps_elsewhere;
                        moves += 1;
                    }
                });
            });
            check_ledgers(&fleet);
            recorder.check(&fleet, count);
            check_settled(&fleet, 3);
        }
    });
}

#[test]
fn two_kernels_change_places_at_once() {
    within_time(|| {
        let fleet = host_fleet(2);
        let recorders = [Recorder::launch(&fleet, 0, 500), Recorder::launch(&fleet, 1, 500)];
        let migrator = KernelMigrator::new(&fleet).with_options(small_chunks());
        let count = 1000;
        thread::scope(|scope| {
            for (home, recorder) in recorders.iter().enumerate() {
                scope.spawn(|| recorder.send(1, count));
                scope.spawn(|| recorder.receive(1, count));
                let migrator = &migrator;
                scope.spawn(move || {
                    for turn in 1..=20 {
                        migrator.migrate(&recorder.kernel, (home + turn) % 2).unwrap();
                    }
                });
            }
        });
        check_ledgers(&fleet);
        recorders.iter().for_each(|recorder| recorder.check(&fleet, count));
        check_settled(&fleet, 2);
    });
}

#[test]
fn a_large_state_arrives_whole_either_way() {
    within_time(|| {
        let fleet = host_fleet(2);
        let words = 16 << 20;
        let kernel = fleet.launch(spec_on(0, words)).unwrap();
        let staged = MigrationOptions::new().with_peer_copy(false);
        let ways =
            [(1, TransferPath::Staged, staged), (0, TransferPath::Peer, MigrationOptions::new())];
        for (target, path, options) in ways {
            let migrator = KernelMigrator::new(&fleet).with_options(options);
            let report = migrator.migrate(&kernel, target).unwrap();
            assert_eq!((report.bytes, report.chunks, report.path), (64 << 20, 64, path));
            assert!(report.phases.copy_us > 0 && report.phases.verify_us > 0);
            let text = serde_json::to_string(&report).unwrap();
            assert_eq!(
                serde_json::from_str::<hopwise_migrate::MigrationReport>(&text).unwrap(),
                report
            );
        }
        assert!(fleet.read_state(&kernel).unwrap() == to_bytes(&noise(words)));
        check_settled(&fleet, 2);
    });
}

#[test]
fn a_state_of_one_word_and_odd_chunks_arrive() {
    within_time(|| {
        let fleet = host_fleet(2);
        let spec = KernelSpec::new("tiny", spinner(), 4).with_state(vec![1, 2, 3, 4]);
        let kernel = fleet.launch(spec).unwrap();
        let home = fleet.status(&kernel).unwrap().device;
        KernelMigrator::new(&fleet).migrate(&kernel, 1 - home).unwrap();
        assert_eq!(fleet.read_state(&kernel).unwrap(), [1, 2, 3, 4]);
        let recorder = Recorder::launch(&fleet, 0, 1001);
        for (buffers, chunk_bytes) in [(1, 8), (2, 28), (9, 4000), (3, 4004), (3, 1 << 30)] {
            let options = MigrationOptions::new()
                .with_staging_buffers(buffers)
                .with_chunk_bytes(chunk_bytes)
                .with_peer_copy(false);
            let target = 1 - fleet.status(&recorder.kernel).unwrap().device;
            let migrator = KernelMigrator::new(&fleet).with_options(options);
            let report = migrator.migrate(&recorder.kernel, target).unwrap();
            assert_eq!(report.chunks, 4004_u64.div_ceil(chunk_bytes));
            recorder.check(&fleet, 0);
        }
    });
}

#[test]
fn a_kernel_is_moved_by_one_at_a_time() {
    within_time(|| {
        let fleet = host_fleet(3);
        let recorder = Recorder::launch(&fleet, 0, 5000);
        let migrator = KernelMigrator::new(&fleet).with_options(small_chunks());
        let outcomes: Vec<_> = thread::scope(|scope| {
            let movers: Vec<_> = (1..3)
                .map(|target| {
                    let (migrator, kernel) = (&migrator, &recorder.kernel);
                    scope.spawn(move || {
                        (0..20).map(|_| migrator.migrate(kernel, target)).collect::<Vec<_>>()
                    })
                })
                .collect();
            movers.into_iter().flat_map(|mover| mover.join().unwrap()).collect()
        });
        assert!(outcomes.iter().any(Result::is_ok));
        for error in outcomes.into_iter().filter_map(Result::err) {
            assert!(error.source_running(), "{error}");
            let text = error.to_string();
            assert!(
                matches!(*error.cause, MigrationCause::UnderWay) || text.contains("already"),
                "{text}"
            );
        }
        recorder.check(&fleet, 0);
        check_settled(&fleet, 3);
    });
}

#[test]
fn a_cancel_at_any_instant_leaves_one_owner() {
    within_time(|| {
        let fleet = host_fleet(2);
        let recorder = Recorder::launch(&fleet, 0, 20_000);
        let options = small_chunks().with_peer_copy(false);
        let migrator = KernelMigrator::new(&fleet).with_options(options);
        let (mut cancelled, mut moved, mut sent) = (0, 0, 0);
        // The delays grow until a migration is faster than its cancel.
        for attempt in 0.. {
            let token = CancelToken::new();
            let before = fleet.status(&recorder.kernel).unwrap().device;
            let outcome = thread::scope(|scope| {
                let migration =
                    scope.spawn(|| migrator.migrate_with(&recorder.kernel, 1 - before, &token));
                recorder.send(sent + 1, sent + 10);
                thread::sleep(Duration::from_micros(100 * attempt));
                token.cancel();
                recorder.receive(sent + 1, sent + 10);
                migration.join().unwrap()
            });
            sent += 10;
            let now = fleet.status(&recorder.kernel).unwrap().device;
            match outcome {
                Ok(report) => {
                    assert_eq!((report.target, now), (1 - before, 1 - before));
                    moved += 1;
                }
                Err(error) => {
                    assert!(matches!(*error.cause, MigrationCause::Cancelled), "{error}");
                    assert!(error.source_running() && now == before, "{error}");
                    cancelled += 1;
                }
            }
            check_settled(&fleet, 2);
            if cancelled >= 10 && moved >= 3 {
                break;
            }
        }
        check_ledgers(&fleet);
        recorder.check(&fleet, sent);
    });
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]

    #[test]
    fn random_migrations_under_traffic_lose_nothing(
        moves in prop::collection::vec((0usize..3, 0usize..3), 1..25),
        count in 1u32..400,
        words in 3usize..300,
    ) {
        within_time(move || {
            let fleet = host_fleet(3);
            let recorders: Vec<_> =
                (0..3).map(|device| Recorder::launch(&fleet, device, words)).collect();
            let migrator = KernelMigrator::new(&fleet).with_options(small_chunks());
            thread::scope(|scope| {
                for recorder in &recorders {
                    scope.spawn(|| recorder.send(1, count));
                    scope.spawn(|| recorder.receive(1, count));
                }
                for (which, target) in moves {
                    let kernel = &recorders[which].kernel;
                    let device = fleet.status(kernel).unwrap().device;
                    let outcome = migrator.migrate(kernel, target);
                    assert_eq!(outcome.is_ok(), device != target, "{outcome:?}");
                    assert_eq!(fleet.coordinator().get_kernel_device(kernel), Some(target));
                }
            });
            check_ledgers(&fleet);
            recorders.iter().for_each(|recorder| recorder.check(&fleet, count));
            check_settled(&fleet, 3);
        });
    }
}
