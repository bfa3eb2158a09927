//! trefoil's kernel library, written in the DSL. A crate holds a family, so that a change of one kernel compiles its family alone; this one brings them together.
//!
//! Kernels take plain slices and numbers; what an op means, which kernel serves it and when is said in the graph crate.

pub use trefoil_kernels_attention as attention;
pub use trefoil_kernels_common::{activation, longs, quads, statistics, team, values, workgroup};
pub use trefoil_kernels_convolution as convolution;
pub use trefoil_kernels_matmul as matmul;
pub use trefoil_kernels_norm as norm;
pub use trefoil_kernels_random as random;
pub use trefoil_kernels_reduce as reduce;
pub use trefoil_kernels_rope as rope;
pub use trefoil_kernels_scan as scan;
pub use trefoil_kernels_scatter as scatter;
pub use trefoil_kernels_sort as sort;

use trefoil_dsl::artefact::Kernel;

/// Every instance of every kernel of the library.
pub fn library() -> Vec<&'static Kernel> {
    [
        attention::kernels(),
        rope::kernels(),
        matmul::kernels(),
        convolution::kernels(),
        norm::kernels(),
        random::kernels(),
        reduce::kernels(),
        scan::kernels(),
        scatter::kernels(),
        sort::kernels(),
    ]
    .concat()
}
