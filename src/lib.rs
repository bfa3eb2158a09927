//! trefoil
