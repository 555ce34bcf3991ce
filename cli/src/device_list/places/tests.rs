//! Tests of finding the adapters of devices.

use super::*;
use crate::device_list::DeviceList;

/// Two GPUs, 0 and 2, and a software driver, 1.
fn fitting(filter: Option<&AdapterFilter>) -> Result<Vec<usize>, String> {
    match filter {
        None => Ok(vec![0, 2]),
        Some(AdapterFilter::Index(index)) => Ok(vec![*index]),
        Some(AdapterFilter::Name(name)) if name == "card" => Ok(vec![0, 2]),
        Some(other) => Err(other.to_string()),
    }
}

/// Adapter and logical device of each device.
fn places_of(text: &str) -> Vec<Option<(usize, usize)>> {
    let list: DeviceList = text.parse().unwrap();
    let places = places(&list.0, fitting).unwrap().into_iter();
    places.map(|place| place.map(|place| (place.adapter, place.logical))).collect()
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
    let on_one = |logical| Some(Place { adapter: 1, logical });
    assert_eq!(places, [on_one(0), on_one(1)]);
}

#[test]
fn an_unknown_adapter_is_an_error() {
    let list: DeviceList = "wgpu:1,wgpu[none]:1".parse().unwrap();
    assert_eq!(places(&list.0, fitting), Err("called `none`".to_owned()));
}
