//! hopwise on Vulkan, Metal and DX12 through wgpu.
