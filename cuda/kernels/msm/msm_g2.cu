// Entries of the sums over G2.
#include "entries.cuh"

using namespace sealc2;
using namespace sealc2::msm;

MSM_ENTRIES(g2, Fp2);
