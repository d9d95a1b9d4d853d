#include "poplar/internal/StreamNames.hpp"

namespace poplar::internal {

std::string metadataHandle(const std::string& handle) { return "metadata:" + handle; }

std::string hostFunctionStream(const std::string& handle, bool is_input,
                               std::optional<std::size_t> index) {
  return "call:" + handle + (is_input ? ":in:" : ":out:") + (index ? std::to_string(*index) : "");
}

}  // namespace poplar::internal
