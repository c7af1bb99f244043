// Kernels that show what the emulator must see. Those named emu_bad are wrong on purpose and never run on a GPU:
// build.sh leaves this folder out.
#include "../memory.cuh"

using namespace sealc2;

// Sums a block's values by shuffles and shared memory. `barrier` 0 leaves the barrier out, which is a race.
extern "C" __global__ void emu_block_sum(const uint32_t* values, uint32_t* sums, uint32_t barrier) {
    __shared__ uint32_t parts[32];
    uint32_t sum = values[blockIdx.x * blockDim.x + threadIdx.x];
    for (int step = 16; step > 0; step /= 2) sum += __shfl_down_sync(0xffffffffu, sum, step);
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = sum;
    if (barrier) __syncthreads();
    if (threadIdx.x == 0) {
        sum = 0;
        for (uint32_t w = 0; w < blockDim.x / 32; w++) sum += parts[w];
        sums[blockIdx.x] = sum;
    }
    if (barrier) __syncthreads();
}
SEALC2_KERNEL(emu_block_sum);

// Each lane reports what the operations of a warp give it: 8 words a thread.
extern "C" __global__ void emu_warp(uint32_t* out) {
    const uint32_t i = threadIdx.x, lane = i % 32, all = 0xffffffffu;
    uint32_t* r = out + 8 * i;
    r[0] = __shfl_sync(all, i, lane + 5);
    r[1] = __shfl_up_sync(all, i, 3);
    r[2] = __shfl_down_sync(all, i, 3, 8);
    r[3] = uint32_t(__shfl_xor_sync(all, uint64_t(i) << 32, 1) >> 32);
    r[4] = __ballot_sync(all, lane % 3 == 0);
    r[5] = uint32_t(__any_sync(all, lane == 7)) | uint32_t(__all_sync(all, lane < 32)) << 1;
    r[6] = __match_any_sync(all, lane / 4);
    const uint32_t low = 0x0000ffffu; // two halves go their own ways
    r[7] = lane < 16 ? __ballot_sync(low, lane % 2) : __ballot_sync(~low, lane % 2 == 0);
}
SEALC2_KERNEL(emu_warp);

// Counts threads by a barrier's predicate: r = count of odd threads, or, and.
extern "C" __global__ void emu_barrier_votes(uint32_t* out) {
    const uint32_t odd = threadIdx.x & 1;
    const uint32_t count = __syncthreads_count(odd), any = __syncthreads_or(odd), all = __syncthreads_and(odd);
    out[threadIdx.x] = count | any << 16 | all << 17;
}
SEALC2_KERNEL(emu_barrier_votes);

// Copies 16 bytes a thread through dynamic shared memory. `waits` 0 reads before the copy has arrived.
extern "C" __global__ void emu_copy_async(const uint4* from, uint4* to, uint32_t waits) {
    SEALC2_SHARED(uint4, tile);
    copy_async16(&tile[threadIdx.x], &from[threadIdx.x]);
    copy_async_commit();
    if (waits) copy_async_wait<0>();
    to[threadIdx.x] = tile[threadIdx.x];
}
SEALC2_KERNEL(emu_copy_async);

// Half of the block never comes to the barrier, and waits elsewhere.
extern "C" __global__ void emu_bad_barrier(uint32_t* out) {
    if (threadIdx.x < 16) __syncthreads();
    else __syncwarp(0xffffffffu);
    out[threadIdx.x] = 1;
}
SEALC2_KERNEL(emu_bad_barrier);

extern "C" __global__ void emu_bad_mask(uint32_t* out) { out[threadIdx.x] = __ballot_sync(0x0000fffeu, 1); }
SEALC2_KERNEL(emu_bad_mask);

extern "C" __global__ void emu_bad_shared(uint32_t words) {
    SEALC2_SHARED(uint32_t, tile);
    tile[words] = 1;
}
SEALC2_KERNEL(emu_bad_shared);

// Waits for a word that another thread of the block sets.
extern "C" __global__ void emu_spin(volatile uint32_t* word, uint32_t* out) {
    if (threadIdx.x == 0)
        while (*word == 0) __nanosleep(100);
    else if (threadIdx.x == 1) *word = 7;
    out[threadIdx.x] = *word;
}
SEALC2_KERNEL(emu_spin);

// Writes the block's three coordinates and the thread's, in the order of the grid.
extern "C" __global__ void emu_places(uint3* out, uint8_t small, uint64_t large) {
    const uint32_t block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
    const uint32_t thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
    uint3* at = out + 2 * (block * (blockDim.x * blockDim.y * blockDim.z) + thread);
    at[0] = blockIdx;
    at[1] = threadIdx;
    if (small != 3 || large != 1ull << 40) at[0].x = 0xffffffffu;
}
SEALC2_KERNEL(emu_places);
