//! What cases run on: every device, and once more the checker, which says what a kernel does amiss though its result is right.

use std::collections::BTreeSet;
use std::time::Instant;

use trefoil::artefact::Kernel;
use trefoil::check::Launch;
use trefoil::{Device, DeviceKind};

use crate::checker::Checker;
use crate::common::devices;

/// The checker takes steps one by one: cases of more are left to the others.
const MOST_OPERATIONS: usize = 1_200_000;

/// A device that cases run on.
pub struct Stand {
    /// Names it in failures.
    pub name: String,
    pub device: Device,
    checker: Option<Checker>,
}

impl Stand {
    /// Every device that opens.
    pub fn all() -> Vec<Self> {
        let stand =
            |subject: crate::common::Subject| Self { name: subject.name, device: subject.device, checker: None };
        devices().into_iter().map(stand).collect()
    }

    /// The checker.
    pub fn checker() -> Self {
        Self::of(Checker::open())
    }

    /// The same, of which somebody is told what is launched there.
    pub fn watched(watcher: impl Fn(&Launch) + Send + Sync + 'static) -> Self {
        Self::of(Checker::watched(watcher))
    }

    fn of(checker: Checker) -> Self {
        Self { name: "the checker".to_owned(), device: checker.device.clone(), checker: Some(checker) }
    }

    /// Whether it runs a kernel: some are for one language alone, or for workgroups wider than every device has, and some are not compiled for processors, which have functions of their own.
    pub fn runs(&self, kernel: &Kernel) -> bool {
        let invocations: u32 = kernel.workgroup_size.iter().product();
        let kind = self.device.kind();
        let is_there = match kind {
            DeviceKind::Cpu => kernel.cpu.is_some(),
            DeviceKind::Wgpu | DeviceKind::Vulkan | DeviceKind::Cuda => {
                kernel.variants.iter().any(|variant| variant.target == kind.target())
            }
        };
        self.checker.is_some() || is_there && invocations <= self.device.limits().max_invocations
    }

    /// Whether a case of about so many steps is worth its time here.
    pub fn affords(&self, operations: usize) -> bool {
        self.checker.is_none() || operations <= MOST_OPERATIONS
    }

    /// Says that kernels ran: the checker may have found nothing.
    pub fn ran<'a>(&self, kernels: impl IntoIterator<Item = &'a Kernel>, place: &str) {
        if let Some(checker) = &self.checker {
            checker.ran(kernels.into_iter().map(|kernel| &*kernel.name), place);
        }
    }

    /// The same, of kernels by their names.
    pub fn ran_by_name<'a>(&self, kernels: impl IntoIterator<Item = &'a str>, place: &str) {
        if let Some(checker) = &self.checker {
            checker.ran(kernels, place);
        }
    }

    /// Runs a family's cases and gives the names of the kernels that were checked.
    pub fn checked(self, family: &str, check: fn(&Self)) -> BTreeSet<String> {
        let start = Instant::now();
        check(&self);
        self.checker.map_or_else(BTreeSet::new, |checker| checker.told(family, start))
    }
}
