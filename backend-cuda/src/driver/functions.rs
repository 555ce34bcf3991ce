//! The functions of the CUDA driver that are used, each looked up before any is called.
//!
//! Types and declarations are cudarc's, and the compiler compares ours with them. The calls are not
//! made through cudarc: it looks a function up at its first call and panics when it is missing, it
//! looks for the library under names of its own, and its results are an enumeration, so that a code
//! that a newer driver invents would be undefined behaviour. Here a result is a number.

use std::ffi::{c_char, c_int, c_uint, c_void};

use cudarc::driver::sys;
use libloading::Library;

/// Writes down the functions once: as a table, as the list of their symbols, and as a comparison
/// with cudarc's declarations.
macro_rules! functions {
    ($(fn $name:ident($($type:ty),* $(,)?);)*) => {
        /// Functions of a driver that is loaded.
        #[expect(non_snake_case, reason = "the names are the driver's")]
        #[derive(Debug)]
        pub(crate) struct Functions {
            $(pub(crate) $name: unsafe extern "C" fn($($type),*) -> c_int,)*
        }

        /// What a driver's library must export. One that lacks any of these is not used.
        pub const SYMBOLS: &[&str] = &[$(stringify!($name)),*];

        $(const _: unsafe fn($($type),*) -> sys::CUresult = sys::$name;)*

        impl Functions {
            /// Takes the functions from a library that has been found to export [`SYMBOLS`].
            pub(crate) fn of(library: &Library) -> Option<Self> {
                Some(Self {
                    $($name: {
                        // SAFETY: whoever named the library vouched that what it exports under the
                        // driver's names has the driver's signatures, and those are cudarc's.
                        let symbol = unsafe {
                            library.get::<unsafe extern "C" fn($($type),*) -> c_int>(
                                stringify!($name),
                            )
                        };
                        *symbol.ok()?
                    },)*
                })
            }
        }
    };
}

functions! {
    fn cuInit(c_uint);
    fn cuDriverGetVersion(*mut c_int);

    fn cuDeviceGetCount(*mut c_int);
    fn cuDeviceGet(*mut sys::CUdevice, c_int);
    fn cuDeviceGetName(*mut c_char, c_int, sys::CUdevice);
    fn cuDeviceGetUuid(*mut sys::CUuuid, sys::CUdevice);
    fn cuDeviceGetUuid_v2(*mut sys::CUuuid, sys::CUdevice);
    fn cuDeviceTotalMem_v2(*mut usize, sys::CUdevice);
    fn cuDeviceGetAttribute(*mut c_int, sys::CUdevice_attribute, sys::CUdevice);
    fn cuDeviceGetPCIBusId(*mut c_char, c_int, sys::CUdevice);
    fn cuDeviceCanAccessPeer(*mut c_int, sys::CUdevice, sys::CUdevice);

    fn cuDevicePrimaryCtxRetain(*mut sys::CUcontext, sys::CUdevice);
    fn cuDevicePrimaryCtxRelease_v2(sys::CUdevice);
    fn cuDevicePrimaryCtxReset_v2(sys::CUdevice);
    fn cuCtxPushCurrent_v2(sys::CUcontext);
    fn cuCtxPopCurrent_v2(*mut sys::CUcontext);
    fn cuCtxEnablePeerAccess(sys::CUcontext, c_uint);
    fn cuCtxDisablePeerAccess(sys::CUcontext);

    fn cuMemGetInfo_v2(*mut usize, *mut usize);
    fn cuMemAlloc_v2(*mut sys::CUdeviceptr, usize);
    fn cuMemFree_v2(sys::CUdeviceptr);
    fn cuMemHostAlloc(*mut *mut c_void, usize, c_uint);
    fn cuMemFreeHost(*mut c_void);
    fn cuMemHostGetDevicePointer_v2(*mut sys::CUdeviceptr, *mut c_void, c_uint);
    fn cuMemcpyHtoDAsync_v2(sys::CUdeviceptr, *const c_void, usize, sys::CUstream);
    fn cuMemcpyDtoHAsync_v2(*mut c_void, sys::CUdeviceptr, usize, sys::CUstream);
    fn cuMemcpyDtoDAsync_v2(sys::CUdeviceptr, sys::CUdeviceptr, usize, sys::CUstream);
    fn cuMemcpyPeerAsync(
        sys::CUdeviceptr, sys::CUcontext, sys::CUdeviceptr, sys::CUcontext, usize, sys::CUstream,
    );
    fn cuMemsetD8Async(sys::CUdeviceptr, u8, usize, sys::CUstream);

    fn cuStreamCreate(*mut sys::CUstream, c_uint);
    fn cuStreamDestroy_v2(sys::CUstream);
    fn cuStreamQuery(sys::CUstream);
    fn cuStreamBeginCapture_v2(sys::CUstream, sys::CUstreamCaptureMode);
    fn cuStreamEndCapture(sys::CUstream, *mut sys::CUgraph);
    fn cuEventCreate(*mut sys::CUevent, c_uint);
    fn cuEventDestroy_v2(sys::CUevent);
    fn cuEventRecord(sys::CUevent, sys::CUstream);
    fn cuEventQuery(sys::CUevent);

    fn cuModuleLoadData(*mut sys::CUmodule, *const c_void);
    fn cuModuleUnload(sys::CUmodule);
    fn cuModuleGetFunction(*mut sys::CUfunction, sys::CUmodule, *const c_char);
    fn cuFuncGetAttribute(*mut c_int, sys::CUfunction_attribute, sys::CUfunction);
    fn cuLaunchKernel(
        sys::CUfunction, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, sys::CUstream,
        *mut *mut c_void, *mut *mut c_void,
    );
    fn cuLaunchCooperativeKernel(
        sys::CUfunction, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, sys::CUstream,
        *mut *mut c_void,
    );
    fn cuOccupancyMaxActiveBlocksPerMultiprocessor(*mut c_int, sys::CUfunction, c_int, usize);

    fn cuGraphInstantiateWithFlags(*mut sys::CUgraphExec, sys::CUgraph, u64);
    fn cuGraphExecUpdate_v2(
        sys::CUgraphExec, sys::CUgraph, *mut sys::CUgraphExecUpdateResultInfo,
    );
    fn cuGraphLaunch(sys::CUgraphExec, sys::CUstream);
    fn cuGraphExecDestroy(sys::CUgraphExec);
    fn cuGraphDestroy(sys::CUgraph);
}
