//! Tensor maps: the hidden argument that tells bulk copies where matrices are. How wide a matrix is follows from a launch's parameters, where it lies from its bindings.
//!
//! A matrix without rows or columns, of which the driver makes no map, is one of zeros: what is beyond a matrix is zero too.

use std::ffi::c_void;
use std::sync::Arc;

use cudarc::driver::{result, sys};
use trefoil_codegen::artefact::{MapShape, TensorMap, Variant};
use trefoil_dsl::device::DispatchCommand;
use trefoil_dsl::error::{Error, Result};

use crate::device::Shared;
use crate::driver::message;
use crate::memory::RawMemory;

/// The most 16 bytes of a row, whose elements are numbered by 31 bits.
const MOST_WIDTH: u32 = 1 << 28;
/// The most rows of a matrix, so that a box that begins at one ends before 2^31.
const MOST_ROWS: u32 = (1 << 31) - 4096;

/// The maps that a kernel takes.
pub(crate) struct TensorMaps {
    maps: Vec<TensorMap>,
    /// 16 bytes of zeros; `None` where the GPU reads no maps.
    zeros: Option<RawMemory>,
}

impl TensorMaps {
    /// Those of a variant.
    pub(crate) fn new(shared: &Arc<Shared>, variant: &Variant) -> Result<Self> {
        let maps = variant.tensor_maps.to_vec();
        // The text looks at maps where it is compiled for this architecture.
        let zeros = if !maps.is_empty() && shared.architecture == "sm_90a" { Some(zeros(shared)?) } else { None };
        Ok(Self { maps, zeros })
    }

    /// The argument for a launch with these bindings and this parameter block.
    pub(crate) fn of_launch(
        &self,
        dispatch: &DispatchCommand,
        pointers: &[sys::CUdeviceptr],
        block: &[u8],
    ) -> Result<Vec<sys::CUtensorMap>> {
        let Some(zeros) = &self.zeros else {
            return Ok(vec![sys::CUtensorMap { opaque: [0; 16] }; self.maps.len()]);
        };
        let kernel = dispatch.pipeline.kernel();
        let one = |map: &TensorMap| {
            let binding = kernel.bindings.get(map.binding as usize).map_or("", |binding| &binding.name);
            let failed = |reason: String| Error::Command {
                label: dispatch.label.to_string(),
                reason: format!("its tiles of `{binding}` cannot be copied in bulk: {reason}"),
            };
            let (shape, pointer) = (map.shape(&kernel.params, block), pointers.get(map.binding as usize));
            let (Some(shape), Some(pointer)) = (shape, pointer) else {
                return Err(failed("the parameter block says nothing about its width".to_owned()));
            };
            let MapShape { width, rows } = shape;
            if width > MOST_WIDTH || rows > MOST_ROWS {
                return Err(failed(format!(
                    "{rows} rows of {width} times 16 bytes; at most {MOST_ROWS} rows of {MOST_WIDTH} are possible"
                )));
            }
            let (address, shape) = match rows {
                0 => (zeros.address, MapShape { width: 1, rows: 1 }),
                _ => (*pointer, shape),
            };
            encode(address, shape, map.rows).map_err(failed)
        };
        self.maps.iter().map(one).collect()
    }
}

/// 16 bytes of zeros.
fn zeros(shared: &Arc<Shared>) -> Result<RawMemory> {
    let label = "zeros for tensor maps";
    let memory = RawMemory::new(shared, 16, label)?;
    // SAFETY: the context is current; the memory has 16 bytes, and is used in the order of the same stream.
    unsafe { result::memset_d8_async(memory.address, 0, 16, shared.handles.stream) }
        .map_err(|error| shared.state.lost(label, message(error)))?;
    Ok(memory)
}

/// The map of a matrix that lies there, of which a box has `rows` rows.
fn encode(address: sys::CUdeviceptr, shape: MapShape, rows: u32) -> std::result::Result<sys::CUtensorMap, String> {
    let mut map = sys::CUtensorMap { opaque: [0; 16] };
    let sizes = [u64::from(shape.width) * u64::from(TensorMap::LANES), u64::from(shape.rows)];
    let pitch = [u64::from(shape.width) * 16];
    let (counts, steps) = ([TensorMap::COLUMNS, rows], [1; 2]);
    // SAFETY: all lists are as long as the rank says, the pitch's one shorter; the driver reads them during the call and does not touch the matrix.
    unsafe {
        sys::cuTensorMapEncodeTiled(
            &mut map,
            sys::CUtensorMapDataType::CU_TENSOR_MAP_DATA_TYPE_UINT16,
            sizes.len() as u32,
            address as *mut c_void,
            sizes.as_ptr(),
            pitch.as_ptr(),
            counts.as_ptr(),
            steps.as_ptr(),
            sys::CUtensorMapInterleave::CU_TENSOR_MAP_INTERLEAVE_NONE,
            sys::CUtensorMapSwizzle::CU_TENSOR_MAP_SWIZZLE_128B,
            sys::CUtensorMapL2promotion::CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
            sys::CUtensorMapFloatOOBfill::CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE,
        )
    }
    .result()
    .map_err(message)?;
    Ok(map)
}
