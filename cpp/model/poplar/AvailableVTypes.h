#pragma once

// Vector layouts of an IPU; the model supports all of them.
#define VECTOR_AVAIL_SHORT_SPAN
#define VECTOR_AVAIL_SCALED_PTR32
#define VECTOR_AVAIL_SCALED_PTR64
#define VECTOR_AVAIL_SCALED_PTR128
#define VECTORLIST_AVAIL_DELTAN
#define VECTORLIST_AVAIL_DELTANELEMENTS
