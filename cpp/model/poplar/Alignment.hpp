#pragma once

/// Classes of vertices whose workers need an aligned entry name it; on the model none does.
#define WORKER_ALIGN
