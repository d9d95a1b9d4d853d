#pragma once
#include "bindings/bindings.hpp"

// For the model alone.

/// Libraries of custom ops, which build graphs with the extension's copy of the Poplar API.
void bindCustomOps(py::module_& m);
/// After bindSignature: how images are built and what they hold.
void bindEngine(py::module_& m);
