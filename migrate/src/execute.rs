//! Carrying out migrations: single moves and plans.

use std::collections::HashSet;

use hopwise_core::coordinator::{KernelMigrationPlan, MigrationPriority};
use hopwise_core::fleet::{Fleet, KernelPhase};
use hopwise_core::id::KernelId;
use parking_lot::Mutex;

use crate::error::{MigrationCause, MigrationError, Remains};
use crate::options::{CancelToken, MigrationOptions};
use crate::report::{MigrationReport, Phase};

mod run;

mod effects;
mod outcome;

mod copy;
mod verify;

use run::{Execution, Order};

/// Moves kernels of a fleet while they work. See the [crate's page](crate) for what happens and
/// what is guaranteed.
///
/// Threads may share a migrator; each move runs on the thread that asks for it. Two migrators on one
/// fleet do no harm, but the later request for a kernel ends the earlier one, which then rolls back.
#[derive(Debug)]
pub struct KernelMigrator<'f> {
    fleet: &'f Fleet,
    options: MigrationOptions,
    under_way: Mutex<HashSet<KernelId>>,
}

/// A plan and what came of it.
#[derive(Debug)]
pub struct PlanOutcome {
    /// The plan.
    pub plan: KernelMigrationPlan,
    /// The figures, or why the kernel was not moved and what is left.
    pub result: Result<MigrationReport, MigrationError>,
}

impl<'f> KernelMigrator<'f> {
    /// A migrator with the default options.
    #[must_use]
    pub fn new(fleet: &'f Fleet) -> Self {
        Self { fleet, options: MigrationOptions::default(), under_way: Mutex::default() }
    }

    /// Sets the options.
    #[must_use]
    pub fn with_options(mut self, options: MigrationOptions) -> Self {
        self.options = options;
        self
    }

    /// The fleet.
    #[must_use]
    pub fn fleet(&self) -> &'f Fleet {
        self.fleet
    }

    /// The options.
    #[must_use]
    pub fn options(&self) -> &MigrationOptions {
        &self.options
    }

    /// Moves a kernel to the device with the index `target`.
    ///
    /// # Errors
    ///
    /// [`MigrationError`]: what failed, and what is left. Reservation, twin and hold are released.
    pub fn migrate(
        &self,
        kernel: &KernelId,
        target: usize,
    ) -> Result<MigrationReport, MigrationError> {
        self.migrate_with(kernel, target, &CancelToken::new())
    }

    /// [`migrate`](Self::migrate), unless somebody cancels before the hand-over.
    ///
    /// # Errors
    ///
    /// As [`migrate`](Self::migrate), and [`MigrationCause::Cancelled`].
    pub fn migrate_with(
        &self,
        kernel: &KernelId,
        target: usize,
        cancel: &CancelToken,
    ) -> Result<MigrationReport, MigrationError> {
        let priority = MigrationPriority::default();
        self.carry_out(&Order { kernel: *kernel, target, priority, plan: None }, cancel)
    }

    /// Carries out one plan of
    /// [`unregister_device`](hopwise_core::coordinator::MultiGpuCoordinator::unregister_device),
    /// unless the world has changed since: the kernel is elsewhere, or one of the devices was
    /// registered anew.
    ///
    /// # Errors
    ///
    /// As [`migrate`](Self::migrate); the coordinator's `StaleRequest` where the plan is stale.
    pub fn execute(&self, plan: &KernelMigrationPlan) -> Result<MigrationReport, MigrationError> {
        self.execute_with(plan, &CancelToken::new())
    }

    /// [`execute`](Self::execute), unless somebody cancels before the hand-over.
    ///
    /// # Errors
    ///
    /// As [`execute`](Self::execute), and [`MigrationCause::Cancelled`].
    pub fn execute_with(
        &self,
        plan: &KernelMigrationPlan,
        cancel: &CancelToken,
    ) -> Result<MigrationReport, MigrationError> {
        let order = Order {
            kernel: plan.kernel,
            target: plan.target,
            priority: plan.priority,
            plan: Some(plan),
        };
        self.carry_out(&order, cancel)
    }

    /// Carries out plans one after the other, the most urgent first, otherwise in the order given.
    /// No failure stops the rest. Answers in the order in which they were carried out, with one
    /// outcome for every plan.
    #[must_use = "each outcome says whether its kernel was moved"]
    pub fn execute_plans(&self, plans: &[KernelMigrationPlan]) -> Vec<PlanOutcome> {
        self.execute_plans_with(plans, &CancelToken::new())
    }

    /// [`execute_plans`](Self::execute_plans). After a cancel the kernels that are left stay where
    /// they are, and their outcomes say so.
    #[must_use = "each outcome says whether its kernel was moved"]
    pub fn execute_plans_with(
        &self,
        plans: &[KernelMigrationPlan],
        cancel: &CancelToken,
    ) -> Vec<PlanOutcome> {
        let mut plans = plans.to_vec();
        plans.sort_by_key(|plan| std::cmp::Reverse(plan.priority));
        let outcome = |plan| PlanOutcome { result: self.execute_with(&plan, cancel), plan };
        plans.into_iter().map(outcome).collect()
    }

    fn carry_out(
        &self,
        order: &Order<'_>,
        cancel: &CancelToken,
    ) -> Result<MigrationReport, MigrationError> {
        let Some(_turn) = Turn::take(&self.under_way, order.kernel) else {
            return Err(MigrationError {
                kernel: order.kernel,
                target_device: Some(order.target),
                phase: Phase::Reserve,
                cause: Box::new(MigrationCause::UnderWay),
                remains: remains(self.fleet, &order.kernel),
            });
        };
        Execution::new(self.fleet, &self.options, *order, cancel).run()
    }
}

/// What is left of a kernel that is not moved, by its status.
pub(crate) fn remains(fleet: &Fleet, kernel: &KernelId) -> Remains {
    match fleet.status(kernel).map(|status| status.phase) {
        None | Some(KernelPhase::Removed) => Remains::Removed,
        Some(KernelPhase::Failed(_)) => Remains::Stopped,
        Some(KernelPhase::Lost { .. }) => Remains::Lost,
        Some(_) => Remains::Running,
    }
}

/// One kernel's move under way. Ends when dropped.
struct Turn<'a> {
    under_way: &'a Mutex<HashSet<KernelId>>,
    kernel: KernelId,
}

impl<'a> Turn<'a> {
    fn take(under_way: &'a Mutex<HashSet<KernelId>>, kernel: KernelId) -> Option<Self> {
        let is_first = under_way.lock().insert(kernel);
        // Made only when it is ours: dropping one ends the turn.
        is_first.then(|| Self { under_way, kernel })
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.under_way.lock().remove(&self.kernel);
    }
}
