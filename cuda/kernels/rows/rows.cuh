// Rows A.w, B.w, C.w of a program's templates over a compact witness, and the check a b = c.
//
// Algorithm. A task is some rows of one template and some of its instances: a thread has a row, reads its terms, which
// all instances share, and goes through the instances. Three sorts of rows, each a kernel:
// - small: bits with small coefficients. Sums and check are machine integers; the Montgomery form comes from a table.
// - short: any terms, one thread a row.
// - long: any terms, rows_lanes threads a row. A SHA-256 compression's sums have up to 929 terms.
// In short and long rows values and coefficients are gathered as 9-word integers and reduced once.
//
// The witness is one bit a variable, and field elements for those that are not bits; each wire's sort is known from the
// template. Source: engine/circuit, which evaluates on the CPU and gives the same values.
//
// Cost for a 32 GiB partition: 130 M rows of 5.5 terms; 96 bytes written a row. Floor 3 ms by bytes.
#pragma once
#include "../field/fr.cuh"
#include "../tuning/rows.cuh"

namespace sealc2 {

// A wire is its class and an index. Small rows have the first three classes only.
constexpr uint32_t rows_class_shift = 29, rows_index = (1u << rows_class_shift) - 1;
constexpr uint32_t rows_own_bit = 0, rows_external_bit = 1, rows_one = 2, rows_own_num = 3, rows_own_input = 4, rows_external_num = 5;
// An external field element's binding is a public input where this bit is set, else its place among the field elements.
constexpr uint32_t rows_bound_input = 1u << 31;
// A coefficient of a short or long row is its place in the table, shifted by two, and one of these.
constexpr uint32_t rows_other = 0, rows_plus_one = 1, rows_minus_one = 2;

// RowsTerm is a wire and its coefficient: an integer in small rows.
struct RowsTerm {
    uint32_t wire, coefficient;
};
// RowsSpan is a row of a template: its number there, its first term, and how many terms A, B and C have.
struct RowsSpan {
    uint32_t row, term, a, b, c;
};
// RowsInstance is where an instance's own variables, rows and bindings begin.
struct RowsInstance {
    uint32_t aux, num, input, row, binding;
};
// RowsTask is count spans from span on, for instances [instance, instance + instances).
struct RowsTask {
    uint32_t span, count, instance, instances;
};

struct RowsTables {
    const RowsTask* tasks; // a block each
    const RowsSpan* spans;
    const RowsTerm* terms;
    const RowsInstance* instances;
    const uint32_t* bindings; // of bits: aux; of field elements: see rows_bound_input
    const Fr* coefficients;
    const Fr* values; // of the integers from -rows_values/2 on
};
struct RowsWitness {
    const uint32_t* bits;
    const Fr* nums;
    const Fr* inputs;
};
// RowsOut takes the values of rows: of a, b and c each where it is not null. Where failed is not null, rows are checked, and it becomes
// the lowest that does not hold, if there is one.
struct RowsOut {
    Fr *a, *b, *c;
    uint32_t* failed;

    // wants tells whether a sum is needed, for the vector it goes to or the check.
    SEALC2_DEVICE bool wants(const Fr* vector) const { return vector != nullptr || failed != nullptr; }
    // put takes the wanted values of a row.
    SEALC2_DEVICE void put(uint32_t row, const Fr& va, const Fr& vb, const Fr& vc) const {
        if (a != nullptr) a[row] = va;
        if (b != nullptr) b[row] = vb;
        if (c != nullptr) c[row] = vc;
    }
    SEALC2_DEVICE void fail(uint32_t row) const { atomicMin(failed, row); }
};

// rows_bit is the value of a bit or of the constant one.
SEALC2_DEVICE uint32_t rows_bit(uint32_t wire, const RowsTables& tables, const RowsWitness& witness, const RowsInstance& instance) {
    const uint32_t kind = wire >> rows_class_shift, index = wire & rows_index;
    if (kind == rows_one) return 1;
    const uint32_t aux = kind == rows_own_bit ? instance.aux + index : tables.bindings[instance.binding + index];
    return witness.bits[aux >> 5] >> (aux & 31) & 1;
}

// rows_num is the value of a wire that is a field element.
SEALC2_DEVICE const Fr& rows_num(uint32_t wire, const RowsTables& tables, const RowsWitness& witness, const RowsInstance& instance) {
    const uint32_t kind = wire >> rows_class_shift, index = wire & rows_index;
    if (kind == rows_own_num) return witness.nums[instance.num + index];
    if (kind == rows_own_input) return witness.inputs[instance.input + index];
    const uint32_t bound = tables.bindings[instance.binding + index];
    return bound & rows_bound_input ? witness.inputs[bound & ~rows_bound_input] : witness.nums[bound];
}

// rows_small_sum sums terms over bits with coefficients that are integers: at most 64 of 15 bits and a sign.
SEALC2_DEVICE int32_t rows_small_sum(const RowsTerm* term, uint32_t count, const RowsTables& tables, const RowsWitness& witness, const RowsInstance& instance) {
    int32_t sum = 0;
    for (uint32_t t = 0; t < count; t++) {
        const RowsTerm x = term[t];
        if (rows_bit(x.wire, tables, witness, instance)) sum += int32_t(x.coefficient);
    }
    return sum;
}

// rows_integer is the Montgomery form of an integer; values is the table of small ones.
SEALC2_DEVICE Fr rows_integer(int32_t v, const Fr* values) {
    const uint32_t place = uint32_t(v + rows_values / 2);
    if (place < rows_values) return values[place];
    Fr x = Fr::zero();
    x.limb[0] = uint32_t(v < 0 ? -v : v);
    x = from_canonical(x);
    return v < 0 ? neg(x) : x;
}

// RowsSum is a sum of values below 2^256, fewer than 2^32.
struct RowsSum {
    uint32_t word[9];

    SEALC2_DEVICE RowsSum() {
        SEALC2_UNROLL
        for (int j = 0; j < 9; j++) word[j] = 0;
    }
    SEALC2_DEVICE void add(const Fr& x) { word[8] += add_limbs<8>(word, word, x.limb); }
    // value is the sum modulo r: 2^256 fits less than three times r.
    SEALC2_DEVICE Fr value() const {
        Fr low, high = Fr::zero();
        SEALC2_UNROLL
        for (int j = 0; j < 8; j++) low.limb[j] = word[j];
        low = reduce(reduce(low));
        if (word[8] == 0) return low;
        // 2^256 is R, and word[8] * R what from_canonical makes.
        high.limb[0] = word[8];
        return sealc2::add(low, from_canonical(high));
    }
};

// rows_full_sum sums any terms: the lane's share of them, every lanes-th.
template <int lanes> SEALC2_DEVICE Fr rows_full_sum(const RowsTerm* term, uint32_t count, uint32_t lane, const RowsTables& tables, const RowsWitness& witness, const RowsInstance& instance) {
    RowsSum sum;
    for (uint32_t t = lane; t < count; t += lanes) {
        const RowsTerm x = term[t];
        const Fr& coefficient = tables.coefficients[x.coefficient >> 2];
        if (x.wire >> rows_class_shift <= rows_one) {
            if (rows_bit(x.wire, tables, witness, instance)) sum.add(coefficient);
            continue;
        }
        Fr v = rows_num(x.wire, tables, witness, instance);
        const uint32_t kind = x.coefficient & 3;
        if (kind == rows_minus_one) v = neg(v);
        if (kind == rows_other) v = mul(v, coefficient);
        sum.add(v);
    }
    Fr total = sum.value();
    SEALC2_UNROLL
    for (int d = lanes / 2; d > 0; d /= 2) {
        Fr other;
        SEALC2_UNROLL
        for (int j = 0; j < 8; j++) other.limb[j] = __shfl_xor_sync(0xffffffffu, total.limb[j], d);
        total = add(total, other);
    }
    return total;
}

// rows_small does a task of small rows. values is the table in shared memory.
SEALC2_DEVICE void rows_small_task(const RowsTables& tables, const RowsWitness& witness, const RowsOut& out, const Fr* values) {
    const RowsTask task = tables.tasks[blockIdx.x];
    if (threadIdx.x >= task.count) return;
    const RowsSpan span = tables.spans[task.span + threadIdx.x];
    const RowsTerm* const term = tables.terms + span.term;
    for (uint32_t i = 0; i < task.instances; i++) {
        const RowsInstance instance = tables.instances[task.instance + i];
        int32_t a = 0, b = 0, c = 0;
        if (out.wants(out.a)) a = rows_small_sum(term, span.a, tables, witness, instance);
        if (out.wants(out.b)) b = rows_small_sum(term + span.a, span.b, tables, witness, instance);
        if (out.wants(out.c)) c = rows_small_sum(term + span.a + span.b, span.c, tables, witness, instance);
        const uint32_t row = instance.row + span.row;
        if (out.failed != nullptr && int64_t(a) * b != c) out.fail(row);
        if (out.a != nullptr) out.a[row] = rows_integer(a, values);
        if (out.b != nullptr) out.b[row] = rows_integer(b, values);
        if (out.c != nullptr) out.c[row] = rows_integer(c, values);
    }
}

// rows_full_task does a task of short (one lane) or long rows.
template <int lanes> SEALC2_DEVICE void rows_full_task(const RowsTables& tables, const RowsWitness& witness, const RowsOut& out) {
    const RowsTask task = tables.tasks[blockIdx.x];
    const uint32_t lane = threadIdx.x % lanes, place = threadIdx.x / lanes;
    const bool mine = place < task.count; // lanes of other rows come along, with no terms, since they shuffle together
    RowsSpan span = {};
    if (mine) span = tables.spans[task.span + place];
    const RowsTerm* const term = tables.terms + span.term;
    for (uint32_t i = 0; i < task.instances; i++) {
        const RowsInstance instance = tables.instances[task.instance + i];
        Fr a = Fr::zero(), b = Fr::zero(), c = Fr::zero();
        if (out.wants(out.a)) a = rows_full_sum<lanes>(term, span.a, lane, tables, witness, instance);
        if (out.wants(out.b)) b = rows_full_sum<lanes>(term + span.a, span.b, lane, tables, witness, instance);
        if (out.wants(out.c)) c = rows_full_sum<lanes>(term + span.a + span.b, span.c, lane, tables, witness, instance);
        if (!mine || lane != 0) continue;
        const uint32_t row = instance.row + span.row;
        if (out.failed != nullptr && !eq(mul(a, b), c)) out.fail(row);
        out.put(row, a, b, c);
    }
}

} // namespace sealc2
