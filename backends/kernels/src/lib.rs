//! trefoil's kernel library, written in the DSL. A file holds a family.
//!
//! Kernels take plain slices and numbers; what an op means, which kernel serves it and when is said in the graph crate.

pub mod activation;
pub mod attention;
pub mod convolution;
pub mod matmul;
pub mod norm;
pub mod quads;
pub mod random;
pub mod reduce;
pub mod rope;
pub mod scan;
pub mod scatter;
pub mod sort;
pub mod workgroup;

use trefoil_dsl::artefact::Kernel;

/// Every instance of every kernel of the library.
pub fn library() -> Vec<&'static Kernel> {
    let mut kernels = [
        attention::join::attention_join::KERNELS,
        attention::plain::attention_plain_f64::KERNELS,
        attention::plain::attention_plain::KERNELS,
        attention::rows::attention_rows::KERNELS,
        attention::tiled::attention_tiled::KERNELS,
        rope::rope::KERNELS,
        rope::rope_f64::KERNELS,
    ]
    .concat();
    kernels.extend(attention::matrices::kernels());
    kernels.extend(matmul::kernels());
    kernels.extend(convolution::kernels());
    kernels.extend(norm::kernels());
    kernels.extend(random::kernels());
    kernels.extend(reduce::kernels());
    kernels.extend(scan::kernels());
    kernels.extend(scatter::kernels());
    kernels.extend(sort::kernels());
    kernels
}
