// Entries for a circuit at tau.
#include "qap.cuh"

using namespace sealc2;
using namespace sealc2::qap;

SEALC2_DEVICE uint32_t qap_index() { return blockIdx.x * blockDim.x + threadIdx.x; }

struct QapDomain {
    Fr omega, omega_inverse, tau, scale;
};

// out[i] = L_i(tau) for i below count; each thread makes `run` neighbours. squares[k] is omega^(2^k).
extern "C" __global__ void __launch_bounds__(block_threads)
    qap_lagrange(const Fr* squares, QapDomain domain, uint32_t count, uint32_t run, Fr* out) {
    const uint32_t first = qap_index() * run;
    if (first >= count) return;
    Fr root = Fr::one();
    SEALC2_ROLL
    for (uint32_t k = 0, rest = first; rest != 0; k++, rest >>= 1)
        if (rest & 1) root = mul(root, squares[k]);
    lagrange(out + first, min(run, count - first), root, domain.omega, domain.omega_inverse, domain.tau, domain.scale);
}
SEALC2_KERNEL(qap_lagrange);

extern "C" __global__ void __launch_bounds__(block_threads) qap_scatter(Tables tables, uint32_t matrix, const Fr* rows, Words* sums) {
    scatter(tables, matrix, rows, sums);
}
SEALC2_KERNEL(qap_scatter);

// values[v] is the sum of variable v; to inputs, which are the first variables, the values of `appended` are added, where
// it is not null.
extern "C" __global__ void __launch_bounds__(block_threads)
    qap_gather(const Words* sums, uint32_t count, const Fr* appended, uint32_t inputs, Fr* values) {
    const uint32_t v = qap_index();
    if (v >= count) return;
    Fr x = value(sums[v]);
    if (appended != nullptr && v < inputs) x = add(x, appended[v]);
    values[v] = x;
}
SEALC2_KERNEL(qap_gather);

struct QapSecrets {
    Fr alpha, beta, over_gamma, over_delta;
};

// c = (beta a + alpha b + c) / gamma for inputs, / delta for aux. unbound becomes the lowest aux that comes out as zero.
extern "C" __global__ void __launch_bounds__(block_threads)
    qap_extend(const Fr* a, const Fr* b, Fr* c, QapSecrets secrets, uint32_t inputs, uint32_t count, uint32_t* unbound) {
    const uint32_t v = qap_index();
    if (v >= count) return;
    const Fr x = add(add(mul(a[v], secrets.beta), mul(b[v], secrets.alpha)), c[v]);
    if (v >= inputs && is_zero(x)) atomicMin(unbound, v - inputs);
    c[v] = mul(x, select(v < inputs, secrets.over_gamma, secrets.over_delta));
}
SEALC2_KERNEL(qap_extend);

// Moves the values whose bit is set to the front, in their order. ranks[w] is how many bits are set before word w.
// A value that is zero though its bit is set, or the other way round, is counted in `wrong`.
extern "C" __global__ void __launch_bounds__(block_threads)
    qap_compact(const Fr* values, uint32_t count, const uint32_t* bits, const uint32_t* ranks, Fr* out, uint32_t* wrong) {
    const uint32_t v = qap_index();
    if (v >= count) return;
    const uint32_t word = bits[v >> 5], place = v & 31;
    const bool set = word >> place & 1;
    const Fr x = values[v];
    if (set == is_zero(x)) atomicAdd(wrong, 1u);
    if (set) out[ranks[v >> 5] + __popc(word & ((1u << place) - 1))] = x;
}
SEALC2_KERNEL(qap_compact);
