#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "engine/loop/MakeLoop.hpp"
#include "engine/run/Session.hpp"

/// Programs of a few steps in a loop, for tests of loops as one kernel.
namespace loops {

namespace engine = ipujax::engine;
using engine::Access;
using engine::ElementType;
using engine::NodeKind;
using engine::OperandDesc;
using Bytes = std::vector<std::byte>;
using Dims = std::vector<std::int64_t>;

/// A program on buffers that all start as inputs and end as outputs.
struct Program {
  engine::Image image;
  std::vector<Bytes> start;

  Program() {
    image.debug.emplace_back();
    image.nodes.emplace_back();
  }

  std::uint32_t buffer(Bytes contents) {
    const auto b = static_cast<std::uint32_t>(image.buffers.size());
    const std::uint64_t n = contents.size();
    image.signature.inputs.push_back({"uint8", {static_cast<std::int64_t>(n)}, n, {}});
    image.signature.outputs.push_back(image.signature.inputs.back());
    image.signature.output_alias.push_back(static_cast<std::int32_t>(b));
    image.buffers.push_back({engine::BufferKind::kInputOutput, n, 0, b, b});
    start.push_back(std::move(contents));
    return b;
  }

  std::uint32_t add(std::uint32_t parent, NodeKind kind, std::uint64_t value = 0) {
    const auto index = static_cast<std::uint32_t>(image.nodes.size());
    image.nodes.emplace_back();
    image.nodes[index].kind = kind;
    image.nodes[index].value = value;
    image.nodes[parent].children.push_back(index);
    return index;
  }

  void addSteps(std::uint32_t parent, const std::vector<engine::StepDesc>& steps) {
    for (const auto& step : steps) {
      add(parent, NodeKind::kStep, image.steps.size());
      image.steps.push_back(step);
    }
  }

  std::vector<Bytes> run() const {
    engine::Session session(std::make_shared<engine::Image>(image),
                            std::make_shared<engine::DeviceMemory>());
    std::vector<Bytes> results = start;
    std::vector<const void*> inputs;
    std::vector<void*> outputs;
    for (std::size_t b = 0; b < start.size(); ++b) {
      inputs.push_back(start[b].data());
      outputs.push_back(results[b].data());
    }
    session.run(inputs, outputs);
    return results;
  }

  bool hasLoopKernel() const {
    std::vector<std::unique_ptr<engine::Kernel>> kernels;
    for (const auto& step : image.steps)
      kernels.push_back(engine::KernelRegistry::instance().make(step));
    for (std::uint32_t n = 0; n < image.nodes.size(); ++n) {
      const NodeKind kind = image.nodes[n].kind;
      if (kind != NodeKind::kRepeat && kind != NodeKind::kRepeatWhile) continue;
      if (engine::loop::makeLoop(image, n, kernels)) return true;
    }
    return false;
  }
};

inline OperandDesc whole(std::uint32_t buffer, ElementType type, const Dims& shape, Access access) {
  OperandDesc o{buffer, type, access, 0, shape, Dims(shape.size())};
  std::int64_t stride = 1;
  for (std::size_t d = shape.size(); d-- > 0; stride *= shape[d]) o.strides[d] = stride;
  return o;
}

}  // namespace loops
