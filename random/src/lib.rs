//! Kernels drawn at random, which every target must compute alike.
//!
//! A kernel is drawn as syntax ([`syntax`]) from a seed ([`draw`]), printed as Rust ([`mod@print`]) and goes the whole way: front end, verifier, lowering, emitters. What it means is said by a walk over the
//! syntax ([`meaning`]) that shares nothing with the compiler: integers exactly, floats as intervals whose width is derived ([`interval`]). The evaluator, the checker and every device that
//! opens must agree with that ([`run`]; one that a kernel loses is opened again, [`held`]), and so must its CUDA C where the CPU runs it ([`fibers`]). What fails is made smaller ([`reduce`]) and shown as Rust. Kernels are asked for what the language has ([`combination`]), and a table counts what of the IR had its value reach an output
//! on which target ([`table`]), which the log shows ([`log`]).

pub mod combination;
pub mod draw;
pub mod fibers;
pub mod harness;
pub mod held;
pub mod interval;
pub mod log;
pub mod meaning;
pub mod nvrtc;
pub mod print;

pub mod reduce;
pub mod run;
pub mod spirv_val;
pub mod syntax;
pub mod table;
pub mod value;
