#pragma once
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <span>
#include <string>

#include "embedded/AlignedBytes.hpp"
#include "embedded/PackageFormat.hpp"

/// A saved program as its header and the rest, so that tests can alter the header and seal it
/// again.
struct PackageFile {
  std::string header;    ///< the contents of its seal
  std::string sections;  ///< from the first one to the end of the file

  explicit PackageFile(const std::string& bytes) {
    std::uint64_t size = 0;
    std::memcpy(&size, bytes.data() + kMagicBytes, sizeof(size));
    const auto sealed = std::as_bytes(std::span(bytes)).subspan(kPreludeBytes, size);
    const auto contents = ipujax::runtime::unseal(ipujax::embedded::kPackageHeader, sealed);
    header.assign(reinterpret_cast<const char*>(contents.data()), contents.size());
    sections = bytes.substr(ipujax::embedded::roundedUp(kPreludeBytes + size));
  }

  std::string bytes(
      const ipujax::runtime::SealKind& kind = ipujax::embedded::kPackageHeader) const {
    const std::string sealed = ipujax::runtime::seal(kind, header);
    const std::uint64_t size = sealed.size();
    std::string all(kind.magic, kMagicBytes);
    all.append(reinterpret_cast<const char*>(&size), sizeof(size));
    all += sealed;
    all.resize(ipujax::embedded::roundedUp(all.size()), '\0');
    return all + sections;
  }

 private:
  static constexpr std::size_t kMagicBytes = sizeof(ipujax::runtime::SealKind::magic);
  static constexpr std::size_t kPreludeBytes = ipujax::embedded::kPreludeBytes;
};

inline std::string contentOf(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

inline void put(const std::filesystem::path& path, const std::string& content) {
  std::ofstream(path, std::ios::binary) << content;
}
