//! Peer access: asked for by ordered pair, enabled once, counted, and done without where it fails.

#[path = "support/stand_in.rs"]
mod stand_in;

use std::sync::Arc;

use hopwise_backend_cuda::{CudaBackend, CudaDevice, CudaOptions};
use hopwise_core::conformance::{Kernel, programs};
use hopwise_core::device::{Device, PeerCopy};
use hopwise_core::error::{DeviceError, TransferError};
use stand_in::StandIn;

/// Three GPUs: 0 and 1 reach each other, 1 and 2 too; 0 and 2 do not. GPU 3 can be written by 0 and
/// reaches nobody.
const MACHINE: &str = "
    gpu memory_mib=64
    gpu memory_mib=64
    gpu memory_mib=64
    gpu memory_mib=64
    peer 0 1
    peer 1 0
    peer 1 2
    peer 2 1
    peer 0 3
";

fn stand_in() -> &'static StandIn {
    StandIn::with_machine(MACHINE)
}

fn open(backend: &CudaBackend) -> [Arc<CudaDevice>; 4] {
    [0, 1, 2, 3].map(|ordinal| backend.open_cuda(ordinal).expect("the stand-in opens"))
}

/// Copies 64 KiB from one device to the other and says what arrived.
fn copy(from: &CudaDevice, to: &CudaDevice) -> Result<(), TransferError> {
    let words: Vec<u32> = (0..16_384).collect();
    let source = Kernel::try_new(from, &programs::fold(), &[], &words).expect("there is room");
    let target = Kernel::try_new(to, &programs::fold(), &[], &[9; 16_384]).expect("there is room");
    from.copy_state(&*source.instance, &*target.instance, 0, 65_536)?;
    assert_eq!(target.state(), words);
    Ok(())
}

#[test]
fn access_is_directed() {
    let _alone = stand_in::alone();
    let devices = open(&stand_in().backend(CudaOptions::new()));
    assert!(devices[0].reaches(&*devices[3]));
    assert!(!devices[3].reaches(&*devices[0]), "the way back is not there");
    copy(&devices[0], &devices[3]).expect("the pair can");
    let refused = copy(&devices[3], &devices[0]).expect_err("there is no way");
    assert!(refused.to_string().contains("copy through host memory"), "{refused}");
}

#[test]
fn access_is_enabled_once_and_disabled_when_nobody_uses_it() {
    let _alone = stand_in::alone();
    let stand_in = stand_in();
    let backend = stand_in.backend(CudaOptions::new().with_logical_devices(2));
    let [first, second] = [0, 1].map(|ordinal| backend.open_cuda(ordinal).expect("it opens"));
    let other = backend.open_cuda(2).expect("it opens");
    let before = stand_in.count("cuCtxEnablePeerAccess");
    for device in [&first, &second] {
        for _ in 0..3 {
            assert!(device.reaches(&*other));
            copy(device, &other).expect("the pair can");
        }
    }
    assert_eq!(stand_in.count("cuCtxEnablePeerAccess") - before, 1, "one GPU asks once");
    assert_eq!(stand_in.count("live peers"), 1);
    drop(first);
    assert_eq!(stand_in.count("live peers"), 1, "the other logical device uses it");
    drop(second);
    assert_eq!(stand_in.count("live peers"), 0);
}

#[test]
fn access_that_somebody_else_enabled_is_used_and_left_alone() {
    let _alone = stand_in::alone();
    let stand_in = stand_in();
    let backend = stand_in.backend(CudaOptions::new());
    let devices = open(&backend);
    // The first call is answered as if a library of the same process had been there before.
    stand_in.control("fail cuCtxEnablePeerAccess 704 1");
    let before = stand_in.count("cuCtxDisablePeerAccess");
    assert!(devices[0].reaches(&*devices[1]));
    copy(&devices[0], &devices[1]).expect("access is there");
    drop(devices);
    assert_eq!(stand_in.count("cuCtxDisablePeerAccess"), before);
}

#[test]
fn a_gpu_that_reaches_both_relays() {
    let _alone = stand_in::alone();
    let devices = open(&stand_in().backend(CudaOptions::new()));
    assert!(devices[0].reaches(&*devices[2]));
    copy(&devices[0], &devices[2]).expect("GPU 1 relays");
    // Larger than the relay's buffers, so that both are used in turns.
    let words: Vec<u32> = (0..5 << 20).collect();
    let source = Kernel::try_new(&*devices[2], &programs::fold(), &[], &words).expect("room");
    let target =
        Kernel::try_new(&*devices[0], &programs::fold(), &[], &vec![0; 5 << 20]).expect("room");
    let (from, to) = ((1 << 20) - 2, (19 << 18) - 2);
    let (offset, length) = (from as u64 * 4, (to - from) as u64 * 4);
    devices[2]
        .copy_state(&*source.instance, &*target.instance, offset, length)
        .expect("GPU 1 relays");
    let arrived = target.state();
    assert!(arrived[..from].iter().chain(&arrived[to..]).all(|word| *word == 0));
    assert_eq!(arrived[from..to], words[from..to]);
}

#[test]
fn a_relay_that_is_lost_is_no_way_any_more() {
    let _alone = stand_in::alone();
    let stand_in = stand_in();
    let devices = open(&stand_in.backend(CudaOptions::new()));
    copy(&devices[0], &devices[2]).expect("GPU 1 relays");
    devices[1].lose("pulled out by a test");
    assert!(!devices[0].reaches(&*devices[2]));
    let copied = copy(&devices[0], &devices[2]);
    assert!(matches!(copied, Err(TransferError::Device(DeviceError::Driver { .. }))));
    assert!(devices[0].health().is_working() && devices[2].health().is_working());
}

#[test]
fn a_relay_that_falls_in_the_middle_of_a_copy_is_no_loss_of_the_pair() {
    let _alone = stand_in::alone();
    let stand_in = stand_in();
    let devices = open(&stand_in.backend(CudaOptions::new()));
    assert!(devices[0].reaches(&*devices[2]));
    // The second copy between GPUs is the relay's.
    stand_in.control("fail cuMemcpyPeerAsync 719 2");
    let failed = copy(&devices[0], &devices[2]).expect_err("the relay falls");
    assert!(!failed.is_fatal(), "{failed}");
    assert!(failed.to_string().contains("relay"), "{failed}");
    assert!(!devices[1].health().is_working());
    assert!(devices[0].health().is_working() && devices[2].health().is_working());
}

#[test]
fn a_refused_pair_goes_through_the_host() {
    let _alone = stand_in::alone();
    let stand_in = stand_in();
    for (call, code) in [("cuCtxEnablePeerAccess", 217), ("cuDeviceCanAccessPeer", 101)] {
        let devices = open(&stand_in.backend(CudaOptions::new()));
        stand_in.control(&format!("fail {call} {code} 1 9"));
        assert!(!devices[0].reaches(&*devices[1]), "{call} gave {code}");
        stand_in.control("heal");
        assert!(devices[0].health().is_working(), "a refusal is no loss");
        assert!(devices[0].reaches(&*devices[1]), "it is asked for anew");
    }
}

#[test]
fn without_a_wish_for_access_there_is_none() {
    let _alone = stand_in::alone();
    let options = CudaOptions::new().with_peer_access(false);
    let devices = open(&stand_in().backend(options));
    assert!(devices[0].peer_copy().is_none());
    assert!(!devices[0].info().peer_capable);
}
