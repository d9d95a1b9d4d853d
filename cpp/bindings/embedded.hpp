#pragma once
#include <pybind11/pybind11.h>

/// Saved programs, and failures of devices.
void bindEmbedded(pybind11::module_& m);
