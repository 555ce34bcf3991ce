//! Facts about recorded outputs of `nvidia-smi topo -m`.

use super::facts::{check, machine};
use crate::Case;

pub(crate) const CASES: &[Case] = &[
    ("nvidia-smi-topo/1gpu-1nic-kvm.txt", |read| {
        check(read, "gpus=1 nics=1 GPU0-NIC0=PHB cpus:GPU0=0-251 numa:GPU0=0 os:NIC0=mlx5_0 clean");
    }),
    ("nvidia-smi-topo/5gpu-mixed-5090-4090-numa1-first.txt", |read| {
        check(read, "gpus=5 GPU1-GPU2=PHB GPU3-GPU4=PHB GPU0-GPU1=SYS GPU0-GPU2=SYS GPU0-GPU3=SYS");
        check(read, "GPU0-GPU4=SYS numa:GPU0=1 numa:GPU1=0 numa:GPU4=0 cpus:GPU1=0-7,16-23");
    }),
    ("nvidia-smi-topo/8gpu-pcie-one-pair-phb-per-socket-titled.txt", |read| {
        check(
            read,
            "gpus=8 GPU1-GPU2=PHB GPU3-GPU4=PHB GPU6-GPU7=PHB GPU0-GPU5=NODE GPU0-GPU6=SYS",
        );
        check(read, "numa:GPU0=0 numa:GPU5=0 numa:GPU6=1 numa:GPU7=1");
    }),
    ("nvidia-smi-topo/a100-4gpu-cgroup-timestamped-numa-range.txt", |read| {
        check(read, "gpus=4 all=NV4 nvswitches=0 NIC0-GPU3=PHB NIC0-GPU0=SYS NIC0-GPU1=SYS");
        check(read, "NIC0-GPU2=SYS os:NIC0=none numa:GPU0=0-3 cpus:GPU0=0,64");
        assert_eq!(machine(read).nodes()[0].numa_node(), None);
    }),
    ("nvidia-smi-topo/a100-8gpu-hand-reformatted.txt", |read| {
        check(read, "gpus=8 all=NV12 nvswitches=1 cpus:GPU0=0-23 cpus:GPU3=0-23 numa:GPU3=0");
        check(read, "cpus:GPU4=24-47 numa:GPU4=1 numa:GPU7=1 clean");
    }),
    ("nvidia-smi-topo/a100-8gpu-vm-affinity-overwrites-cell.txt", |read| {
        check(read, "gpus=8 nics=8 all=NV12 GPU0-NIC0=PHB GPU0-NIC6=PHB GPU7-NIC0=PHB");
        check(read, "GPU0-NIC7=PHB GPU7-NIC7=PHB NIC0-NIC7=PHB numa:GPU0=0-3 cpus:GPU0=none");
        check(read, "warned");
    }),
    ("nvidia-smi-topo/a100-pcie-4gpu-bridge-pairs-nv12.txt", |read| {
        check(read, "gpus=4 GPU0-GPU1=NV12 GPU2-GPU3=NV12 GPU0-GPU2=SYS nvswitches=0");
        check(read, "numa:GPU0=0 numa:GPU1=0 numa:GPU2=1 numa:GPU3=1");
    }),
    ("nvidia-smi-topo/a6000-3gpu-one-bridge-pair.txt", |read| {
        check(read, "gpus=3 GPU0-GPU1=NV4 GPU0-GPU2=NODE GPU1-GPU2=NODE");
        check(read, "numa:GPU0=0 numa:GPU1=0 numa:GPU2=0");
    }),
    ("nvidia-smi-topo/dgx1-p100-soc-glued-header.txt", |read| {
        check(read, "gpus=8 nics=4 GPU0-GPU1=NV1 GPU0-GPU2=NV1 GPU0-GPU3=NV1 GPU0-GPU4=NV1");
        check(read, "GPU0-GPU5=SYS GPU0-mlx5_0=PIX GPU2-mlx5_1=PIX GPU4-mlx5_2=PIX cpus:GPU0=1-1");
        check(read, "numa:GPU0=none clean");
    }),
    ("nvidia-smi-topo/dgx1-v100-indented-rst-spaces.txt", |read| {
        check(read, "gpus=8 nics=4 GPU0-GPU3=NV2 GPU0-GPU4=NV2 GPU0-GPU5=SYS GPU1-GPU5=NV2");
        check(read, "GPU0-mlx5_0=PIX GPU4-mlx5_2=PIX numa:GPU0=none");
    }),
    ("nvidia-smi-topo/dgx1-v100-mlx5-column-labels.txt", |read| {
        check(read, "gpus=8 nics=4 GPU0-GPU1=NV1 GPU0-GPU3=NV2 GPU3-GPU7=NV1 GPU0-mlx5_0=PIX");
        check(read, "GPU4-mlx5_2=PIX mlx5_0-mlx5_1=PHB clean");
        for row in &machine(read).classes()[..8] {
            let links = row[..8].iter().filter_map(|cell| cell.strip_prefix("NV"));
            assert_eq!(links.map(|links| links.parse::<u16>().unwrap()).sum::<u16>(), 6);
        }
    }),
    ("nvidia-smi-topo/dgx2-16xv100-nv6-10mlx-truncated-mid-row.txt", |read| {
        check(read, "gpus=16 nics=10 GPU0-GPU1=NV6 GPU4-GPU15=NV6 GPU3-GPU4=NV6 GPU0-mlx5_0=PIX");
        check(read, "GPU2-mlx5_1=PIX GPU14-GPU15=? mlx5_0-mlx5_1=? cpus:GPU3=0-23,48-71");
        check(read, "cpus:GPU4=none warned");
    }),
    ("nvidia-smi-topo/error-topo-m-with-i-flag.txt", |read| {
        let error = read.as_ref().unwrap_err().to_string();
        assert!(error.contains("The -i command line argument") && error.contains("without -i"));
    }),
    ("nvidia-smi-topo/gb200-4gpu-6nic-ansi-empty-affinity.txt", |read| {
        check(read, "gpus=4 nics=6 all=NV18 nvswitches=1 os:NIC0=mlx5_0 os:NIC5=mlx5_5");
        check(read, "GPU0-NIC0=NODE GPU0-NIC5=NODE GPU3-NIC0=NODE GPU3-NIC5=NODE cpus:GPU0=0-35");
        check(read, "numa:GPU0=0 cpus:GPU2=none numa:GPU2=1 clean");
    }),
    ("nvidia-smi-topo/h100-4gpu-nv6-4nic-8numa.txt", |read| {
        check(
            read,
            "gpus=4 nics=4 all=NV6 GPU0-NIC0=PIX GPU1-NIC1=PIX GPU2-NIC2=PIX GPU3-NIC3=PIX",
        );
        check(read, "GPU0-NIC1=SYS NIC0-NIC3=SYS numa:GPU0=3 numa:GPU1=1 numa:GPU2=7 numa:GPU3=5");
        check(read, "cpus:GPU0=6,14,22,30");
    }),
    ("nvidia-smi-topo/h100-8gpu-no-nic-no-legend.txt", |read| {
        check(read, "gpus=8 nics=0 all=NV18 nvswitches=1 numa:GPU4=1 cpus:GPU4=52-103,156-207");
    }),
    ("nvidia-smi-topo/h100-8gpu-vllm-collect-env-indented-no-lead-tab.txt", |read| {
        check(
            read,
            "gpus=8 nics=1 all=NV18 os:NIC0=mlx5_0 GPU0-NIC0=SYS GPU7-NIC0=SYS numa:GPU4=1",
        );
    }),
    ("nvidia-smi-topo/h200-8gpu-10nic-ansi-raw.txt", |read| {
        check(read, "gpus=8 nics=10 GPU0-NIC3=PIX GPU3-NIC0=PIX GPU3-NIC1=PIX GPU3-NIC2=PIX");
        check(read, "GPU1-NIC5=PIX GPU4-NIC7=PIX numa:GPU4=1 all=NV18 clean");
    }),
    ("nvidia-smi-topo/nv18-8gpu-36nic-wrapped-glued-truncated.txt", |read| {
        check(read, "gpus=8 nics=36 all=NV18 GPU0-NIC0=PIX GPU0-NIC7=PIX GPU0-NIC35=PIX");
        check(read, "GPU0-NIC8=NODE GPU0-NIC12=NODE GPU0-NIC13=NODE GPU0-NIC34=NODE");
        check(read, "GPU2-NIC8=PIX GPU2-NIC12=PIX GPU2-NIC15=PIX GPU2-NIC34=PIX GPU2-NIC35=NODE");
        check(read, "GPU4-NIC16=PIX GPU4-NIC23=PIX numa:GPU4=1 NIC0-NIC1=? warned");
        let classes = machine(read).classes();
        assert!(!classes[5][8..].iter().any(|cell| cell == "PIX"));
    }),
    ("nvidia-smi-topo/p3-8xlarge-4xv100-vm-numa-na.txt", |read| {
        check(
            read,
            "gpus=4 GPU0-GPU1=NV1 GPU0-GPU3=NV2 GPU1-GPU2=NV2 GPU2-GPU3=NV2 cpus:GPU0=0-31",
        );
        check(read, "numa:GPU0=none clean");
    }),
    ("nvidia-smi-topo/polaris-4xa100-mixed-tab-space-header.txt", |read| {
        check(read, "gpus=4 nics=2 all=NV4 GPU1-mlx5_1=PHB GPU3-mlx5_0=PHB GPU0-mlx5_0=SYS");
        check(read, "numa:GPU0=3 numa:GPU1=2 numa:GPU2=1 numa:GPU3=0 cpus:GPU0=24-31,56-63 clean");
    }),
    ("nvidia-smi-topo/power8-2xp100-nv1-switch-legend.txt", |read| {
        check(read, "gpus=2 nics=1 GPU0-GPU1=NV1 GPU0-mlx5_0=PHB GPU1-mlx5_0=PHB cpus:GPU0=0-7");
    }),
    ("nvidia-smi-topo/rtx-2gpu-nv2-numa-na.txt", |read| {
        check(read, "gpus=2 all=NV2 cpus:GPU0=0-23 numa:GPU0=none");
    }),
    ("nvidia-smi-topo/rtx-2gpu-phb-no-legend.txt", |read| {
        check(read, "gpus=2 all=PHB cpus:GPU0=0-11 numa:GPU0=none");
    }),
    ("nvidia-smi-topo/rtx5090-2gpu-phb-tabs.txt", |read| {
        check(read, "gpus=2 all=PHB cpus:GPU0=0-63 numa:GPU0=0");
    }),
    ("nvidia-smi-topo/rtx6000ada-4gpu-4nic-epyc.txt", |read| {
        check(read, "gpus=4 nics=4 GPU0-GPU1=NODE GPU2-GPU3=NODE GPU0-GPU2=SYS NIC0-NIC1=PIX");
        check(read, "GPU2-NIC2=NODE numa:GPU0=0 numa:GPU1=0 numa:GPU2=1 numa:GPU3=1");
    }),
    ("nvidia-smi-topo/summit-power9-6xv100-glued-nic-header.txt", |read| {
        check(read, "gpus=6 nics=4 GPU0-GPU1=NV2 GPU0-GPU2=NV2 GPU1-GPU2=NV2 GPU3-GPU4=NV2");
        check(read, "GPU3-GPU5=NV2 GPU4-GPU5=NV2 GPU2-GPU3=SYS GPU0-mlx5_0=NODE GPU3-mlx5_2=NODE");
        check(read, "cpus:GPU3=88-171");
    }),
    ("nvidia-smi-topo/v100-8gpu-container-numa-range-phb.txt", |read| {
        check(read, "gpus=8 GPU0-GPU3=NV2 GPU0-GPU4=NV2 GPU0-GPU5=PHB GPU1-GPU5=NV2 GPU2-GPU6=NV1");
        check(read, "numa:GPU0=0-1");
    }),
    ("nvidia-smi-topo/v100-8gpu-hybrid-cube-1nic-renamed.txt", |read| {
        check(read, "gpus=8 nics=1 GPU0-GPU3=NV2 GPU0-GPU4=NV2 GPU3-GPU7=NV1 GPU0-NIC0=NODE");
        check(read, "GPU4-NIC0=SYS os:NIC0=mlx5_2 nvswitches=0");
    }),
    ("nvidia-smi-topo/v100-8gpu-ring-variant-no-numa-column.txt", |read| {
        check(read, "gpus=8 GPU0-GPU3=NV2 GPU0-GPU6=NV2 GPU0-GPU4=SYS GPU1-GPU7=NV2 GPU2-GPU4=NV1");
        check(read, "GPU3-GPU5=NV1 cpus:GPU0=0-95 cpus:GPU7=0-95 numa:GPU0=none");
    }),
];
