#pragma once
#include <pybind11/pybind11.h>

/// The submodule of this name, made by whichever library comes first.
inline pybind11::module_ submodule(pybind11::module_& m, const char* name) {
  if (pybind11::hasattr(m, name)) return m.attr(name);
  return m.def_submodule(name);
}

/// One function for each bind_<library>.cpp, in the order they must run.
void bindPoplar(pybind11::module_& m);
void bindExpr(pybind11::module_& m);
void bindReduce(pybind11::module_& m);
void bindMove(pybind11::module_& m);
void bindPoplin(pybind11::module_& m);
void bindLinalg(pybind11::module_& m);
void bindGcl(pybind11::module_& m);
void bindEngine(pybind11::module_& m);
