#include "shape.hpp"

#include <algorithm>
#include <functional>
#include <iterator>
#include <string>
#include <utility>

#include "failure.hpp"
#include "strided_copy.hpp"

namespace ipujax::plugin {
namespace {

constexpr ElementInfo kElements[] = {
    {PJRT_Buffer_Type_PRED, "bool", 1},
    {PJRT_Buffer_Type_S1, "int1", 1},
    {PJRT_Buffer_Type_S2, "int2", 1},
    {PJRT_Buffer_Type_S4, "int4", 1},
    {PJRT_Buffer_Type_S8, "int8", 1},
    {PJRT_Buffer_Type_S16, "int16", 2},
    {PJRT_Buffer_Type_S32, "int32", 4},
    {PJRT_Buffer_Type_S64, "int64", 8},
    {PJRT_Buffer_Type_U1, "uint1", 1},
    {PJRT_Buffer_Type_U2, "uint2", 1},
    {PJRT_Buffer_Type_U4, "uint4", 1},
    {PJRT_Buffer_Type_U8, "uint8", 1},
    {PJRT_Buffer_Type_U16, "uint16", 2},
    {PJRT_Buffer_Type_U32, "uint32", 4},
    {PJRT_Buffer_Type_U64, "uint64", 8},
    {PJRT_Buffer_Type_F16, "float16", 2},
    {PJRT_Buffer_Type_F32, "float32", 4},
    {PJRT_Buffer_Type_F64, "float64", 8},
    {PJRT_Buffer_Type_BF16, "bfloat16", 2},
    {PJRT_Buffer_Type_C64, "complex64", 8},
    {PJRT_Buffer_Type_C128, "complex128", 16},
    {PJRT_Buffer_Type_F8E5M2, "float8_e5m2", 1},
    {PJRT_Buffer_Type_F8E4M3FN, "float8_e4m3fn", 1},
    {PJRT_Buffer_Type_F8E4M3B11FNUZ, "float8_e4m3b11fnuz", 1},
    {PJRT_Buffer_Type_F8E5M2FNUZ, "float8_e5m2fnuz", 1},
    {PJRT_Buffer_Type_F8E4M3FNUZ, "float8_e4m3fnuz", 1},
    {PJRT_Buffer_Type_F8E4M3, "float8_e4m3", 1},
    {PJRT_Buffer_Type_F8E3M4, "float8_e3m4", 1},
    {PJRT_Buffer_Type_F8E8M0FNU, "float8_e8m0fnu", 1},
    {PJRT_Buffer_Type_F4E2M1FN, "float4_e2m1fn", 1},
    {PJRT_Buffer_Type_TOKEN, "token", 0},
};

std::size_t product(const std::vector<std::int64_t>& dims) {
  std::size_t n = 1;
  for (const auto dim : dims) n *= static_cast<std::size_t>(dim);
  return n;
}

}  // namespace

const ElementInfo& elementInfo(PJRT_Buffer_Type type) {
  const auto found = std::ranges::find(kElements, type, &ElementInfo::type);
  if (found == std::end(kElements)) {
    failInvalidArgument("[ipu buffer] needs an element type of PJRT 0.112; got number " +
                        std::to_string(type) + ". Convert the array to another dtype.");
  }
  return *found;
}

const ElementInfo& elementInfo(std::string_view name) {
  const auto found = std::ranges::find(kElements, name, &ElementInfo::name);
  if (found == std::end(kElements)) {
    failInvalidArgument("[ipu executable] needs a dtype that JAX knows; got \"" +
                        std::string(name) + "\". The executable is not from this compiler.");
  }
  return *found;
}

Shape::Shape(PJRT_Buffer_Type element_type, std::vector<std::int64_t> dimensions,
             std::vector<std::int64_t> order)
    : type(element_type),
      dims(std::move(dimensions)),
      minor_to_major(std::move(order)),
      element_bytes(elementInfo(element_type).bytes),
      bytes(product(dims) * element_bytes) {
  if (!minor_to_major.empty()) return;
  for (auto axis = static_cast<std::int64_t>(dims.size()); axis-- > 0;) {
    minor_to_major.push_back(axis);
  }
}

std::vector<std::int64_t> Shape::strides() const {
  std::vector<std::int64_t> strides(dims.size());
  denseStrides(dims, minor_to_major, element_bytes, strides);
  return strides;
}

bool Shape::isRowMajor() const {
  if (std::ranges::is_sorted(minor_to_major, std::greater())) return true;
  return plugin::isRowMajor(dims, strides(), element_bytes);
}

}  // namespace ipujax::plugin
