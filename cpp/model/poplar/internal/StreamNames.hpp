#pragma once
#include <cstddef>
#include <optional>
#include <string>

/// Streams that the library adds for itself, and how an engine finds them again in an executable:
/// by their handles, which begin with a character that no user's handle needs.
namespace poplar::internal {

/// The handle of host reads and writes of the metadata of quarters that `handle` reads or writes.
std::string metadataHandle(const std::string& handle);

/// The stream of one argument or result; without an index, how all of their handles begin.
std::string hostFunctionStream(const std::string& handle, bool is_input,
                               std::optional<std::size_t> index);

}  // namespace poplar::internal
