#include "engine/Reducer.hpp"

namespace ipujax::engine::reduction {

namespace {
constexpr const char* kNames[kNumReducers] = {"add", "mul", "min",        "max",    "and",
                                              "or",  "xor", "square_add", "log_add"};
}

const char* nameOf(Reducer reducer) { return kNames[static_cast<int>(reducer)]; }

std::optional<Reducer> reducerOf(std::string_view name) {
  for (int i = 0; i < kNumReducers; ++i)
    if (name == kNames[i]) return static_cast<Reducer>(i);
  return std::nullopt;
}

}  // namespace ipujax::engine::reduction
