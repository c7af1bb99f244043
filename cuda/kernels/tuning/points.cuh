// Numbers of the kernels of points/, chosen by measurement; docs/kernels.md says on which card.
#pragma once
#include "../device.cuh"

namespace sealc2 {
namespace points {

// Threads of a block: kernels with inversions, and those that add in xyzz, hold 100 to 250 registers.
constexpr int block_threads = 128;

} // namespace points
} // namespace sealc2
