#pragma once

/// Named by vertex classes whose workers need an aligned entry point; the model needs none.
#define WORKER_ALIGN
