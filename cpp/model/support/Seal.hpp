#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace ipujax::runtime {

/// Identifies a kind of executable.
struct SealKind {
  char magic[8];
  std::uint32_t format;  ///< raised with every change of the contents
  const char* what;      ///< for errors: "an ipujax executable"
};

/// A 64-bit mixing hash: detects cut, flipped and moved bytes; not cryptographic.
std::uint64_t checksum(const void* data, std::size_t size);

/// Magic, format and ipujax version, size, checksum, contents.
std::string seal(const SealKind& kind, const std::string& contents);

/// The contents of bytes that `seal` made, of this kind and version; throws ExecutableError for all
/// others.
std::span<const std::byte> unseal(const SealKind& kind, std::span<const std::byte> sealed);

}  // namespace ipujax::runtime
