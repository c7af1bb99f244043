// Numbers of the transforms (ntt/ntt.cuh), chosen by measurement; docs/kernels.md says on which card.
#pragma once

namespace sealc2 {

// A block holds 2^ntt_tile_log elements of 32 bytes, in registers and, to exchange them, in shared memory.
#if !defined(SEALC2_NTT_TILE_LOG)
#define SEALC2_NTT_TILE_LOG 10
#endif
// Blocks that share a multiprocessor, which bounds the registers of a thread.
#if !defined(SEALC2_NTT_BLOCKS)
#define SEALC2_NTT_BLOCKS 4
#endif

// Roots of the level with four of them are loaded so many butterflies ahead.
#if !defined(SEALC2_NTT_AHEAD)
#define SEALC2_NTT_AHEAD 1
#endif

constexpr int ntt_tile_log = SEALC2_NTT_TILE_LOG;
constexpr int ntt_blocks = SEALC2_NTT_BLOCKS;
constexpr int ntt_ahead = SEALC2_NTT_AHEAD;

} // namespace sealc2
