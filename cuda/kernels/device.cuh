// What every kernel file includes first. nvcc compiles the same text for the GPU as g++ does for the emulator of
// emu/emu.hpp, so no file above this one asks which compiler it has.
#pragma once

#if defined(__CUDACC__)

#if defined(__CUDACC_RTC__) // NVRTC has no host headers.
using int8_t = signed char;
using uint8_t = unsigned char;
using int16_t = short;
using uint16_t = unsigned short;
using int32_t = int;
using uint32_t = unsigned int;
using int64_t = long long;
using uint64_t = unsigned long long;
#else
#include <cstdint>
#endif

// SEALC2_DEVICE marks a function that runs in a kernel.
#define SEALC2_DEVICE __device__ __forceinline__
// SEALC2_DEVICE_CALL is for long functions that are called rarely: one copy in a kernel, with the ABI's cost.
#define SEALC2_DEVICE_CALL __device__ __noinline__
// SEALC2_UNROLL unrolls the loop behind it wholly, so that arrays indexed in it stay in registers; SEALC2_ROLL keeps it a loop.
#define SEALC2_UNROLL _Pragma("unroll")
#define SEALC2_ROLL _Pragma("unroll 1")
// SEALC2_KERNEL(name) follows the entry `extern "C" __global__ void name(...)`: the emulator learns of it.
#define SEALC2_KERNEL(name) static_assert(true, "")
// SEALC2_SHARED(type, name) declares name, the dynamic shared memory of the launch, 16-byte aligned.
#define SEALC2_SHARED(type, name)                                      \
    extern __shared__ __align__(16) unsigned char sealc2_shared[];     \
    type* const name = reinterpret_cast<type*>(sealc2_shared)

// SEALC2_CONSTANT(name, n, words...) defines name(j): word j of a table of n 32-bit words. With a j known to the
// compiler the word is an operand from the constant bank, which costs no register read.
#define SEALC2_CONSTANT(name, n, ...)                                  \
    static __device__ __constant__ uint32_t name##_words[n] = {__VA_ARGS__}; \
    SEALC2_DEVICE uint32_t name(int j) { return name##_words[j]; }

#else

#include "emu/emu.hpp"

#define SEALC2_DEVICE inline
#define SEALC2_DEVICE_CALL inline
#define SEALC2_UNROLL _Pragma("GCC unroll 32")
#define SEALC2_ROLL
#define SEALC2_KERNEL(name) static const ::sealc2::emu::Registration registration_of_##name(#name, name)
#define SEALC2_SHARED(type, name) type* const name = reinterpret_cast<type*>(::sealc2::emu::dynamic_shared())
#define SEALC2_CONSTANT(name, n, ...)                                  \
    static constexpr uint32_t name##_words[n] = {__VA_ARGS__};         \
    SEALC2_DEVICE uint32_t name(int j) { return name##_words[j]; }

#endif
