#include "support/SignatureBytes.hpp"

#include <set>
#include <string>

namespace ipujax::runtime {
namespace {

/// More than any machine has; sums of a few such numbers are far from overflow.
constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 46;
constexpr std::int64_t kMostElements = (std::int64_t{1} << 31) - 1;

void need(bool good, const char* what) {
  if (!good)
    throw ExecutableError(std::string("[Executable] cannot be run: ") + what +
                          ". Compile it again.");
}

bool isPermutation(const std::vector<std::int64_t>& order, std::size_t rank) {
  const std::set<std::int64_t> axes(order.begin(), order.end());
  return order.size() == rank && axes.size() == rank && *axes.begin() == 0 &&
         *axes.rbegin() == static_cast<std::int64_t>(rank) - 1;
}

void verifySpec(const TensorSpec& spec) {
  std::uint64_t elements = 1;
  for (const auto d : spec.shape) {
    need(d >= 0 && d <= kMostElements, "an argument or result has no size");
    elements *= static_cast<std::uint64_t>(d);
    need(elements <= kMostBytes, "an argument or result is too large");
  }
  need(spec.shape.size() <= 64, "an argument or result has too many dimensions");
  need(spec.bytes <= kMostBytes, "an argument or result is too large");
  need(spec.bytes == 0 || spec.dtype != "token", "a token holds nothing");
  need(static_cast<std::size_t>(spec.memory) < kMemoryKindNames.size(),
       "an argument or result lies in an unknown memory");
  need(spec.memory == MemoryKind::kDevice || spec.dtype != "token", "a token lies in no memory");
  need(spec.minor_to_major.empty() || isPermutation(spec.minor_to_major, spec.shape.size()),
       "the layout of an argument or result is none of its dimensions");
}

void verifyAliases(const Signature& s) {
  need(s.output_alias.size() == s.outputs.size(), "the aliases do not match the outputs");
  std::set<std::int32_t> donated;
  for (std::size_t o = 0; o < s.outputs.size(); ++o) {
    const std::int32_t input = s.output_alias[o];
    if (input == -1) continue;
    need(input >= 0 && static_cast<std::size_t>(input) < s.inputs.size(),
         "an output takes over no input");
    need(donated.insert(input).second, "two outputs take over one input");
    need(s.inputs[static_cast<std::size_t>(input)].bytes == s.outputs[o].bytes,
         "an output takes over an input of another size");
    need(s.inputs[static_cast<std::size_t>(input)].memory == s.outputs[o].memory,
         "an output takes over an input of another memory");
  }
}

}  // namespace

void verify(const Signature& s) {
  for (const auto* specs : {&s.inputs, &s.outputs})
    for (const auto& spec : *specs) verifySpec(spec);
  need(s.num_replicas > 0 && s.num_replicas <= kMostReplicas, "the program has no replica");
  need(s.device_ids.empty() || s.device_ids.size() == s.num_replicas,
       "the devices do not match the replicas");
  std::set<std::int32_t> devices;
  for (const auto id : s.device_ids)
    need(id >= 0 && devices.insert(id).second, "a device is none, or is named twice");
  verifyAliases(s);
}

}  // namespace ipujax::runtime
