//! Live migration of kernels between devices.
