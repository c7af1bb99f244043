// A circuit at a point tau, as a development setup needs it: A_v(tau), B_v(tau), C_v(tau) of every variable v.
//
// lagrange gives L_i(tau) = (tau^n - 1)/n * w^i / (tau - w^i) of all rows, a run of rows a thread, which share an
// inversion. scatter goes through a program's templates and instances, a thread a row of a template, and adds
// coefficient * L_row to the variables of the row's terms. A sum of field elements cannot be added to atomically, but its
// words can: each has 64 bits, so that 2^32 terms fit, and gather reduces them. The constant one stands in most rows; a
// thread sums it by itself. extend makes the exponents of ic and l.
//
// Source: Groth16 (eprint 2016/260) and bellperson's generator, as engine/params. Results are the CPU's: sums modulo r.
// Cost for a 32 GiB partition: 722 M terms, each 8 additions to the second cache and a product where the coefficient is
// not 1 or -1. Floor: 5.8 G atomic additions of 8 bytes.
#pragma once
#include "../field/inverse.cuh"

namespace sealc2 {
namespace qap {

constexpr int block_threads = 128;

// Wires: the class in the three high bits, the index below.
constexpr uint32_t class_shift = 29, index_mask = (1u << class_shift) - 1;
constexpr uint32_t wire_one = 0, wire_own = 1, wire_own_input = 2, wire_external = 3;
// A coefficient is its place in the table shifted by two, and one of these.
constexpr uint32_t coefficient_other = 0, coefficient_one = 1, coefficient_minus_one = 2;

struct Term {
    uint32_t wire, coefficient;
};
// Span is a row of a template: terms [of[m], of[m + 1]) belong to matrix m.
struct Span {
    uint32_t of[4];
};
// Instance is where an instance's variables, inputs, rows and bindings begin.
struct Instance {
    uint32_t variable, input, row, binding;
};
// Task is spans [span, span + count), the template's rows from `row` on, for instances [instance, instance + instances).
struct Task {
    uint32_t span, row, count, instance, instances;
};
struct Tables {
    const Task* tasks; // a block each
    const Span* spans;
    const Term* terms;
    const Instance* instances;
    const uint32_t* bindings; // variables
    const Fr* coefficients;
};

// Words is a sum under way: its value is the sum of word[j] * 2^(32 j).
struct Words {
    unsigned long long word[8];
};

SEALC2_DEVICE void add_to(Words* sum, const Fr& x) {
    SEALC2_UNROLL
    for (int j = 0; j < 8; j++) atomicAdd(&sum->word[j], (unsigned long long)x.limb[j]);
}

// value is the sum modulo r.
SEALC2_DEVICE Fr value(const Words& sum) {
    uint32_t word[10];
    uint64_t carry = 0;
    SEALC2_UNROLL
    for (int j = 0; j < 8; j++) {
        // Both are below 2^64 - 2^32: carry is at most 2^32.
        const uint64_t low = uint64_t(uint32_t(sum.word[j])) + uint32_t(carry);
        word[j] = uint32_t(low);
        carry = (carry >> 32) + (sum.word[j] >> 32) + (low >> 32);
    }
    Fr low, high = Fr::zero();
    SEALC2_UNROLL
    for (int j = 0; j < 8; j++) low.limb[j] = word[j];
    low = reduce(reduce(low)); // 2^256 is less than 3r
    high.limb[0] = uint32_t(carry);
    high.limb[1] = uint32_t(carry >> 32);
    return add(low, from_canonical(high)); // high * 2^256 = high * R
}

// lagrange writes out[i] = L_i(tau) for rows [first, first + count) of the thread. root is w^first, scale is
// (tau^n - 1)/n.
SEALC2_DEVICE void lagrange(Fr* out, uint32_t count, Fr root, const Fr& omega, const Fr& omega_inverse, const Fr& tau, const Fr& scale) {
    if (count == 0) return;
    Fr product = Fr::one();
    SEALC2_ROLL
    for (uint32_t i = 0; i < count; i++) {
        out[i] = product;
        product = mul(product, sub(tau, root));
        root = mul(root, omega);
    }
    Fr rest = mul(inverse(product), scale);
    SEALC2_ROLL
    for (uint32_t i = count; i-- > 0;) {
        root = mul(root, omega_inverse);
        out[i] = mul(mul(rest, out[i]), root);
        rest = mul(rest, sub(tau, root));
    }
}

// scatter does a task for matrix m.
SEALC2_DEVICE void scatter(const Tables& tables, uint32_t m, const Fr* rows, Words* sums) {
    const Task task = tables.tasks[blockIdx.x];
    if (threadIdx.x >= task.count) return;
    const Span span = tables.spans[task.span + threadIdx.x];
    const uint32_t begin = span.of[m], end = span.of[m + 1];
    Fr one = Fr::zero();
    for (uint32_t i = 0; i < task.instances && begin < end; i++) {
        const Instance instance = tables.instances[task.instance + i];
        const Fr row = rows[instance.row + task.row + threadIdx.x];
        for (uint32_t t = begin; t < end; t++) {
            const Term term = tables.terms[t];
            const uint32_t kind = term.coefficient & 3, index = term.wire & index_mask;
            Fr x = row;
            if (kind == coefficient_minus_one) x = neg(row);
            if (kind == coefficient_other) x = mul(row, tables.coefficients[term.coefficient >> 2]);
            switch (term.wire >> class_shift) {
            case wire_one: one = add(one, x); break;
            case wire_own: add_to(sums + instance.variable + index, x); break;
            case wire_own_input: add_to(sums + instance.input + index, x); break;
            default: add_to(sums + tables.bindings[instance.binding + index], x); break;
            }
        }
    }
    if (!is_zero(one)) add_to(sums, one); // variable 0
}

} // namespace qap
} // namespace sealc2
