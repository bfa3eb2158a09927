//! What of Vulkan kernels can use: asked of an adapter, enabled when a device is made, and told of one that the program made.

mod bfloat16;

use std::ffi::{CStr, c_char};
use std::fmt;

use ash::vk;

pub use self::bfloat16::ShaderBfloat16Features;
pub(crate) use self::bfloat16::{COMPONENT as BFLOAT16_COMPONENT, NAME as BFLOAT16};

/// Features and extensions of a Vulkan device, in Vulkan's own structures: what kernels can use ([`crate::device_features`]), to which a program adds what it wants for itself; and what a device was made with ([`crate::open_on`]).
///
/// trefoil looks at the few that it knows and never at a `p_next`. A device needs `vulkan_12.timeline_semaphore` and `vulkan_12.vulkan_memory_model`; without any other, kernels that want it are not chosen there.
#[derive(Clone, Default)]
pub struct DeviceFeatures {
    /// The version of the API that may be used, 1.2 at least: no higher than [`vk::ApplicationInfo::api_version`] of the instance.
    pub api_version: u32,
    /// Features of Vulkan 1.0.
    pub core: vk::PhysicalDeviceFeatures,
    /// Features of Vulkan 1.1.
    pub vulkan_11: vk::PhysicalDeviceVulkan11Features<'static>,
    /// Features of Vulkan 1.2.
    pub vulkan_12: vk::PhysicalDeviceVulkan12Features<'static>,
    /// Features of Vulkan 1.3, which count if the version does.
    pub vulkan_13: vk::PhysicalDeviceVulkan13Features<'static>,
    /// Features of `VK_KHR_cooperative_matrix`, which count if it is among the extensions.
    pub cooperative_matrix: vk::PhysicalDeviceCooperativeMatrixFeaturesKHR<'static>,
    /// Features of `VK_EXT_pipeline_robustness`, which count if it is among the extensions.
    pub pipeline_robustness: vk::PhysicalDevicePipelineRobustnessFeaturesEXT<'static>,
    /// Features of `VK_KHR_shader_bfloat16`, which count if it is among the extensions.
    pub shader_bfloat16: ShaderBfloat16Features,
    /// Names of extensions.
    pub extensions: Vec<&'static CStr>,
}

/// Puts the structures of features whose version or extension is there at the front of a chain, of either kind that Vulkan has for them.
macro_rules! push_all {
    ($features:ident, $chain:expr) => {{
        let [matrices, robustness, bfloat16] =
            [ash::khr::cooperative_matrix::NAME, ash::ext::pipeline_robustness::NAME, BFLOAT16]
                .map(|name| $features.has(name));
        let mut chain = $chain.push_next(&mut $features.vulkan_11).push_next(&mut $features.vulkan_12);
        if $features.api_version >= vk::API_VERSION_1_3 {
            chain = chain.push_next(&mut $features.vulkan_13);
        }
        if matrices {
            chain = chain.push_next(&mut $features.cooperative_matrix);
        }
        if robustness {
            chain = chain.push_next(&mut $features.pipeline_robustness);
        }
        if bfloat16 {
            chain = chain.push_next(&mut $features.shader_bfloat16);
        }
        chain
    }};
}

impl DeviceFeatures {
    /// Whether an extension is among them.
    pub fn has(&self, extension: &CStr) -> bool {
        self.extensions.contains(&extension)
    }

    /// The extensions as [`vk::DeviceCreateInfo::enabled_extension_names`] takes them.
    pub fn extension_names(&self) -> Vec<*const c_char> {
        self.extensions.iter().map(|name| name.as_ptr()).collect()
    }

    /// Puts the features at the front of what a device is made with. The names of the extensions are for the caller to give, and so are features in other structures.
    pub fn push_onto<'a>(&'a mut self, info: vk::DeviceCreateInfo<'a>) -> vk::DeviceCreateInfo<'a> {
        // What an earlier call left there would close a ring.
        self.vulkan_11.p_next = std::ptr::null_mut();
        self.vulkan_12.p_next = std::ptr::null_mut();
        self.vulkan_13.p_next = std::ptr::null_mut();
        self.cooperative_matrix.p_next = std::ptr::null_mut();
        self.pipeline_robustness.p_next = std::ptr::null_mut();
        self.shader_bfloat16.p_next = std::ptr::null_mut();
        push_all!(self, info.enabled_features(&self.core))
    }

    /// What a physical device has, of what kernels can use. `api_version` is that of both the device and the instance.
    ///
    /// # Safety
    /// `physical` is a device of `instance`, and of that version.
    pub(crate) unsafe fn of(
        instance: &ash::Instance,
        physical: vk::PhysicalDevice,
        api_version: u32,
    ) -> Result<Self, vk::Result> {
        // SAFETY: the caller's promise.
        let present = unsafe { instance.enumerate_device_extension_properties(physical) }?;
        let known = [
            ash::khr::cooperative_matrix::NAME,
            ash::ext::pipeline_robustness::NAME,
            BFLOAT16,
            ash::khr::portability_subset::NAME,
        ];
        let has = |name: &&CStr| present.iter().any(|found| found.extension_name_as_c_str() == Ok(*name));
        let mut all = Self { api_version, extensions: known.into_iter().filter(has).collect(), ..Self::default() };
        let mut chain = push_all!(all, vk::PhysicalDeviceFeatures2::default());
        // SAFETY: as above; every structure of the chain belongs to a version or an extension that the device has.
        unsafe { instance.get_physical_device_features2(physical, &mut chain) };
        all.core = chain.features;
        let used = all.and(&all);
        Ok(used)
    }

    /// What both have, of what kernels can use.
    pub(crate) fn and(&self, other: &Self) -> Self {
        let extensions = self.extensions.iter().copied().filter(|name| other.has(name)).collect();
        let api_version = self.api_version.min(other.api_version);
        let mut both = Self { api_version, extensions, ..Self::default() };
        let (ours, theirs) = (self.known(), other.known());
        for (flag, has) in both.known_mut().into_iter().zip(ours.into_iter().zip(theirs)) {
            *flag = has.0 & has.1;
        }
        both
    }

    /// The flags that kernels can use.
    fn known(&self) -> [vk::Bool32; KNOWN] {
        self.clone().known_mut().map(|flag| *flag)
    }

    fn known_mut(&mut self) -> [&mut vk::Bool32; KNOWN] {
        [
            &mut self.core.shader_int64,
            &mut self.core.shader_float64,
            &mut self.vulkan_11.storage_buffer16_bit_access,
            &mut self.vulkan_12.timeline_semaphore,
            &mut self.vulkan_12.vulkan_memory_model,
            &mut self.vulkan_12.vulkan_memory_model_device_scope,
            &mut self.vulkan_12.shader_buffer_int64_atomics,
            &mut self.vulkan_12.shader_shared_int64_atomics,
            &mut self.vulkan_12.shader_float16,
            &mut self.vulkan_12.shader_subgroup_extended_types,
            &mut self.vulkan_13.subgroup_size_control,
            &mut self.vulkan_13.compute_full_subgroups,
            &mut self.vulkan_13.shader_integer_dot_product,
            &mut self.cooperative_matrix.cooperative_matrix,
            &mut self.pipeline_robustness.pipeline_robustness,
            &mut self.shader_bfloat16.shader_bfloat16_type,
            &mut self.shader_bfloat16.shader_bfloat16_cooperative_matrix,
        ]
    }
}

/// How many flags trefoil knows.
const KNOWN: usize = 17;

impl fmt::Debug for DeviceFeatures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeviceFeatures")
            .field("api_version", &self.api_version)
            .field("known", &self.known())
            .field("extensions", &self.extensions)
            .finish_non_exhaustive()
    }
}
