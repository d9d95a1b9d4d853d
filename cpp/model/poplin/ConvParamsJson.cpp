#include <charconv>
#include <istream>
#include <iterator>
#include <map>
#include <string>
#include <system_error>
#include <type_traits>
#include <vector>

#include "poplar/internal/Json.hpp"
#include "poplin/ConvParams.hpp"
#include "poputil/exceptions.hpp"

namespace poplin {
namespace {

using poplar::internal::Json;
using Texts = std::vector<std::string>;

constexpr const char* kObject = "a JSON object of names, each once, and values";

[[noreturn]] void refuse(const std::string& needs, const std::string& got) {
  throw poputil::poplibs_error("[poplin::ConvParams] needs " + needs + "; got " + got +
                               ". Correct the JSON.");
}

Texts textsOf(const std::string& name, const Json& json) {
  if (json.isScalar()) return {json.text};
  Texts texts;
  for (const Json& item : json.items) {
    if (!item.isScalar()) refuse("numbers or texts in " + name, "a list or an object");
    texts.push_back(item.text);
  }
  return texts;
}

/// Values by name; those of nested objects have names such as "inputTransform.flip".
std::map<std::string, Texts> valuesOf(const std::string& text) {
  std::map<std::string, Texts> values;
  const auto add = [&](const std::string& name, const Json& value) {
    if (!values.emplace(name, textsOf(name, value)).second) refuse(kObject, "'" + name + "' twice");
  };
  try {
    const Json json = poplar::internal::readJson(text);
    if (json.kind != Json::Kind::kObject) refuse(kObject, "'" + text + "'");
    for (const auto& [name, value] : json.members) {
      if (value.kind != Json::Kind::kObject) add(name, value);
      for (const auto& [inner, of_inner] : value.members) add(name + "." + inner, of_inner);
    }
  } catch (const poplar::internal::JsonError& error) {
    refuse(kObject, error.what());
  }
  return values;
}

template <class T>
T numberOf(const std::string& name, const std::string& text) {
  if constexpr (std::is_same_v<T, bool>) {
    if (text != "true" && text != "false" && text != "0" && text != "1")
      refuse("true or false in " + name, text);
    return text == "true" || text == "1";
  } else {
    T value{};
    const auto* end = text.data() + text.size();
    const auto [at, error] = std::from_chars(text.data(), end, value);
    if (error != std::errc() || at != end) refuse("whole numbers in " + name, text);
    return value;
  }
}

poplar::Type typeOf(const std::string& name, const std::string& text) {
  if (text == "half") return poplar::HALF;
  if (text == "float") return poplar::FLOAT;
  refuse("half or float as " + name, text);
}

/// Sets the fields that have values, and tracks which names were read.
class Fields {
 public:
  explicit Fields(std::map<std::string, Texts> values) : values_(std::move(values)) {}

  void read(const std::string& name, std::size_t& field) {
    if (const auto* text = single(name)) field = numberOf<std::size_t>(name, *text);
  }
  bool read(const std::string& name, poplar::Type& field) {
    const auto* text = single(name);
    if (text) field = typeOf(name, *text);
    return text != nullptr;
  }
  template <class T>
  void read(const std::string& name, std::vector<T>& field) {
    const auto at = values_.find(name);
    if (at == values_.end()) return;
    field.clear();
    for (const auto& text : at->second) field.push_back(numberOf<T>(name, text));
    values_.erase(at);
  }
  void read(const std::string& name, ConvParams::InputTransform& field) {
    read(name + ".truncationLower", field.truncationLower);
    read(name + ".truncationUpper", field.truncationUpper);
    read(name + ".dilation", field.dilation);
    read(name + ".paddingLower", field.paddingLower);
    read(name + ".paddingUpper", field.paddingUpper);
    read(name + ".flip", field.flip);
  }
  void read(const std::string& name, ConvParams::OutputTransform& field) {
    read(name + ".truncationLower", field.truncationLower);
    read(name + ".truncationUpper", field.truncationUpper);
    read(name + ".stride", field.stride);
    read(name + ".paddingLower", field.paddingLower);
    read(name + ".paddingUpper", field.paddingUpper);
  }
  void refuseOthers() const {
    if (!values_.empty()) refuse("names of ConvParams' fields", values_.begin()->first);
  }

 private:
  const std::string* single(const std::string& name) {
    const auto at = values_.find(name);
    if (at == values_.end()) return nullptr;
    if (at->second.size() != 1) refuse("one value of " + name, std::to_string(at->second.size()));
    found_ = std::move(at->second.front());
    values_.erase(at);
    return &found_;
  }

  std::map<std::string, Texts> values_;
  std::string found_;
};

}  // namespace

std::istream& operator>>(std::istream& is, ConvParams& params) {
  const std::string json(std::istreambuf_iterator<char>(is), {});
  Fields fields(valuesOf(json));
  ConvParams read = params;
  if (fields.read("dataType", read.inputType)) read.outputType = read.inputType;
  fields.read("inputType", read.inputType);
  fields.read("outputType", read.outputType);
  fields.read("batchSize", read.batchSize);
  fields.read("numConvGroups", read.numConvGroups);
  fields.read("inputChannelsPerConvGroup", read.inputChannelsPerConvGroup);
  fields.read("outputChannelsPerConvGroup", read.outputChannelsPerConvGroup);
  fields.read("inputFieldShape", read.inputFieldShape);
  fields.read("kernelShape", read.kernelShape);
  const std::size_t dims = read.inputFieldShape.size();
  read.inputTransform = read.kernelTransform = ConvParams::InputTransform(dims);
  read.outputTransform = ConvParams::OutputTransform(dims);
  fields.read("inputTransform", read.inputTransform);
  fields.read("kernelTransform", read.kernelTransform);
  fields.read("outputTransform", read.outputTransform);
  fields.refuseOthers();
  read.validate();
  params = std::move(read);
  return is;
}

}  // namespace poplin
