//! The stand-in driver itself, where a wrong one would let wrong tests of the backend pass: streams
//! that do not wait for each other, errors that stay, ranges, owners, and what a capture forbids.
//!
//! One machine for all tests: each uses GPUs of its own, since `cargo test` runs them side by side.

#[path = "support/stand_in.rs"]
mod stand_in;

use std::ffi::{CString, c_char, c_int, c_uint, c_void};
use std::ptr;
use std::thread;
use std::time::Duration;

use libloading::Library;
use stand_in::StandIn;

const MACHINE: &str = "
    gpu
    gpu
    gpu
    gpu
    gpu
    gpu memory_mib=1
    gpu
    gpu
    peer 2 3
";

const INVALID_VALUE: c_int = 1;
const OUT_OF_MEMORY: c_int = 2;
const NOT_READY: c_int = 600;
const ILLEGAL_ADDRESS: c_int = 700;
const CAPTURE_UNSUPPORTED: c_int = 900;
const CAPTURE_INVALIDATED: c_int = 901;
const CAPTURED_EVENT: c_int = 907;

const SOURCE: &str = "extern \"C\" __global__ void twice(unsigned *at) { at[1] = at[0] * 2u; }";

/// Calls a function of a library of ours: its name, and each argument with its type.
macro_rules! call {
    ($library:expr, $name:ident($($value:expr => $type:ty),*)) => {{
        type Function = unsafe extern "C" fn($($type),*) -> c_int;
        // SAFETY: the library was compiled by the test with the signatures of NVIDIA's headers, and
        // those are written down here.
        let function = unsafe { $library.get::<Function>(stringify!($name)) };
        let function = function.expect("the stand-in has the function");
        // SAFETY: pointers are to values that live until the call returns, or wrong on purpose, which
        // the stand-in sees before it uses them.
        unsafe { function($($value),*) }
    }};
}

/// A GPU whose context is current on this thread.
struct Gpu {
    driver: &'static Library,
    context: u64,
}

impl Gpu {
    fn open(ordinal: c_int) -> Self {
        let driver = StandIn::with_machine(MACHINE).driver();
        assert_eq!(call!(driver, cuInit(0 => c_uint)), 0);
        let mut context = 0;
        let retained =
            call!(driver, cuDevicePrimaryCtxRetain(&raw mut context => *mut u64, ordinal => c_int));
        assert_eq!(retained, 0);
        assert_eq!(call!(driver, cuCtxPushCurrent_v2(context => u64)), 0);
        Self { driver, context }
    }

    fn memory(&self, bytes: usize) -> u64 {
        let mut at = 0;
        let made = call!(self.driver, cuMemAlloc_v2(&raw mut at => *mut u64, bytes => usize));
        assert_eq!(made, 0);
        at
    }

    fn free(&self, at: u64) -> c_int {
        call!(self.driver, cuMemFree_v2(at => u64))
    }

    fn stream(&self) -> u64 {
        let mut stream = 0;
        assert_eq!(call!(self.driver, cuStreamCreate(&raw mut stream => *mut u64, 1 => c_uint)), 0);
        stream
    }

    fn event(&self) -> u64 {
        let mut event = 0;
        assert_eq!(call!(self.driver, cuEventCreate(&raw mut event => *mut u64, 2 => c_uint)), 0);
        event
    }

    fn record(&self, event: u64, stream: u64) -> c_int {
        call!(self.driver, cuEventRecord(event => u64, stream => u64))
    }

    fn query(&self, event: u64) -> c_int {
        call!(self.driver, cuEventQuery(event => u64))
    }

    fn upload(&self, to: u64, from: *const c_void, bytes: usize, stream: u64) -> c_int {
        let upload = (to, from, bytes, stream);
        call!(self.driver, cuMemcpyHtoDAsync_v2(
            upload.0 => u64, upload.1 => *const c_void, upload.2 => usize, upload.3 => u64
        ))
    }

    fn download(&self, to: *mut c_void, from: u64, bytes: usize, stream: u64) -> c_int {
        call!(self.driver, cuMemcpyDtoHAsync_v2(
            to => *mut c_void, from => u64, bytes => usize, stream => u64
        ))
    }

    fn fill(&self, at: u64, byte: u8, bytes: usize, stream: u64) -> c_int {
        call!(self.driver, cuMemsetD8Async(at => u64, byte => u8, bytes => usize, stream => u64))
    }

    fn synchronize(&self) -> c_int {
        call!(self.driver, cuCtxSynchronize())
    }

    fn pinned(&self, bytes: usize) -> *mut c_void {
        let mut at = ptr::null_mut();
        let made = call!(self.driver, cuMemHostAlloc(
            &raw mut at => *mut *mut c_void, bytes => usize, 0 => c_uint
        ));
        assert_eq!(made, 0);
        at
    }

    fn begin_capture(&self, stream: u64) {
        // Of this thread, as the backend does it.
        assert_eq!(call!(self.driver, cuStreamBeginCapture_v2(stream => u64, 1 => c_uint)), 0);
    }

    fn end_capture(&self, stream: u64) -> (c_int, u64) {
        let mut graph = 0;
        let ended =
            call!(self.driver, cuStreamEndCapture(stream => u64, &raw mut graph => *mut u64));
        (ended, graph)
    }

    fn instantiate(&self, graph: u64) -> u64 {
        let mut executable = 0;
        let made = call!(self.driver, cuGraphInstantiateWithFlags(
            &raw mut executable => *mut u64, graph => u64, 0 => u64
        ));
        assert_eq!(made, 0);
        executable
    }

    fn update(&self, executable: u64, graph: u64) -> c_int {
        let mut result = [0_u64; 3];
        call!(self.driver, cuGraphExecUpdate_v2(
            executable => u64, graph => u64, result.as_mut_ptr() => *mut u64
        ))
    }

    /// A kernel, compiled by the stand-in NVRTC.
    fn kernel(&self) -> u64 {
        let image = image();
        let (mut module, mut function) = (0, 0);
        let loaded = call!(self.driver, cuModuleLoadData(
            &raw mut module => *mut u64, image.as_ptr() => *const u8
        ));
        assert_eq!(loaded, 0);
        let found = call!(self.driver, cuModuleGetFunction(
            &raw mut function => *mut u64, module => u64, c"twice".as_ptr() => *const c_char
        ));
        assert_eq!(found, 0);
        function
    }

    fn launch(&self, function: u64, mut argument: u64, stream: u64) -> c_int {
        let mut arguments = [(&raw mut argument).cast::<c_void>()];
        call!(self.driver, cuLaunchKernel(
            function => u64, 1 => c_uint, 1 => c_uint, 1 => c_uint, 1 => c_uint, 1 => c_uint,
            1 => c_uint, 0 => c_uint, stream => u64, arguments.as_mut_ptr() => *mut *mut c_void,
            ptr::null_mut() => *mut *mut c_void
        ))
    }

    /// Waits for an event by asking, since what hangs must not hang the test.
    fn wait(&self, event: u64) -> c_int {
        loop {
            match self.query(event) {
                NOT_READY => thread::sleep(Duration::from_millis(1)),
                code => return code,
            }
        }
    }
}

fn image() -> Vec<u8> {
    let path = StandIn::with_machine(MACHINE).folder.join("libnvrtc.so");
    // SAFETY: the library was compiled by the test and has no initialisers.
    let nvrtc = unsafe { Library::new(path) }.expect("the stand-in is there");
    let source = CString::new(SOURCE).expect("a source has no zero byte");
    let (mut program, mut bytes) = (ptr::null_mut(), 0);
    let made = call!(nvrtc, nvrtcCreateProgram(
        &raw mut program => *mut *mut c_void, source.as_ptr() => *const c_char,
        ptr::null() => *const c_char, 0 => c_int, ptr::null() => *const *const c_char,
        ptr::null() => *const *const c_char
    ));
    assert_eq!(made, 0);
    let compiled = call!(nvrtc, nvrtcCompileProgram(
        program => *mut c_void, 0 => c_int, ptr::null() => *const *const c_char
    ));
    assert_eq!(compiled, 0);
    let sized = call!(nvrtc, nvrtcGetCUBINSize(
        program => *mut c_void, &raw mut bytes => *mut usize
    ));
    assert_eq!(sized, 0);
    let mut image = vec![0; bytes];
    let got = call!(nvrtc, nvrtcGetCUBIN(program => *mut c_void, image.as_mut_ptr() => *mut u8));
    assert_eq!(got, 0);
    assert_eq!(call!(nvrtc, nvrtcDestroyProgram(&raw mut program => *mut *mut c_void)), 0);
    image
}

#[test]
fn a_kernel_without_end_holds_its_stream_and_no_other() {
    let gpu = Gpu::open(0);
    let (memory, kernel) = (gpu.memory(8), gpu.kernel());
    let [stuck, free] = [gpu.stream(), gpu.stream()];
    let [never, soon] = [gpu.event(), gpu.event()];
    let input = [21_u32, 0];
    assert_eq!(gpu.upload(memory, input.as_ptr().cast(), 8, free), 0);
    assert_eq!(gpu.record(soon, free), 0);
    assert_eq!(gpu.wait(soon), 0);
    StandIn::with_machine(MACHINE).control("hang 0");
    assert_eq!(gpu.launch(kernel, memory, stuck), 0);
    assert_eq!(gpu.record(never, stuck), 0);
    let mut output = [0_u32; 2];
    assert_eq!(gpu.download(output.as_mut_ptr().cast(), memory, 4, free), 0);
    assert_eq!(gpu.record(soon, free), 0);
    assert_eq!(gpu.wait(soon), 0, "another stream goes on");
    assert_eq!(output[0], 21);
    assert_eq!(gpu.query(never), NOT_READY);
    StandIn::with_machine(MACHINE).control("release 0");
    assert_eq!(gpu.wait(never), 0);
    assert_eq!(gpu.download(output.as_mut_ptr().cast(), memory, 8, stuck), 0);
    assert_eq!(gpu.synchronize(), 0);
    assert_eq!(output, [21, 42], "what was launched ran when it could");
}

#[test]
fn a_copy_reads_its_source_when_the_stream_comes_to_it() {
    let gpu = Gpu::open(6);
    let (memory, source, stream, event) = (gpu.memory(8), gpu.pinned(4), gpu.stream(), gpu.event());
    let kernel = gpu.kernel();
    // SAFETY: the memory is ours, and the kernel that hangs keeps the stream from reading it meanwhile.
    let write = |value: u32| unsafe { source.cast::<u32>().write_volatile(value) };
    write(1);
    StandIn::with_machine(MACHINE).control("hang 6");
    assert_eq!(gpu.launch(kernel, memory, stream), 0);
    assert_eq!(gpu.upload(memory, source, 4, stream), 0);
    assert_eq!(gpu.record(event, stream), 0);
    assert_eq!(gpu.query(event), NOT_READY, "calls do not wait for the stream");
    write(2);
    let mut output = 0_u32;
    assert_eq!(gpu.download((&raw mut output).cast(), memory, 4, stream), 0);
    StandIn::with_machine(MACHINE).control("release 6");
    assert_eq!(gpu.synchronize(), 0);
    assert_eq!(output, 2, "staging that is used again too early is noticed");
}

#[test]
fn an_error_of_a_kernel_comes_later_and_stays_until_the_reset() {
    let gpu = Gpu::open(1);
    let (kernel, stream, memory) = (gpu.kernel(), gpu.stream(), gpu.memory(8));
    let freed = gpu.memory(8);
    assert_eq!(gpu.free(freed), 0);
    assert_eq!(gpu.launch(kernel, freed, stream), 0, "the launch itself goes well");
    assert_eq!(gpu.synchronize(), ILLEGAL_ADDRESS);
    assert_eq!(gpu.free(memory), ILLEGAL_ADDRESS);
    assert_eq!(gpu.launch(kernel, memory, stream), ILLEGAL_ADDRESS);
    assert_eq!(call!(gpu.driver, cuDevicePrimaryCtxReset_v2(1 => c_int)), 0);
    assert_eq!(gpu.synchronize(), 0);
    assert_eq!(gpu.free(memory), INVALID_VALUE, "the reset took the memory along");
    assert_ne!(gpu.launch(kernel, memory, stream), 0, "and the function");
}

#[test]
fn memory_of_another_gpu_is_not_this_ones() {
    let there = Gpu::open(2);
    let (far, far_context) = (there.memory(8), there.context);
    let gpu = Gpu::open(3);
    let (near, kernel, stream) = (gpu.memory(8), gpu.kernel(), gpu.stream());
    assert_eq!(gpu.free(far), INVALID_VALUE);
    assert_eq!(gpu.fill(far, 0, 8, stream), INVALID_VALUE);
    let mut output = [0_u8; 8];
    assert_eq!(gpu.download(output.as_mut_ptr().cast(), far, 8, stream), INVALID_VALUE);
    let swapped = call!(gpu.driver, cuMemcpyPeerAsync(
        far => u64, gpu.context => u64, near => u64, far_context => u64, 8 => usize,
        stream => u64
    ));
    assert_eq!(swapped, INVALID_VALUE);
    // GPU 2 may reach 3, and 3 may not reach 2.
    let unsupported = 217;
    assert_eq!(
        call!(gpu.driver, cuCtxEnablePeerAccess(far_context => u64, 0 => c_uint)),
        unsupported
    );
    assert_eq!(gpu.launch(kernel, far, stream), 0);
    assert_eq!(gpu.synchronize(), ILLEGAL_ADDRESS);
}

#[test]
fn ranges_are_those_of_one_allocation_and_memory_ends() {
    let gpu = Gpu::open(5);
    let stream = gpu.stream();
    let (memory, pinned) = (gpu.memory(64), gpu.pinned(64));
    assert_eq!(gpu.fill(memory, 1, 65, stream), INVALID_VALUE);
    assert_eq!(gpu.fill(memory + 1, 1, 64, stream), INVALID_VALUE);
    assert_eq!(gpu.fill(memory + 1, 1, 63, stream), 0);
    assert_eq!(gpu.fill(memory, 1, usize::MAX, stream), INVALID_VALUE);
    let wide = gpu.memory(128);
    assert_eq!(gpu.upload(wide, pinned, 65, stream), INVALID_VALUE, "beyond pinned memory");
    assert_eq!(gpu.download(pinned, wide, 128, stream), INVALID_VALUE);
    assert_eq!(gpu.upload(wide, pinned, 64, stream), 0);
    let memory_as_host = ptr::with_exposed_provenance(usize::try_from(memory).expect("64 bits"));
    assert_eq!(gpu.upload(wide, memory_as_host, 64, stream), INVALID_VALUE, "no host memory");
    let mut at = 0_u64;
    let large = call!(gpu.driver, cuMemAlloc_v2(&raw mut at => *mut u64, 1 << 20 => usize));
    assert_eq!(large, OUT_OF_MEMORY, "a part of the MiB is taken");
    assert_eq!(gpu.free(wide), 0);
    assert_eq!(gpu.free(wide), INVALID_VALUE, "freed twice");
    assert_eq!(gpu.free(memory + 4), INVALID_VALUE, "not where it begins");
    assert_eq!(gpu.free(memory), 0);
    assert_eq!(call!(gpu.driver, cuMemAlloc_v2(&raw mut at => *mut u64, 1 << 20 => usize)), 0);
}

#[test]
fn a_capture_runs_nothing_and_is_spoilt_by_what_it_forbids() {
    let gpu = Gpu::open(4);
    let (memory, stream, event) = (gpu.memory(8), gpu.stream(), gpu.event());
    let mut output = [0_u8; 8];
    let read = |output: &mut [u8; 8]| {
        assert_eq!(gpu.download(output.as_mut_ptr().cast(), memory, 8, stream), 0);
        assert_eq!(gpu.synchronize(), 0);
    };
    assert_eq!(gpu.fill(memory, 1, 8, stream), 0);
    gpu.begin_capture(stream);
    assert_eq!(gpu.fill(memory, 2, 8, stream), 0);
    let (ended, fills) = gpu.end_capture(stream);
    assert_eq!(ended, 0);
    read(&mut output);
    assert_eq!(output, [1; 8], "what is captured does not run");
    let executable = gpu.instantiate(fills);
    assert_eq!(call!(gpu.driver, cuGraphLaunch(executable => u64, stream => u64)), 0);
    read(&mut output);
    assert_eq!(output, [2; 8]);

    let mut at = 0_u64;
    let forbidden: [&dyn Fn() -> c_int; 3] =
        [&|| call!(gpu.driver, cuStreamQuery(stream => u64)), &|| gpu.synchronize(), &|| {
            gpu.free(memory)
        }];
    for call in forbidden {
        gpu.begin_capture(stream);
        assert_eq!(gpu.fill(memory, 3, 8, stream), 0);
        assert_eq!(call(), CAPTURE_UNSUPPORTED);
        assert_eq!(gpu.end_capture(stream), (CAPTURE_INVALIDATED, 0));
    }
    gpu.begin_capture(stream);
    let made = call!(gpu.driver, cuMemAlloc_v2(&raw mut at => *mut u64, 8 => usize));
    assert_eq!(made, CAPTURE_UNSUPPORTED);
    assert_eq!(gpu.end_capture(stream), (CAPTURE_INVALIDATED, 0));
    gpu.begin_capture(stream);
    assert_eq!(gpu.record(event, stream), 0);
    assert_eq!(gpu.query(event), CAPTURED_EVENT, "it is no place in the stream");
    assert_eq!(gpu.end_capture(stream).0, 0);
    assert_eq!(gpu.record(event, stream), 0);
    assert_eq!(gpu.wait(event), 0);
}

#[test]
fn a_graph_is_updated_by_one_of_the_same_form_alone() {
    let gpu = Gpu::open(7);
    let (memory, pinned, stream) = (gpu.memory(8), gpu.pinned(8), gpu.stream());
    let capture = |work: &dyn Fn()| {
        gpu.begin_capture(stream);
        work();
        let (ended, graph) = gpu.end_capture(stream);
        assert_eq!(ended, 0);
        graph
    };
    let up = capture(&|| assert_eq!(gpu.upload(memory, pinned, 8, stream), 0));
    let smaller = capture(&|| assert_eq!(gpu.upload(memory + 4, pinned, 4, stream), 0));
    let down = capture(&|| assert_eq!(gpu.download(pinned, memory, 8, stream), 0));
    let fill = capture(&|| assert_eq!(gpu.fill(memory, 0, 8, stream), 0));
    let both = capture(&|| {
        assert_eq!(gpu.upload(memory, pinned, 8, stream), 0);
        assert_eq!(gpu.fill(memory, 0, 8, stream), 0);
    });
    let executable = gpu.instantiate(up);
    assert_eq!(gpu.update(executable, smaller), 0);
    let update_failure = 910;
    for other in [down, fill, both] {
        assert_eq!(gpu.update(executable, other), update_failure);
    }
    assert_eq!(gpu.update(executable, up), 0);
}
