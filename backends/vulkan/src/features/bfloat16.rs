//! `VK_KHR_shader_bfloat16`, which is newer than the ash that trefoil uses: its names and numbers are those of Vulkan's registry.

use std::ffi::{CStr, c_void};

use ash::vk;

/// The extension.
pub(crate) const NAME: &CStr = c"VK_KHR_shader_bfloat16";
/// Elements of matrices, as `VK_KHR_cooperative_matrix` lists them.
pub(crate) const COMPONENT: vk::ComponentTypeKHR = vk::ComponentTypeKHR::from_raw(1_000_141_000);
const STRUCTURE: vk::StructureType = vk::StructureType::from_raw(1_000_141_000);

/// `VkPhysicalDeviceShaderBfloat16FeaturesKHR`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct ShaderBfloat16Features {
    /// What structure this is, which is always the same.
    pub s_type: vk::StructureType,
    /// The next structure.
    pub p_next: *mut c_void,
    /// Shaders have the type, and convert it.
    pub shader_bfloat16_type: vk::Bool32,
    /// They have dot products of it, which kernels do not use.
    pub shader_bfloat16_dot_product: vk::Bool32,
    /// They have matrices of it.
    pub shader_bfloat16_cooperative_matrix: vk::Bool32,
}

impl Default for ShaderBfloat16Features {
    fn default() -> Self {
        Self {
            s_type: STRUCTURE,
            p_next: std::ptr::null_mut(),
            shader_bfloat16_type: vk::FALSE,
            shader_bfloat16_dot_product: vk::FALSE,
            shader_bfloat16_cooperative_matrix: vk::FALSE,
        }
    }
}

// SAFETY: as ash says of its own structures: trefoil reads through `p_next` nowhere, and Vulkan does only in calls that are given the structure.
unsafe impl Send for ShaderBfloat16Features {}
// SAFETY: as above.
unsafe impl Sync for ShaderBfloat16Features {}

// SAFETY: it begins with a type and a pointer as every structure of Vulkan does, and the registry lists it as one that extends this one.
unsafe impl vk::ExtendsPhysicalDeviceFeatures2 for ShaderBfloat16Features {}
// SAFETY: as above.
unsafe impl vk::ExtendsDeviceCreateInfo for ShaderBfloat16Features {}
