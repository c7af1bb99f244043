// Entry of the kinds of a vector's values: see kinds.cuh.
#include "kinds.cuh"

using namespace sealc2;

// Grid: any, of 256 threads.
extern "C" __global__ void __launch_bounds__(256)
kinds_mark_fr(const Fr* elements, uint32_t first, uint32_t count, uint32_t words, uint32_t* ones, uint32_t* fields, uint32_t* failed) {
    kinds_mark(elements, first, count, words, ones, fields, failed);
}
SEALC2_KERNEL(kinds_mark_fr);
