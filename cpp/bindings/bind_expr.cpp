#include <pybind11/native_enum.h>

#include "bindings/backend.hpp"
#include "bindings/bindings.hpp"
#include "popnn/NonLinearity.hpp"
#include "popops/Cast.hpp"
#include "popops/ElementWise.hpp"
#include "popops/ScaledAdd.hpp"
#include "popops/Zero.hpp"
#include "popx/Expr.hpp"
#include "popx/HalfOverflow.hpp"
#include "popx/Layout.hpp"
#include "popx/Map.hpp"
#include "popx/Rounding.hpp"
#include "popx/VariableUse.hpp"

namespace pe = popx::expr;

namespace {

pe::Const constant(Type type, const Number& value) {
  if (py::isinstance<py::float_>(value)) return {type, value.cast<double>()};
  if (py::isinstance<py::bool_>(value)) return {type, value.cast<bool>()};
  const py::int_ integer(value);
  if (type == poplar::UNSIGNED_LONGLONG) return {type, integer.cast<std::uint64_t>()};
  return {type, integer.cast<std::int64_t>()};
}

template <class T>
pe::Expr unary(const pe::Expr& a) {
  return T(a);
}
template <class T>
pe::Expr binary(const pe::Expr& a, const pe::Expr& b) {
  return T(a, b);
}
template <class T>
pe::Expr ternary(const pe::Expr& a, const pe::Expr& b, const pe::Expr& c) {
  return T(a, b, c);
}

void bindPopopsExpr(py::module_& m) {
  py::class_<pe::Expr>(m, "Expr")
      .def("__repr__", &pe::Expr::toString)
      .def("__add__", &binary<pe::Add>)
      .def("__sub__", &binary<pe::Sub>)
      .def("__mul__", &binary<pe::Mul>)
      .def("__truediv__", &binary<pe::Divide>)
      .def("__neg__", &unary<pe::Neg>)
      .def("deepEquals", &pe::Expr::deepEquals);
  m.def(
      "Const", [](Type type, const Number& value) { return pe::Expr(constant(type, value)); },
      "type"_a, "value"_a);
  m.def(
      "Const", [](double value) { return pe::Expr(pe::Const(value)); }, "value"_a);
  m.def(
      "PlaceHolder", [](unsigned index) { return pe::Expr(pe::PlaceHolder(index)); }, "index"_a);
  m.def(
      "Cast", [](const pe::Expr& a, Type type) { return pe::Expr(pe::Cast(a, type)); }, "a"_a,
      "type"_a);
#define UNARY(Name, name, traits, api, ...) api
#define POPOPS_EXPR(Name, Class, TYPE) m.def(#Class, &unary<pe::Class>, "a"_a);
#include "engine/ops/ElementwiseOps.def"
#define BINARY(Name, name, traits, api, ...) api
#define POPOPS_EXPR(Name, Class, TYPE) m.def(#Class, &binary<pe::Class>, "a"_a, "b"_a);
#include "engine/ops/ElementwiseOps.def"
  m.def("Select", &ternary<pe::Select>, "if_true"_a, "if_false"_a, "predicate"_a);
  m.def("Clamp", &ternary<pe::Clamp>, "value"_a, "lowest"_a, "highest"_a);
}

void bindPopxExpr(py::module_& m) {
  m.def(
      "Rounded",
      [](const pe::Expr& a, std::int64_t stream) {
        return pe::Expr(popx::expr::Rounded(a, stream));
      },
      "a"_a, "stream"_a);
#define UNARY(Name, name, traits, api, ...) api
#define POPX(Name) m.def(#Name, &unary<pe::Name>, "a"_a);
#include "engine/ops/ElementwiseOps.def"
#define BINARY(Name, name, traits, api, ...) api
#define POPX(Name) m.def(#Name, &binary<pe::Name>, "a"_a, "b"_a);
#include "engine/ops/ElementwiseOps.def"
  m.def(
      "Bitcast", [](const pe::Expr& a, Type type) { return pe::Expr(pe::Bitcast(a, type)); }, "a"_a,
      "type"_a);
  m.def(
      "ReducePrecision",
      [](const pe::Expr& a, int exponent_bits, int mantissa_bits) {
        return pe::Expr(pe::ReducePrecision(a, exponent_bits, mantissa_bits));
      },
      "a"_a, "exponent_bits"_a, "mantissa_bits"_a);
}

void bindPopops(py::module_& m) {
  m.def(
      "map",
      [](Graph& graph, const pe::Expr& expr, const Tensors& ts, Sequence& prog,
         const DebugContext& debug) { return backend::map(graph, expr, ts, prog, debug); },
      "graph"_a, "expr"_a, "ts"_a, "prog"_a, debugArg());
  m.def(
      "mapInPlace",
      [](Graph& graph, const pe::Expr& expr, const Tensors& ts, Sequence& prog,
         const DebugContext& debug) { backend::mapInPlace(graph, expr, ts, prog, debug); },
      "graph"_a, "expr"_a, "ts"_a, "prog"_a, debugArg());
  m.def(
      "add",
      [](Graph& graph, const Tensor& a, const Tensor& b, Sequence& prog,
         const DebugContext& debug) { return popops::add(graph, a, b, prog, debug); },
      "graph"_a, "a"_a, "b"_a, "prog"_a, debugArg());
  m.def(
      "scaledAddTo",
      [](Graph& graph, const Tensor& a, const Tensor& b, float scale, Sequence& prog,
         const DebugContext& debug) { popops::scaledAddTo(graph, a, b, scale, prog, debug); },
      "graph"_a, "a"_a, "b"_a, "scale"_a, "prog"_a, debugArg());
  m.def(
      "cast",
      [](Graph& graph, const Tensor& src, Type type, Sequence& prog, const DebugContext& debug) {
        return popops::cast(graph, src, type, prog, debug);
      },
      "graph"_a, "src"_a, "type"_a, "prog"_a, debugArg());
  m.def(
      "cast",
      [](Graph& graph, const Tensor& src, Type type, const Tensor& metadata, Sequence& prog,
         const DebugContext& debug) {
        return popops::cast(graph, src, type, metadata, prog, debug);
      },
      "graph"_a, "src"_a, "type"_a, "metadata"_a, "prog"_a, debugArg());
  m.def(
      "fill",
      [](Graph& graph, const Tensor& t, Sequence& prog, const Number& value,
         const DebugContext& debug) {
        backend::fill(graph, t, prog, constant(t.elementType(), value), debug);
      },
      "graph"_a, "t"_a, "prog"_a, "value"_a, debugArg());
  m.def("zero",
        py::overload_cast<Graph&, const Tensor&, Sequence&, const DebugContext&>(&popops::zero),
        "graph"_a, "t"_a, "prog"_a, debugArg());
}

void bindPopnn(py::module_& m) {
  py::native_enum<popnn::NonLinearityType>(m, "NonLinearityType", "enum.Enum")
      .value("SIGMOID", popnn::NonLinearityType::SIGMOID)
      .value("HARD_SIGMOID", popnn::NonLinearityType::HARD_SIGMOID)
      .value("SOFTMAX_STABLE", popnn::NonLinearityType::SOFTMAX_STABLE)
      .value("RELU", popnn::NonLinearityType::RELU)
      .value("TANH", popnn::NonLinearityType::TANH)
      .value("GELU", popnn::NonLinearityType::GELU)
      .value("GELU_ERF", popnn::NonLinearityType::GELU_ERF)
      .value("SWISH", popnn::NonLinearityType::SWISH)
      .finalize();
  m.def(
      "nonLinearity",
      [](Graph& graph, popnn::NonLinearityType type, const Tensor& t, Sequence& prog,
         const DebugContext& debug) { return popnn::nonLinearity(graph, type, t, prog, debug); },
      "graph"_a, "type"_a, "t"_a, "prog"_a, debugArg());
}
}  // namespace

void bindExpr(py::module_& m) {
  auto popops = m.def_submodule("popops");
  auto popops_expr = popops.def_submodule("expr");
  auto popx = m.def_submodule("popx");
  popx.def("setHalfOverflow", &popx::setHalfOverflow, "graph"_a, "behaviour"_a, "prog"_a);
  popx.def("runKeys", &popx::runKeys, "graph"_a, "replicas"_a, "prog"_a, debugArg());
  popx.def("makeKey", &popx::makeKey, "graph"_a, debugArg());
  popx.def("foldKey", &popx::foldKey, "graph"_a, "key"_a, "number"_a, "offset"_a, "factor"_a,
           "folded"_a, "prog"_a, debugArg());
  popx.def("startCount", &popx::startCount, "graph"_a, "prog"_a, debugArg());
  popx.def("count", &popx::count, "graph"_a, "number"_a, "prog"_a, debugArg());
  popx.def("setRoundingKey", &popx::setRoundingKey, "graph"_a, "key"_a, "stream"_a);
  popx.def("sameLayout", &popx::sameLayout, "a"_a, "b"_a);
  popx.def("setLayoutGroup", &popx::setLayoutGroup, "graph"_a, "group"_a);
  py::native_enum<popx::VariableUse>(popx, "VariableUse", "enum.Enum")
      .value("TEMPORARY", popx::VariableUse::kTemporary)
      .value("ACCUMULATOR", popx::VariableUse::kAccumulator)
      .value("STASH", popx::VariableUse::kStash)
      .finalize();
  popx.def("setVariableUse", &popx::setVariableUse, "graph"_a, "t"_a, "use"_a);
  auto popx_expr = popx.def_submodule("expr");
  auto popnn = m.def_submodule("popnn");
  bindPopopsExpr(popops_expr);
  bindPopxExpr(popx_expr);
  bindPopops(popops);
  bindPopnn(popnn);
  popx.def("map", &popx::map, "graph"_a, "exprs"_a, "ts"_a, "prog"_a, debugArg());
}
