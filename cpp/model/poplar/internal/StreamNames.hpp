#pragma once
#include <cstddef>
#include <optional>
#include <string>

/// Streams that the library adds for itself. An engine finds them in an executable by their
/// handles, which begin with a prefix that no user's handle needs.
namespace poplar::internal {

/// The handle of host reads and writes of the metadata of the quarters with handle `handle`.
std::string metadataHandle(const std::string& handle);

/// The stream handle of one argument or result; without an index, the prefix of all of them.
std::string hostFunctionStream(const std::string& handle, bool is_input,
                               std::optional<std::size_t> index);

}  // namespace poplar::internal
