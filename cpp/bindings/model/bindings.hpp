#pragma once
#include "bindings/bindings.hpp"

// For the model alone.

/// After bindSignature: how images are built and what they hold.
void bindEngine(py::module_& m);
