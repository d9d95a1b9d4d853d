#include "engine/blas/Rows.hpp"

namespace ipujax::engine::blas::IPUJAX_ISA_NAMESPACE {
namespace {

struct Bool {
  std::uint8_t byte;
  Bool() = default;
  template <class W>
  explicit Bool(W sum) : byte(sum != 0) {}
  template <class W>
  explicit operator W() const {
    return static_cast<W>(byte);
  }
};

template <class T, class W>
void load(const void* data, std::int64_t stride, std::int64_t count, W* __restrict out) {
  const T* in = static_cast<const T*>(data);
  if (stride == 1) {
    for (std::int64_t i = 0; i < count; ++i) out[i] = static_cast<W>(in[i]);
  } else {
    for (std::int64_t i = 0; i < count; ++i) out[i] = static_cast<W>(in[i * stride]);
  }
}

template <class T, class W>
void store(const W* __restrict in, void* data, std::int64_t stride, std::int64_t count) {
  T* __restrict out = static_cast<T*>(data);
  if (stride == 1) {
    for (std::int64_t i = 0; i < count; ++i) out[i] = static_cast<T>(in[i]);
  } else {
    for (std::int64_t i = 0; i < count; ++i) out[i * stride] = static_cast<T>(in[i]);
  }
}

template <class T>
std::uint32_t pairOf(T low, T high) {
  return static_cast<std::uint16_t>(low) |
         static_cast<std::uint32_t>(static_cast<std::uint16_t>(high)) << 16;
}

template <class T>
void loadPairs(const void* data, std::int64_t stride, std::int64_t count,
               std::uint32_t* __restrict out) {
  typedef std::uint16_t Short __attribute__((may_alias));
  const T* in = static_cast<const T*>(data);
  Short* shorts = reinterpret_cast<Short*>(out);  // in memory's order, the low half comes first
  if (stride == 1) {
    for (std::int64_t i = 0; i < count; ++i) shorts[i] = static_cast<std::uint16_t>(in[i]);
  } else {
    for (std::int64_t i = 0; i < count; ++i) shorts[i] = static_cast<std::uint16_t>(in[i * stride]);
  }
  if (count % 2) shorts[count] = 0;
}

template <class T>
void pairRow(const T* low, const T* high, std::int64_t stride, std::int64_t count,
             std::uint32_t* __restrict out) {
  constexpr std::int64_t kWidth = 16;  // a whole panel
  if (stride == 1 && count == kWidth) {
    for (std::int64_t j = 0; j < kWidth; ++j) out[j] = pairOf(low[j], high[j]);
  } else if (stride == 1) {
    for (std::int64_t j = 0; j < count; ++j) out[j] = pairOf(low[j], high[j]);
  } else {
    for (std::int64_t j = 0; j < count; ++j) out[j] = pairOf(low[j * stride], high[j * stride]);
  }
}

template <class T>
void pairRows(const void* data, std::int64_t row, std::int64_t num_rows, std::int64_t stride,
              std::int64_t count, std::uint32_t* out, std::int64_t out_row) {
  const T* in = static_cast<const T*>(data);
  std::int64_t i = 0;
  for (; i + 2 <= num_rows; i += 2, out += out_row)
    pairRow(in + i * row, in + (i + 1) * row, stride, count, out);
  if (i == num_rows) return;
  for (std::int64_t j = 0; j < count; ++j) out[j] = pairOf(in[i * row + j * stride], T(0));
}

template <class T>
const IntegerRows& rows() {
  static const IntegerRows table{
      load<T, std::uint32_t>,  load<T, std::uint64_t>, store<T, std::uint32_t>,
      store<T, std::uint64_t>, loadPairs<T>,           pairRows<T>};
  return table;
}

}  // namespace

const IntegerRows& integerRows(ElementType type) {
  if (type == ElementType::kBool) return rows<Bool>();
  return withInteger(type, []<class T>(T) -> const IntegerRows& { return rows<T>(); });
}

}  // namespace ipujax::engine::blas::IPUJAX_ISA_NAMESPACE
