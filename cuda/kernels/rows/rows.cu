// Entries of the evaluation of rows: see rows.cuh.
#include "rows.cuh"

using namespace sealc2;

// Small rows. Grid: a block a task, rows_block threads, no dynamic shared memory.
extern "C" __global__ void __launch_bounds__(rows_block)
rows_small(RowsTables tables, RowsWitness witness, RowsOut out) {
    __shared__ Fr values[rows_values];
    if (threadIdx.x < rows_values) values[threadIdx.x] = tables.values[threadIdx.x];
    __syncthreads();
    rows_small_task(tables, witness, out, values);
}
SEALC2_KERNEL(rows_small);

// Short rows, a thread each. Grid: a block a task, rows_block threads.
extern "C" __global__ void __launch_bounds__(rows_block)
rows_short(RowsTables tables, RowsWitness witness, RowsOut out) { rows_full_task<1>(tables, witness, out); }
SEALC2_KERNEL(rows_short);

// Long rows, rows_lanes threads each. Grid: a block a task, rows_block threads.
extern "C" __global__ void __launch_bounds__(rows_block)
rows_long(RowsTables tables, RowsWitness witness, RowsOut out) { rows_full_task<rows_lanes>(tables, witness, out); }
SEALC2_KERNEL(rows_long);

// The rows behind the constraints, from row `first` on: input i times nothing is nothing, then zeros up to row `end`.
// One thread a row, any grid.
extern "C" __global__ void __launch_bounds__(256)
rows_tail(RowsOut out, const Fr* inputs, uint32_t first, uint32_t count, uint32_t end) {
    const uint32_t stride = gridDim.x * blockDim.x;
    for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < end - first; i += stride)
        out.put(first + i, i < count ? inputs[i] : Fr::zero(), Fr::zero(), Fr::zero());
}
SEALC2_KERNEL(rows_tail);

// Rows that were evaluated elsewhere: a, b, c of rows [first, first + count), which may lie where out has them, and which are read where
// they are wanted. A row with a number that is not below r fails too. One thread a row, any grid.
extern "C" __global__ void __launch_bounds__(256)
rows_take(RowsOut out, const Fr* a, const Fr* b, const Fr* c, uint32_t first, uint32_t count) {
    const uint32_t stride = gridDim.x * blockDim.x;
    for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += stride) {
        Fr x = Fr::zero(), y = Fr::zero(), z = Fr::zero();
        if (out.wants(out.a)) x = a[i];
        if (out.wants(out.b)) y = b[i];
        if (out.wants(out.c)) z = c[i];
        if (out.failed != nullptr) {
            const bool reduced = eq(reduce(x), x) && eq(reduce(y), y) && eq(reduce(z), z);
            if (!reduced || !eq(mul(x, y), z)) out.fail(first + i);
        }
        out.put(first + i, x, y, z);
    }
}
SEALC2_KERNEL(rows_take);
