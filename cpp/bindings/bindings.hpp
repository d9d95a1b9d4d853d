#pragma once
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <pybind11/typing.h>

#include "poplar/Graph.hpp"
#include "poplar/Program.hpp"

// Names that every file of this folder uses.
namespace py = pybind11;
using namespace pybind11::literals;  // NOLINT: for bindings only
using poplar::ArrayRef;
using poplar::DebugContext;
using poplar::Graph;
using poplar::OptionFlags;
using poplar::Tensor;
using poplar::Type;
using poplar::program::Sequence;
using Shape = std::vector<std::size_t>;
using Tensors = std::vector<Tensor>;

/// One function for each bind_<library>.cpp, in the order in which they must run.
void bindPoplar(py::module_& m);
void bindVertices(py::module_& m);
void bindExpr(py::module_& m);
void bindReduce(py::module_& m);
void bindMove(py::module_& m);
void bindPoplin(py::module_& m);
void bindLinalg(py::module_& m);
void bindRecurrent(py::module_& m);
void bindNorms(py::module_& m);
void bindGcl(py::module_& m);
void bindCustomOps(py::module_& m);
void bindSignature(py::module_& m);
void bindFeeds(py::module_& m);

/// The submodule of this name, made by whichever library comes first.
inline py::module_ submodule(py::module_& m, const char* name) {
  if (py::hasattr(m, name)) return m.attr(name);
  return m.def_submodule(name);
}

/// The last arguments of many functions, which may be left out.
inline py::arg_v debugArg() { return "debug"_a = DebugContext(); }
inline py::arg_v optionsArg() { return "options"_a = py::dict(); }
inline py::arg_v cacheArg() { return "cache"_a = nullptr; }

/// A value of an expression; the stubs name these types.
using Number = py::typing::Union<py::float_, py::int_, py::bool_>;

/// A Python object that the stubs call Any.
struct Any : py::object {
  using object::object;
};

namespace pybind11::detail {

template <>
struct handle_type_name<Any> {
  static constexpr auto name = const_name("typing.Any");
};

/// Options are a mapping of strings to strings in Python.
template <>
struct type_caster<poplar::OptionFlags> {
  PYBIND11_TYPE_CASTER(poplar::OptionFlags, const_name("collections.abc.Mapping[str, str]"));
  bool load(handle source, bool convert) {
    using Options = std::map<std::string, std::string>;
    make_caster<Options> options;
    if (!options.load(source, convert)) return false;
    for (const auto& [option, text] : cast_op<const Options&>(options)) value.set(option, text);
    return true;
  }
};

/// A sequence in Python; the caster holds the elements while the call runs.
template <class T>
struct type_caster<poplar::ArrayRef<T>> {
  static constexpr auto name = make_caster<std::vector<T>>::name;
  template <class>
  using cast_op_type = poplar::ArrayRef<T>;
  bool load(handle source, bool convert) { return elements_.load(source, convert); }
  operator poplar::ArrayRef<T>() { return cast_op<std::vector<T>&>(elements_); }

 private:
  make_caster<std::vector<T>> elements_;
};

}  // namespace pybind11::detail
