#pragma once
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

namespace ipujax::runtime {

/// Types that are written as they lie in memory: structures must have no padding, whose contents
/// would be arbitrary.
template <class T>
concept Plain = std::is_trivially_copyable_v<T>;

/// Appends plain values, text and lists to a byte string (little-endian, as all supported hosts).
class Writer {
 public:
  static constexpr bool kReads = false;
  /// Puts the members of a structure, one after the other.
  template <class... Members>
  void operator()(const Members&... members) {
    (put(members), ...);
  }
  /// Puts a list of structures, each by put_item(item).
  template <class T, class F>
  void list(const std::vector<T>& items, std::size_t, const F& put_item) {
    put<std::uint64_t>(items.size());
    for (const T& item : items) put_item(item);
  }
  template <Plain T>
  void put(const T& value) {
    raw(&value, sizeof(T));
  }
  void put(const std::string& text) {
    put<std::uint64_t>(text.size());
    bytes_.append(text);
  }
  template <Plain T>
  void put(const std::vector<T>& values) {
    put<std::uint64_t>(values.size());
    raw(values.data(), values.size() * sizeof(T));
  }
  void raw(const void* data, std::size_t size) {
    bytes_.append(static_cast<const char*>(data), size);
  }
  std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

/// Reads back what a Writer wrote; throws std::out_of_range instead of reading past the end.
class Reader {
 public:
  static constexpr bool kReads = true;
  explicit Reader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  template <class... Members>
  void operator()(Members&... members) {
    (read(members), ...);
  }
  /// An item takes at least `least_bytes`.
  template <class T, class F>
  void list(std::vector<T>& items, std::size_t least_bytes, const F& read_item) {
    items.resize(count(least_bytes));
    for (T& item : items) read_item(item);
  }
  template <class T>
  T get() {
    T value{};
    read(value);
    return value;
  }
  /// A list's length; throws if the remaining bytes cannot hold that many items.
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
  template <Plain T>
  void read(T& value) {
    std::memcpy(&value, take(sizeof(T)), sizeof(T));
  }
  /// A bool that is neither true nor false would be undefined behaviour.
  void read(bool& value) {
    const auto byte = std::to_integer<unsigned>(*take(1));
    if (byte > 1) throw std::out_of_range("a truth value is neither true nor false");
    value = byte != 0;
  }
  void read(std::string& text) {
    const auto size = get<std::uint64_t>();
    text.assign(reinterpret_cast<const char*>(take(size)), size);
  }
  template <Plain T>
  void read(std::vector<T>& values) {
    const auto size = count(sizeof(T));
    const std::byte* data = take(size * sizeof(T));
    if constexpr (std::is_same_v<T, std::byte>) {
      values.assign(data, data + size);
    } else {
      values.resize(size);
      if (size > 0) std::memcpy(values.data(), data, size * sizeof(T));
    }
  }

  std::span<const std::byte> bytes_;
  std::size_t at_ = 0;
};

}  // namespace ipujax::runtime
