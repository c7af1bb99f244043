// Numbers of kinds/kinds.cuh. They change times, never results.
#pragma once

namespace sealc2 {

constexpr int kinds_items = 4; // elements that a thread reads at a time

} // namespace sealc2
