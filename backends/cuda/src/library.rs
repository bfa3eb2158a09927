//! Products of matrices by cuBLASLt, which is opened at run time like the driver.
//!
//! What cuBLASLt makes of a product (its descriptors and the algorithm that its own estimate takes for the fastest) is a *plan*, made once for each product and alignment of its operands. cuBLASLt counts columns
//! first: a matrix whose rows follow on each other is to it the transposed one, so that it is asked for `cᵀ = bᵀ aᵀ`.
//!
//! All products of a device share one piece of memory that cuBLASLt may use while it multiplies, so that no two run at a time: in a recording each waits for the one before.

use std::collections::HashMap;
use std::ffi::c_void;
use std::fmt;
use std::sync::{Arc, Mutex};

use cudarc::cublaslt::result::CublasError;
use cudarc::cublaslt::{result, sys};
use cudarc::driver::sys::{CUdeviceptr, CUstream};
use trefoil_codegen::ir::Scalar;
use trefoil_dsl::device::{Call, CallCommand};
use trefoil_dsl::error::{Error, Result};
use trefoil_dsl::product::{LibraryProduct, MatrixLibrary};
use trefoil_dsl::support::state::lock;

use crate::device::{CudaBackend, Shared};
use crate::memory::{CudaMemory, RawMemory};

/// What it multiplies.
pub(crate) const LIBRARY: MatrixLibrary = MatrixLibrary {
    name: "cuBLASLt",
    elements: &[
        (Scalar::F32, Scalar::F32),
        (Scalar::F16, Scalar::F16),
        (Scalar::F16, Scalar::F32),
        (Scalar::BF16, Scalar::BF16),
        (Scalar::BF16, Scalar::F32),
    ],
};
/// What cuBLASLt may use besides operands and result; so much its authors advise for a Hopper.
const WORKSPACE_BYTES: usize = 32 << 20;
/// Addresses that are multiples of this are as good as any.
const BEST_ALIGNMENT: u64 = 256;

/// Whether the library can be opened.
pub(crate) fn is_present() -> bool {
    // SAFETY: opening the library runs its initialisers, which have no requirements towards us.
    unsafe { sys::is_culib_present() }
}

/// What a plan is for: a product, and the alignments of a, b and c.
type Key = (LibraryProduct, [u32; 3]);

/// cuBLASLt, ready to multiply.
pub(crate) struct Library {
    shared: Arc<Shared>,
    handle: sys::cublasLtHandle_t,
    workspace: RawMemory,
    plans: Mutex<HashMap<Key, Arc<Plan>>>,
}

// SAFETY: cuBLASLt's handle may be used from any thread, and by several at once.
unsafe impl Send for Library {}
// SAFETY: as above; the plans are behind a lock.
unsafe impl Sync for Library {}

impl fmt::Debug for Library {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(LIBRARY.name)
    }
}

impl Drop for Library {
    fn drop(&mut self) {
        // The last recording with a product may go on any thread. If the device is lost, the handle goes with the context.
        if let Ok(_entered) = self.shared.enter() {
            // SAFETY: the handle was made by `new` and is destroyed once. There is nobody to tell of a failure.
            let _ = unsafe { result::destroy_handle(self.handle) };
        }
    }
}

/// A product made ready.
pub(crate) struct Ready {
    library: Arc<Library>,
    plan: Arc<Plan>,
    /// The addresses of a, b and c.
    at: [CUdeviceptr; 3],
    bias: Option<CUdeviceptr>,
    label: Arc<str>,
}

impl Library {
    fn new(shared: &Arc<Shared>) -> Result<Self> {
        // First what gives itself back, so that nothing is left where the other cannot be made.
        let workspace = RawMemory::new(shared, WORKSPACE_BYTES as u64, "cuBLASLt's workspace")?;
        let handle = result::create_handle().map_err(|error| failed(shared, "starting cuBLASLt", error))?;
        Ok(Self { shared: shared.clone(), handle, workspace, plans: Mutex::default() })
    }

    /// The plan of a product for operands and a result of that alignment.
    fn plan(&self, product: &LibraryProduct, alignments: [u32; 3]) -> Done<Arc<Plan>> {
        let mut plans = lock(&self.plans);
        if let Some(plan) = plans.get(&(*product, alignments)) {
            return Ok(plan.clone());
        }
        let plan = Arc::new(Plan::new(self.handle, product, alignments)?);
        plans.insert((*product, alignments), plan.clone());
        Ok(plan)
    }
}

fn failed(shared: &Shared, call: &'static str, error: CublasError) -> Error {
    shared.state.driver(call, error.to_string())
}

impl CudaBackend {
    /// Makes a product ready whose ranges were checked; a function of the host is refused.
    pub(crate) fn ready_call(&self, command: &CallCommand) -> Result<Ready> {
        let shared = &self.shared;
        let Call::Product(product) = &command.call else { return Err(command.refused(&shared.state.properties)) };
        let library = {
            let mut library = lock(&self.library);
            match &*library {
                Some(library) => library.clone(),
                None => library.insert(Arc::new(Library::new(shared)?)).clone(),
            }
        };
        let mut addresses = Vec::with_capacity(4);
        for range in command.reads.iter().chain(&command.writes) {
            addresses.push(CudaMemory::of(&range.memory, shared)?.address() + range.offset);
        }
        let (at, bias) = match *addresses.as_slice() {
            [a, b, c] => ([a, b, c], None),
            [a, b, bias, c] => ([a, b, c], Some(bias)),
            _ => return Err(command.refused(&shared.state.properties)),
        };
        let alignments = at.map(|address| 1u32 << (address | BEST_ALIGNMENT).trailing_zeros());
        let plan = library.plan(product, alignments).map_err(|error| Error::Command {
            label: command.label.to_string(),
            reason: format!("cuBLASLt has nothing for this product, {product:?}: {error}"),
        })?;
        Ok(Ready { library, plan, at, bias, label: command.label.clone() })
    }
}

impl Ready {
    /// What must live as long as the product may run.
    pub(crate) fn library(&self) -> &Arc<Library> {
        &self.library
    }

    /// Names the product in errors.
    pub(crate) fn label(&self) -> &Arc<str> {
        &self.label
    }

    /// Hands the product to a stream, of the device or one that is being captured; the context is current.
    pub(crate) fn start(&self, stream: CUstream) -> Done {
        let (one, zero) = (1.0f32, 0.0f32);
        let [a, b, c] = self.at.map(|address| address as *mut c_void);
        let operation = lock(&self.plan.operation);
        if let Some(bias) = self.bias {
            let bias = bias as *const c_void;
            operation.set(sys::cublasLtMatmulDescAttributes_t::CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias)?;
        }
        let Plan { left, right, to, algorithm, .. } = &*self.plan;
        // SAFETY: the context is current; handle, descriptors and algorithm belong together and live; the checks put operands and result within their memory, which is freed in the
        // order of the stream; the workspace is as large as the algorithm was told, and no other product runs meanwhile.
        unsafe {
            result::matmul(
                self.library.handle,
                operation.0,
                (&raw const one).cast(),
                (&raw const zero).cast(),
                b,
                left.0,
                a,
                right.0,
                c,
                to.0,
                c,
                to.0,
                algorithm,
                self.library.workspace.address as *mut c_void,
                WORKSPACE_BYTES,
                stream.cast(),
            )
        }
    }
}

/// What cuBLASLt makes of a product.
struct Plan {
    /// The pointer to the bias is part of it.
    operation: Mutex<Descriptor<Operation>>,
    left: Descriptor<Layout>,
    right: Descriptor<Layout>,
    to: Descriptor<Layout>,
    algorithm: sys::cublasLtMatmulAlgo_t,
}

// SAFETY: the descriptors are plain memory of cuBLASLt's, which any thread may use; what changes is behind a lock.
unsafe impl Send for Plan {}
// SAFETY: as above.
unsafe impl Sync for Plan {}

impl Plan {
    fn new(handle: sys::cublasLtHandle_t, product: &LibraryProduct, alignments: [u32; 3]) -> Done<Self> {
        use sys::cublasLtEpilogue_t::{CUBLASLT_EPILOGUE_BIAS, CUBLASLT_EPILOGUE_DEFAULT};
        use sys::cublasLtMatmulDescAttributes_t::{
            CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_MATMUL_DESC_TRANSA, CUBLASLT_MATMUL_DESC_TRANSB,
        };
        use sys::cublasLtMatmulPreferenceAttributes_t::{
            CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES,
            CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES,
            CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES,
        };
        // Sums and scales of `f32`, without a rounding of operands to shorter types.
        let operation: Descriptor<Operation> =
            result::create_matmul_desc(sys::cublasComputeType_t::CUBLAS_COMPUTE_32F, sys::cudaDataType_t::CUDA_R_32F)
                .map(Descriptor)?;
        let turned = |in_rows: bool| i32::from(!in_rows);
        // As cuBLAS counts its operations: 0 as it is, 1 transposed.
        operation.set(CUBLASLT_MATMUL_DESC_TRANSA, &turned(product.b.in_rows))?;
        operation.set(CUBLASLT_MATMUL_DESC_TRANSB, &turned(product.a.in_rows))?;
        let epilogue = if product.bias { CUBLASLT_EPILOGUE_BIAS } else { CUBLASLT_EPILOGUE_DEFAULT };
        operation.set(CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue)?;
        let LibraryProduct { rows, columns, depth, a, b, batch, .. } = *product;
        // As cuBLASLt sees them, transposed.
        let lying = |in_rows: bool, rows, columns| if in_rows { [columns, rows] } else { [rows, columns] };
        let left = layout(product.operands, lying(b.in_rows, depth, columns), b.line, batch, b.batch)?;
        let right = layout(product.operands, lying(a.in_rows, rows, depth), a.line, batch, a.batch)?;
        let to = layout(product.result, [columns, rows], columns, batch, rows * columns)?;
        let preference = result::create_matmul_pref().map(Descriptor::<Preference>)?;
        preference.set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &WORKSPACE_BYTES)?;
        let [of_a, of_b, of_c] = alignments;
        for (attribute, alignment) in [
            (CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, of_b),
            (CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, of_a),
            (CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, of_c),
            (CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, of_c),
        ] {
            preference.set(attribute, &alignment)?;
        }
        // SAFETY: handle, descriptors and preference are live.
        let found = unsafe {
            result::get_matmul_algo_heuristic(handle, operation.0, left.0, right.0, to.0, to.0, preference.0)
        }?;
        Ok(Self { operation: Mutex::new(operation), left, right, to, algorithm: found.algo })
    }
}

/// What becomes of a call of cuBLASLt.
pub(crate) type Done<T = ()> = std::result::Result<T, CublasError>;

/// How attributes of a descriptor are set: from memory that holds so many bytes.
type Set<K> = unsafe fn(<K as Kind>::Handle, <K as Kind>::Attribute, *const c_void, usize) -> Done;

/// What cuBLASLt has descriptors of: how attributes of one are set, and how it goes.
trait Kind {
    type Handle: Copy;
    type Attribute;
    const SET: Set<Self>;
    const DESTROY: unsafe fn(Self::Handle) -> Done;
}

/// The operation.
enum Operation {}

impl Kind for Operation {
    type Handle = sys::cublasLtMatmulDesc_t;
    type Attribute = sys::cublasLtMatmulDescAttributes_t;
    const SET: Set<Self> = result::set_matmul_desc_attribute;
    const DESTROY: unsafe fn(Self::Handle) -> Done = result::destroy_matmul_desc;
}

/// A matrix.
enum Layout {}

impl Kind for Layout {
    type Handle = sys::cublasLtMatrixLayout_t;
    type Attribute = sys::cublasLtMatrixLayoutAttribute_t;
    const SET: Set<Self> = result::set_matrix_layout_attribute;
    const DESTROY: unsafe fn(Self::Handle) -> Done = result::destroy_matrix_layout;
}

/// What it is told when it looks for an algorithm.
enum Preference {}

impl Kind for Preference {
    type Handle = sys::cublasLtMatmulPreference_t;
    type Attribute = sys::cublasLtMatmulPreferenceAttributes_t;
    const SET: Set<Self> = result::set_matmul_pref_attribute;
    const DESTROY: unsafe fn(Self::Handle) -> Done = result::destroy_matmul_pref;
}

/// A descriptor.
struct Descriptor<K: Kind>(K::Handle);

impl<K: Kind> Descriptor<K> {
    fn set<T>(&self, attribute: K::Attribute, value: &T) -> Done {
        // SAFETY: the descriptor is live; the value is of the attribute's size, which cuBLASLt checks, and is copied.
        unsafe { K::SET(self.0, attribute, std::ptr::from_ref(value).cast(), size_of::<T>()) }
    }
}

impl<K: Kind> Drop for Descriptor<K> {
    fn drop(&mut self) {
        // SAFETY: it is destroyed once. There is nobody to tell of a failure.
        let _ = unsafe { K::DESTROY(self.0) };
    }
}

/// The descriptor of a matrix `[rows, columns]`, column by column, `line` elements apart; and of so many matrices, `apart` elements from each other.
fn layout(scalar: Scalar, [rows, columns]: [u64; 2], line: u64, batch: u64, apart: u64) -> Done<Descriptor<Layout>> {
    use sys::cublasLtMatrixLayoutAttribute_t::{
        CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET,
    };
    let scalar = match scalar {
        Scalar::F16 => sys::cudaDataType_t::CUDA_R_16F,
        Scalar::BF16 => sys::cudaDataType_t::CUDA_R_16BF,
        // The library lists no others.
        _ => sys::cudaDataType_t::CUDA_R_32F,
    };
    let layout = result::create_matrix_layout(scalar, rows, columns, line.cast_signed()).map(Descriptor)?;
    if batch > 1 {
        // A product's extents fit in 31 bits.
        layout.set(CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &(batch as i32))?;
        layout.set(CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &apart.cast_signed())?;
    }
    Ok(layout)
}
