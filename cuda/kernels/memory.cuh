// Moves between device memory and shared memory that the language has no words for.
#pragma once
#include "device.cuh"

namespace sealc2 {

// copy_async16 begins a copy of 16 bytes from device memory to shared memory, both 16-byte aligned. It belongs to the
// group that the thread's next copy_async_commit closes. Before compute capability 8.0 the copy is done at once.
SEALC2_DEVICE void copy_async16(void* shared, const void* from) {
#if !defined(__CUDACC__)
    emu::copy_async(shared, from, 16);
#elif __CUDA_ARCH__ >= 800
    const uint32_t to = uint32_t(__cvta_generic_to_shared(shared));
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
#else
    *static_cast<uint4*>(shared) = *static_cast<const uint4*>(from);
#endif
}

// copy_async_commit closes the thread's group of copies.
SEALC2_DEVICE void copy_async_commit() {
#if !defined(__CUDACC__)
    emu::copy_async_commit();
#elif __CUDA_ARCH__ >= 800
    asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

// copy_async_wait waits until at most `groups` of the thread's closed groups are under way. What has arrived is seen
// by the thread itself; others need a barrier after it.
template <int groups> SEALC2_DEVICE void copy_async_wait() {
#if !defined(__CUDACC__)
    emu::copy_async_wait(groups);
#elif __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_group %0;" ::"n"(groups) : "memory");
#endif
}

} // namespace sealc2
