//! A device that is gone: every call says why, and nothing hangs.

use std::sync::Arc;
use std::sync::mpsc;

use super::programs;
use super::subject::Subject;
use crate::device::{InitialState, InstanceRequest, StepOutcome};
use crate::error::{CompileError, DeviceError, InstanceError, TransferError};

pub(super) fn loss_is_final(subject: &Subject) {
    let device = &subject.device;
    let program = programs::fold();
    let compiled = device.compile(&program).expect("the suite's programs fit");
    let mut kernel = subject.kernel(&program, &[0; 16]);
    let mut steps = [kernel.step(true, &[])];
    let lost = DeviceError::Lost { cause: "latched by a test".to_owned() };
    assert!(device.health().latch(lost.clone()));

    assert_eq!(device.memory(), Err(lost.clone()));
    let refused = device.compile(&program).map(|_| ());
    assert_eq!(refused, Err(CompileError::Device(lost.clone())), "also of a known program");
    let refused = device.compile(&programs::obey()).map(|_| ());
    assert_eq!(refused, Err(CompileError::Device(lost.clone())));
    let request =
        InstanceRequest { parameters: &[], state_bytes: 64, initial: InitialState::Zeroed };
    let refused = device.create_instance(&compiled, &request).map(|_| ());
    assert_eq!(refused, Err(InstanceError::Device(lost.clone())));
    assert_eq!(device.run_batch(&mut steps), Err(lost.clone()));
    assert_eq!(steps[0].outcome, StepOutcome::NotStarted);

    let gone = Err(TransferError::Device(lost));
    let instance = &kernel.instance;
    assert_eq!(instance.read_state(0, &mut [0; 64]), gone);
    assert_eq!(instance.write_state(0, &[0; 64]), gone);
    assert_eq!(instance.read_state(2, &mut [0; 128]), gone, "the loss comes before all else");
    assert_eq!(instance.write_state(2, &[0; 128]), gone);
    assert_eq!(instance.chunk_digests(16).map(|_| ()), gone);
    assert_eq!(instance.chunk_digests(0).map(|_| ()), gone);
    if let Some(peer) = device.peer_copy() {
        assert!(!peer.reaches(&**device), "nothing reaches a lost device");
        assert_eq!(peer.copy_state(&**instance, &**instance, 0, 64), gone);
    }
    assert_eq!(instance.state_bytes(), 64, "facts stay known");
    drop((steps, kernel, compiled));
}

pub(super) fn listeners_hear_of_a_loss(subject: &Subject) {
    let device = &subject.device;
    let (tell, heard) = mpsc::channel();
    let listening = Arc::clone(device);
    device.health().on_loss(Box::new(move |cause| {
        // A listener may call the device: no lock is held.
        let answered = listening.memory();
        tell.send((cause.clone(), answered)).expect("the test waits");
    }));
    let lost = DeviceError::Unresponsive { cause: "latched by a test".to_owned() };
    device.health().latch(lost.clone());
    let (cause, answered) = heard.try_recv().expect("the listener was called by this thread");
    assert_eq!((cause, answered), (lost.clone(), Err(lost)));
}
