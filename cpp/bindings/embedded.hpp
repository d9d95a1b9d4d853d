#pragma once
#include "bindings/bindings.hpp"
#include "embedded/Package.hpp"

/// Saved programs, and failures of devices.
void bindEmbedded(py::module_& m);
/// What runs them.
void bindSessions(py::module_& m);

/// What a file says of its program.
py::typing::Dict<py::str, Any> describe(const ipujax::embedded::Package& package);
