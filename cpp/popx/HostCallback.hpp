#pragma once
#include <cstddef>
#include <string>
#include <vector>

#include "poplar/Graph.hpp"
#include "poplar/Program.hpp"

namespace popx {

/// JAX's dtype name and shape of one callback result.
struct CallbackResult {
  std::string dtype;
  std::vector<std::size_t> shape;
};

/// The type that holds a JAX dtype on the device: "bfloat16" is held as UNSIGNED_SHORT bits. Throws
/// poplar_error for dtypes the device has no type for (complex64 ...).
poplar::Type typeOfDtype(const std::string& dtype);

/// Calls back into the host with copies of `operands` (`dtypes`: JAX's name of each) and returns
/// what it wrote. On an IPU: the operands are streamed out, the results streamed in, with a host
/// sync between. Running it without a host that handles callbacks throws.
std::vector<poplar::Tensor> hostCallback(poplar::Graph& graph, const std::string& id,
                                         const std::vector<poplar::Tensor>& operands,
                                         const std::vector<std::string>& dtypes,
                                         const std::vector<CallbackResult>& results,
                                         poplar::program::Sequence& prog,
                                         const poplar::DebugContext& debugContext = {});

}  // namespace popx
