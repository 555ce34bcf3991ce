//! Events of GPUs, as they are heard.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use hopwise_core::health::DegradationKind;

use super::scripted::Scripted;
use crate::nvml::events::{EventSource, RawEvent};
use crate::nvml::management::{Answer, Fault, Status};
use crate::nvml::{Effect, EventWatcher, Happening, Xid};

type Queue = Arc<Mutex<VecDeque<(u32, Answer<RawEvent>)>>>;

/// Events that wait, each for one GPU.
struct Queued(Queue);

impl EventSource for Queued {
    fn next(&mut self, gpu: u32) -> Answer<RawEvent> {
        let mut queue = self.0.lock().unwrap();
        let at = queue.iter().position(|(of, _)| *of == gpu);
        at.and_then(|at| queue.remove(at)).map_or_else(|| failed(Status::Timeout), |(_, it)| it)
    }
}

fn failed(status: Status) -> Answer<RawEvent> {
    Err(Fault { call: "nvmlEventSetWait", status })
}

fn watcher() -> (EventWatcher, Queue) {
    let queue = Queue::default();
    let heard = vec![(0, "GPU-a".to_owned()), (1, "GPU-b".to_owned())];
    (EventWatcher::new(Box::new(Queued(Arc::clone(&queue))), heard), queue)
}

fn add(queue: &Queue, gpu: u32, event: Answer<RawEvent>) {
    queue.lock().unwrap().push_back((gpu, event));
}

#[test]
fn events_are_told_once_by_uuid() {
    let (mut watcher, queue) = watcher();
    assert!(watcher.poll().is_empty());
    add(&queue, 1, Ok(RawEvent::Xid(13)));
    add(&queue, 1, Ok(RawEvent::Other));
    add(&queue, 0, Ok(RawEvent::Uncorrected));
    add(&queue, 1, Ok(RawEvent::Xid(79)));
    let events = watcher.poll();
    let told: Vec<_> = events.iter().map(|event| (event.uuid.as_str(), &event.what)).collect();
    let due = [
        ("GPU-a", &Happening::UncorrectedMemoryError),
        ("GPU-b", &Happening::Xid(Xid(13))),
        ("GPU-b", &Happening::Xid(Xid(79))),
    ];
    assert_eq!(told, due);
    assert!(watcher.poll().is_empty());
    let Effect::Degraded(degradation) = events[0].effect() else { panic!("it works on") };
    assert_eq!(degradation.kind, DegradationKind::Memory);
    assert_eq!(events[1].effect(), Effect::ProcessOnly);
    let Effect::Lost { cause } = events[2].effect() else { panic!("it is lost") };
    assert!(cause.contains("Xid 79") && cause.contains("restart the machine"), "{cause}");
}

#[test]
fn a_lost_gpu_is_told_once_and_the_other_is_heard() {
    let (mut watcher, queue) = watcher();
    add(&queue, 0, failed(Status::Lost));
    add(&queue, 1, Ok(RawEvent::Corrected));
    let events = watcher.poll();
    assert!(matches!(&events[0].what, Happening::Lost { cause } if cause.contains("lost")));
    assert_eq!(events[1].effect(), Effect::Informative);
    assert_eq!(watcher.heard().collect::<Vec<_>>(), ["GPU-b"]);
    add(&queue, 0, failed(Status::Lost));
    add(&queue, 1, Ok(RawEvent::Xid(154)));
    let events = watcher.poll();
    assert_eq!((events.len(), events[0].uuid.as_str()), (1, "GPU-b"));
}

#[test]
fn a_source_that_breaks_is_told_and_is_no_loss() {
    let (mut watcher, queue) = watcher();
    add(&queue, 0, failed(Status::Other("an internal driver error occurred".to_owned())));
    let events = watcher.poll();
    assert_eq!(events[0].effect(), Effect::Informative);
    assert!(matches!(&events[0].what, Happening::Unheard { why } if why.contains("internal")));
}

#[test]
fn a_gpu_that_reports_without_end_keeps_no_other_from_being_heard() {
    struct Endless;
    impl EventSource for Endless {
        fn next(&mut self, gpu: u32) -> Answer<RawEvent> {
            if gpu == 0 { Ok(RawEvent::Corrected) } else { Ok(RawEvent::Other) }
        }
    }
    let heard = vec![(0, "GPU-a".to_owned()), (1, "GPU-b".to_owned())];
    let mut watcher = EventWatcher::new(Box::new(Endless), heard);
    let events = watcher.poll();
    assert!(!events.is_empty());
    assert!(watcher.poll().len() == events.len(), "the rest waits for the next poll");
}

#[test]
fn gpus_that_cannot_be_listened_to_are_told() {
    let mut watcher = Scripted::new(2).nvml().watch();
    assert_eq!(watcher.heard().count(), 0);
    let events = watcher.poll();
    assert_eq!(events.len(), 2);
    assert!(matches!(&events[1].what, Happening::Unheard { why } if why.contains("nvmlEvent")));
    assert!(watcher.poll().is_empty());
}
