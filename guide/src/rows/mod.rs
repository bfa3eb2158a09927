//! The rows, in the order of the table: one file each.

use crate::Row;

/// Calls a macro with every row: its name, and its kernels.
#[macro_export]
macro_rules! with_rows {
    ($callback:ident) => {
        $callback! {
            floats: [arithmetic];
            integers: [wrapping];
            narrow_integers: [brightened];
            wide_storage: [kept];
            wide_integers: [stepped];
            booleans: [between];
            halves: [halved];
            half_arithmetic: [polynomial];
            brain_floats: [stepped];
            doubles: [spread];
            bit_casts: [flipped];
            bit_counts: [counts];
            bit_fields: [shuffled];
            packing: [dimmed];
            integer_dot_products: [products];
            functions_of_floats: [elementary];
            functions_of_doubles: [softened_doubles];
            error_function: [erfs];
            strict_arithmetic: [exact];
            fast_arithmetic: [activations];
            vectors: [rotated];
            vector_access: [doubled];
            structs: [moved];
            methods: [turned];
            views: [transposed];
            parameters: [affine];
            struct_parameters: [weighted];
            enums: [activated];
            control_flow: [collatz];
            unrolling: [dots];
            device_functions: [softened];
            functions_on_slices: [windows];
            functions_of_functions: [reductions];
            mutable_arguments: [swapped];
            constants: [scaled];
            generic_types: [squares];
            generic_constants: [tiles];
            specialisation: [reversed];
            target_choice: [sums];
            private_arrays: [sorted];
            workgroup_arrays: [reversed];
            large_workgroups: [turned_around];
            asynchronous_copies: [row_sums];
            uniform_loads: [shared_first];
            volatile_reads: [sums_of_four];
            atomics: [histogram];
            workgroup_atomics: [counted];
            long_atomics: [long_sums];
            memory_orders: [running_sums];
            subgroup_reductions: [reduced];
            subgroup_scans: [scanned];
            subgroup_shuffles: [exchanged];
            subgroup_votes: [voted];
            subgroup_sizes: [totals];
            cooperative_matrices: [multiplied];
            tiled_matrices: [tiled];
            bulk_copies: [projected];
            grids: [positions];
            indirect_grids: [counted, marked];
            wide_indices: [diagonal];
            assertions: [row_elements];
        }
    };
}

macro_rules! define {
    ($($name:ident: [$($kernel:ident),*];)*) => {
        $(pub mod $name;)*

        /// Every row.
        pub static ROWS: &[Row] = &[$(
            Row {
                name: stringify!($name),
                source: include_str!(concat!(stringify!($name), ".rs")),
                kernels: &[$($name::$kernel::KERNELS),*],
                check: $name::check,
            },
        )*];
    };
}

with_rows!(define);
