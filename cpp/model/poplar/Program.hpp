#pragma once
#include <cstdint>
#include <initializer_list>
#include <iosfwd>
#include <map>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "poplar/ArrayRef.hpp"
#include "poplar/DataStream.hpp"
#include "poplar/DebugContext.hpp"
#include "poplar/FunctionBuffer.hpp"
#include "poplar/GraphElements.hpp"
#include "poplar/HostFunction.hpp"
#include "poplar/PrintTensor.hpp"
#include "poplar/SyncType.hpp"
#include "poplar/Tensor.hpp"

namespace ipujax::engine {
struct ProgramNode;
}

namespace poplar::program {

/// A control program: the steps that the device runs. Copies are handles of the same program.
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
  Sequence(const std::vector<Program>& programs, const DebugContext& debugContext = {});
  /// A sequence of the given programs, as older code writes it.
  template <class First, class... Rest,
            class = std::enable_if_t<std::is_base_of_v<Program, First> &&
                                     !std::is_same_v<First, Sequence> &&
                                     (std::is_base_of_v<Program, Rest> && ...)>>
  Sequence(const First& first, const Rest&... rest)  // NOLINT: implicit for one program
      : Sequence(std::initializer_list<Program>{first, rest...}) {}
  template <class... Rest, class = std::enable_if_t<(sizeof...(Rest) > 0) &&
                                                    (std::is_base_of_v<Program, Rest> && ...)>>
  explicit Sequence(const Sequence& first, const Rest&... rest)
      : Sequence(std::initializer_list<Program>{first, rest...}) {}
  void add(const Program& program);
  void add_front(const Program& program);
};

/// A named program; the engine option `profiler.blocks.filter` selects blocks to profile by name.
class Block : public Program {
 public:
  Block(const Program& program, const DebugContext& debugContext = {});
};

/// Runs the vertices of compute sets in parallel.
class Execute : public Program {
 public:
  Execute(ComputeSet cs, const DebugContext& debugContext = {});  // NOLINT: implicit as in the SDK
  Execute(const std::vector<ComputeSet>& cs, const DebugContext& debugContext = {});  // NOLINT
  /// Sets `t`, one BOOL, to whether all vertices return true; without `t`, all of them must.
  Execute(ComputeSet cs, Tensor t, const DebugContext& debugContext = {});
};

/// Copies tensor to tensor, stream to tensor or tensor to stream; or between a tensor and a remote
/// buffer: all entries, or those with the indices in `offset` at run time. The tensor holds the
/// entries one after another.
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
  /// These do nothing: the model's functions are always loaded.
  Copy(const FunctionBuffer& src, const Function& dst, const DebugContext& debugContext = {});
  Copy(const Function& src, const FunctionBuffer& dst, const DebugContext& debugContext = {});
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

/// Runs `body` until Engine::stop, an error, or another end of the run.
class Loop : public Program {
 public:
  explicit Loop(const Program& body, const DebugContext& debugContext = {});
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
  Switch(Tensor control, const Program& defaultCase, const DebugContext& debugContext = {});
  explicit Switch(Tensor control, const DebugContext& debugContext = {});
  /// Without a default case: values without a case do nothing.
  static Switch switchWithBoundsChecking(Tensor control,
                                         const std::vector<std::pair<std::int32_t, Program>>& cases,
                                         const DebugContext& debugContext = {});
  static Switch switchWithUnreachableDefault(Tensor control, const DebugContext& debugContext = {});
  Switch& add(std::int32_t value, const Program& body);
};

/// Calls a function of the graph, or a host function that reads `inputs` and writes `outputs`.
class Call : public Program {
 public:
  Call(Function f, const DebugContext& debugContext = {});
  Call(const HostFunction& f, ArrayRef<Tensor> inputs, ArrayRef<Tensor> outputs,
       const DebugContext& debugContext = {});
};

class PrintTensor : public Program {
 public:
  explicit PrintTensor(Tensor t, const DebugContext& debugContext = {});
  PrintTensor(StringRef title, Tensor t, const DebugContext& debugContext = {});
  PrintTensor(Tensor t, const PrintTensorFmt& format, const DebugContext& debugContext = {});
  PrintTensor(StringRef title, Tensor t, const PrintTensorFmt& format,
              const DebugContext& debugContext = {});
};

/// Marks a tensor's contents as no longer needed: until its next write, its memory is free for
/// other data.
class WriteUndef : public Program {
 public:
  explicit WriteUndef(Tensor t, const DebugContext& debugContext = {});
};

using poplar::SyncType;

/// Compute sets and exchanges synchronise by themselves, so the model has nothing to do here.
class Sync : public Program {
 public:
  explicit Sync(SyncType type, const DebugContext& debugContext = {});
};

/// Stops the program with an error that shows `t`.
class ErrorProgram : public Program {
 public:
  ErrorProgram(StringRef message, Tensor t, const DebugContext& debugContext = {});
};

/// Stops the program with an error.
class Abort : public Program {
 public:
  Abort(const DebugContext& debugContext = {});  // NOLINT: implicit as in the SDK
  Abort(const std::string& message, const DebugContext& debugContext = {});  // NOLINT
  Abort(const char* message, const DebugContext& debugContext = {})          // NOLINT
      : Abort(std::string(message), debugContext) {}
};

/// Stops the program with an error if `predicate`, one element, is not zero.
class AbortOnCondition : public Program {
 public:
  AbortOnCondition(Tensor predicate, const DebugContext& debugContext = {});  // NOLINT
  AbortOnCondition(Tensor predicate, const std::string& message,
                   const DebugContext& debugContext = {});
  AbortOnCondition(Tensor predicate, const char* message, const DebugContext& debugContext = {})
      : AbortOnCondition(std::move(predicate), std::string(message), debugContext) {}
};

/// Declares that `t` is the same on all replicas, so that it may decide a branch.
class AssumeEqualAcrossReplicas : public Program {
 public:
  AssumeEqualAcrossReplicas(Tensor t, const DebugContext& debugContext = {});  // NOLINT
};

/// Whether both are handles of the same program.
bool operator==(const Program& lhs, const Program& rhs);
inline bool operator!=(const Program& lhs, const Program& rhs) { return !(lhs == rhs); }

}  // namespace poplar::program

namespace poplar {
class Graph;
namespace program {

/// Writes a program as an indented list of its steps.
void dumpProgram(const Graph& graph, const Program& program, std::ostream& out);

}  // namespace program
}  // namespace poplar
