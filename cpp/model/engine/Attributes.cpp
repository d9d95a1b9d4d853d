#include "engine/Attributes.hpp"

#include <stdexcept>

#include "engine/Serial.hpp"

namespace ipujax::engine {
namespace {

template <class T>
const T& as(const Attributes::Value& value, std::string_view name, const char* type) {
  if (const T* typed = std::get_if<T>(&value)) return *typed;
  throw std::invalid_argument("[Attributes] '" + std::string(name) + "' needs to be " + type);
}

}  // namespace

Attributes& Attributes::set(std::string name, Value value) {
  values_.insert_or_assign(std::move(name), std::move(value));
  return *this;
}

bool Attributes::has(std::string_view name) const { return values_.find(name) != values_.end(); }

const Attributes::Value& Attributes::find(std::string_view name) const {
  const auto found = values_.find(name);
  if (found == values_.end())
    throw std::invalid_argument("[Attributes] needs '" + std::string(name) + "'; it is absent");
  return found->second;
}

std::int64_t Attributes::integer(std::string_view name) const {
  return as<std::int64_t>(find(name), name, "an integer");
}
double Attributes::real(std::string_view name) const {
  return as<double>(find(name), name, "a real");
}
const std::string& Attributes::text(std::string_view name) const {
  return as<std::string>(find(name), name, "text");
}
std::string Attributes::textOr(std::string_view name, std::string_view fallback) const {
  return has(name) ? text(name) : std::string(fallback);
}
const Attributes::Integers& Attributes::integers(std::string_view name) const {
  return as<Integers>(find(name), name, "a list of integers");
}

void Attributes::write(Writer& writer) const {
  writer.put<std::uint64_t>(values_.size());
  for (const auto& [name, value] : values_) {
    writer.put(name);
    writer.put(static_cast<std::uint8_t>(value.index()));
    std::visit([&](const auto& v) { writer.put(v); }, value);
  }
}

Attributes Attributes::read(Reader& reader) {
  const auto value = [&]() -> Value {
    switch (reader.get<std::uint8_t>()) {
      case 0:
        return reader.get<std::int64_t>();
      case 1:
        return reader.get<double>();
      case 2:
        return reader.get<std::string>();
      case 3:
        return reader.get<Integers>();
      default:
        throw std::out_of_range("an attribute has an unknown type");
    }
  };
  Attributes attributes;
  const auto size = reader.count(2);
  for (std::uint64_t i = 0; i < size; ++i) {
    std::string name = reader.get<std::string>();
    attributes.set(std::move(name), value());
  }
  return attributes;
}

}  // namespace ipujax::engine
