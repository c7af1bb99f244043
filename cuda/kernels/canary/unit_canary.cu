// Kernels that are wrong on purpose: each has a fault of the kind that one of compute-sanitizer's tools reports, and a tool that is
// silent about it is silent about everything. None hangs or harms a device without the tool, but for canary_copy, which leaves
// its memory where it is told to.
#include "../memory.cuh"

using namespace sealc2;

// Copies a word a thread: memcheck reports places without memory, initcheck words that nobody has written.
extern "C" __global__ void canary_copy(const uint32_t* from, uint32_t* to) {
    const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    to[i] = from[i];
}
SEALC2_KERNEL(canary_copy);

// Reads what another warp writes to shared memory, with no barrier between: racecheck reports it.
extern "C" __global__ void canary_race(uint32_t* to) {
    __shared__ uint32_t words[256];
    words[threadIdx.x] = threadIdx.x;
    to[threadIdx.x] = words[threadIdx.x ^ 128];
}
SEALC2_KERNEL(canary_race);

// Half of a warp waits at a barrier that the other half passes by: synccheck reports it.
extern "C" __global__ void canary_barrier(uint32_t* to) {
    if (threadIdx.x % 32 < 16) __syncthreads();
    to[threadIdx.x] = 1;
    __syncthreads();
}
SEALC2_KERNEL(canary_barrier);
