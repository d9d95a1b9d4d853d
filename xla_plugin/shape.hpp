#pragma once
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "pjrt_abi.hpp"

namespace ipujax::plugin {

/// How one element is kept in host memory: types narrower than a byte take a whole one, as in
/// jaxlib's arrays.
struct ElementInfo {
  PJRT_Buffer_Type type;
  std::string_view name;  ///< JAX's dtype name, as the engine's signatures use it
  std::size_t bytes;
};

const ElementInfo& elementInfo(PJRT_Buffer_Type type);  ///< throws for a type without storage
const ElementInfo& elementInfo(std::string_view name);  ///< throws for an unknown name

/// Type, dimensions and layout of a buffer, which is dense. Memory of the plugin is row-major: the
/// layout is what callers see.
struct Shape {
  /// An empty layout means row-major.
  Shape(PJRT_Buffer_Type type, std::vector<std::int64_t> dims,
        std::vector<std::int64_t> minor_to_major = {});

  std::vector<std::int64_t> strides() const;  ///< in bytes, of the layout
  bool isRowMajor() const;                    ///< whether the layout puts elements in this order

  PJRT_Buffer_Type type;
  std::vector<std::int64_t> dims;
  std::vector<std::int64_t> minor_to_major;
  std::size_t element_bytes;
  std::size_t bytes;
};

}  // namespace ipujax::plugin
