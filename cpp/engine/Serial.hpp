#pragma once
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

namespace ipujax::engine {

/// Appends plain values, text and lists to a byte string (little-endian, as all supported hosts).
class Writer {
 public:
  template <class T>
  requires std::is_arithmetic_v<T> || std::is_enum_v<T>
  void put(T value) { bytes_.append(reinterpret_cast<const char*>(&value), sizeof(T)); }
  void put(const std::string& text) {
    put<std::uint64_t>(text.size());
    bytes_.append(text);
  }
  template <class T>
  requires std::is_arithmetic_v<T>
  void put(const std::vector<T>& values) {
    put<std::uint64_t>(values.size());
    bytes_.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
  }
  /// For structures without padding, which would be whatever the memory held.
  template <class T>
  requires std::is_class_v<T> && std::is_trivially_copyable_v<T>
  void put(const T& value) { raw(&value, sizeof(T)); }
  void raw(const void* data, std::size_t size) {
    bytes_.append(static_cast<const char*>(data), size);
  }
  std::size_t size() const { return bytes_.size(); }
  std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

/// Reads back what a Writer wrote; throws std::out_of_range instead of reading past the end.
class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  template <class T>
  requires std::is_arithmetic_v<T> || std::is_enum_v<T> T get() {
    if constexpr (std::is_same_v<T, bool>) return truth();
    T value;
    std::memcpy(&value, take(sizeof(T)), sizeof(T));
    return value;
  }
  template <class T>
  requires std::is_trivially_copyable_v<T> T getStruct() {
    T value;
    std::memcpy(&value, take(sizeof(T)), sizeof(T));
    return value;
  }
  std::string text() {
    const auto size = get<std::uint64_t>();
    const auto* data = reinterpret_cast<const char*>(take(size));
    return {data, size};
  }
  template <class T>
  requires std::is_arithmetic_v<T> std::vector<T> list() {
    const auto size = count(sizeof(T));
    std::vector<T> values(size);
    if (size > 0) std::memcpy(values.data(), take(size * sizeof(T)), size * sizeof(T));
    return values;
  }
  /// A list's length, refused where the bytes left cannot hold that many items.
  std::uint64_t count(std::size_t item_bytes) {
    const auto size = get<std::uint64_t>();
    if (size > (bytes_.size() - at_) / std::max<std::size_t>(item_bytes, 1))
      throw std::out_of_range("a list is longer than the bytes that are left");
    return size;
  }
  const std::byte* take(std::size_t size) {
    if (size > bytes_.size() - at_) throw std::out_of_range("the bytes end too early");
    const std::byte* data = bytes_.data() + at_;
    at_ += size;
    return data;
  }
  bool atEnd() const { return at_ == bytes_.size(); }

 private:
  /// A bool that is neither true nor false is no value at all to the compiler.
  bool truth() {
    const auto byte = std::to_integer<unsigned>(*take(1));
    if (byte > 1) throw std::out_of_range("a truth value is neither true nor false");
    return byte != 0;
  }

  std::span<const std::byte> bytes_;
  std::size_t at_ = 0;
};

}  // namespace ipujax::engine
