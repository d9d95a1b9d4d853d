#pragma once

/// The index of encodeOneHot, selectScalarFromRows and of losses that stands for none.
#define MASKED_LABEL_CODE 0xFFFFFFFFU

/// What losses add before a logarithm so that a probability of 0 stays finite: the smallest normal
/// float, and the smallest subnormal half. Source: PopLibs popops/EncodingConstants.hpp.
#define EPS_LOG_N_FLOAT (1.17549435e-38F)
#define EPS_LOG_N_HALF (5.9605e-8F)
