#pragma once
#include <cstring>
#include <memory>
#include <vector>

#include "engine/build/Build.hpp"
#include "engine/kernels/Kernel.hpp"
#include "poplar/Graph.hpp"
#include "poplar/IPUModel.hpp"

/// A replicated graph with inputs and results given by replica. A plain loop runs each step for all
/// replicas, one after the other.
struct OnReplicas {
  using Bytes = std::vector<std::byte>;
  unsigned num_replicas;
  poplar::Graph graph;
  poplar::program::Sequence prog;
  ipujax::engine::BuildOptions options;
  std::vector<std::vector<Bytes>> inputs;   // [input][replica]
  std::vector<std::vector<Bytes>> outputs;  // [output][replica]

  /// `tiles`: on each of a replica's `ipus` IPUs.
  explicit OnReplicas(unsigned n, unsigned tiles = 1472, unsigned ipus = 1)
      : num_replicas(n),
        graph(poplar::Target::createIPUTarget(n * ipus, tiles, "gc200"),
              poplar::replication_factor(n)) {
    options.signature.num_replicas = n;
  }

  /// values[replica]
  template <class T>
  poplar::Tensor input(poplar::Type type, std::vector<std::size_t> shape,
                       const std::vector<std::vector<T>>& values) {
    auto t = graph.addVariable(type, shape, poplar::VariableMappingMethod::LINEAR, "in");
    auto stream =
        graph.addHostToDeviceFIFO("in" + std::to_string(inputs.size()), type, t.numElements());
    prog.add(poplar::program::Copy(stream, t));
    auto& bytes = inputs.emplace_back();
    for (const auto& v : values) {
      bytes.emplace_back(v.size() * sizeof(T));
      if (!v.empty()) std::memcpy(bytes.back().data(), v.data(), v.size() * sizeof(T));
    }
    options.signature.inputs.push_back({"float32", {}, bytes[0].size(), {}});
    return t;
  }

  void output(const poplar::Tensor& t) {
    const std::uint64_t size = t.numElements() * graph.getTarget().getTypeSize(t.elementType());
    auto stream = graph.addDeviceToHostFIFO("out" + std::to_string(outputs.size()), t.elementType(),
                                            t.numElements());
    prog.add(poplar::program::Copy(t, stream));
    options.signature.outputs.push_back({"float32", {}, size, {}});
    options.signature.output_alias.push_back(-1);
    outputs.emplace_back(num_replicas, Bytes(size));
  }

  void run() {
    using namespace ipujax::engine;
    const auto image = buildImage(graph, prog, options);
    std::vector<std::vector<std::byte*>> bases(num_replicas);
    std::vector<Bytes> arenas(num_replicas, Bytes(image->arena_bytes + 64));
    for (unsigned r = 0; r < num_replicas; ++r) {
      for (const auto& b : image->buffers) {
        switch (b.kind) {
          case BufferKind::kArena:
            bases[r].push_back(arenas[r].data() + b.offset);
            break;
          case BufferKind::kConstant:
            bases[r].push_back(const_cast<std::byte*>(image->constants.data()) + b.offset);
            break;
          case BufferKind::kInput:
            bases[r].push_back(inputs[b.input][r].data());
            break;
          default:
            bases[r].push_back(outputs[b.output][r].data());
        }
      }
    }
    for (const auto child : image->nodes[0].children) {
      const Node& node = image->nodes[child];
      if (node.kind != NodeKind::kStep) throw std::logic_error("the test walks steps only");
      const StepDesc& step = image->steps[node.value];
      std::vector<std::vector<std::byte*>> pointers(num_replicas);
      std::vector<std::span<std::byte* const>> spans;
      for (unsigned r = 0; r < num_replicas; ++r) {
        for (const auto& o : step.operands)
          pointers[r].push_back(bases[r][o.buffer] +
                                o.offset * static_cast<std::int64_t>(sizeOf(o.type)));
        spans.emplace_back(pointers[r]);
      }
      const auto kernel = KernelRegistry::instance().make(step);
      RunContext context{ThreadPool::shared()};
      if (const auto* meets = dynamic_cast<const CollectiveKernel*>(kernel.get())) {
        meets->meet(context, spans);
        continue;
      }
      for (unsigned r = 0; r < num_replicas; ++r) {
        context.replica = r;
        kernel->run(context, spans[r]);
      }
    }
  }

  /// Result `index` of a replica, after run().
  template <class T>
  std::vector<T> result(std::size_t index, unsigned replica) const {
    const Bytes& bytes = outputs[index][replica];
    std::vector<T> values(bytes.size() / sizeof(T));
    if (!bytes.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
  }
};
