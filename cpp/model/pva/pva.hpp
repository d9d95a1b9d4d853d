#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "pva/Memory.hpp"
#include "pva/Program.hpp"

// Reads reports of the IPU Model: from poplar::Engine::getReport, or from the profile.pop that an
// Engine with an autoReport option writes to autoReport.directory. All figures are the model's
// estimates. A library function of the model is one kernel, whose estimate has one vertex on each
// tile where it computes. Edges are not kept: counting them throws.

namespace pva {

class Version {
 public:
  explicit Version(std::string text) : text_(std::move(text)) {}
  unsigned major() const { return part(0); }
  unsigned minor() const { return part(1); }
  unsigned point() const { return part(2); }
  // The same under the SDK's names.
  std::uint32_t majorVer() const { return major(); }
  std::uint32_t minorVer() const { return minor(); }
  std::uint32_t pointVer() const { return point(); }
  const std::string& string() const { return text_; }
  std::string packageHash() const;  ///< of the library that reads the report

 private:
  unsigned part(int i) const;
  std::string text_;
};

class Target {
 public:
  explicit Target(DataPtr data) : data_(std::move(data)) {}
  std::string type() const { return "IPU_MODEL"; }
  unsigned numIPUs() const;
  unsigned numReplicas() const;
  unsigned numTiles() const;  ///< of all IPUs
  unsigned tilesPerIpu() const { return numTiles() / numIPUs(); }
  std::uint64_t bytesPerTile() const;
  std::uint64_t bytesPerIPU() const { return bytesPerTile() * tilesPerIpu(); }
  std::uint64_t totalMemory() const { return bytesPerTile() * numTiles(); }
  double clockFrequency() const;  ///< hertz

 private:
  DataPtr data_;
};

class Graph {
 public:
  explicit Graph(DataPtr data) : data_(std::move(data)) {}
  std::size_t numComputeSets() const;  ///< steps that compute
  std::size_t numVars() const;         ///< buffers
  std::size_t numVertices() const;
  std::size_t numEdges() const;  ///< always throws poplar_error

 private:
  DataPtr data_;
};

/// A variable that keeps its memory through the whole program.
class AlwaysLiveVariable {
 public:
  AlwaysLiveVariable(std::string name, std::uint64_t bytes)
      : name_(std::move(name)), bytes_(bytes) {}
  const std::string& name() const { return name_; }
  std::uint64_t size() const { return bytes_; }

 private:
  std::string name_;
  std::uint64_t bytes_;
};

class LivenessMemory {
 public:
  explicit LivenessMemory(std::uint64_t bytes) : bytes_(bytes) {}
  std::uint64_t bytes() const { return bytes_; }

 private:
  std::uint64_t bytes_;
};

/// Bytes that are live on all tiles while a program runs, without those that are always live.
class LivenessProgramStep {
 public:
  LivenessProgramStep(ProgramPtr program, std::uint64_t bytes)
      : program_(std::move(program)), bytes_(bytes) {}
  const ProgramPtr& program() const { return program_; }
  LivenessMemory notAlwaysLiveMemory() const { return LivenessMemory(bytes_); }

 private:
  ProgramPtr program_;
  std::uint64_t bytes_;
};

class Ipu {
 public:
  Ipu(DataPtr data, std::size_t ipu) : data_(std::move(data)), ipu_(ipu) {}
  std::vector<Tile> tiles() const;

 private:
  DataPtr data_;
  std::size_t ipu_;
};

class Compilation {
 public:
  explicit Compilation(DataPtr data) : data_(std::move(data)) {}
  Target target() const { return Target(data_); }
  Graph graph() const { return Graph(data_); }
  std::vector<Tile> tiles() const;  ///< each when its IPU's fullest tile is fullest
  std::vector<Ipu> ipus() const;
  std::vector<ProgramPtr> programs() const;
  std::vector<ComputeSet> computeSets() const;
  std::vector<LivenessProgramStep> livenessProgramSteps() const;
  /// The largest variables, and those on the fullest tiles.
  std::vector<AlwaysLiveVariable> alwaysLiveVariables() const;

 private:
  DataPtr data_;
};

/// A range over an IPU's tiles, which have equal clocks in the model.
class CycleRange {
 public:
  explicit CycleRange(std::uint64_t cycles) : cycles_(cycles) {}
  std::uint64_t min() const { return cycles_; }
  std::uint64_t max() const { return cycles_; }

 private:
  std::uint64_t cycles_;
};

/// When a step began and ended.
class ActiveCycles {
 public:
  ActiveCycles(std::uint64_t from, std::uint64_t to) : from_(from), to_(to) {}
  CycleRange cyclesFrom() const { return from_; }
  CycleRange cyclesTo() const { return to_; }

 private:
  CycleRange from_, to_;
};

/// One IPU's part in a step.
class IpuExecutionStep {
 public:
  IpuExecutionStep(std::uint64_t from, std::uint64_t to) : from_(from), to_(to) {}
  std::uint64_t cycles() const { return to_ - from_; }
  /// On a clock that continues through all runs, as in Block.
  ActiveCycles activeCycles() const { return {from_, to_}; }

 private:
  std::uint64_t from_, to_;
};

/// A step of a run; a step in a loop occurs once, with the cycles of all iterations.
class ExecutionStep {
 public:
  ExecutionStep(DataPtr data, ProgramPtr program, std::uint64_t from, std::uint64_t cycles)
      : data_(std::move(data)), program_(std::move(program)), from_(from), cycles_(cycles) {}
  const ProgramPtr& program() const { return program_; }
  /// Equal for all tiles: they wait for the slowest one, whose cycles the model estimates.
  std::vector<std::uint64_t> cyclesByTile() const;
  std::vector<IpuExecutionStep> ipus() const;
  std::vector<ComputeSet> computeSets() const;

 private:
  DataPtr data_;
  ProgramPtr program_;
  std::uint64_t from_, cycles_;
};

/// One call of Engine::run.
class Run {
 public:
  Run(DataPtr data, std::size_t index) : data_(std::move(data)), index_(index) {}
  const std::string& name() const;
  std::vector<ExecutionStep> steps() const;

 private:
  DataPtr data_;
  std::size_t index_;
};

/// When a program ran, in cycles of the tiles' clock.
class Block {
 public:
  enum class Kind { Common, StreamCopy, Overflow };
  Block(ProgramPtr program, std::size_t tile, std::uint64_t from, std::uint64_t to, Kind kind)
      : program_(std::move(program)), tile_(tile), from_(from), to_(to), kind_(kind) {}
  const ProgramPtr& program() const { return program_; }
  std::size_t tile() const { return tile_; }
  std::uint64_t cyclesFrom() const { return from_; }
  std::uint64_t cyclesTo() const { return to_; }
  bool isStreamCopy() const { return kind_ == Kind::StreamCopy; }
  bool isCommon() const { return kind_ == Kind::Common; }
  /// The last block if there were too many: it covers the time of those left out.
  bool isOverflow() const { return kind_ == Kind::Overflow; }
  bool isBlockFlush() const { return false; }  ///< the model keeps blocks outside of the tiles

 private:
  ProgramPtr program_;
  std::size_t tile_;
  std::uint64_t from_;
  std::uint64_t to_;
  Kind kind_;
};

class Execution {
 public:
  explicit Execution(DataPtr data) : data_(std::move(data)) {}
  /// Blocks of all runs in order. Engine options select them by regular expressions for whole
  /// names: `profiler.blocks.filter` program::Block, `profiler.programs.filter` single programs.
  /// Each execution is one block, on tile `profiler.blocks.tile` (0) of each IPU; with
  /// `debug.instrumentExternalExchange`, a stream copy is three blocks, on all tiles. Without a
  /// filter, every step is a block on all tiles, and a step in a loop occurs once, as in steps().
  std::vector<Block> blocks(std::size_t tile) const;
  std::vector<Run> runs() const;
  std::vector<ExecutionStep> steps() const;  ///< of all runs

 private:
  DataPtr data_;
};

// The SDK's names for these classes.
using PoplarVersion = Version;
using CompilationTarget = Target;
using CompilationGraph = Graph;
using CompilationReport = Compilation;
using ExecutionReport = Execution;

/// What a report measures: nothing, as all figures are estimates, which are the same for all tiles
/// of an IPU.
class InstrumentationSettings {
 public:
  enum ComputeInstrumentationLevel { Off, Vertex, Tile, Ipu, Device, Unknown };
  enum class ExternalExchangeInstrumentationLevel { Off, Tile, Unknown };
  ComputeInstrumentationLevel compute() const { return Ipu; }
  ExternalExchangeInstrumentationLevel externalExchange() const {
    return ExternalExchangeInstrumentationLevel::Off;
  }
};

/// Version of the file, which only this version of the library reads.
class ProfileReportVersion : public Version {
 public:
  using Version::Version;
  bool isUnstableFormat() const { return true; }
};

class Report {
 public:
  explicit Report(DataPtr data) : data_(std::move(data)) {}
  InstrumentationSettings instrumentationSettings() const { return {}; }
  ProfileReportVersion version() const { return ProfileReportVersion(poplarVersion().string()); }
  Compilation compilation() const { return Compilation(data_); }
  Execution execution() const { return Execution(data_); }
  Version poplarVersion() const;

 private:
  DataPtr data_;
};

/// Reads a profile.pop; throws poplar::file_load_error for a file that the model did not write.
Report openReport(const std::string& compilation, const std::string& execution = "");

/// For the library: reads the result of Engine::reportBytes.
Report reportFrom(const std::string& bytes);

namespace preview {
using pva::openReport;
}

}  // namespace pva
