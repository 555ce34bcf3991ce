//! Tests of one route's figures.

use super::*;

fn route(kind: RouteKind, path: &[usize], latency: Option<f64>, bandwidth: Option<f64>) -> Route {
    Route {
        path: path.to_vec(),
        kind,
        latency_us: latency,
        bandwidth_gb_per_s: bandwidth,
        quality: Quality::Estimated,
        stops: path.iter().copied().map(End::Device).collect(),
    }
}

#[test]
fn a_direct_transfer_takes_latency_plus_bytes_by_bandwidth() {
    let direct = route(RouteKind::Direct, &[0, 1], Some(2.0), Some(25.0));
    // 1 MB at 25 GB/s is 40 us.
    assert_eq!(direct.time_us(1_000_000), Some(42.0));
    assert_eq!(direct.time_us(0), Some(2.0));
}

#[test]
fn each_further_hop_costs_one_chunk_of_the_narrowest_link() {
    let relayed = route(RouteKind::MultiHop, &[0, 1, 2, 3], Some(6.0), Some(0.262_144));
    assert_eq!(relayed.hops(), 3);
    assert_eq!(relayed.relays(), [1, 2]);
    // One chunk takes 1000 us here: ten chunks of the message and two of the pipeline.
    assert_eq!(relayed.time_us(10 * CHUNK_BYTES), Some(6.0 + 12_000.0));
    // A message below one chunk is stored and forwarded whole.
    assert_eq!(relayed.time_us(CHUNK_BYTES / 2), Some(6.0 + 1_500.0));
}

#[test]
fn the_host_is_two_links_and_the_same_device_none() {
    let host = route(RouteKind::HostMediated, &[0, 1], Some(10.0), Some(12.0));
    assert_eq!((host.hops(), host.relays().len()), (2, 0));
    assert!(host.links().is_empty(), "they are those of the two devices to the host");
    let here =
        Route { quality: Quality::Measured, ..route(RouteKind::SameDevice, &[4], Some(0.0), None) };
    assert_eq!((here.hops(), here.relays().len(), here.time_us(1 << 40)), (0, 0, Some(0.0)));
    assert!(here.links().is_empty());
}

#[test]
fn an_unknown_time_never_wins_and_fewer_hops_win_among_unknowns() {
    let slow = route(RouteKind::HostMediated, &[0, 1], Some(1e6), Some(0.001));
    let no_latency = route(RouteKind::Direct, &[0, 1], None, Some(900.0));
    let no_bandwidth = route(RouteKind::Direct, &[0, 1], Some(0.1), None);
    let relayed = route(RouteKind::MultiHop, &[0, 2, 1], None, Some(5_000.0));
    for bytes in [0, 4096, 1 << 30] {
        assert_eq!(slow.compare(&no_latency, bytes), Ordering::Less);
        assert_eq!(no_bandwidth.compare(&slow, bytes), Ordering::Greater);
        assert_eq!(no_bandwidth.compare(&relayed, bytes), Ordering::Less);
        assert_eq!(no_latency.compare(&no_bandwidth, bytes), Ordering::Less);
    }
    assert_eq!(no_latency.time_us(0), None);
}

#[test]
fn a_route_prints_its_path_and_marks_its_figures() {
    let relayed = route(RouteKind::MultiHop, &[0, 3, 2], Some(6.8), Some(300.0));
    assert_eq!(relayed.to_string(), "0 -> 3 -> 2, multi-hop, ~300 GB/s, ~6.8 us");
    let host =
        Route { quality: Quality::Unknown, ..route(RouteKind::HostMediated, &[0, 1], None, None) };
    assert_eq!(host.to_string(), "0 -> host -> 1, host-mediated, ? GB/s, ? us");
    assert_eq!(route(RouteKind::SameDevice, &[3], Some(0.0), None).to_string(), "3, same device");
}
