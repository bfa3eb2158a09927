//! Kernels with one mistake each, which the checker must see.
//!
//! A *mutant* is a copy of a kernel's instance, in IR, with one mistake that authors make ([`mistake`]) at one site that has a line in the source ([`site`], [`mutate`]). It runs in the checker with
//! launches that the library's tests made ([`launch`], [`subject`]), and what becomes of it ([`fate`]) is one of these:
//!
//! * *told of at the line*: a finding names the line of the site, as one of its places.
//! * *refused*: the verifier does not take it.
//! * *told of beside it*: a finding is about what the mistake is about. For a barrier that is every race, since no others are there than between accesses that it stood between; for an index or an initialisation, the
//!   buffer or variable; for a guard or a branch, what it guards: its lines, and what is written there.
//! * *told of elsewhere*: a finding names another line and other memory.
//! * *seen in the result*: nothing is told of, and the buffers do not hold what the kernel leaves there, which its tests hold to a reference.
//! * *equal*: nothing is different.
//!
//! What the checker tells of the kernel itself, reads past the end of buffers that give zeros on purpose, is no finding. The last two are survivors, and each has a reason, which is found by further runs where it can be.

pub mod fate;
pub mod launch;
pub mod mistake;
pub mod mutate;
pub mod page;
pub mod probe;
pub mod run;
pub mod site;
pub mod subject;
pub mod survey;
