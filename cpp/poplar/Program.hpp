#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "poplar/DataStream.hpp"
#include "poplar/DebugContext.hpp"
#include "poplar/GraphElements.hpp"
#include "poplar/SyncType.hpp"
#include "poplar/Tensor.hpp"

namespace ipujax::engine {
struct ProgramNode;
}

namespace poplar::program {

/// A control program: what the device does, step by step. Programs are handles; copies share.
class Program {
 public:
  Program() = default;
  explicit Program(std::shared_ptr<ipujax::engine::ProgramNode> node) : node_(std::move(node)) {}
  bool isEmpty() const;
  /// For the library.
  const std::shared_ptr<ipujax::engine::ProgramNode>& node() const { return node_; }
  operator ipujax::engine::ProgramNode&() const { return *node_; }  // NOLINT: where steps are added

 protected:
  std::shared_ptr<ipujax::engine::ProgramNode> node_;
};

/// Runs its elements in order.
class Sequence : public Program {
 public:
  Sequence(const DebugContext& debugContext = {});
  Sequence(std::initializer_list<Program> programs, const DebugContext& debugContext = {});
  void add(const Program& program);
};

/// Runs the vertices of compute sets in parallel.
class Execute : public Program {
 public:
  explicit Execute(ComputeSet cs, const DebugContext& debugContext = {});
  explicit Execute(const std::vector<ComputeSet>& cs, const DebugContext& debugContext = {});
};

/// Copies tensor to tensor, stream to tensor or tensor to stream; or between a tensor and a remote
/// buffer: all of it, or the entries that `offset` names at run time, one after another in the
/// tensor.
class Copy : public Program {
 public:
  Copy(Tensor src, Tensor dst, bool dontOutline = false, const DebugContext& debugContext = {});
  Copy(DataStream stream, Tensor dst, bool optimiseMemory = false,
       const DebugContext& debugContext = {});
  Copy(Tensor src, DataStream stream, bool optimiseMemory = false,
       const DebugContext& debugContext = {});
  Copy(const RemoteBuffer& buffer, Tensor dst, const DebugContext& debugContext = {});
  Copy(const RemoteBuffer& buffer, Tensor dst, Tensor offset,
       const DebugContext& debugContext = {});
  Copy(Tensor src, const RemoteBuffer& buffer, const DebugContext& debugContext = {});
  Copy(Tensor src, const RemoteBuffer& buffer, Tensor offset,
       const DebugContext& debugContext = {});
};

/// Copies `src` of replica i to `dst` of replica map[i], for all replicas at once. The map names
/// every replica once as a key and once as a value.
class CrossReplicaCopy : public Program {
 public:
  CrossReplicaCopy(Tensor src, Tensor dst, const std::map<unsigned, unsigned>& replicaMap,
                   const DebugContext& debugContext = {});
};

class Repeat : public Program {
 public:
  Repeat(unsigned count, const Program& prog, const DebugContext& debugContext = {});
};

/// cond; while (predicate is true) { body; cond }.
class RepeatWhileTrue : public Program {
 public:
  RepeatWhileTrue(const Program& cond, Tensor predicate, const Program& body,
                  const DebugContext& debugContext = {});
};

class RepeatWhileFalse : public Program {
 public:
  RepeatWhileFalse(const Program& cond, Tensor predicate, const Program& body,
                   const DebugContext& debugContext = {});
};

class If : public Program {
 public:
  If(Tensor predicate, const Program& trueBody, const Program& falseBody,
     const DebugContext& debugContext = {});
};

class Switch : public Program {
 public:
  Switch(Tensor control, const std::vector<std::pair<std::int32_t, Program>>& cases,
         const Program& defaultCase, const DebugContext& debugContext = {});
  Switch(Tensor control, const std::vector<std::pair<std::int32_t, Program>>& cases,
         const DebugContext& debugContext = {});
};

/// Runs a function of the graph.
class Call : public Program {
 public:
  explicit Call(Function f, const DebugContext& debugContext = {});
};

class PrintTensor : public Program {
 public:
  explicit PrintTensor(Tensor t, const DebugContext& debugContext = {});
  PrintTensor(StringRef title, Tensor t, const DebugContext& debugContext = {});
};

/// Says that what a tensor holds is not needed any more: from here to its next write its memory is
/// free for others.
class WriteUndef : public Program {
 public:
  explicit WriteUndef(Tensor t, const DebugContext& debugContext = {});
};

using poplar::SyncType;

class Sync : public Program {
 public:
  explicit Sync(SyncType type, const DebugContext& debugContext = {});
};

/// Stops the program with an error that shows `t`.
class ErrorProgram : public Program {
 public:
  ErrorProgram(StringRef message, Tensor t, const DebugContext& debugContext = {});
};

}  // namespace poplar::program
