#pragma once
#include <string>
#include <utility>
#include <vector>

#include "poplar/DebugContext.hpp"
#include "poplar/GraphElements.hpp"
#include "poplar/OptionFlags.hpp"
#include "poplar/ProfileValue.hpp"
#include "poplar/Program.hpp"
#include "poplar/Tensor.hpp"

namespace poputil {

/// The value that a debug record shows for an argument.
template <typename T>
poplar::ProfileValue toProfileValue(const T& t);
template <>
poplar::ProfileValue toProfileValue(const bool& v);
template <>
poplar::ProfileValue toProfileValue(const int& v);
template <>
poplar::ProfileValue toProfileValue(const unsigned& v);
template <>
poplar::ProfileValue toProfileValue(const unsigned long& v);
template <>
poplar::ProfileValue toProfileValue(const float& v);
template <>
poplar::ProfileValue toProfileValue(const double& v);
template <>
poplar::ProfileValue toProfileValue(const std::string& v);
template <>
poplar::ProfileValue toProfileValue(const poplar::Type& t);
template <>
poplar::ProfileValue toProfileValue(const poplar::Tensor& t);
template <>
poplar::ProfileValue toProfileValue(const poplar::ComputeSet& t);
template <>
poplar::ProfileValue toProfileValue(const poplar::OptionFlags& t);
template <typename T>
poplar::ProfileValue toProfileValue(const T* t) {
  return t ? toProfileValue(*t) : poplar::ProfileValue("<nullptr>");
}
template <typename T>
poplar::ProfileValue toProfileValue(const std::vector<T>& values) {
  poplar::ProfileValue::Vector list;
  for (const T& value : values) list.push_back(toProfileValue(value));
  return list;
}

/// A named argument or result.
struct ArgType {
  ArgType(std::string name, poplar::ProfileValue value)
      : n(std::move(name)), pv(std::move(value)) {}
  std::string n;
  poplar::ProfileValue pv;
};

/// The record of one library call.
class OpDebugInfo : public poplar::DebugInfo {
 public:
  OpDebugInfo(const poplar::DebugContext& debugContext, std::string api);
  void add(const std::string& name, const std::vector<ArgType>& args);
};

/// The record of one call of a PopLibs function, whose name is `api`.
class PoplibsOpDebugInfo : public OpDebugInfo {
 public:
  PoplibsOpDebugInfo(const poplar::DebugContext& debugContext,  // NOLINT: as in the SDK
                     const std::vector<ArgType>& args = {},
                     const std::string& api = __builtin_FUNCTION());
  void addOutputs(const std::vector<ArgType>& outputs);
  void addOutput(const poplar::Tensor& output);
};

}  // namespace poputil

/// DI_ARGS(a, b) is {{"a", value of a}, {"b", value of b}}, for up to eight arguments.
#define IPUJAX_DI_1(a) \
  { #a, poputil::toProfileValue(a) }
#define IPUJAX_DI_2(a, ...) IPUJAX_DI_1(a), IPUJAX_DI_1(__VA_ARGS__)
#define IPUJAX_DI_3(a, ...) IPUJAX_DI_1(a), IPUJAX_DI_2(__VA_ARGS__)
#define IPUJAX_DI_4(a, ...) IPUJAX_DI_1(a), IPUJAX_DI_3(__VA_ARGS__)
#define IPUJAX_DI_5(a, ...) IPUJAX_DI_1(a), IPUJAX_DI_4(__VA_ARGS__)
#define IPUJAX_DI_6(a, ...) IPUJAX_DI_1(a), IPUJAX_DI_5(__VA_ARGS__)
#define IPUJAX_DI_7(a, ...) IPUJAX_DI_1(a), IPUJAX_DI_6(__VA_ARGS__)
#define IPUJAX_DI_8(a, ...) IPUJAX_DI_1(a), IPUJAX_DI_7(__VA_ARGS__)
#define IPUJAX_DI_PICK(a, b, c, d, e, f, g, h, name, ...) name
#define DI_ARGS(...)                                                                             \
  {                                                                                              \
    IPUJAX_DI_PICK(__VA_ARGS__, IPUJAX_DI_8, IPUJAX_DI_7, IPUJAX_DI_6, IPUJAX_DI_5, IPUJAX_DI_4, \
                   IPUJAX_DI_3, IPUJAX_DI_2, IPUJAX_DI_1, )                                      \
    (__VA_ARGS__)                                                                                \
  }
