//! Facts about recorded outputs of `nvidia-smi nvlink -s`.

use hopwise_topology::Format;

use super::facts::{check, machine};
use crate::Case;

pub(crate) const CASES: &[Case] = &[
    ("nvidia-smi-nvlink/a100-1gpu-two-space-indent.txt", |read| {
        check(read, "gpus=1 links:GPU0=12 rate:GPU0=25 clean");
    }),
    ("nvidia-smi-nvlink/a6000-3gpu-one-all-inactive.txt", |read| {
        check(
            read,
            "gpus=3 links:GPU0=4 rate:GPU0=14.062 links:GPU1=4 links:GPU2=0 rate:GPU2=none",
        );
        let formats: Vec<_> = read.as_ref().unwrap().iter().map(|reading| reading.format).collect();
        assert!(formats.contains(&Format::NvidiaSmiNvlink));
    }),
    ("nvidia-smi-nvlink/gb200-18-links-truncated.txt", |read| {
        check(read, "gpus=2 links:GPU0=18 rate:GPU0=53.125 links:GPU1=none warned");
    }),
    ("nvidia-smi-nvlink/h100-elided-links.txt", |read| {
        check(read, "gpus=1 links:GPU0=none rate:GPU0=26.562 warned");
    }),
    ("nvidia-smi-nvlink/rtx3090-2gpu-masked-uuid-then-topo.txt", |read| {
        check(read, "gpus=2 links:GPU0=4 links:GPU1=4 rate:GPU0=14.062 all=NV4 cpus:GPU0=0-23");
        check(read, "warned");
        assert!(machine(read).nodes().iter().all(|node| node.uuid.is_none()));
        let rate = machine(read).links()[0].bandwidth.value();
        assert_eq!(rate, Some(4.0 * 14.062));
    }),
    ("nvidia-smi-nvlink/v100-8gpu-all-six-links.txt", |read| {
        check(read, "gpus=8 links:GPU0=6 links:GPU7=6 rate:GPU3=25.781 clean");
    }),
];
