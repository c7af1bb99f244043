// Numbers of the evaluation of rows (rows/rows.cuh). cuda/rows has them too, and a test compares.
#pragma once

namespace sealc2 {

constexpr int rows_block = 128;  // threads of a block
constexpr int rows_lanes = 8;    // threads that share a long row
constexpr int rows_values = 64;  // integers from -rows_values/2 on whose Montgomery form is in a table

} // namespace sealc2
