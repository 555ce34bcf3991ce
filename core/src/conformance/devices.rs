//! Facts about devices, and making programs ready.

use std::sync::Arc;

use super::programs;
use super::subject::Subject;
use crate::device::{InitialState, InstanceRequest};
use crate::device_info::BackendKind;
use crate::error::{CompileError, DeviceError, InstanceError};
use crate::program::{Grid, Program, ProgramBuilder};

pub(super) fn facts_are_consistent(subject: &Subject) {
    let (listed, opened) = (&subject.listed, subject.device.info());
    let kind = subject.backend.kind();
    assert_eq!((listed.backend, opened.backend), (kind, kind));
    assert_eq!(opened.index, listed.index, "the index is the ordinal that was opened");
    assert_eq!(opened.failure_domain, listed.failure_domain);
    assert!(opened.workers >= 1 && listed.workers >= 1);
    let limits = subject.device.limits();
    assert!(limits.max_batch_kernels >= 1);
    assert!(limits.max_state_bytes >= 4);
    assert_eq!(subject.device.health().check(), Ok(()));
    let count = subject.backend.enumerate().expect("the devices were listed before").len();
    let absent = subject.backend.open(count + 1000);
    assert!(matches!(absent, Err(DeviceError::Unavailable { .. })), "there is no such device");
}

pub(super) fn programs_are_compiled_once(subject: &Subject) {
    let program = programs::fold();
    let first = subject.device.compile(&program).expect("the suite's programs fit");
    let second = subject.device.compile(&program).expect("it fitted before");
    assert!(std::ptr::addr_eq(Arc::as_ptr(&first), Arc::as_ptr(&second)), "it is compiled once");
    assert_eq!(first.program().digest(), program.digest());
}

pub(super) fn programs_of_one_name_are_not_mixed_up(subject: &Subject) {
    for (program, expected) in programs::namesakes().iter().zip(1..) {
        let mut kernel = subject.kernel(program, &[0]);
        kernel.run(subject, true, &[]).expect("the program sends nothing");
        assert_eq!(kernel.state(), [expected]);
    }
}

pub(super) fn programs_without_a_fitting_form_are_refused(subject: &Subject) {
    let kind = subject.backend.kind();
    let builder = Program::builder("conformance-unfit").pass("main", Grid::Fixed(1));
    let program = with_another_form(builder, kind).build().expect("the declaration is right");
    match subject.device.compile(&program) {
        Err(CompileError::NoForm { program, backend, forms }) => {
            assert_eq!((program.as_str(), backend), ("conformance-unfit", kind));
            assert!(!forms.is_empty(), "the error tells which forms there are");
        }
        other => panic!("a program without a form for {kind} gave {other:?}"),
    }
}

fn with_another_form(builder: ProgramBuilder, kind: BackendKind) -> ProgramBuilder {
    match kind {
        BackendKind::Cuda => builder.wgsl("@compute @workgroup_size(1) fn main() {}"),
        _ => builder.cuda_c("extern \"C\" __global__ void main_pass() {}"),
    }
}

pub(super) fn programs_of_another_device_are_refused(subject: &Subject) {
    let other = subject.backend.open(subject.listed.index).expect("a device can be opened twice");
    let program = programs::fold();
    let foreign = other.compile(&program).expect("the suite's programs fit");
    let request =
        InstanceRequest { parameters: &[], state_bytes: 64, initial: InitialState::Zeroed };
    let refused = subject.device.create_instance(&foreign, &request);
    assert_eq!(refused.map(|_| ()), Err(InstanceError::ForeignProgram));
    let own = subject.device.compile(&program).expect("the suite's programs fit");
    assert!(subject.device.create_instance(&own, &request).is_ok());
}
