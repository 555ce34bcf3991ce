//! MultiGpuCoordinator, backend traits, kernel-to-kernel messages and the fleet runtime of hopwise.
