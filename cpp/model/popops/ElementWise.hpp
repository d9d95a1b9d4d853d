#pragma once
#include <iosfwd>
#include <type_traits>
#include <vector>

#include "poplar/DebugContext.hpp"
#include "poplar/Graph.hpp"
#include "poplar/OptionFlags.hpp"
#include "poplar/Program.hpp"
#include "popops/Expr.hpp"
#include "poputil/DebugInfo.hpp"
#include "poputil/exceptions.hpp"

namespace poputil {
template <>
poplar::ProfileValue toProfileValue(const popops::expr::UnaryOpType& op);
template <>
poplar::ProfileValue toProfileValue(const popops::expr::BinaryOpType& op);
template <>
poplar::ProfileValue toProfileValue(const popops::expr::TernaryOpType& op);
}  // namespace poputil

namespace popops {

/// Applies an expression to the elements of tensors, which are broadcast to a common shape by
/// numpy's rules; `_1` is ts[0]. Cost: popops/internal/ElementWiseCost.hpp. The only option with an
/// effect is forceGenerateCodelet: reports name the vertex of a single operation as a map's.
poplar::Tensor map(poplar::Graph& graph, const expr::Expr& expr,
                   const std::vector<poplar::Tensor>& ts, poplar::program::Sequence& prog,
                   const poplar::DebugContext& debugContext = {},
                   const poplar::OptionFlags& options = {});

/// The same, with the result written to ts[0], and converted to its type.
void mapInPlace(poplar::Graph& graph, const expr::Expr& expr, const std::vector<poplar::Tensor>& ts,
                poplar::program::Sequence& prog, const poplar::DebugContext& debugContext = {},
                const poplar::OptionFlags& options = {});

/// The same, with the result written to `out`.
void mapWithOutput(poplar::Graph& graph, const expr::Expr& expr,
                   const std::vector<poplar::Tensor>& ts, const poplar::Tensor& out,
                   poplar::program::Sequence& prog, const poplar::DebugContext& debugContext = {},
                   const poplar::OptionFlags& options = {});

/// The same with several expressions in one step: result i is that of exprs[i]. In place, it is
/// written to ts[i]; all expressions read the tensors' previous values. Throws poplibs_error if the
/// lengths do not match.
std::vector<poplar::Tensor> map(poplar::Graph& graph, const std::vector<expr::Any>& exprs,
                                const std::vector<poplar::Tensor>& ts,
                                poplar::program::Sequence& prog,
                                const poplar::DebugContext& debugContext = {},
                                const poplar::OptionFlags& options = {});
void mapInPlace(poplar::Graph& graph, const std::vector<expr::Any>& exprs,
                const std::vector<poplar::Tensor>& ts, poplar::program::Sequence& prog,
                const poplar::DebugContext& debugContext = {},
                const poplar::OptionFlags& options = {});
void mapWithOutput(poplar::Graph& graph, const std::vector<expr::Any>& exprs,
                   const std::vector<poplar::Tensor>& ts, const std::vector<poplar::Tensor>& outs,
                   poplar::program::Sequence& prog, const poplar::DebugContext& debugContext = {},
                   const poplar::OptionFlags& options = {});

/// Writes a codelet in C++ that computes the expression as `map` does, for popc or
/// Graph::addCodelets: a Vertex with a field `inK` for each placeholder K that it uses (a vector,
/// or a scalar for a tensor of one element) and the vector `out`. The model's `map` runs a kernel
/// instead. Throws poplibs_error for operations and types that codelets do not have. Options have
/// no effect.
void outputGeneratedCodelet(const poplar::Target& target, const expr::Expr& expr,
                            const std::vector<poplar::Tensor>& ts,
                            const poplar::OptionFlags& options, std::ostream& os);

#define IPUJAX_POPOPS_TAIL         \
  poplar::program::Sequence &prog, \
      const poplar::DebugContext &debugContext = {}, const poplar::OptionFlags &options = {}

inline poplar::Tensor map(poplar::Graph& graph, expr::UnaryOpType op, const poplar::Tensor& t,
                          IPUJAX_POPOPS_TAIL) {
  return map(graph, expr::UnaryOp(op, expr::_1), {t}, prog, debugContext, options);
}
inline poplar::Tensor map(poplar::Graph& graph, expr::BinaryOpType op, const poplar::Tensor& a,
                          const poplar::Tensor& b, IPUJAX_POPOPS_TAIL) {
  return map(graph, expr::BinaryOp(op, expr::_1, expr::_2), {a, b}, prog, debugContext, options);
}
inline poplar::Tensor map(poplar::Graph& graph, expr::TernaryOpType op, const poplar::Tensor& a,
                          const poplar::Tensor& b, const poplar::Tensor& c, IPUJAX_POPOPS_TAIL) {
  return map(graph, expr::TernaryOp(op, expr::_1, expr::_2, expr::_3), {a, b, c}, prog,
             debugContext, options);
}
inline void mapInPlace(poplar::Graph& graph, expr::UnaryOpType op, const poplar::Tensor& t,
                       IPUJAX_POPOPS_TAIL) {
  mapInPlace(graph, expr::UnaryOp(op, expr::_1), {t}, prog, debugContext, options);
}
inline void mapInPlace(poplar::Graph& graph, expr::BinaryOpType op, const poplar::Tensor& a,
                       const poplar::Tensor& b, IPUJAX_POPOPS_TAIL) {
  mapInPlace(graph, expr::BinaryOp(op, expr::_1, expr::_2), {a, b}, prog, debugContext, options);
}
inline void mapInPlace(poplar::Graph& graph, expr::TernaryOpType op, const poplar::Tensor& a,
                       const poplar::Tensor& b, const poplar::Tensor& c, IPUJAX_POPOPS_TAIL) {
  mapInPlace(graph, expr::TernaryOp(op, expr::_1, expr::_2, expr::_3), {a, b, c}, prog,
             debugContext, options);
}

inline void mapWithOutput(poplar::Graph& graph, expr::UnaryOpType op, const poplar::Tensor& t,
                          const poplar::Tensor& out, IPUJAX_POPOPS_TAIL) {
  mapWithOutput(graph, expr::UnaryOp(op, expr::_1), {t}, out, prog, debugContext, options);
}
inline void mapWithOutput(poplar::Graph& graph, expr::BinaryOpType op, const poplar::Tensor& a,
                          const poplar::Tensor& b, const poplar::Tensor& out, IPUJAX_POPOPS_TAIL) {
  mapWithOutput(graph, expr::BinaryOp(op, expr::_1, expr::_2), {a, b}, out, prog, debugContext,
                options);
}
inline void mapWithOutput(poplar::Graph& graph, expr::TernaryOpType op, const poplar::Tensor& a,
                          const poplar::Tensor& b, const poplar::Tensor& c,
                          const poplar::Tensor& out, IPUJAX_POPOPS_TAIL) {
  mapWithOutput(graph, expr::TernaryOp(op, expr::_1, expr::_2, expr::_3), {a, b, c}, out, prog,
                debugContext, options);
}

/// Throws poplibs_error unless a constant of the host's type T matches elements of `elementType`:
/// a float or double matches FLOAT and HALF, any other T its own type.
template <typename T>
void checkTypes(poplar::Type elementType, T /*constant*/) {
  using Host = std::conditional_t<std::is_same_v<T, double>, float, T>;
  const poplar::Type type = poplar::equivalent_device_type<Host>::value;
  if (elementType != type && (type != poplar::FLOAT || elementType != poplar::HALF)) {
    throw poputil::poplibs_error("[popops] needs a constant of the tensor's type, " +
                                 elementType.toString() + "; got one of " + type.toString() +
                                 ". Convert it.");
  }
}

#define UNARY(Name, name, traits, api, ...) api
#define POPOPS(Name, Class, TYPE, fn)                                                           \
  inline poplar::Tensor fn(poplar::Graph& graph, const poplar::Tensor& A, IPUJAX_POPOPS_TAIL) { \
    return map(graph, expr::UnaryOpType::TYPE, A, prog, debugContext, options);                 \
  }                                                                                             \
  inline void fn##WithOutput(poplar::Graph& graph, const poplar::Tensor& A,                     \
                             const poplar::Tensor& out, IPUJAX_POPOPS_TAIL) {                   \
    mapWithOutput(graph, expr::UnaryOpType::TYPE, A, out, prog, debugContext, options);         \
  }                                                                                             \
  inline void fn##InPlace(poplar::Graph& graph, const poplar::Tensor& A, IPUJAX_POPOPS_TAIL) {  \
    mapInPlace(graph, expr::UnaryOpType::TYPE, A, prog, debugContext, options);                 \
  }
#define POPOPS_PREDICATE(Name, Class, TYPE, fn)                                                 \
  inline poplar::Tensor fn(poplar::Graph& graph, const poplar::Tensor& A, IPUJAX_POPOPS_TAIL) { \
    return map(graph, expr::UnaryOpType::TYPE, A, prog, debugContext, options);                 \
  }                                                                                             \
  inline void fn##WithOutput(poplar::Graph& graph, const poplar::Tensor& A,                     \
                             const poplar::Tensor& out, IPUJAX_POPOPS_TAIL) {                   \
    mapWithOutput(graph, expr::UnaryOpType::TYPE, A, out, prog, debugContext, options);         \
  }
#include "engine/ops/ElementwiseOps.def"

#define BINARY(Name, name, traits, api, ...) api
#define POPOPS(Name, Class, TYPE, fn)                                                              \
  inline poplar::Tensor fn(poplar::Graph& graph, const poplar::Tensor& A, const poplar::Tensor& B, \
                           IPUJAX_POPOPS_TAIL) {                                                   \
    return map(graph, expr::BinaryOpType::TYPE, A, B, prog, debugContext, options);                \
  }                                                                                                \
  inline void fn##WithOutput(poplar::Graph& graph, const poplar::Tensor& A,                        \
                             const poplar::Tensor& B, const poplar::Tensor& out,                   \
                             IPUJAX_POPOPS_TAIL) {                                                 \
    mapWithOutput(graph, expr::BinaryOpType::TYPE, A, B, out, prog, debugContext, options);        \
  }                                                                                                \
  template <typename T, class = std::enable_if_t<std::is_arithmetic_v<T>>>                         \
  void fn##WithOutput(poplar::Graph& graph, const poplar::Tensor& A, T B,                          \
                      const poplar::Tensor& out, IPUJAX_POPOPS_TAIL) {                             \
    mapWithOutput(graph, expr::BinaryOp(expr::BinaryOpType::TYPE, expr::_1, expr::Const(B)), {A},  \
                  out, prog, debugContext, options);                                               \
  }                                                                                                \
  template <typename T, class = std::enable_if_t<std::is_arithmetic_v<T>>>                         \
  void fn##WithOutput(poplar::Graph& graph, T A, const poplar::Tensor& B,                          \
                      const poplar::Tensor& out, IPUJAX_POPOPS_TAIL) {                             \
    mapWithOutput(graph, expr::BinaryOp(expr::BinaryOpType::TYPE, expr::Const(A), expr::_1), {B},  \
                  out, prog, debugContext, options);                                               \
  }                                                                                                \
  template <typename T, class = std::enable_if_t<std::is_arithmetic_v<T>>>                         \
  poplar::Tensor fn(poplar::Graph& graph, const poplar::Tensor& A, T B, IPUJAX_POPOPS_TAIL) {      \
    return map(graph, expr::BinaryOp(expr::BinaryOpType::TYPE, expr::_1, expr::Const(B)), {A},     \
               prog, debugContext, options);                                                       \
  }                                                                                                \
  template <typename T, class = std::enable_if_t<std::is_arithmetic_v<T>>>                         \
  poplar::Tensor fn(poplar::Graph& graph, T A, const poplar::Tensor& B, IPUJAX_POPOPS_TAIL) {      \
    return map(graph, expr::BinaryOp(expr::BinaryOpType::TYPE, expr::Const(A), expr::_1), {B},     \
               prog, debugContext, options);                                                       \
  }                                                                                                \
  inline void fn##InPlace(poplar::Graph& graph, const poplar::Tensor& A, const poplar::Tensor& B,  \
                          IPUJAX_POPOPS_TAIL) {                                                    \
    mapInPlace(graph, expr::BinaryOpType::TYPE, A, B, prog, debugContext, options);                \
  }                                                                                                \
  template <typename T, class = std::enable_if_t<std::is_arithmetic_v<T>>>                         \
  void fn##InPlace(poplar::Graph& graph, const poplar::Tensor& A, T B, IPUJAX_POPOPS_TAIL) {       \
    mapInPlace(graph, expr::BinaryOp(expr::BinaryOpType::TYPE, expr::_1, expr::Const(B)), {A},     \
               prog, debugContext, options);                                                       \
  }
#include "engine/ops/ElementwiseOps.def"

#define TERNARY(Name, name, traits, api, ...) api
#define POPOPS(Name, Class, TYPE, fn)                                                              \
  inline poplar::Tensor fn(poplar::Graph& graph, const poplar::Tensor& A, const poplar::Tensor& B, \
                           const poplar::Tensor& C, IPUJAX_POPOPS_TAIL) {                          \
    return map(graph, expr::TernaryOpType::TYPE, A, B, C, prog, debugContext, options);            \
  }                                                                                                \
  inline void fn##WithOutput(poplar::Graph& graph, const poplar::Tensor& A,                        \
                             const poplar::Tensor& B, const poplar::Tensor& C,                     \
                             const poplar::Tensor& out, IPUJAX_POPOPS_TAIL) {                      \
    mapWithOutput(graph, expr::TernaryOpType::TYPE, A, B, C, out, prog, debugContext, options);    \
  }                                                                                                \
  inline void fn##InPlace(poplar::Graph& graph, const poplar::Tensor& A, const poplar::Tensor& B,  \
                          const poplar::Tensor& C, IPUJAX_POPOPS_TAIL) {                           \
    mapInPlace(graph, expr::TernaryOpType::TYPE, A, B, C, prog, debugContext, options);            \
  }
#include "engine/ops/ElementwiseOps.def"
#undef IPUJAX_POPOPS_TAIL

/// 1 / sqrt(src + epsilon), as `dstType`: the type of `src`, or HALF. `epsilon` has one element of
/// the type of `src`. Computed in FLOAT if either type is. Throws poplibs_error for other types.
poplar::Tensor varianceToInvStdDev(poplar::Graph& graph, const poplar::Tensor& src,
                                   const poplar::Tensor& epsilon, poplar::program::Sequence& prog,
                                   poplar::Type dstType,
                                   const poplar::DebugContext& debugContext = {});
poplar::Tensor varianceToInvStdDev(poplar::Graph& graph, const poplar::Tensor& src, float epsilon,
                                   poplar::program::Sequence& prog, poplar::Type dstType,
                                   const poplar::DebugContext& debugContext = {});

/// The inverse, 1 / src^2 - epsilon, as `dstType`: the type of `src`, or FLOAT.
poplar::Tensor invStdDevToVariance(poplar::Graph& graph, const poplar::Tensor& src,
                                   const poplar::Tensor& epsilon, poplar::program::Sequence& prog,
                                   poplar::Type dstType,
                                   const poplar::DebugContext& debugContext = {});
poplar::Tensor invStdDevToVariance(poplar::Graph& graph, const poplar::Tensor& src, float epsilon,
                                   poplar::program::Sequence& prog, poplar::Type dstType,
                                   const poplar::DebugContext& debugContext = {});

}  // namespace popops
