//! The probe against libraries that are compiled for the test: every branch, through the real
//! loader, on a machine with or without a GPU.

use std::env::consts::{DLL_PREFIX, DLL_SUFFIX};
use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::process::Command;

use hopwise_backend_cuda::{
    CudaVersion, DRIVER_SYMBOLS, DriverOutcome, Libraries, LibraryOutcome, Probe, probe,
};

/// What a function of the fake returns and, where it fills in a number, which.
struct Call {
    name: &'static str,
    status: i32,
    number: Option<i32>,
}

const VERSION: Call = Call { name: "cuDriverGetVersion", status: 0, number: Some(12_040) };

fn init(status: i32) -> Call {
    Call { name: "cuInit", status, number: None }
}

fn count(number: i32) -> Call {
    Call { name: "cuDeviceGetCount", status: 0, number: Some(number) }
}

/// Compiles a library with these functions, and the driver's others, which are never called.
/// Returns its path.
fn driver(name: &str, calls: &[Call]) -> String {
    let is_given = |symbol: &&str| calls.iter().any(|call| call.name == *symbol);
    let others = DRIVER_SYMBOLS.iter().copied().filter(|symbol| !is_given(symbol));
    library(name, calls, others)
}

/// Compiles a library with these functions, and others that are never called. Returns its path.
fn library<'a>(name: &str, calls: &[Call], others: impl Iterator<Item = &'a str>) -> String {
    let mut source = String::new();
    for symbol in others {
        writeln!(source, "#[unsafe(no_mangle)] extern \"C\" fn {symbol}() {{ panic!() }}")
            .expect("writing to a string succeeds");
    }
    for Call { name, status, number } in calls {
        let (argument, body) = match number {
            Some(number) => ("out: *mut i32", format!("unsafe {{ *out = {number} }}")),
            None => ("flags: u32", String::from("assert_eq!(flags, 0);")),
        };
        writeln!(
            source,
            "#[unsafe(no_mangle)] extern \"system\" fn {name}({argument}) -> i32 {{ {body} {status} }}"
        )
        .expect("writing to a string succeeds");
    }
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let code = folder.join(format!("{name}.rs"));
    let library = folder.join(format!("{DLL_PREFIX}{name}{DLL_SUFFIX}"));
    fs::write(&code, source).expect("the test's folder can be written");
    let status = Command::new(std::env::var("RUSTC").unwrap_or_else(|_| "rustc".into()))
        .args(["--edition=2024", "--crate-type=cdylib", "-Cpanic=abort", "-Anon_snake_case", "-o"])
        .args([&library, &code])
        .status()
        .expect("rustc can be started");
    assert!(status.success(), "the fake driver {name} does not compile");
    library.display().to_string()
}

fn probe_driver(path: &str) -> Probe {
    let driver = vec![path.to_owned()];
    // SAFETY: the library is empty or was compiled above with the signatures of cuda.h.
    Probe::with_libraries(&unsafe { Libraries::custom(driver, Vec::new(), Vec::new()) })
}

#[test]
fn a_driver_with_devices_is_ready() {
    let path = driver("ready", &[init(0), VERSION, count(2)]);
    let probe = probe_driver(&path);
    let version = CudaVersion { major: 12, minor: 4 };
    assert_eq!(probe.driver, DriverOutcome::Ready { library: path, version, device_count: 2 });
    assert_eq!(probe.device_count(), 2);
    assert!(probe.to_string().contains("2 devices"), "{probe}");
}

#[test]
fn a_driver_may_see_no_device_in_two_ways() {
    let version = CudaVersion { major: 12, minor: 4 };
    for (name, status, number) in [("refuses", 100, 3), ("counts_none", 0, 0)] {
        let path = driver(name, &[init(status), VERSION, count(number)]);
        let probe = probe_driver(&path);
        let hidden_by = std::env::var("CUDA_VISIBLE_DEVICES").ok();
        assert_eq!(probe.driver, DriverOutcome::NoDevice { library: path, version, hidden_by });
        assert_eq!(probe.device_count(), 0);
    }
}

#[test]
fn a_driver_that_fails_names_call_code_and_remedy() {
    let count_fails = Call { name: "cuDeviceGetCount", status: 3, number: Some(7) };
    let version_fails = Call { name: "cuDriverGetVersion", status: 34, number: Some(0) };
    let mismatch = driver("mismatch", &[init(803), VERSION, count(1)]);
    let lost = driver("lost", &[init(0), VERSION, count_fails]);
    let stub = driver("stub", &[init(34), version_fails, count(0)]);
    let cases = [(mismatch, "cuInit", 803), (lost, "cuDeviceGetCount", 3)];
    for (path, expected_call, expected_code) in
        cases.into_iter().chain([(stub, "cuDriverGetVersion", 34)])
    {
        let probe = probe_driver(&path);
        let DriverOutcome::Failed { version, call, status, .. } = &probe.driver else {
            panic!("{expected_call} fails, but the probe says {probe}");
        };
        assert_eq!((*call, status.code()), (expected_call, expected_code));
        assert_eq!(version.is_none(), expected_code == 34);
        assert_eq!(probe.device_count(), 0);
        assert!(probe.to_string().contains("remedy: "), "{probe}");
    }
}

#[test]
fn a_library_that_lacks_a_symbol_is_no_driver() {
    let path = library("lacks_count", &[init(0), VERSION], ["cuDeviceGet"].into_iter());
    let probe = probe_driver(&path);
    let DriverOutcome::Missing { attempts } = &probe.driver else { panic!("ready: {probe}") };
    assert_eq!(attempts.len(), 1);
    assert!(attempts[0].error.contains("lacks the symbol cuDevice"), "{}", attempts[0]);
}

#[test]
fn an_old_driver_is_told_from_none() {
    let old = Call { name: "cuDriverGetVersion", status: 0, number: Some(11_080) };
    let lacks = library("old_lacks", &[init(0), old], [].into_iter());
    let old = Call { name: "cuDriverGetVersion", status: 0, number: Some(11_080) };
    let has_all = driver("old_has_all", &[init(0), old, count(1)]);
    for path in [lacks, has_all] {
        let probe = probe_driver(&path);
        let version = CudaVersion { major: 11, minor: 8 };
        assert_eq!(probe.driver, DriverOutcome::TooOld { library: path, version });
        assert!(probe.to_string().contains("12.0 is needed\n  remedy: install"), "{probe}");
    }
}

#[test]
fn the_first_library_that_fits_is_taken() {
    let other = library("other", &[], [].into_iter());
    let fits = driver("fits", &[init(0), VERSION, count(1)]);
    let names = vec![String::from("no-such-library"), other.clone(), fits.clone()];
    // SAFETY: both libraries were compiled above; the second has the signatures of cuda.h.
    let libraries = unsafe { Libraries::custom(names, vec![other], vec![fits]) };
    let probe = Probe::with_libraries(&libraries);
    assert_eq!(probe.device_count(), 1);
    for (outcome, symbol) in [(probe.nvrtc, "nvrtcVersion"), (probe.nvml, "nvmlInit_v2")] {
        let LibraryOutcome::Missing { attempts } = outcome else { panic!("found {outcome}") };
        assert!(attempts[0].error.contains(symbol), "{}", attempts[0]);
    }
}

#[test]
fn this_machine_can_be_probed_again_and_again() {
    let first = probe();
    assert_eq!(first, probe());
    if first.device_count() == 0 {
        assert!(first.to_string().contains("remedy: "), "{first}");
    }
}
