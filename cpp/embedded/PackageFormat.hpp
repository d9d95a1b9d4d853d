#pragma once
#include <cstddef>
#include <cstdint>

#include "support/Seal.hpp"

/// The beginning of a saved program; Package reads and writes the rest.
namespace ipujax::embedded {

constexpr runtime::SealKind kPackageHeader{
    {'I', 'P', 'U', 'J', 'A', 'X', 'P', 'K'}, 2, "a file of ipujax.precompile"};

/// The header's magic once more, which identifies the file by its first bytes, and the size of the
/// sealed header, which follows.
constexpr std::size_t kPreludeBytes = sizeof(kPackageHeader.magic) + sizeof(std::uint64_t);

}  // namespace ipujax::embedded
