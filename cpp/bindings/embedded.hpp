#pragma once
#include "bindings/bindings.hpp"
#include "embedded/Package.hpp"

/// Binds saved programs and failures of devices.
void bindEmbedded(py::module_& m);
/// Binds the classes that run saved programs.
void bindSessions(py::module_& m);

/// The description of a file's program.
py::typing::Dict<py::str, Any> describe(const ipujax::embedded::Package& package);
