#include "named_values.hpp"

#include <utility>

#include "failure.hpp"

namespace ipujax::plugin {
namespace {

OptionValue readValue(const PJRT_NamedValue& value) {
  switch (value.type) {
    case PJRT_NamedValue_kString:
      return std::string(value.string_value, value.value_size);
    case PJRT_NamedValue_kInt64:
      return value.int64_value;
    case PJRT_NamedValue_kInt64List:
      return std::vector<std::int64_t>(value.int64_array_value,
                                       value.int64_array_value + value.value_size);
    case PJRT_NamedValue_kFloat:
      return value.float_value;
    case PJRT_NamedValue_kBool:
      return value.bool_value;
  }
  failInvalidArgument(
      "[ipu options] needs a value of a known type; got type " + std::to_string(value.type) +
      " for \"" + std::string(value.name, value.name_size) + "\". Use int, float, str or bool.");
}

PJRT_NamedValue writeValue(const std::string& name, const OptionValue& option) {
  PJRT_NamedValue value{};
  value.struct_size = sizeof(PJRT_NamedValue);
  value.name = name.data();
  value.name_size = name.size();
  value.type = static_cast<PJRT_NamedValue_Type>(option.index());
  value.value_size = 1;
  if (const auto* text = std::get_if<std::string>(&option)) {
    value.string_value = text->data();
    value.value_size = text->size();
  } else if (const auto* integer = std::get_if<std::int64_t>(&option)) {
    value.int64_value = *integer;
  } else if (const auto* list = std::get_if<std::vector<std::int64_t>>(&option)) {
    value.int64_array_value = list->data();
    value.value_size = list->size();
  } else if (const auto* real = std::get_if<float>(&option)) {
    value.float_value = *real;
  } else {
    value.bool_value = std::get<bool>(option);
  }
  return value;
}

}  // namespace

Options readNamedValues(const PJRT_NamedValue* values, std::size_t count) {
  Options options;
  for (std::size_t i = 0; i < count; ++i) {
    options.insert_or_assign(std::string(values[i].name, values[i].name_size),
                             readValue(values[i]));
  }
  return options;
}

NamedValues::NamedValues(Options options) : options_(std::move(options)) {
  values_.reserve(options_.size());
  for (const auto& [name, value] : options_) values_.push_back(writeValue(name, value));
}

}  // namespace ipujax::plugin
