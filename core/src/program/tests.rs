//! Declarations of programs, and what the outbox reader makes of a kernel's writing.

use proptest::prelude::*;

use super::{Grid, Program, ProgramError, ProgramRegistry, RegistryError};
use crate::abi::{self, inbox, outbox};
use crate::error::StepFault;

fn two_ports() -> std::sync::Arc<Program> {
    Program::builder("two")
        .in_port("a", 8)
        .in_port("b", 20)
        .out_port("small", 4)
        .out_port("large", 12)
        .outbox_slots(4)
        .host(|_| Ok(()))
        .build()
        .unwrap()
}

#[test]
fn wrong_declarations_are_named() {
    let no_form = Program::builder("empty").build().unwrap_err();
    assert!(matches!(no_form, ProgramError::NoForm { .. }));
    let no_pass = Program::builder("p").wgsl("fn main() {}").build().unwrap_err();
    assert!(matches!(no_pass, ProgramError::NoPass { .. }));
    let twice = Program::builder("p").in_port("x", 4).in_port("x", 4).host(|_| Ok(())).build();
    assert!(matches!(twice.unwrap_err(), ProgramError::DuplicatePort { .. }));
    let none = Program::builder("p").outbox_slots(0).host(|_| Ok(())).build().unwrap_err();
    assert!(none.to_string().contains("outbox slots is 0"), "{none}");
    let grid = Program::builder("p").wgsl("").pass("main", Grid::Parameter(0)).build();
    assert!(matches!(grid.unwrap_err(), ProgramError::Size { .. }));
    let huge = Program::builder("p").in_port("x", 1 << 30).inbox_slots(64).host(|_| Ok(()));
    assert!(matches!(huge.build().unwrap_err(), ProgramError::Size { .. }));
}

#[test]
fn the_digest_tells_declarations_apart() {
    let base = || Program::builder("p").in_port("ab", 4).wgsl("x").pass("m", Grid::Messages);
    let digest = base().build().unwrap().digest();
    assert_eq!(digest, base().build().unwrap().digest());
    assert_ne!(digest, base().version(2).build().unwrap().digest());
    assert_ne!(digest, base().wgsl("y").build().unwrap().digest());
    assert_ne!(digest, base().host(|_| Ok(())).build().unwrap().digest());
}

#[test]
fn a_registry_refuses_a_second_meaning_of_a_name() {
    let registry = ProgramRegistry::new();
    registry.register(two_ports()).unwrap();
    registry.register(two_ports()).unwrap();
    let other = Program::builder("two").host(|_| Ok(())).build().unwrap();
    assert!(matches!(registry.register(other), Err(RegistryError::NameTaken { .. })));
    let error = registry.find("three").unwrap_err();
    assert!(error.to_string().contains("known are: two"), "{error}");
}

#[test]
fn an_outbox_is_sorted_by_port_and_key() {
    let program = two_ports();
    let mut words = Vec::new();
    outbox::begin(&mut words, &program);
    let mut writer = outbox::OutboxWriter::new(&mut words, &program);
    writer.send(1, 9, 0, &[1, 2, 3]);
    writer.send(0, 7, 5, &[4]);
    writer.send(1, 2, 0, &[]);
    writer.run_again();
    let output = outbox::read(&words, &program).unwrap();
    let order: Vec<_> = output.messages.iter().map(|sent| (sent.port, sent.key)).collect();
    assert_eq!(order, [(0, 7), (1, 2), (1, 9)]);
    assert_eq!(output.messages[0].payload, 4u32.to_le_bytes());
    assert!(output.run_again);
}

#[test]
fn what_a_kernel_may_not_write_is_a_fault() {
    let program = two_ports();
    let write = |body: &dyn Fn(&mut outbox::OutboxWriter<'_>)| {
        let mut words = Vec::new();
        outbox::begin(&mut words, &program);
        body(&mut outbox::OutboxWriter::new(&mut words, &program));
        outbox::read(&words, &program).unwrap_err()
    };
    let overflow = write(&|writer| (0..6).for_each(|key| writer.send(0, key, 0, &[])));
    assert_eq!(overflow, StepFault::OutboxOverflow { sent: 6, slots: 4 });
    let port = write(&|writer| writer.send(2, 0, 0, &[]));
    assert!(port.to_string().contains("out-port 2, the program has 2"), "{port}");
    let length = write(&|writer| writer.send(0, 0, 0, &[1, 2]));
    assert!(length.to_string().contains("8 bytes on out-port `small`"), "{length}");
    let keys = write(&|writer| (0..2).for_each(|_| writer.send(1, 3, 0, &[])));
    assert_eq!(keys, StepFault::EqualKeys { port: "large".to_owned(), key: 3 });
}

proptest! {
    #[test]
    fn an_inbox_gives_back_what_was_pushed(
        messages in prop::collection::vec(
            (0u32..2, any::<u32>(), any::<u32>(), prop::collection::vec(any::<u8>(), 0..=20)),
            0..20,
        ),
    ) {
        let program = two_ports();
        let mut words = Vec::new();
        inbox::begin(&mut words, program.inbox_slot_words(), 77, true);
        for (port, tag, channel, payload) in &messages {
            inbox::push(&mut words, *port, *tag, *channel, payload);
        }
        let view = inbox::InboxView::new(&words);
        prop_assert_eq!((view.len(), view.step_number(), view.is_started()), (messages.len(), 77, true));
        let back: Vec<_> = view
            .messages()
            .map(|message| {
                (message.in_port, message.tag, message.channel_low, message.to_bytes())
            })
            .collect();
        prop_assert_eq!(back, messages);
    }

    #[test]
    fn no_outbox_content_makes_the_reader_panic(
        header in prop::array::uniform4(any::<u32>()),
        slots in prop::collection::vec(0u32..20, 28),
    ) {
        let program = two_ports();
        let mut words = header.to_vec();
        words.extend(slots);
        prop_assert_eq!(words.len(), program.outbox_words());
        let _ = outbox::read(&words, &program);
        words[0] %= 5;
        words[2] = 0;
        words[3] &= abi::FLAG_RUN_AGAIN;
        let _ = outbox::read(&words, &program);
    }
}
