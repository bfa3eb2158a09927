//! Orders of memory: what an atomic operation or a fence orders beside itself, and among whom.

use serde::{Deserialize, Serialize};

use super::expression::Root;
use super::module::Module;
use super::statement::{AtomicFunction, StatementKind};
use super::walk::statements;

/// What an operation orders.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Order {
    /// Nothing but the operations on the same atomic.
    #[default]
    Relaxed,
    /// What whoever wrote the value did before releasing it comes before what follows here.
    Acquire,
    /// What came before here comes before what follows where the value is acquired.
    Release,
    /// Both.
    AcquireRelease,
}

impl Order {
    /// Every order, with what it adds to the name of an atomic's method.
    pub const ALL: [(Self, &'static str); 4] = [
        (Self::Relaxed, ""),
        (Self::Acquire, "_acquire"),
        (Self::Release, "_release"),
        (Self::AcquireRelease, "_acq_rel"),
    ];

    /// What it adds to the name of an atomic's method.
    pub fn suffix(self) -> &'static str {
        Self::ALL.into_iter().find(|(order, _)| *order == self).map_or("", |(_, suffix)| suffix)
    }

    /// Whether it acquires.
    pub const fn acquires(self) -> bool {
        matches!(self, Self::Acquire | Self::AcquireRelease)
    }

    /// Whether it releases.
    pub const fn releases(self) -> bool {
        matches!(self, Self::Release | Self::AcquireRelease)
    }

    /// What is left of it where nothing is written, as by a comparison that fails.
    #[must_use]
    pub const fn of_load(self) -> Self {
        if self.acquires() { Self::Acquire } else { Self::Relaxed }
    }

    /// What the host calls it.
    pub const fn host(self) -> std::sync::atomic::Ordering {
        use std::sync::atomic::Ordering;
        match self {
            Self::Relaxed => Ordering::Relaxed,
            Self::Acquire => Ordering::Acquire,
            Self::Release => Ordering::Release,
            Self::AcquireRelease => Ordering::AcqRel,
        }
    }
}

/// Among whom an operation is atomic and orders memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Scope {
    /// The invocations of the workgroup; always so in workgroup memory.
    Workgroup,
    /// All invocations that run on the device.
    #[default]
    Device,
}

impl Scope {
    /// Every scope, with the name of its fence.
    pub const FENCES: [(Self, &'static str); 2] =
        [(Self::Workgroup, "workgroup_fence"), (Self::Device, "device_fence")];

    /// The name of its fence.
    pub fn fence(self) -> &'static str {
        Self::FENCES.into_iter().find(|(scope, _)| *scope == self).map_or("", |(_, name)| name)
    }

    /// That of an operation which asks for this one on what lies at `root`.
    #[must_use]
    pub const fn at(self, root: Root) -> Self {
        match root {
            Root::Workgroup(_) => Self::Workgroup,
            Root::Binding(_) | Root::Local(_) | Root::Argument(_) => self,
        }
    }
}

/// How an atomic operation orders memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Ordering {
    /// What it orders.
    pub order: Order,
    /// Among whom; [`Scope::at`] says what that is in workgroup memory.
    pub scope: Scope,
}

impl Ordering {
    /// Nothing else is ordered, as far as the atomic reaches.
    pub const RELAXED: Self = Self { order: Order::Relaxed, scope: Scope::Device };
}

impl AtomicFunction {
    /// Whether there is such an operation with that order: what reads may acquire, what writes may release.
    pub const fn allows(self, order: Order) -> bool {
        match self {
            Self::Load => !order.releases(),
            Self::Store => !order.acquires(),
            _ => true,
        }
    }
}

impl StatementKind {
    /// Whether the statement itself orders accesses of other memory without waiting for anybody.
    pub fn orders_memory(&self) -> bool {
        match self {
            Self::Fence(_) => true,
            Self::Atomic { ordering, .. } => ordering.order != Order::Relaxed,
            _ => false,
        }
    }
}

impl Module {
    /// Whether an invocation may learn what another workgroup wrote plainly in the same dispatch.
    pub fn orders_memory(&self) -> bool {
        let functions = self.functions.iter().map(|(_, function)| function);
        functions.chain([&self.entry]).any(|function| {
            let mut orders = false;
            statements(&function.body, &mut |statement| orders |= statement.kind.orders_memory());
            orders
        })
    }
}
