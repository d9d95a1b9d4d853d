#pragma once
#include "poplar/StringRef.hpp"

/// Names of what a driver knows of a device, for poplar::Device::getAttribute.
namespace IPUAttributes {

struct AttributeId {
  const char* name;
  operator poplar::StringRef() const { return name; }  // NOLINT: getAttribute takes names
  static const AttributeId BoardVariant;               ///< of the IPU Model: its machine's name
};
inline const AttributeId AttributeId::BoardVariant{"board variant"};

}  // namespace IPUAttributes
