#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace pva {

struct Data;  ///< the contents of a report
using DataPtr = std::shared_ptr<const Data>;

class Program;
using ProgramPtr = std::shared_ptr<Program>;
class VertexInstance;

class ComputeSet {
 public:
  ComputeSet(DataPtr data, std::string name, std::uint64_t cycles, std::size_t step)
      : data_(std::move(data)), name_(std::move(name)), cycles_(cycles), step_(step) {}
  const std::string& name() const { return name_; }
  /// The cycles of the slowest tile, for each tile: all wait for it.
  std::vector<std::uint64_t> cyclesByTile() const;
  std::vector<std::uint64_t> estimatedCyclesByTile() const { return cyclesByTile(); }
  /// By type, sorted by name.
  std::vector<VertexInstance> vertices() const;

 private:
  DataPtr data_;
  std::string name_;
  std::uint64_t cycles_;
  std::size_t step_;
};

/// A variable that a step reads or writes.
class LoweredVariable {
 public:
  LoweredVariable(std::string name, std::uint64_t bytes, bool alwaysLive)
      : name_(std::move(name)), bytes_(bytes), alwaysLive_(alwaysLive) {}
  const std::string& name() const { return name_; }
  std::uint64_t bytes() const { return bytes_; }
  bool alwaysLive() const { return alwaysLive_; }

 private:
  std::string name_;
  std::uint64_t bytes_;
  bool alwaysLive_;
};

class ProgramVisitor;

/// A node of the compiled program.
class Program {
 public:
  enum class Type {
    AbortOnCondition,
    DoExchange,
    If,
    OnTileExecute,
    Repeat,
    RepeatWhile,
    Sequence,
    StreamCopyMid,
    Switch,
    // Not in compiled programs: a copy is one step, and syncs are parts of steps.
    GlobalExchange,
    Sans,
    StreamCopyBegin,
    StreamCopyEnd,
    Sync,
    SyncAns
  };
  Program(DataPtr data, std::size_t id, Type type) : data_(std::move(data)), id_(id), type_(type) {}
  virtual ~Program() = default;

  std::size_t _id() const { return id_; }  // NOLINT: the SDK's name
  Type type() const { return type_; }
  std::string name() const;
  std::vector<ProgramPtr> children() const;
  std::vector<LoweredVariable> vars() const;
  virtual void accept(ProgramVisitor& visitor) const = 0;

 protected:
  DataPtr data_;

 private:
  std::size_t id_;
  Type type_;
};

#define IPUJAX_PVA_PROGRAM(name, ...)                                              \
  class name##Program : public Program {                                           \
   public:                                                                         \
    name##Program(DataPtr data, std::size_t id) : Program(data, id, Type::name) {} \
    void accept(ProgramVisitor& visitor) const override;                           \
    __VA_ARGS__                                                                    \
  };
IPUJAX_PVA_PROGRAM(AbortOnCondition)
IPUJAX_PVA_PROGRAM(DoExchange, std::vector<std::uint64_t> estimatedCyclesByTile() const;)
IPUJAX_PVA_PROGRAM(If)
IPUJAX_PVA_PROGRAM(OnTileExecute, ComputeSet computeset() const;)
IPUJAX_PVA_PROGRAM(Repeat)
IPUJAX_PVA_PROGRAM(RepeatWhile)
IPUJAX_PVA_PROGRAM(Sequence)
IPUJAX_PVA_PROGRAM(StreamCopyBegin)
IPUJAX_PVA_PROGRAM(StreamCopyMid)
IPUJAX_PVA_PROGRAM(StreamCopyEnd)
IPUJAX_PVA_PROGRAM(Switch)
#undef IPUJAX_PVA_PROGRAM

/// Base of visitors, which override the functions for the programs that they handle.
class ProgramVisitor {
 public:
  virtual ~ProgramVisitor() = default;
  virtual void visitAbortOnCondition(const AbortOnConditionProgram&) {}
  virtual void visitDoExchange(const DoExchangeProgram&) {}
  virtual void visitIf(const IfProgram&) {}
  virtual void visitOnTileExecute(const OnTileExecuteProgram&) {}
  virtual void visitRepeat(const RepeatProgram&) {}
  virtual void visitRepeatWhile(const RepeatWhileProgram&) {}
  virtual void visitSequence(const SequenceProgram&) {}
  virtual void visitStreamCopyBegin(const StreamCopyBeginProgram&) {}
  virtual void visitStreamCopyMid(const StreamCopyMidProgram&) {}
  virtual void visitStreamCopyEnd(const StreamCopyEndProgram&) {}
  virtual void visitSwitch(const SwitchProgram&) {}
};

}  // namespace pva
