#pragma once
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <pybind11/typing.h>

#include "poplar/ArrayRef.hpp"
#include "poplar/OptionFlags.hpp"

/// One function for each bind_<library>.cpp, in the order they must run.
void bindPoplar(pybind11::module_& m);
void bindExpr(pybind11::module_& m);
void bindReduce(pybind11::module_& m);
void bindMove(pybind11::module_& m);
void bindPoplin(pybind11::module_& m);
void bindLinalg(pybind11::module_& m);
void bindGcl(pybind11::module_& m);
void bindEngine(pybind11::module_& m);

/// The submodule of this name, made by whichever library comes first.
inline pybind11::module_ submodule(pybind11::module_& m, const char* name) {
  if (pybind11::hasattr(m, name)) return m.attr(name);
  return m.def_submodule(name);
}

/// A value of an expression; the stubs name these types.
using Number = pybind11::typing::Union<pybind11::float_, pybind11::int_, pybind11::bool_>;

/// A Python object that the stubs call Any.
struct Any : pybind11::object {
  using object::object;
};

namespace pybind11::detail {

template <>
struct handle_type_name<Any> {
  static constexpr auto name = const_name("typing.Any");
};

/// Options are a mapping of names to texts in Python.
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
