#include "poputil/DebugInfo.hpp"

namespace poputil {

using poplar::ProfileValue;

template <>
ProfileValue toProfileValue(const bool& v) {
  return v;
}
template <>
ProfileValue toProfileValue(const int& v) {
  return v;
}
template <>
ProfileValue toProfileValue(const unsigned& v) {
  return v;
}
template <>
ProfileValue toProfileValue(const unsigned long& v) {
  return v;
}
template <>
ProfileValue toProfileValue(const float& v) {
  return v;
}
template <>
ProfileValue toProfileValue(const double& v) {
  return v;
}
template <>
ProfileValue toProfileValue(const std::string& v) {
  return v;
}
template <>
ProfileValue toProfileValue(const poplar::Type& t) {
  return t.toString();
}
template <>
ProfileValue toProfileValue(const poplar::Tensor& t) {
  if (!t.valid()) return "<none>";
  return ProfileValue::Map{{"shape", toProfileValue(t.shape())},
                           {"type", t.elementType().toString()},
                           {"name", t.getDebugStr()}};
}
template <>
ProfileValue toProfileValue(const poplar::ComputeSet& t) {
  return t.getId();
}
template <>
ProfileValue toProfileValue(const poplar::OptionFlags& t) {
  ProfileValue::Map options;
  for (const auto& [name, value] : t) options[name] = value;
  return options;
}

OpDebugInfo::OpDebugInfo(const poplar::DebugContext& debugContext, std::string api)
    : DebugInfo(debugContext, std::move(api)) {}

void OpDebugInfo::add(const std::string& name, const std::vector<ArgType>& args) {
  if (args.empty()) return;
  ProfileValue::Map values;
  for (const auto& argument : args) values[argument.n] = argument.pv;
  setValue(name, std::move(values));
}

PoplibsOpDebugInfo::PoplibsOpDebugInfo(const poplar::DebugContext& debugContext,
                                       const std::vector<ArgType>& args, const std::string& api)
    : OpDebugInfo(debugContext, api) {
  add("args", args);
}

void PoplibsOpDebugInfo::addOutputs(const std::vector<ArgType>& outputs) {
  add("outputs", outputs);
}

void PoplibsOpDebugInfo::addOutput(const poplar::Tensor& output) {
  addOutputs({{"output", toProfileValue(output)}});
}

}  // namespace poputil
