// What a kernel file needs to be compiled by g++ and run without a GPU.
//
// A launch runs its blocks one after the other. Each thread of a block is a fiber, which runs until it ends or waits at a
// barrier or for its warp; a kernel that never waits is as quick as a loop. With a seed other than 0, blocks and runnable
// threads take their turns in an order drawn from it, so a missing barrier changes results from seed to seed. Barriers
// that can never be met, a mask that does not hold the caller, and writes behind the dynamic shared memory are errors with
// the block's number. Asynchronous copies arrive when they are waited for, not before.
//
// Not covered: waits of one block for another (blocks that take a ticket when they begin, and wait for lower tickets
// alone, do work), memory orders weaker than the host's, registers, and addresses out of bounds.
#pragma once
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...)
#define __grid_constant__
#define __align__(n) alignas(n)
#define __shared__ static // One block runs at a time. Contents are what the block before left, as on a GPU.
#ifndef __restrict__
#define __restrict__ __restrict
#endif

struct uint3 {
    uint32_t x, y, z;
};
using dim3 = uint3;

#define SEALC2_EMU_VECTOR(scalar, name)                                                            \
    struct alignas(2 * sizeof(scalar)) name##2 {                                                   \
        scalar x, y;                                                                               \
    };                                                                                             \
    inline name##2 make_##name##2(scalar x, scalar y) { return name##2{x, y}; }
SEALC2_EMU_VECTOR(int32_t, int)
SEALC2_EMU_VECTOR(uint32_t, uint)
SEALC2_EMU_VECTOR(unsigned long long, ulonglong)
#undef SEALC2_EMU_VECTOR
struct alignas(16) uint4 {
    uint32_t x, y, z, w;
};
inline uint4 make_uint4(uint32_t x, uint32_t y, uint32_t z, uint32_t w) { return uint4{x, y, z, w}; }
struct alignas(16) int4 {
    int32_t x, y, z, w;
};
inline int4 make_int4(int32_t x, int32_t y, int32_t z, int32_t w) { return int4{x, y, z, w}; }

inline uint3 threadIdx, blockIdx;
inline dim3 blockDim, gridDim;
constexpr int warpSize = 32;

namespace sealc2::emu {

// Invoke calls a kernel with parameters that lie behind pointers.
using Invoke = void (*)(void (*function)(), void** arguments);

// enroll adds a kernel to the library's table.
void enroll(const char* name, void (*function)(), Invoke invoke, const uint32_t* sizes, int count);

template <class T> T read(const void* at) {
    T value;
    std::memcpy(&value, at, sizeof value);
    return value;
}

// Registration is what SEALC2_KERNEL makes.
struct Registration {
    template <class... A> Registration(const char* name, void (*function)(A...)) {
        static_assert((std::is_trivially_copyable_v<A> && ...), "parameters travel as bytes");
        const uint32_t sizes[] = {uint32_t(sizeof(A))..., 0};
        enroll(name, reinterpret_cast<void (*)()>(function), &invoke<A...>, sizes, int(sizeof...(A)));
    }
    template <class... A> static void invoke(void (*function)(), void** arguments) {
        unpack<A...>(function, arguments, std::index_sequence_for<A...>{});
    }
    template <class... A, size_t... i> static void unpack(void (*function)(), void** arguments, std::index_sequence<i...>) {
        reinterpret_cast<void (*)(A...)>(function)(read<A>(arguments[i])...);
    }
};

// dynamic_shared is the launch's dynamic shared memory.
unsigned char* dynamic_shared();

// sync_block is the block's barrier. It returns how many threads came with a predicate other than 0, of `threads`.
uint32_t sync_block(bool predicate, uint32_t* threads);

// What lanes of a warp do together.
enum class WarpOp : uint32_t { sync, shuffle, ballot, match };
// sync_warp waits for the lanes of mask that have not ended. It returns the value of lane `source` (shuffle), the lanes
// whose value is not 0 (ballot), or those whose value is the caller's (match).
uint64_t sync_warp(WarpOp op, uint32_t mask, uint64_t value, uint32_t source);

// pause lets other threads of the block run.
void pause();

// lane is the caller's place in its warp.
uint32_t lane();

void copy_async(void* to, const void* from, uint32_t bytes);
void copy_async_commit();
void copy_async_wait(uint32_t groups);

uint64_t clock();

template <class T> uint64_t to_bits(T value) {
    static_assert(sizeof(T) == 4 || sizeof(T) == 8, "a shuffle moves 4 or 8 bytes");
    uint64_t bits = 0;
    std::memcpy(&bits, &value, sizeof value);
    return bits;
}
template <class T> T from_bits(uint64_t bits) {
    T value;
    std::memcpy(&value, &bits, sizeof value);
    return value;
}
template <class T> T shuffle(uint32_t mask, T value, uint32_t source) {
    return from_bits<T>(sync_warp(WarpOp::shuffle, mask, to_bits(value), source));
}

} // namespace sealc2::emu

// Barriers and warps.
inline void __syncthreads() {
    uint32_t threads;
    sealc2::emu::sync_block(false, &threads);
}
inline int __syncthreads_count(int predicate) {
    uint32_t threads;
    return int(sealc2::emu::sync_block(predicate != 0, &threads));
}
inline int __syncthreads_or(int predicate) { return __syncthreads_count(predicate) != 0; }
inline int __syncthreads_and(int predicate) {
    uint32_t threads;
    return sealc2::emu::sync_block(predicate != 0, &threads) == threads;
}
inline void __syncwarp(uint32_t mask = 0xffffffffu) { sealc2::emu::sync_warp(sealc2::emu::WarpOp::sync, mask, 0, 0); }
template <class T> T __shfl_sync(uint32_t mask, T value, int source, int width = 32) {
    const uint32_t lane = sealc2::emu::lane(), w = uint32_t(width);
    return sealc2::emu::shuffle(mask, value, (lane & ~(w - 1)) | (uint32_t(source) & (w - 1)));
}
template <class T> T __shfl_up_sync(uint32_t mask, T value, uint32_t delta, int width = 32) {
    const uint32_t lane = sealc2::emu::lane(), within = lane & uint32_t(width - 1);
    return sealc2::emu::shuffle(mask, value, within >= delta ? lane - delta : lane);
}
template <class T> T __shfl_down_sync(uint32_t mask, T value, uint32_t delta, int width = 32) {
    const uint32_t lane = sealc2::emu::lane(), within = lane & uint32_t(width - 1);
    return sealc2::emu::shuffle(mask, value, within + delta < uint32_t(width) ? lane + delta : lane);
}
template <class T> T __shfl_xor_sync(uint32_t mask, T value, int bits, int width = 32) {
    // A lane of another group that lies below is read, one above is not, as the hardware does.
    const uint32_t lane = sealc2::emu::lane(), source = lane ^ uint32_t(bits), last = lane | uint32_t(width - 1);
    return sealc2::emu::shuffle(mask, value, source <= last ? source : lane);
}
inline uint32_t __ballot_sync(uint32_t mask, int predicate) {
    return uint32_t(sealc2::emu::sync_warp(sealc2::emu::WarpOp::ballot, mask, predicate != 0, 0));
}
inline int __any_sync(uint32_t mask, int predicate) { return __ballot_sync(mask, predicate) != 0; }
inline int __all_sync(uint32_t mask, int predicate) { return __ballot_sync(mask, predicate == 0) == 0; }
template <class T> uint32_t __match_any_sync(uint32_t mask, T value) {
    return uint32_t(sealc2::emu::sync_warp(sealc2::emu::WarpOp::match, mask, sealc2::emu::to_bits(value), 0));
}
inline void __nanosleep(uint32_t) { sealc2::emu::pause(); }
inline void __threadfence() {}
inline void __threadfence_block() {}
inline void __threadfence_system() {}
inline long long clock64() { return (long long)sealc2::emu::clock(); }

// Atomics: threads of one block take turns, so plain memory does.
#define SEALC2_EMU_ATOMIC(name, expression)                                                        \
    template <class T> T name(T* at, std::common_type_t<T> value) {                                \
        const T old = *at;                                                                         \
        *at = T(expression);                                                                       \
        return old;                                                                                \
    }
SEALC2_EMU_ATOMIC(atomicAdd, old + value)
SEALC2_EMU_ATOMIC(atomicSub, old - value)
SEALC2_EMU_ATOMIC(atomicExch, value)
SEALC2_EMU_ATOMIC(atomicMin, value < old ? value : old)
SEALC2_EMU_ATOMIC(atomicMax, value > old ? value : old)
SEALC2_EMU_ATOMIC(atomicAnd, old & value)
SEALC2_EMU_ATOMIC(atomicOr, old | value)
SEALC2_EMU_ATOMIC(atomicXor, old ^ value)
SEALC2_EMU_ATOMIC(atomicInc, old >= value ? 0 : old + 1)
#undef SEALC2_EMU_ATOMIC
template <class T> T atomicCAS(T* at, std::common_type_t<T> compare, std::common_type_t<T> value) {
    const T old = *at;
    if (old == compare) *at = value;
    return old;
}

// Memory with hints for the caches.
template <class T> T __ldg(const T* at) { return *at; }
template <class T> T __ldca(const T* at) { return *at; }
template <class T> T __ldcg(const T* at) { return *at; }
template <class T> T __ldcs(const T* at) { return *at; }
template <class T> T __ldcv(const T* at) { return *at; }
template <class T> void __stwb(T* at, T value) { *at = value; }
template <class T> void __stcg(T* at, T value) { *at = value; }
template <class T> void __stcs(T* at, T value) { *at = value; }
template <class T> void __stwt(T* at, T value) { *at = value; }

// Integers.
inline int __clz(int x) { return x == 0 ? 32 : __builtin_clz(uint32_t(x)); }
inline int __clzll(long long x) { return x == 0 ? 64 : __builtin_clzll((unsigned long long)x); }
inline int __popc(uint32_t x) { return __builtin_popcount(x); }
inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int __ffsll(long long x) { return __builtin_ffsll(x); }
inline uint32_t __brev(uint32_t x) {
    x = (x >> 1 & 0x55555555u) | (x & 0x55555555u) << 1;
    x = (x >> 2 & 0x33333333u) | (x & 0x33333333u) << 2;
    x = (x >> 4 & 0x0f0f0f0fu) | (x & 0x0f0f0f0fu) << 4;
    return __builtin_bswap32(x);
}
inline unsigned long long __brevll(unsigned long long x) {
    return (unsigned long long)__brev(uint32_t(x)) << 32 | __brev(uint32_t(x >> 32));
}
inline uint32_t __umulhi(uint32_t a, uint32_t b) { return uint32_t(uint64_t(a) * b >> 32); }
inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
    return (unsigned long long)((unsigned __int128)a * b >> 64);
}
inline uint32_t __funnelshift_l(uint32_t lo, uint32_t hi, uint32_t shift) {
    return uint32_t(((uint64_t(hi) << 32 | lo) << (shift & 31)) >> 32);
}
inline uint32_t __funnelshift_r(uint32_t lo, uint32_t hi, uint32_t shift) {
    return uint32_t((uint64_t(hi) << 32 | lo) >> (shift & 31));
}
inline uint32_t __byte_perm(uint32_t x, uint32_t y, uint32_t selector) {
    const uint64_t bytes = uint64_t(y) << 32 | x;
    uint32_t r = 0;
    for (int i = 0; i < 4; i++) {
        const uint32_t s = selector >> (4 * i);
        uint32_t byte = uint32_t(bytes >> (8 * (s & 7))) & 0xff;
        if (s & 8) byte = byte & 0x80 ? 0xff : 0;
        r |= byte << (8 * i);
    }
    return r;
}
template <class A, class B> constexpr std::common_type_t<A, B> min(A a, B b) {
    using T = std::common_type_t<A, B>;
    return T(b) < T(a) ? T(b) : T(a);
}
template <class A, class B> constexpr std::common_type_t<A, B> max(A a, B b) {
    using T = std::common_type_t<A, B>;
    return T(a) < T(b) ? T(b) : T(a);
}
