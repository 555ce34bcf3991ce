//! Tests of finding the adapters of devices.

use hopwise_backend_wgpu::AdapterFilter;

use super::*;
use crate::device_list::DeviceList;

/// Two GPUs, 0 and 2, and a software driver, 1; the CUDA driver lists one GPU.
fn fitting(kind: &Kind) -> Result<Vec<Card>, String> {
    match kind {
        Kind::Wgpu(None) => Ok(vec![Card::Wgpu(0), Card::Wgpu(2)]),
        Kind::Wgpu(Some(AdapterFilter::Index(index))) => Ok(vec![Card::Wgpu(*index)]),
        Kind::Wgpu(Some(AdapterFilter::Name(name))) if name == "card" => {
            Ok(vec![Card::Wgpu(0), Card::Wgpu(2)])
        }
        Kind::Cuda(_) => Ok(vec![Card::Cuda(0)]),
        other => Err(other.to_string()),
    }
}

/// Adapter and logical device of each device.
fn places_of(text: &str) -> Vec<Option<(usize, usize)>> {
    let list: DeviceList = text.parse().unwrap();
    let places = places(&list.0, fitting).unwrap().into_iter();
    let adapter = |place: Place| match place.card {
        Card::Wgpu(adapter) => (adapter, place.logical),
        Card::Cuda(gpu) => (100 + gpu, place.logical),
    };
    places.map(|place| place.map(adapter)).collect()
}

#[test]
fn devices_with_one_filter_go_around_its_adapters() {
    let around = [Some((0, 0)), Some((2, 0)), Some((0, 1))];
    assert_eq!(places_of("wgpu:3"), around);
    assert_eq!(places_of("wgpu[1]:1,wgpu[1]:1"), [Some((1, 0)), Some((1, 1))]);
}

#[test]
fn devices_on_an_adapter_count_together_whatever_named_it() {
    assert_eq!(places_of("wgpu[0]:1,wgpu[card]:1"), [Some((0, 0)), Some((0, 1))]);
    let places = places_of("wgpu[2]:1,host:1,wgpu:2,wgpu[card]:3,wgpu[2]:1");
    let expected = [
        Some((2, 0)),
        None,
        Some((0, 0)),
        Some((2, 1)),
        Some((0, 1)),
        Some((2, 2)),
        Some((0, 2)),
        Some((2, 3)),
    ];
    assert_eq!(places, expected);
}

#[test]
fn a_quota_makes_no_other_device() {
    let list: DeviceList = "wgpu[1]:2".parse().unwrap();
    let mut devices = list.0;
    devices[1].memory_bytes = Some(4096);
    let places = places(&devices, fitting).unwrap();
    let on_one = |logical| Some(Place { card: Card::Wgpu(1), logical });
    assert_eq!(places, [on_one(0), on_one(1)]);
}

#[test]
fn an_unknown_adapter_is_an_error() {
    let list: DeviceList = "wgpu:1,wgpu[none]:1".parse().unwrap();
    assert_eq!(places(&list.0, fitting), Err("wgpu[none]".to_owned()));
}

#[test]
fn devices_of_two_backends_are_on_different_cards() {
    let expected = [Some((100, 0)), Some((0, 0)), Some((100, 1))];
    assert_eq!(places_of("cuda:1,wgpu:1,cuda[H200]:1"), expected);
}
