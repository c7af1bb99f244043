// Entries of the sums over G1.
#include "entries.cuh"

using namespace sealc2;
using namespace sealc2::msm;

MSM_ENTRIES(g1, Fp);
