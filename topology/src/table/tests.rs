//! Tests of the table.

use super::*;

#[test]
fn the_table_shows_classes_figures_and_where_they_come_from() {
    let mut topology = GpuTopology::new([0, 1, 5]);
    let nvlink = InterconnectType::NvLink { generation: Some(3), links: 12 };
    let link = GpuConnection::new(0, 1, nvlink)
        .with_bandwidth(Figure::measured(271.5, 1).unwrap())
        .with_latency(nvlink.estimated_latency());
    topology.set_connection_both(link).unwrap();
    let thin = GpuConnection::new(1, 5, InterconnectType::System)
        .with_bandwidth(Figure::reported(9.0, "tool").unwrap());
    topology.set_connection(thin).unwrap();
    topology.set_numa_node(1, Some(1)).unwrap();
    let memory = HostLink::new(5, InterconnectType::HostMemory);
    topology.set_host_link(memory).unwrap();
    let pcie = InterconnectType::Pcie { generation: Some(4), lanes: Some(16) };
    let slot = HostLink::new(0, pcie).with_bandwidth(pcie.estimated_bandwidth());
    topology.set_host_link(slot).unwrap();

    let expected = "\
link   GPU0  GPU1  HOST5  NUMA
GPU0   X     NV12  -      ?
GPU1   NV12  X     SYS!   1
HOST5  -     -     X      ?

GB/s   GPU0   GPU1   HOST5  to host  from host
GPU0   X      271.5  -      ~24      ~24
GPU1   271.5  X      =9     ?        ?
HOST5  -      -      X      ?        ?

us     GPU0  GPU1  HOST5  to host  from host
GPU0   X     ~3.4  -      ?        ?
GPU1   ~3.4  X     ?      ?        ?
HOST5  -     -     X      ?        ?

figures: 12 measured, =12 reported, ~12 estimated, ? unknown
- no link known, reached through the host
! no peer access, reached through the host
";
    assert_eq!(topology.table(), expected);
    assert_eq!(topology.to_string(), expected);
}

#[test]
fn a_machine_without_devices_says_so() {
    assert_eq!(GpuTopology::new([]).table(), "no devices\n");
}
