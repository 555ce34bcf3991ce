//! What the fleet does with the records of its kernels: the rules of the public methods, for managed
//! kernels only.

use super::{
    Caller, KernelMigrationPlan, LaunchOptions, MigrationRequest, MultiGpuCoordinator, Placement,
    Result,
};
use crate::id::KernelId;

impl MultiGpuCoordinator {
    /// [`place`](Self::place), and makes the kernel managed.
    pub(crate) fn place_managed(
        &self,
        kernel: KernelId,
        options: &LaunchOptions,
    ) -> Result<Placement> {
        self.place_as(Caller::Fleet, kernel, options)
    }

    /// [`remove_kernel`](Self::remove_kernel).
    pub(crate) fn remove_managed(&self, kernel: &KernelId) -> Result<()> {
        self.remove_as(Caller::Fleet, kernel)
    }

    /// [`request_migration`](Self::request_migration).
    pub(crate) fn request_migration_managed(
        &self,
        kernel: &KernelId,
        target: usize,
    ) -> Result<MigrationRequest> {
        let target = self.registry.known_slot(target)?;
        self.request_as(Caller::Fleet, kernel, &target, None)
    }

    /// [`request_planned_migration`](Self::request_planned_migration).
    pub(crate) fn request_planned_managed(
        &self,
        plan: &KernelMigrationPlan,
    ) -> Result<MigrationRequest> {
        let target = self.registry.known_slot(plan.target)?;
        self.request_as(Caller::Fleet, &plan.kernel, &target, Some(plan))
    }

    /// [`complete_migration`](Self::complete_migration).
    pub(crate) fn complete_migration_managed(&self, request: &MigrationRequest) -> Result<()> {
        self.complete_as(Caller::Fleet, request)
    }

    /// [`cancel_migration`](Self::cancel_migration).
    pub(crate) fn cancel_migration_managed(&self, request: &MigrationRequest) -> Result<()> {
        self.cancel_as(Caller::Fleet, request)
    }
}

#[cfg(test)]
mod tests;
