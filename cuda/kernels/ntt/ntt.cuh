// Transforms of n = 2^log elements of Fr between coefficients in natural order and values in bit-reversed order.
//
// Algorithm. x^n - c splits into (x^(n/2) - s)(x^(n/2) + s), s^2 = c, and so on down to n linear factors. Forward walks
// down that tree: at level l are 2^l groups of n/2^l neighbours, and group k takes its halves u, v to u + w v, u - w v.
// With c = 1 group k's w does not depend on the level: w = roots[k] = e(0.0 k0 k1 k2 ...) in binary digits, k0 being
// k's lowest bit and e(x) the x-th part of a full turn, so roots[0] = 1, roots[1] = i. The values come out in
// bit-reversed order. With c = -1 the tree is the right half of that of x^2n - 1, whose groups are 2^l + k: the values
// lie on the coset where x^n = -1, and shifting to it costs nothing. Inverse walks up: u + v, (u - v)/w, and leaves out
// the factor 1/n. 1/roots[k] = -roots[k with all bits below the highest turned over], so one table serves both ways.
// Source: J. W. Cooley, J. W. Tukey (1965), W. M. Gentleman, G. Sande (1966); the tree as in D. J. Bernstein,
// "Multidigit multiplication for mathematicians" (2001).
//
// Passes. A block holds a tile: 2^ntt_tile_log elements, rows of neighbours far apart (stride) or, in the pass of the
// last levels, one piece. A thread holds eight, which differ in three bits of their place in the tile (its window),
// does those three levels in registers, and exchanges through shared memory for the next window. 2^27 takes four
// passes over memory, whose traffic hides behind the arithmetic; fusing passes of different transforms gained nothing.
//
// Values in natural order, as rows are evaluated, are put in order by the first pass of an inverse transform, in place: seen as
// 2^5 rows, of pieces m of 2^5 neighbours, reversing all digits exchanges the pieces m and m reversed, each transposed
// and reversed within. A block takes both, and does the five levels within pieces.
//
// Few roots. x^m - s with s = t^m is y^m - 1 in y = x/t. So below some level, the cut, each group's coefficients are
// multiplied by 1, t, t^2, ... once (going down; by their inverses going up), and the levels below have the roots of x^m - 1.
// Then a table of about sqrt(n) roots does, and a second one for the powers of t: t = roots[k m/2] for group k, and roots[a + 2^j b] =
// roots[a] roots[2^j b] for a < 2^j. A thread's eight elements share a factor of its own and have eight that all threads share.
// This is the twiddle of W. M. Gentleman, G. Sande (1966), between two passes only.
//
// Cost: log * n/2 multiplications by roots (root.cuh), less n - 1 by ones where c = 1; per pass 64 bytes an element, and in
// the pass of the last levels up to 64 bytes of roots. With few roots two Montgomery products an element more.
#pragma once
#include "../tuning/ntt.cuh"
#include "root.cuh"

namespace sealc2 {

constexpr uint32_t ntt_tile = 1u << ntt_tile_log;
constexpr uint32_t ntt_threads = ntt_tile / 8;
constexpr uint32_t ntt_top = ntt_tile_log - 3; // the highest window

// NttPass is some neighbouring levels of a transform.
struct NttPass {
    uint32_t log;         // n = 2^log
    uint32_t stride_log;  // rows of a tile are 2^stride_log apart
    uint32_t column_log;  // and 2^column_log long; where log < ntt_tile_log, all columns but the first are empty
    uint32_t coset;       // 0, or 2^(levels above the pass + ntt_tile_log), which makes group k of a level 2^level + k
    uint32_t natural;     // 1 where a transform smaller than a tile has its values in natural order
    uint32_t inside;      // the digits of a group's number, times ntt_tile, that count: all, or those below the cut
};

// NttShift is what the pass below the cut needs to multiply by powers of t.
struct NttShift {
    const Fr* low;      // low[b] = roots[b << roots_log], in Montgomery form
    uint32_t log;       // roots[0, 2^log) are products of the two tables
    uint32_t roots_log; // the table of roots has 2^roots_log
    uint32_t rest_log;  // groups at the cut have 2^rest_log elements
    uint32_t coset;     // as NttPass's, of the tree as a whole
};

// ntt_power is e(turn/2^(log+1)), reduced.
SEALC2_DEVICE Fr ntt_power(const NttShift& shift, const FrRoot* roots, uint32_t turn) {
    const uint32_t k = __brev(turn) >> (32 - shift.log);
    const Fr x = mul(roots[k & ((1u << shift.roots_log) - 1)], shift.low[k >> shift.roots_log]);
    return turn >> shift.log & 1 ? neg(x) : x;
}

// NttPowers are the factors of a thread's elements in the top window: that of the first, and lane j's is what element j's is more.
struct NttPowers {
    Fr first, more;

    // of is x, element j, times its factor, below 2r. All threads call it together.
    SEALC2_DEVICE Fr of(uint32_t j, const Fr& x) const {
        if (j == 0) return mul_lazy(first, x);
        Fr f;
        SEALC2_UNROLL
        for (int i = 0; i < 8; i++) f.limb[i] = __shfl_sync(0xffffffffu, more.limb[i], j);
        return mul_lazy(first, mul_lazy(f, x));
    }
};

// Between its first load and its last store a transform's elements are below 2r, not r, which spares the products their
// last step: a product by a root takes any 256-bit number and is below 2r by itself.
SEALC2_CONSTANT(fr_twice, 8, 0x00000002u, 0xfffffffeu, 0xfffcb7fdu, 0xa77b4805u, 0x1343b00au, 0x6673b010u, 0x533afa90u, 0xe7db4ea6u)

// ntt_add and ntt_sub are the sum and the difference of elements below 2r, below 2r.
SEALC2_DEVICE Fr ntt_add(const Fr& a, const Fr& b) {
    Fr sum, less;
    const uint32_t over = add_limbs<8>(sum.limb, a.limb, b.limb);
    Carry c;
    less.limb[0] = sub_cc(c, sum.limb[0], fr_twice(0));
    SEALC2_UNROLL
    for (int j = 1; j < 8; j++) less.limb[j] = subc_cc(c, sum.limb[j], fr_twice(j));
    return select(int32_t(subc_cc(c, over, 0)) < 0, sum, less);
}
SEALC2_DEVICE Fr ntt_sub(const Fr& a, const Fr& b) {
    Fr r;
    const uint32_t borrow = sub_limbs<8>(r.limb, a.limb, b.limb);
    uint32_t back[8];
    SEALC2_UNROLL
    for (int j = 0; j < 8; j++) back[j] = borrow & fr_twice(j);
    add_limbs<8>(r.limb, r.limb, back);
    return r;
}

// ntt_mirror is the k' with roots[k'] = -1/roots[k], for k > 0.
SEALC2_DEVICE uint32_t ntt_mirror(uint32_t k) { return k ^ (0x7fffffffu >> __clz(int(k))); }

// ntt_level does the level of bit `bit` of the window; q is the group of the level of bit 2.
template <int bit, bool inverse> SEALC2_DEVICE void ntt_level(Fr* x, const FrRoot* roots, uint32_t q) {
    constexpr int half = 1 << bit, groups = 4 >> bit, ahead = bit == 0 ? ntt_ahead : 1;
    SEALC2_UNROLL
    for (int g = 0; g < groups; g++) {
        uint32_t k = q * groups + g;
        // An element below 2r is below 0xf0 * 2^248. What this adds, 0, keeps the compiler from loading all roots of the level at
        // once, for which there are no registers.
        if (g >= ahead) k += x[2 * (g - ahead) * half].limb[7] >= 0xf0000000u;
        const bool plain = k == 0; // its root is 1
        const FrRoot w = roots[inverse && !plain ? ntt_mirror(k) : k];
        SEALC2_UNROLL
        for (int j = 0; j < half; j++) {
            Fr& u = x[2 * g * half + j];
            Fr& v = x[(2 * g + 1) * half + j];
            if (inverse) {
                const Fr sum = ntt_add(u, v);
                v = plain ? ntt_sub(u, v) : mul_lazy(w, ntt_sub(v, u));
                u = sum;
            } else {
                if (!plain) v = mul_lazy(w, v);
                const Fr difference = ntt_sub(u, v);
                u = ntt_add(u, v);
                v = difference;
            }
        }
    }
}

// NttBlock is a block's part of a pass.
struct NttBlock {
    uint4* shared;       // two halves of each element of the tile
    const NttPass& pass;
    uint32_t first;      // place of the tile in the vector
    uint32_t group;      // of the tile at the level of the tile's highest bit, times ntt_tile

    SEALC2_DEVICE NttBlock(uint4* shared_, const NttPass& pass_, uint32_t tile) : shared(shared_), pass(pass_) {
        const uint32_t across = max(pass.stride_log, pass.column_log) - pass.column_log; // tiles side by side
        const uint32_t g = tile >> across, column = tile & ((1u << across) - 1);
        first = (g << (pass.stride_log + ntt_tile_log - pass.column_log)) + (column << pass.column_log);
        group = g << ntt_tile_log;
    }

    // thread is the caller among those of its tile.
    SEALC2_DEVICE static uint32_t thread() { return threadIdx.x % ntt_threads; }

    // index is the place in the tile of the thread's first element in a window.
    SEALC2_DEVICE static uint32_t index(uint32_t window) {
        const uint32_t low = thread() & ((1u << window) - 1);
        return (thread() ^ low) << 3 | low;
    }

    // slot spreads the tile over shared memory so that eight lanes always meet all banks, in any window, and where they
    // differ in the highest bits.
    SEALC2_DEVICE static uint32_t slot(uint32_t i) { return i ^ (i >> 3 & 7) ^ i >> (ntt_tile_log - 3); }

    // place is an element's place in the vector.
    SEALC2_DEVICE uint32_t place(uint32_t i) const {
        return first + (i >> pass.column_log << pass.stride_log) + (i & ((1u << pass.column_log) - 1));
    }

    // holds tells places of the tile that are in the vector.
    SEALC2_DEVICE bool holds(uint32_t i) const { return pass.log >= ntt_tile_log || (i & ((1u << pass.column_log) - 1)) == 0; }

    SEALC2_DEVICE void load(Fr* x, const Fr* v, uint32_t window) const {
        const uint32_t at = index(window);
        SEALC2_UNROLL
        for (uint32_t k = 0; k < 8; k++) x[k] = holds(at | k << window) ? v[place(at | k << window)] : Fr::zero();
    }

    SEALC2_DEVICE void store(Fr* v, const Fr* x, uint32_t window) const {
        const uint32_t at = index(window);
        SEALC2_UNROLL
        for (uint32_t k = 0; k < 8; k++)
            if (holds(at | k << window)) v[place(at | k << window)] = x[k];
    }

    // write and read move one element of the tile to and from shared memory.
    SEALC2_DEVICE void write(uint32_t i, const Fr& x) const {
        const uint32_t s = slot(i);
        shared[s] = make_uint4(x.limb[0], x.limb[1], x.limb[2], x.limb[3]);
        shared[s + ntt_tile] = make_uint4(x.limb[4], x.limb[5], x.limb[6], x.limb[7]);
    }
    SEALC2_DEVICE Fr read(uint32_t i) const {
        const uint32_t s = slot(i);
        const uint4 a = shared[s], b = shared[s + ntt_tile];
        return Fr{{a.x, a.y, a.z, a.w, b.x, b.y, b.z, b.w}};
    }

    SEALC2_DEVICE void write_all(const Fr* x, uint32_t window) const {
        const uint32_t at = index(window);
        SEALC2_UNROLL
        for (uint32_t k = 0; k < 8; k++) write(at | k << window, x[k]);
    }
    SEALC2_DEVICE void read_all(Fr* x, uint32_t window) const {
        const uint32_t at = index(window);
        SEALC2_UNROLL
        for (uint32_t k = 0; k < 8; k++) x[k] = read(at | k << window);
    }

    // exchange moves the block's elements from one window to another.
    SEALC2_DEVICE void exchange(Fr* x, uint32_t from, uint32_t to) const {
        write_all(x, from);
        __syncthreads();
        read_all(x, to);
        __syncthreads();
    }

    // bottom is the window in which a pass's lowest level is done.
    SEALC2_DEVICE uint32_t bottom() const { return min(pass.column_log, ntt_top); }

    // steps is the number of exchanges between the top window and the bottom one, three bits each but for the lowest.
    SEALC2_DEVICE uint32_t steps() const { return (ntt_top + 2 - bottom()) / 3; }

    // forward does the pass's levels, from the top window to the bottom one.
    SEALC2_DEVICE void forward(Fr* x, const FrRoot* roots) const {
        const uint32_t begin = pass.column_log, base = (group & pass.inside) + pass.coset;
        SEALC2_ROLL
        for (uint32_t window = ntt_top;;) {
            // Bits below are columns; those from end on were done in the window before, which may overlap the last.
            const uint32_t end = window > begin || window == ntt_top ? ntt_tile_log : ntt_top + 3 - 3 * steps();
            const uint32_t q = (base + index(window)) >> (window + 3);
            if (window + 2 >= begin && window + 2 < end) ntt_level<2, false>(x, roots, q);
            if (window + 1 >= begin && window + 1 < end) ntt_level<1, false>(x, roots, q);
            if (window >= begin) ntt_level<0, false>(x, roots, q);
            if (window <= begin) break;
            const uint32_t next = max(window, begin + 3) - 3;
            exchange(x, window, next);
            window = next;
        }
    }

    // inverse does the levels of the tile's bits from `low` up to those of the window `last`, from the window `from` on, in which
    // x ends. place(i) is element i's place in the vector, counted from the coset's first group.
    template <class F> SEALC2_DEVICE void inverse(Fr* x, const FrRoot* roots, uint32_t low, uint32_t from, uint32_t last, const F& place) const {
        SEALC2_ROLL
        for (uint32_t window = from;;) {
            // In the last window the one before may have done some bits, or they are columns.
            const uint32_t begin = window < last ? window : low + (last + 2 - from) / 3 * 3;
            const uint32_t q = place(index(window)) >> (window + 3);
            if (window >= begin) ntt_level<0, true>(x, roots, q);
            if (window + 1 >= begin) ntt_level<1, true>(x, roots, q);
            if (window + 2 >= begin) ntt_level<2, true>(x, roots, q);
            if (window == last) break;
            const uint32_t next = min(window + 3, last);
            exchange(x, window, next);
            window = next;
        }
    }

    // raise multiplies x, the elements of the top window, by their powers of t or by their inverses, and hands them out, one at a time in a
    // short loop: f(place in the tile, element). They wait in their own places in shared memory, since there are no registers for them and
    // for the powers.
    template <class F> SEALC2_DEVICE void raise(const Fr* x, const FrRoot* roots, const NttShift& s, bool inverse, const F& f) const {
        write_all(x, ntt_top);
        const uint32_t k = (group + s.coset) >> ntt_tile_log, at = index(ntt_top);
        const uint32_t turn = __brev(k) >> (31 - (s.log - s.rest_log)), t = inverse ? 0 - turn : turn;
        const NttPowers powers = {ntt_power(s, roots, t * (place(at) & ((1u << s.rest_log) - 1))),
                                  ntt_power(s, roots, t * (place((at & 7) << ntt_top) - first))};
        SEALC2_ROLL
        for (uint32_t j = 0; j < 8; j++) f(at | j << ntt_top, powers.of(j, read(at | j << ntt_top)));
    }

    // load_bottom loads for the bottom window. Where columns are single elements, memory is read in the top window, so that
    // neighbours read neighbours.
    SEALC2_DEVICE void load_bottom(Fr* x, const Fr* v) const {
        const bool single = pass.column_log == 0;
        load(x, v, single ? ntt_top : bottom());
        if (single) exchange(x, ntt_top, 0);
    }

    // load_reversed loads the values of a transform smaller than a tile from natural order.
    SEALC2_DEVICE void load_reversed(Fr* x, const Fr* v) const {
        const uint32_t at = index(bottom());
        SEALC2_UNROLL
        for (uint32_t k = 0; k < 8; k++) {
            const uint32_t i = at | k << bottom();
            x[k] = holds(i) ? v[(__brev(i >> pass.column_log) >> 1) >> (31 - pass.log)] : Fr::zero();
        }
        __syncthreads(); // what others load may be stored to from here on
    }

    // each hands the tile's elements out, of which x holds those of a window, one at a time in a short loop: f(place in the
    // vector, element). Neighbouring threads get neighbours.
    template <class F> SEALC2_DEVICE void each(const Fr* x, uint32_t window, const F& f) const {
        write_all(x, window);
        __syncthreads();
        SEALC2_ROLL
        for (uint32_t i = thread(); i < ntt_tile; i += ntt_threads)
            if (holds(i)) f(place(i), read(i));
    }
};

// NttFinish is what becomes of the result x of an inverse transform: x, x * scale, or other * other_scale - x * scale.
struct NttFinish {
    const Fr* other;
    Fr scale, other_scale;
    uint32_t kind; // ntt_plain, ntt_scaled, ntt_subtracted
};
constexpr uint32_t ntt_plain = 0, ntt_scaled = 1, ntt_subtracted = 2;

} // namespace sealc2
