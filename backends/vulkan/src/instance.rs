//! The Vulkan loader, an instance, and the messages of the validation layer.

use std::ffi::{CStr, c_void};
use std::sync::{Mutex, OnceLock};

use ash::vk;
use trefoil_dsl::device::DeviceKind;
use trefoil_dsl::error::{Error, Result};

use crate::limits::Api;

const VALIDATION_LAYER: &CStr = c"VK_LAYER_KHRONOS_validation";

/// Something that this machine lacks.
pub(crate) fn unavailable(reason: impl Into<String>) -> Error {
    Error::Unavailable { kind: DeviceKind::Vulkan.name(), reason: reason.into() }
}

/// Keeps the driver's library in the process with an instance that is never destroyed. A loader drops a driver with its last instance, and
/// NVIDIA's cannot be loaded again more than about ten times: each time it takes thread-local storage that does not come back.
fn keep_driver_loaded(entry: &ash::Entry, version: u32) {
    static KEPT: OnceLock<(ash::Entry, Option<ash::Instance>)> = OnceLock::new();
    KEPT.get_or_init(|| {
        let application = vk::ApplicationInfo::default().api_version(version);
        let info = vk::InstanceCreateInfo::default().application_info(&application);
        // SAFETY: the entry is loaded, and is kept with the instance; no layer or extension is named. Failing here takes nothing away.
        let instance = unsafe { entry.create_instance(&info, None) }.ok();
        (entry.clone(), instance)
    });
}

/// The loader and an instance, with a messenger if validation was asked for.
pub(crate) struct Instance {
    /// The instance's functions.
    pub(crate) raw: ash::Instance,
    /// The version of the API that the instance was made for, 1.2 or 1.3.
    version: u32,
    /// Whether the validation layer listens.
    pub(crate) validates: bool,
    /// Whether commands and objects can be given names.
    pub(crate) names: bool,
    messenger: Option<(ash::ext::debug_utils::Instance, vk::DebugUtilsMessengerEXT)>,
    // Boxed, because the driver holds its address.
    messages: Box<Mutex<Vec<String>>>,
    // Keeps the loader's library open, and must go last.
    entry: ash::Entry,
}

impl Instance {
    /// Opens the loader and makes an instance, with validation if it is asked for, and with names if they are and the loader knows them.
    pub(crate) fn open(validate: bool, labels: bool) -> Result<Self> {
        // SAFETY: loading the system's Vulkan loader runs its initialisers, which have no requirements towards us.
        let entry = unsafe { ash::Entry::load() }
            .map_err(|error| unavailable(format!("the Vulkan loader (libvulkan) cannot be opened: {error}")))?;
        // SAFETY: the entry is loaded; the call has no other requirements.
        let loader = unsafe { entry.try_enumerate_instance_version() }
            .map_err(|error| unavailable(format!("the Vulkan loader does not answer: {error}")))?
            .unwrap_or(vk::API_VERSION_1_0);
        if loader < vk::API_VERSION_1_2 {
            return Err(unavailable(format!(
                "Vulkan 1.2 is needed, and the loader is of version {}.{}",
                vk::api_version_major(loader),
                vk::api_version_minor(loader)
            )));
        }
        let version = loader.min(vk::API_VERSION_1_3);
        // SAFETY: the entry is loaded; no layer is named.
        let present = unsafe { entry.enumerate_instance_extension_properties(None) }
            .map_err(|error| unavailable(format!("the Vulkan loader lists no extensions: {error}")))?;
        let has = |name: &CStr| present.iter().any(|e| e.extension_name_as_c_str() == Ok(name));
        let mut extensions = Vec::new();
        let mut layers = Vec::new();
        let mut flags = vk::InstanceCreateFlags::empty();
        if has(ash::khr::portability_enumeration::NAME) {
            extensions.push(ash::khr::portability_enumeration::NAME.as_ptr());
            flags |= vk::InstanceCreateFlags::ENUMERATE_PORTABILITY_KHR;
        }
        if validate {
            // SAFETY: the entry is loaded.
            let known = unsafe { entry.enumerate_instance_layer_properties() }.unwrap_or_default();
            if !known.iter().any(|layer| layer.layer_name_as_c_str() == Ok(VALIDATION_LAYER)) {
                return Err(unavailable("validation was asked for, and VK_LAYER_KHRONOS_validation is not installed"));
            }
            layers.push(VALIDATION_LAYER.as_ptr());
        }
        // The layer brings the extension itself.
        let names = validate || labels && has(ash::ext::debug_utils::NAME);
        if names {
            extensions.push(ash::ext::debug_utils::NAME.as_ptr());
        }
        let application =
            vk::ApplicationInfo::default().application_name(c"trefoil").engine_name(c"trefoil").api_version(version);
        let info = vk::InstanceCreateInfo::default()
            .application_info(&application)
            .enabled_layer_names(&layers)
            .enabled_extension_names(&extensions)
            .flags(flags);
        // SAFETY: the lists in `info` outlive the call; layers and extensions were found present.
        let raw = unsafe { entry.create_instance(&info, None) }.map_err(|error| match error {
            vk::Result::ERROR_INCOMPATIBLE_DRIVER => unavailable("the Vulkan loader is there, but no driver for it is"),
            other => unavailable(format!("the Vulkan loader makes no instance: {other}")),
        })?;
        keep_driver_loaded(&entry, version);
        let messages = Box::default();
        let mut instance = Self { raw, version, validates: validate, names, messenger: None, messages, entry };
        if validate {
            instance.listen()?;
        }
        Ok(instance)
    }

    /// By what physical devices are asked.
    pub(crate) fn api(&self) -> Api<'_> {
        Api { entry: &self.entry, instance: &self.raw, version: self.version }
    }

    fn listen(&mut self) -> Result<()> {
        let functions = ash::ext::debug_utils::Instance::new(&self.entry, &self.raw);
        let messages: *const Mutex<Vec<String>> = &*self.messages;
        let info = vk::DebugUtilsMessengerCreateInfoEXT::default()
            .message_severity(
                vk::DebugUtilsMessageSeverityFlagsEXT::ERROR | vk::DebugUtilsMessageSeverityFlagsEXT::WARNING,
            )
            .message_type(vk::DebugUtilsMessageTypeFlagsEXT::VALIDATION)
            .pfn_user_callback(Some(note))
            .user_data(messages.cast_mut().cast());
        // SAFETY: the extension is enabled; the address in `user_data` is boxed and outlives the messenger.
        let handle = unsafe { functions.create_debug_utils_messenger(&info, None) }
            .map_err(|error| unavailable(format!("the validation layer takes no listener: {error}")))?;
        self.messenger = Some((functions, handle));
        Ok(())
    }

    /// Takes the messages that have arrived so far.
    pub(crate) fn take_messages(&self) -> Vec<String> {
        self.messages.lock().map(|mut messages| std::mem::take(&mut *messages)).unwrap_or_default()
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        // SAFETY: whoever made objects with this instance holds it, so that none is left.
        unsafe {
            if let Some((functions, handle)) = self.messenger.take() {
                functions.destroy_debug_utils_messenger(handle, None);
            }
            self.raw.destroy_instance(None);
        }
    }
}

/// Notes a message of the validation layer.
///
/// # Safety
/// The driver calls it with valid data, and with the address of the list as `user`.
unsafe extern "system" fn note(
    _severity: vk::DebugUtilsMessageSeverityFlagsEXT,
    _kind: vk::DebugUtilsMessageTypeFlagsEXT,
    data: *const vk::DebugUtilsMessengerCallbackDataEXT<'_>,
    user: *mut c_void,
) -> vk::Bool32 {
    if data.is_null() || user.is_null() {
        return vk::FALSE;
    }
    // SAFETY: `user` is the address that `listen` gave, which lives as long as the messenger; `data` is valid during the call.
    let (messages, text) = unsafe {
        let text = (*data).p_message;
        let text = if text.is_null() { c"" } else { CStr::from_ptr(text) };
        (&*user.cast::<Mutex<Vec<String>>>(), text)
    };
    if let Ok(mut messages) = messages.lock() {
        messages.push(text.to_string_lossy().into_owned());
    }
    vk::FALSE
}
