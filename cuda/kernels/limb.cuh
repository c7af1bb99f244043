// Arithmetic on 32-bit limbs with an explicit carry.
//
// On the GPU each function is one PTX instruction, the carry is the flag of the hardware, and Carry is empty. On the
// host Carry holds the flag, and the functions are plain C++. A chain of calls on one Carry is therefore the same
// chain on both, and the host's tests walk the very chain that the GPU runs.
//
// add_cc, sub_cc and mad_lo_cc begin a chain; those with a c (addc_cc, subc_cc, madc_lo_cc, madc_hi_cc) take the carry
// of the call before; all leave a carry behind. Only one chain may be under way at a time, since the GPU has one flag.
// The statements are volatile: the compiler keeps their order and puts nothing between that touches the flag.
#pragma once
#include "device.cuh"

namespace sealc2 {

#if defined(__CUDA_ARCH__)

struct Carry {};

#define SEALC2_LIMB2(name, instruction)                                                    \
    SEALC2_DEVICE uint32_t name(Carry&, uint32_t a, uint32_t b) {                          \
        uint32_t r;                                                                        \
        asm volatile(instruction " %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b));               \
        return r;                                                                          \
    }
#define SEALC2_LIMB3(name, instruction)                                                    \
    SEALC2_DEVICE uint32_t name(Carry&, uint32_t a, uint32_t b, uint32_t c) {              \
        uint32_t r;                                                                        \
        asm volatile(instruction " %0, %1, %2, %3;" : "=r"(r) : "r"(a), "r"(b), "r"(c));   \
        return r;                                                                          \
    }
SEALC2_LIMB2(add_cc, "add.cc.u32")
SEALC2_LIMB2(addc_cc, "addc.cc.u32")
SEALC2_LIMB2(sub_cc, "sub.cc.u32")
SEALC2_LIMB2(subc_cc, "subc.cc.u32")
SEALC2_LIMB3(mad_lo_cc, "mad.lo.cc.u32")
SEALC2_LIMB3(madc_lo_cc, "madc.lo.cc.u32")
SEALC2_LIMB3(madc_hi_cc, "madc.hi.cc.u32")
#undef SEALC2_LIMB2
#undef SEALC2_LIMB3

// carry_out ends a chain of additions: 1 where it carried, else 0.
SEALC2_DEVICE uint32_t carry_out(Carry&) {
    uint32_t r;
    asm volatile("addc.u32 %0, 0, 0;" : "=r"(r));
    return r;
}
// borrow_out ends a chain of subtractions: all ones where it borrowed, else 0.
SEALC2_DEVICE uint32_t borrow_out(Carry&) {
    uint32_t r;
    asm volatile("subc.u32 %0, 0, 0;" : "=r"(r));
    return r;
}

#else

struct Carry {
    uint32_t flag = 0;
    // keep stores bit 32 as the flag and returns the low word.
    uint32_t keep(uint64_t sum) {
        flag = static_cast<uint32_t>(sum >> 32) & 1;
        return static_cast<uint32_t>(sum);
    }
};

SEALC2_DEVICE uint32_t add_cc(Carry& c, uint32_t a, uint32_t b) { return c.keep(uint64_t(a) + b); }
SEALC2_DEVICE uint32_t addc_cc(Carry& c, uint32_t a, uint32_t b) { return c.keep(uint64_t(a) + b + c.flag); }
SEALC2_DEVICE uint32_t sub_cc(Carry& c, uint32_t a, uint32_t b) { return c.keep(uint64_t(a) - b); }
SEALC2_DEVICE uint32_t subc_cc(Carry& c, uint32_t a, uint32_t b) { return c.keep(uint64_t(a) - b - c.flag); }
SEALC2_DEVICE uint32_t mad_lo_cc(Carry& c, uint32_t a, uint32_t b, uint32_t d) { return c.keep(uint64_t(a * b) + d); }
SEALC2_DEVICE uint32_t madc_lo_cc(Carry& c, uint32_t a, uint32_t b, uint32_t d) { return c.keep(uint64_t(a * b) + d + c.flag); }
SEALC2_DEVICE uint32_t madc_hi_cc(Carry& c, uint32_t a, uint32_t b, uint32_t d) {
    return c.keep((uint64_t(a) * b >> 32) + d + c.flag);
}
SEALC2_DEVICE uint32_t carry_out(Carry& c) { return c.flag; }
SEALC2_DEVICE uint32_t borrow_out(Carry& c) { return 0u - c.flag; }

#endif

// mul_wide gives both words of a product.
SEALC2_DEVICE void mul_wide(uint32_t& lo, uint32_t& hi, uint32_t a, uint32_t b) {
#if defined(__CUDA_ARCH__)
    // In plain C++ the compiler spends an addition on taking the high word.
    asm volatile("{ .reg .u64 t; mul.wide.u32 t, %2, %3; mov.b64 {%0, %1}, t; }" : "=r"(lo), "=r"(hi) : "r"(a), "r"(b));
#else
    const uint64_t product = uint64_t(a) * b;
    lo = static_cast<uint32_t>(product);
    hi = static_cast<uint32_t>(product >> 32);
#endif
}

// add_limbs writes a + b and returns the carry.
template <int n> SEALC2_DEVICE uint32_t add_limbs(uint32_t* r, const uint32_t* a, const uint32_t* b) {
    Carry c;
    r[0] = add_cc(c, a[0], b[0]);
    SEALC2_UNROLL
    for (int j = 1; j < n; j++) r[j] = addc_cc(c, a[j], b[j]);
    return carry_out(c);
}

// sub_limbs writes a - b and returns all ones where a < b, else 0.
template <int n> SEALC2_DEVICE uint32_t sub_limbs(uint32_t* r, const uint32_t* a, const uint32_t* b) {
    Carry c;
    r[0] = sub_cc(c, a[0], b[0]);
    SEALC2_UNROLL
    for (int j = 1; j < n; j++) r[j] = subc_cc(c, a[j], b[j]);
    return borrow_out(c);
}

} // namespace sealc2
