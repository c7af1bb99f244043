//! `cudaHostAlloc` and `cudaFreeHost`: page-aligned memory in huge pages where the system gives them.
//!
//! cuzk fills such blocks and hands them to the prover as assignments. libsealc2 reads those through buffers of its own,
//! which are what a device needs to be pinned, so plain memory serves; it is zeroed and goes back to the system when freed.

use std::collections::BTreeMap;
use std::ffi::{c_int, c_uint, c_void};
use std::sync::{Mutex, MutexGuard, PoisonError};

extern "C" {
    fn mmap(at: *mut c_void, len: usize, prot: c_int, flags: c_int, fd: c_int, offset: i64) -> *mut c_void;
    fn munmap(at: *mut c_void, len: usize) -> c_int;
    fn madvise(at: *mut c_void, len: usize, advice: c_int) -> c_int;
}

const PROT_READ_WRITE: c_int = 3;
const MAP_PRIVATE_ANONYMOUS: c_int = 0x22;
const MADV_HUGEPAGE: c_int = 14;

const CUDA_SUCCESS: c_int = 0;
const CUDA_ERROR_INVALID_VALUE: c_int = 1;
const CUDA_ERROR_MEMORY_ALLOCATION: c_int = 2;

/// Address and bytes of each live block.
fn blocks() -> MutexGuard<'static, BTreeMap<usize, usize>> {
    static BLOCKS: Mutex<BTreeMap<usize, usize>> = Mutex::new(BTreeMap::new());
    BLOCKS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Allocates `size` bytes. The flags are CUDA's (portable, mapped, write-combined) and mean nothing here. Size 0 gives NULL.
///
/// # Safety
/// `out` must be NULL, which is refused, or point to a pointer.
#[no_mangle]
#[allow(non_snake_case)]
pub unsafe extern "C" fn cudaHostAlloc(out: *mut *mut c_void, size: usize, _flags: c_uint) -> c_int {
    if out.is_null() {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *out = std::ptr::null_mut();
    if size == 0 {
        return CUDA_SUCCESS;
    }
    let block = mmap(std::ptr::null_mut(), size, PROT_READ_WRITE, MAP_PRIVATE_ANONYMOUS, -1, 0);
    if block as isize == -1 {
        return CUDA_ERROR_MEMORY_ALLOCATION;
    }
    // A hint: a kernel without huge pages refuses it, and nothing is lost.
    madvise(block, size, MADV_HUGEPAGE);
    blocks().insert(block as usize, size);
    *out = block;
    CUDA_SUCCESS
}

/// Frees a block of [`cudaHostAlloc`]. NULL is ignored; anything else that is no such block is refused.
///
/// # Safety
/// Nothing may use the block any more.
#[no_mangle]
#[allow(non_snake_case)]
pub unsafe extern "C" fn cudaFreeHost(block: *mut c_void) -> c_int {
    if block.is_null() {
        return CUDA_SUCCESS;
    }
    match blocks().remove(&(block as usize)) {
        Some(size) => {
            munmap(block, size);
            CUDA_SUCCESS
        }
        None => CUDA_ERROR_INVALID_VALUE,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::slice::from_raw_parts_mut;

    /// The functions as cuzk imports them: by name, from whatever library has them.
    mod imported {
        use super::*;
        extern "C" {
            pub fn cudaHostAlloc(out: *mut *mut c_void, size: usize, flags: c_uint) -> c_int;
            pub fn cudaFreeHost(block: *mut c_void) -> c_int;
        }
    }

    #[test]
    fn blocks_are_zeroed_writable_and_freed_once() {
        unsafe {
            let size = (5 << 20) + 3;
            let mut p = std::ptr::null_mut();
            assert_eq!(imported::cudaHostAlloc(&mut p, size, 1), CUDA_SUCCESS);
            assert_eq!(p as usize % 4096, 0);
            let block = from_raw_parts_mut(p.cast::<u8>(), size);
            assert!(block.iter().all(|b| *b == 0));
            block.fill(7);
            assert_eq!(imported::cudaFreeHost(p), CUDA_SUCCESS);
            assert_eq!(imported::cudaFreeHost(p), CUDA_ERROR_INVALID_VALUE);
        }
    }

    #[test]
    fn odd_arguments_are_answered() {
        unsafe {
            assert_eq!(cudaHostAlloc(std::ptr::null_mut(), 8, 0), CUDA_ERROR_INVALID_VALUE);
            let mut p = 1 as *mut c_void;
            assert_eq!(cudaHostAlloc(&mut p, 0, 0), CUDA_SUCCESS);
            assert!(p.is_null());
            assert_eq!(cudaFreeHost(p), CUDA_SUCCESS);
            assert_eq!(cudaHostAlloc(&mut p, usize::MAX - 4096, 0), CUDA_ERROR_MEMORY_ALLOCATION);
            assert!(p.is_null());
            assert_eq!(cudaFreeHost(8 as *mut c_void), CUDA_ERROR_INVALID_VALUE);
        }
    }
}
