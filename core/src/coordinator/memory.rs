//! Which part of a device's memory is still to be promised.
//!
//! Two figures bound what may be promised, and the lesser of them counts:
//!
//! - the last report of available memory, less what was promised since. A promise made before the
//!   report is taken to be in the report;
//! - the device's total memory, where it is known, less everything promised to its kernels and
//!   reservations, whenever that was. It holds even if a kernel had not yet allocated its memory
//!   when the report was made.
//!
//! A promise that ends is given back to the second figure at once, and to the first one only if no
//! report came since: otherwise the next report shows what became free. So concurrent placements
//! never promise the same byte twice.

/// Bytes promised to a kernel or to a reservation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Promise {
    pub(super) bytes: u64,
    /// The report in force when the promise was made.
    report: u64,
}

/// The memory of one device.
#[derive(Debug)]
pub(super) struct MemoryLedger {
    /// Zero where nobody knows it.
    total_bytes: u64,
    reported_bytes: u64,
    /// Number of the last report.
    report: u64,
    promised_since_report_bytes: u64,
    promised_bytes: u64,
}

impl MemoryLedger {
    pub(super) fn new(total_bytes: u64, available_bytes: u64) -> Self {
        Self {
            total_bytes,
            reported_bytes: available_bytes,
            report: 0,
            promised_since_report_bytes: 0,
            promised_bytes: 0,
        }
    }

    /// Bytes that can still be promised.
    pub(super) fn available_bytes(&self) -> u64 {
        let by_report = self.reported_bytes.saturating_sub(self.promised_since_report_bytes);
        if self.total_bytes == 0 {
            return by_report;
        }
        by_report.min(self.total_bytes.saturating_sub(self.promised_bytes))
    }

    /// Promises bytes, whether they are there or not: the caller checks where a check is due.
    pub(super) fn promise(&mut self, bytes: u64) -> Promise {
        self.promised_since_report_bytes = self.promised_since_report_bytes.saturating_add(bytes);
        self.promised_bytes = self.promised_bytes.saturating_add(bytes);
        Promise { bytes, report: self.report }
    }

    pub(super) fn give_back(&mut self, promise: Promise) {
        self.promised_bytes = self.promised_bytes.saturating_sub(promise.bytes);
        if promise.report == self.report {
            self.promised_since_report_bytes =
                self.promised_since_report_bytes.saturating_sub(promise.bytes);
        }
    }

    pub(super) fn report(&mut self, available_bytes: u64) {
        self.reported_bytes = available_bytes;
        self.report += 1;
        self.promised_since_report_bytes = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_promise_counts_against_the_report_in_force() {
        let mut ledger = MemoryLedger::new(100, 80);
        let first = ledger.promise(30);
        assert_eq!(ledger.available_bytes(), 50);
        ledger.give_back(first);
        assert_eq!(ledger.available_bytes(), 80);
    }

    #[test]
    fn a_report_replaces_the_promises_before_it_but_not_the_total() {
        let mut ledger = MemoryLedger::new(100, 100);
        let early = ledger.promise(60);
        // The kernel has not allocated yet, so the report still shows everything as free.
        ledger.report(100);
        assert_eq!(ledger.available_bytes(), 40, "the total bounds what the report allows");
        ledger.report(30);
        let late = ledger.promise(10);
        assert_eq!(ledger.available_bytes(), 20);
        ledger.give_back(early);
        assert_eq!(ledger.available_bytes(), 20, "the next report tells what became free");
        ledger.give_back(late);
        assert_eq!(ledger.available_bytes(), 30);
    }

    #[test]
    fn an_unknown_total_leaves_the_report_alone_in_charge() {
        let mut ledger = MemoryLedger::new(0, 0);
        assert_eq!(ledger.available_bytes(), 0);
        ledger.report(50);
        ledger.promise(70);
        assert_eq!(ledger.available_bytes(), 0);
    }
}
