#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "poplar/Graph.hpp"
#include "poplar/exceptions.hpp"
#include "popx/CustomOpGraph.hpp"

/// The functions of a custom op, by the level of the interface: the library's integer
/// custom_op_api_level, 0 without one. No public source has level 3: it is treated as 4.
namespace popx::custom_op {

using poplar::Tensor;
using poplar::program::Program;
using Tensors = std::vector<Tensor>;
using Indices = std::vector<std::int64_t>;
using Aliases = std::map<std::int64_t, std::int64_t>;
using Text = std::string;

// Up to level 2 the first `num_inplace` inputs are overwritten by the outputs of the same indices.
using Metadata0 = void(Indices&, std::uint32_t&, bool&, std::uint32_t);
using Metadata1 = void(Indices&, std::uint32_t&, bool&, bool&, std::uint32_t);
using Metadata3 = void(Indices&, Aliases&, bool&, bool&, bool&, std::uint32_t);
using Metadata5 = void(Indices&, Indices&, Aliases&, bool&, bool&, bool&, std::uint32_t);

// Below level 2 there are no attributes.
constexpr int kAttributesSince = 2;
using Build0 = Program(poplar::Graph&, const Tensors&, Tensors&, const Text&);
using Build2 = Program(poplar::Graph&, const Tensors&, Tensors&, const Text&, const Text&);
using Gradient0 = Program(poplar::Graph&, int, const Tensors&, const Tensors&, const Tensors&,
                          Tensors&, const Text&);
using Gradient2 = Program(poplar::Graph&, int, const Tensors&, const Tensors&, const Tensors&,
                          Tensors&, const Text&, const Text&);
using Shape = std::vector<std::size_t>;
using Allocator0 = Tensor(poplar::Graph&, std::uint32_t, const Shape&, poplar::Type);
using Allocator2 = Tensor(poplar::Graph&, std::uint32_t, const Shape&, poplar::Type, const Text&,
                          const Text&);
using Callback = void(const std::vector<const void*>&, const std::vector<std::uint32_t>&,
                      const std::vector<void*>&, const Text&, const Text&);

/// Returns the result of a user's function; its exceptions become a poplar_error with its name.
template <class F>
auto called(const std::string& function, const F& call) {
  const auto run = [&](const auto& body) {
    guarded(function, [&] {
      try {
        body();
      } catch (const std::exception& e) {
        throw poplar::poplar_error("[custom_op] " + function + " threw: " + e.what());
      } catch (...) {
        throw poplar::poplar_error("[custom_op] " + function + " threw what is no std::exception");
      }
    });
  };
  if constexpr (std::is_void_v<decltype(call())>) {
    run(call);
  } else {
    std::optional<decltype(call())> result;
    run([&] { result.emplace(call()); });
    return std::move(*result);
  }
}

}  // namespace popx::custom_op
