#pragma once

// Layouts of vectors that an IPU has; the model knows them all.
#define VECTOR_AVAIL_SHORT_SPAN
#define VECTOR_AVAIL_SCALED_PTR32
#define VECTOR_AVAIL_SCALED_PTR64
#define VECTOR_AVAIL_SCALED_PTR128
#define VECTORLIST_AVAIL_DELTAN
#define VECTORLIST_AVAIL_DELTANELEMENTS
