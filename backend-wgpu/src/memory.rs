//! How much memory an adapter has and how much of it is free, where the driver tells.
//!
//! wgpu has no such figures. Vulkan has: its heaps, and with an extension what is left of them. This
//! is the one place that reaches below wgpu.

/// The memory of an adapter, as its driver reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AdapterMemory {
    /// Size of the adapter's largest own heap, in bytes.
    pub total_bytes: u64,
    /// What this process can still use of it, in bytes; `None` where the driver does not tell.
    pub available_bytes: Option<u64>,
}

#[cfg(any(windows, target_os = "linux", target_os = "android", target_os = "freebsd"))]
#[expect(unsafe_code, reason = "only Vulkan itself tells how much memory there is")]
pub(crate) fn ask(adapter: &wgpu::Adapter) -> Option<AdapterMemory> {
    use ash::vk;

    // SAFETY: the handle is used for queries only, below, while `adapter` keeps it alive.
    let adapter = unsafe { adapter.as_hal::<wgpu::hal::api::Vulkan>() }?;
    let instance = adapter.shared_instance();
    if instance.instance_api_version() < vk::API_VERSION_1_1 {
        return None;
    }
    let has_budget =
        adapter.physical_device_capabilities().supports_extension(ash::ext::memory_budget::NAME);
    let mut budget = vk::PhysicalDeviceMemoryBudgetPropertiesEXT::default();
    let mut properties = vk::PhysicalDeviceMemoryProperties2::default();
    if has_budget {
        properties = properties.push_next(&mut budget);
    }
    // SAFETY: the physical device belongs to this instance, whose version has the function; the
    // chained structure lives until the call is over, and the device supports it.
    unsafe {
        instance
            .raw_instance()
            .get_physical_device_memory_properties2(adapter.raw_physical_device(), &mut properties);
    }
    let heaps = properties.memory_properties;
    let own = (0..heaps.memory_heap_count as usize)
        .filter(|&heap| heaps.memory_heaps[heap].flags.contains(vk::MemoryHeapFlags::DEVICE_LOCAL))
        .max_by_key(|&heap| heaps.memory_heaps[heap].size)?;
    let left = budget.heap_budget[own].saturating_sub(budget.heap_usage[own]);
    let total_bytes = heaps.memory_heaps[own].size;
    let available_bytes = has_budget.then_some(left.min(total_bytes));
    Some(AdapterMemory { total_bytes, available_bytes })
}

/// No figures: the APIs of this system keep them behind interfaces that are not bound here.
#[cfg(not(any(windows, target_os = "linux", target_os = "android", target_os = "freebsd")))]
pub(crate) fn ask(_: &wgpu::Adapter) -> Option<AdapterMemory> {
    None
}
