#pragma once

/// The index that means "no label" to encodeOneHot, selectScalarFromRows and losses.
#define MASKED_LABEL_CODE 0xFFFFFFFFU

/// Losses add this before a logarithm so that a probability of 0 stays finite: the smallest normal
/// float, and the smallest subnormal half. Source: PopLibs popops/EncodingConstants.hpp.
#define EPS_LOG_N_FLOAT (1.17549435e-38F)
#define EPS_LOG_N_HALF (5.9605e-8F)
