#pragma once
#include "bindings/bindings.hpp"

// Only for the model.

/// Called after bindSignature; binds how images are built and inspected.
void bindEngine(py::module_& m);
