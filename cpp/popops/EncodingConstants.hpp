#pragma once

/// The index of encodeOneHot, selectScalarFromRows and of losses that stands for none.
#define MASKED_LABEL_CODE 0xFFFFFFFFU
