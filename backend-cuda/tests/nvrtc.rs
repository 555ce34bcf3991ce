//! All CUDA C that we ship, through NVIDIA's own compilers: it compiles, needs no memory for registers
//! or stack, and what is wrong in a program is told in the program's own lines.

#[path = "support/nvidia.rs"]
mod nvidia;
#[path = "support/stand_in.rs"]
mod stand_in;

use std::sync::Arc;

use hopwise_backend_cuda::{CudaBackend, CudaOptions, assemble, assemble_resident};
use hopwise_core::backend::Backend;
use hopwise_core::conformance::programs as suite;
use hopwise_core::error::CompileError;
use hopwise_core::program::{Grid, Program};
use hopwise_core::programs::{self, diffuse};
use nvidia::{Compilers, Nvrtc, Usage, compilers, usages};
use stand_in::StandIn;

/// Volta, Ampere, Hopper, Blackwell.
const ARCHITECTURES: [u32; 4] = [70, 80, 90, 100];

/// A GPU of each architecture, in the same order. The stand-in runs nothing that NVRTC made.
const MACHINE: &str = "
    gpu memory_mib=64 capability=7.0
    gpu memory_mib=64 capability=8.0
    gpu memory_mib=64 capability=9.0
    gpu memory_mib=64 capability=10.0
";

fn shipped() -> Vec<Arc<Program>> {
    let sized = |width| diffuse(width).expect("the width is allowed");
    let mut all = programs::all();
    all.extend([1, 640, diffuse::MAX_WIDTH].map(sized));
    all.extend([suite::capture(), suite::fold(), suite::obey(), suite::passes()]);
    all.extend(suite::namesakes());
    all
}

/// A program's whole source.
fn source(program: &Program) -> String {
    let own = program.cuda_c();
    assemble(program, own.unwrap_or_else(|| panic!("{} has no CUDA C", program.name())))
}

fn check(compilers: &Compilers, nvrtc: &Nvrtc, name: &str, source: &str, kernels: &[&str]) {
    for architecture in ARCHITECTURES {
        let ptx = nvrtc.ptx(source, architecture);
        let ptx = ptx.unwrap_or_else(|log| panic!("{name} for sm_{architecture}: {log}"));
        let usages = compilers.assemble(&ptx, architecture, name);
        let mut found: Vec<_> = usages.iter().map(|usage| usage.kernel.as_str()).collect();
        found.sort_unstable();
        let mut expected = kernels.to_vec();
        expected.sort_unstable();
        assert_eq!(found, expected, "{name} for sm_{architecture}");
        for usage in &usages {
            let memory = (usage.stack_bytes, usage.spill_bytes);
            assert_eq!(memory, (0, 0), "{name} for sm_{architecture}: {usage:?}");
        }
    }
}

#[test]
fn all_that_we_ship_compiles_and_assembles_without_spills() {
    let Some(compilers) = compilers() else { return };
    let nvrtc = Nvrtc::open(&compilers.nvrtc);
    for program in shipped() {
        let passes: Vec<_> =
            program.passes().iter().map(|pass| pass.entry_point.as_str()).collect();
        check(&compilers, &nvrtc, program.name(), &source(&program), &passes);
        let own = program.cuda_c().expect("it was compiled above");
        let resident = assemble_resident(&program, own);
        let with_resident: Vec<_> = passes.iter().copied().chain(["hw_resident"]).collect();
        let name = format!("{}-resident", program.name());
        check(&compilers, &nvrtc, &name, &resident, &with_resident);
    }
    check(&compilers, &nvrtc, "digest", include_str!("../src/digest.cu"), &["hw_digest"]);
}

/// A machine without NVRTC digests with PTX that was made before.
#[test]
fn the_digest_made_before_is_what_nvrtc_makes_now() {
    let Some(compilers) = compilers() else { return };
    let source = include_str!("../src/digest.cu");
    let made = Nvrtc::open(&compilers.nvrtc).ptx(source, 70).expect("it compiles");
    let made = String::from_utf8(made).expect("PTX is text");
    // Lines for a debugger name the folder in which it was made, and are left out.
    let lines = made.trim_end_matches('\0').lines().map(str::trim_end);
    let lines = lines.take_while(|line| !line.starts_with("\t.file"));
    let lines: Vec<_> = lines.filter(|line| !line.starts_with("\t.loc")).collect();
    let made = lines.join("\n");
    let (_, code) = made.split_once(".target").expect("PTX names its target");
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/src/digest.ptx");
    let kept = std::fs::read_to_string(path).expect("it is there");
    let (head, kept_code) = kept.split_once(".target").expect("PTX names its target");
    if std::env::var_os("HOPWISE_WRITE_PTX").is_some() {
        let text = format!("{head}.target{}\n", code.trim_end());
        std::fs::write(path, text).expect("the folder can be written");
        return;
    }
    let way = "if digest.cu was changed on purpose, set HOPWISE_WRITE_PTX=1";
    assert_eq!(kept_code.trim_end(), code.trim_end(), "{way}");
    let usages = compilers.assemble(kept.as_bytes(), 70, "kept-digest");
    assert_eq!(usages.len(), 1, "its lowered version of PTX is enough for it");
}

/// The host writes these bytes, so they may not depend on a compiler.
#[test]
fn tables_have_the_layout_that_the_host_writes() {
    let Some(compilers) = compilers() else { return };
    let nvrtc = Nvrtc::open(&compilers.nvrtc);
    let fields = |structure: &str, size: usize, fields: &[(&str, usize)]| {
        let mut checks = format!("static_assert(sizeof({structure}) == {size}, \"\");\n");
        for (field, offset) in fields {
            // NVRTC has no `offsetof`; this is what its front end makes one of.
            let place = format!("__INTADDR__(&((({structure} *)0)->{field}))");
            checks += &format!("static_assert({place} == {offset}, \"{field}\");\n");
        }
        checks
    };
    let kernel = [
        ("state", 0),
        ("state_words", 8),
        ("parameters", 16),
        ("inbox", 24),
        ("outbox_header", 32),
        ("outbox_slots", 40),
        ("invocations", 48),
        ("first", 56),
    ];
    let digest =
        [("state", 0), ("first_word", 8), ("end_word", 16), ("chunk_words", 24), ("sums", 32)];
    let counter = source(&programs::counter()) + &fields("hw_Kernel", 64, &kernel);
    let digester = include_str!("../src/digest.cu").to_owned() + &fields("hw_Digest", 40, &digest);
    for source in [counter, digester] {
        assert_eq!(nvrtc.ptx(&source, 80).map(|_| ()), Ok(()));
    }
}

/// A backend on the stand-in driver, with NVRTC proper.
fn backend(compilers: &Compilers) -> CudaBackend {
    let driver = StandIn::with_machine(MACHINE).folder.join("libcuda.so").display().to_string();
    let nvrtc = compilers.nvrtc.display().to_string();
    // SAFETY: the driver was compiled here, NVRTC is NVIDIA's; both have the signatures of theirs.
    let libraries =
        unsafe { hopwise_backend_cuda::Libraries::custom(vec![driver], vec![nvrtc], Vec::new()) };
    CudaBackend::with_libraries(CudaOptions::new(), &libraries)
}

#[test]
fn errors_name_the_line_and_column_of_the_programs_own_text() {
    let Some(compilers) = compilers() else { return };
    let backend = backend(&compilers);
    let device = backend.open(0).expect("the machine has GPUs");
    let wrong = [
        ("HW_PASS(main_pass) {\n    hw_u32 x = missing(1u);\n}\n", 2, 16, "missing"),
        ("\n\n#define ONE\nHW_PASS(main_pass) {\n\tint y = \"s\";\n}\n", 5, 10, "const char *"),
        ("HW_PASS(main_pass) {\n    hw_run_again(hw)\n}\n", 3, 1, "expected a \";\""),
    ];
    for (text, expected_line, expected_column, words) in wrong {
        let program = Program::builder("wrong").pass("main_pass", Grid::Fixed(1)).cuda_c(text);
        let program = program.build().expect("the declaration is right");
        match device.compile(&program).map(|_| ()) {
            Err(CompileError::Source { file, line, column, message, .. }) => {
                let place = (file.as_str(), line, column);
                assert_eq!(place, ("program.cu", expected_line, expected_column), "{message}");
                assert!(message.contains(words), "{message}");
            }
            other => panic!("{text:?} gave {other:?}"),
        }
    }
}

/// A program that redefines what the prelude has is told where, not that the prelude is wrong.
#[test]
fn a_name_of_the_preludes_is_refused_in_the_programs_text() {
    let Some(compilers) = compilers() else { return };
    let backend = backend(&compilers);
    let device = backend.open(0).expect("the machine has GPUs");
    let text = "HW_FUNCTION hw_u32 hw_tag(const hw_Kernel &hw, hw_u32 m) { return m; }\n\
                HW_PASS(main_pass) { hw_run_again(hw); }\n";
    let program = Program::builder("wrong").pass("main_pass", Grid::Fixed(1)).cuda_c(text);
    match device.compile(&program.build().expect("the declaration is right")).map(|_| ()) {
        Err(CompileError::Source { file, line, message, .. }) => {
            assert_eq!((file.as_str(), line), ("program.cu", 1), "{message}");
            assert!(message.contains("hw_tag"), "{message}");
        }
        other => panic!("{other:?}"),
    }
}

/// The backend's own way to NVRTC, up to the machine code, which the stand-in driver refuses.
#[test]
fn the_backend_gets_machine_code_for_every_architecture() {
    let Some(compilers) = compilers() else { return };
    let backend = backend(&compilers);
    for gpu in 0..ARCHITECTURES.len() {
        let device = backend.open(gpu).expect("the machine has such a GPU");
        match device.compile(&programs::counter()).map(|_| ()) {
            Err(CompileError::Device(error)) => {
                let text = error.to_string();
                assert!(text.contains("CUDA_ERROR_INVALID_IMAGE"), "GPU {gpu}: {text}");
            }
            other => panic!("GPU {gpu} gave {other:?}"),
        }
    }
}

/// What the other tests look for is found where it is.
#[test]
fn a_kernel_that_needs_a_stack_and_a_warning_are_seen() {
    let Some(compilers) = compilers() else { return };
    let nvrtc = Nvrtc::open(&compilers.nvrtc);
    let greedy = "extern \"C\" __global__ void greedy(unsigned *all) {
        unsigned own[64];
        for (unsigned i = 0u; i < 64u; i++) own[all[i] % 64u] = i;
        all[0] = own[all[1] % 64u];
    }";
    let ptx = nvrtc.ptx(greedy, 80).expect("it is right");
    let usages = compilers.assemble(&ptx, 80, "greedy");
    assert!(matches!(&usages[..], [usage] if usage.stack_bytes >= 256), "{usages:?}");
    let careless = "extern \"C\" __global__ void careless(unsigned *all) { all[0] < 0u; }";
    assert!(nvrtc.ptx(careless, 80).is_err_and(|log| log.contains("warning")));
}

#[test]
fn what_ptxas_prints_is_read() {
    let report = "\
ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'count' for 'sm_90'
ptxas info    : Function properties for count
    16 bytes stack frame, 8 bytes spill stores, 4 bytes spill loads
ptxas info    : Used 18 registers, used 0 barriers, 16 bytes cumulative stack size
ptxas info    : Compiling entry function 'other' for 'sm_90'
";
    let count = Usage { kernel: "count".to_owned(), stack_bytes: 16, spill_bytes: 12 };
    let most = u32::MAX;
    let other = Usage { kernel: "other".to_owned(), stack_bytes: most, spill_bytes: most };
    assert_eq!(usages(report), [count, other]);
}
