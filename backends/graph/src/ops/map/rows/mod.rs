//! The functions of elements, a table for each family; the macro that reads them says how a row is written.

mod activations;
mod arithmetic;
mod elementary;
mod tests_of_values;

use super::functions::Function;

/// Every table.
pub(super) static TABLES: &[&[&Function]] =
    &[arithmetic::TABLE, elementary::TABLE, activations::TABLE, tests_of_values::TABLE];
