//! Parts that backends have in common: turns between steps and transfers, quotas, numbers of logical
//! devices, objects that are left behind with a lost device.

mod activity;
mod grid;
mod held;
mod logical;
mod quota;

pub use activity::{Activity, Ongoing, Work};
pub use grid::invocations;
pub use held::Held;
pub use logical::{Number, Numbers};
pub use quota::{Quota, Reservation};
