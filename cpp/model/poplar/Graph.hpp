#pragma once
#include <algorithm>
#include <array>
#include <cassert>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <initializer_list>
#include <iomanip>
#include <iostream>
#include <iterator>
#include <limits>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <tuple>
#include <type_traits>
#include <unordered_map>
#include <vector>

#include "poplar/ArrayRef.hpp"
#include "poplar/CodeletFileType.hpp"
#include "poplar/DataStream.hpp"
#include "poplar/DebugContext.hpp"
#include "poplar/Device.hpp"
#include "poplar/FunctionBuffer.hpp"
#include "poplar/GraphElements.hpp"
#include "poplar/HostFunction.hpp"
#include "poplar/Interval.hpp"
#include "poplar/OptionFlags.hpp"
#include "poplar/PerfEstimateFunc.hpp"
#include "poplar/Program.hpp"
#include "poplar/SerializationFormat.hpp"
#include "poplar/Target.hpp"
#include "poplar/Tensor.hpp"
#include "poplar/TensorCloneMethod.hpp"
#include "poplar/TensorRearranger.hpp"
#include "poplar/TypeTraits.hpp"
#include "poplar/VariableMappingMethod.hpp"
#include "poplar/Version.hpp"
#include "poplar/exceptions.hpp"
#include "poplar/replication_factor.hpp"

// Not all of the standard headers above are used here: programs written for the SDK rely on them.

namespace ipujax::engine {
struct GraphScope;
}

namespace poplar {

/// A program under construction: variables with their tile mapping, vertices, streams, functions.
class Graph {
 public:
  using TileToTensorMapping = std::vector<std::vector<Interval>>;
  using HostFunctionArgument = poplar::HostFunctionArgument;
  /// Connection of one vertex field: to a tensor, a list of tensors, or constants.
  struct ConnectionDesc {
    std::string field;
    std::vector<Tensor> tensors;
    bool is_list = false;
    TypeTraits::Values constants;
    ConnectionDesc(StringRef field, Tensor t) : field(field), tensors{std::move(t)} {}
    ConnectionDesc(StringRef field, ArrayRef<Tensor> ts)
        : field(field), tensors(ts.cloneAsVector()), is_list(true) {}
    template <class T, class = std::enable_if_t<std::is_arithmetic_v<T>>>
    ConnectionDesc(StringRef field, T v) : field(field), constants(&v, 1) {}
    template <class T, class = std::enable_if_t<std::is_arithmetic_v<T>>>
    ConnectionDesc(StringRef field, ArrayRef<T> vs)
        : field(field), constants(vs.data(), vs.size()) {}
    template <class T, class = std::enable_if_t<std::is_arithmetic_v<T>>>
    ConnectionDesc(StringRef field, const std::vector<T>& vs)
        : ConnectionDesc(field, ArrayRef<T>(vs)) {}
  };

  Graph();
  Graph(const Target& target);  // NOLINT: implicit as in the SDK
  Graph(const Device& device);  // NOLINT
  /// One program for `r` replicas, each on an equal share of the target's IPUs; getTarget() is the
  /// target of one replica. Throws poplar_error if the IPUs cannot be divided evenly.
  Graph(const Target& target, replication_factor r);
  Graph(const Device& device, replication_factor r);
  /// The same on `numIPUs` IPUs of the target; 0 means all.
  Graph(const Target& target, unsigned numIPUs, replication_factor r);
  Graph(const Device& device, unsigned numIPUs, replication_factor r);
  Graph(Graph&&) noexcept;
  Graph& operator=(Graph&&) noexcept;
  ~Graph();

  const Target& getTarget() const;
  /// Number of replicas that run what is added to this graph.
  unsigned getReplicationFactor() const;
  /// UNSIGNED_INT scalar: the index of the replica that reads it. On tile 0 until mapped.
  Tensor addReplicationIndexConstant(const DebugContext& debugContext = {});

  Tensor addVariable(const Type& type, ArrayRef<std::size_t> shape,
                     const DebugContext& debugContext = {});
  Tensor addVariable(const Type& type, ArrayRef<std::size_t> shape, VariableMappingMethod mapping,
                     const DebugContext& debugContext = {});
  /// Adds quarters with the format and scale in `metadata`. A QUARTER variable added without it
  /// gets its own metadata, which host writes of the variable set. Other types ignore `metadata`.
  /// Throws tensor_metadata_error unless it is one element of QUARTER_METADATA.
  Tensor addVariable(const Type& type, const Tensor& metadata, ArrayRef<std::size_t> shape,
                     const DebugContext& debugContext = {});
  Tensor addVariable(const Type& type, const Tensor& metadata, ArrayRef<std::size_t> shape,
                     VariableMappingMethod mapping, const DebugContext& debugContext = {});
  /// Memory of another program. Always throws poplar_error: the model runs one program at a time.
  Tensor addExternalVariable(const Type& type, ArrayRef<std::size_t> shape, StringRef handle,
                             const DebugContext& debugContext = {});
  Tensor addLinearlyMappedVariable(const Type& type, ArrayRef<std::size_t> shape,
                                   const DebugContext& debugContext = {}) {
    return addVariable(type, shape, VariableMappingMethod::LINEAR, debugContext);
  }
  /// Maps whole grains of `grainSize` elements to each tile, and at least `minElementsPerTile`.
  Tensor addLinearlyMappedVariable(const Type& type, ArrayRef<std::size_t> shape,
                                   unsigned minElementsPerTile, unsigned grainSize,
                                   const DebugContext& debugContext = {});
  bool isConstant(VariableRef var) const;
  /// The whole variable: [elements].
  Tensor getVariable(VariableRef var) const;
  /// One value for all elements, or one per element (row-major).
  template <typename T>
  Tensor addConstant(const Type& type, ArrayRef<std::size_t> shape, ArrayRef<T> values,
                     const DebugContext& debugContext = {"<const>"}) {
    return addConstantFrom(hostType<T>(), values.data(), values.size(), type, shape, debugContext);
  }
  template <typename T, class A>
  Tensor addConstant(const Type& type, ArrayRef<std::size_t> shape, const std::vector<T, A>& values,
                     const DebugContext& debugContext = {"<const>"}) {
    return addConstant<T>(type, shape, ArrayRef<T>(values), debugContext);
  }
  template <typename T, class = std::enable_if_t<std::is_arithmetic_v<T>>>
  Tensor addConstant(const Type& type, ArrayRef<std::size_t> shape, T value,
                     const DebugContext& debugContext = {"<const>"}) {
    return addConstant<T>(type, shape, ArrayRef<T>(&value, 1), debugContext);
  }
  /// Deduces the pointer's type even if T is given, so that a literal 0 is a value.
  template <typename T = void, typename U,
            class = std::enable_if_t<std::is_void_v<T> || std::is_same_v<T, U>>>
  Tensor addConstant(const Type& type, ArrayRef<std::size_t> shape, const U* values,
                     const DebugContext& debugContext = {"<const>"}) {
    std::size_t n = 1;
    for (auto d : shape) n *= d;
    return addConstant<U>(type, shape, ArrayRef<U>(values, n), debugContext);
  }
  /// `traits` is the type of `values`; with `broadcast`, one value is used for all elements.
  Tensor addConstant(const Type& type, ArrayRef<std::size_t> shape, const void* values,
                     const TypeTraits& traits, bool broadcast,
                     const DebugContext& debugContext = {"<const>"});
  /// Takes metadata as addVariable does, but constants of this graph: values are rounded to the
  /// quarters that they describe.
  template <typename T>
  Tensor addConstant(const Type& type, const Tensor& metadata, ArrayRef<std::size_t> shape,
                     ArrayRef<T> values, const DebugContext& debugContext = {"<const>"}) {
    return addQuartersFrom(type, metadata, shape, values.data(), TypeTraits::make<T>(),
                           values.size(), debugContext);
  }
  template <typename T, class A>
  Tensor addConstant(const Type& type, const Tensor& metadata, ArrayRef<std::size_t> shape,
                     const std::vector<T, A>& values,
                     const DebugContext& debugContext = {"<const>"}) {
    return addConstant<T>(type, metadata, shape, ArrayRef<T>(values), debugContext);
  }
  template <typename T, class = std::enable_if_t<std::is_arithmetic_v<T>>>
  Tensor addConstant(const Type& type, const Tensor& metadata, ArrayRef<std::size_t> shape, T value,
                     const DebugContext& debugContext = {"<const>"}) {
    return addConstant<T>(type, metadata, shape, ArrayRef<T>(&value, 1), debugContext);
  }
  Tensor addConstant(const Type& type, const Tensor& metadata, ArrayRef<std::size_t> shape,
                     const void* values, const TypeTraits& traits, bool broadcast,
                     const DebugContext& debugContext = {"<const>"}) {
    std::size_t n = 1;
    for (auto d : shape) n *= d;
    return addQuartersFrom(type, metadata, shape, values, traits, broadcast ? 1 : n, debugContext);
  }
  /// Values given as IEEE half bits: one for all elements, or one per element.
  Tensor addConstantHalf(const Type& type, ArrayRef<std::size_t> shape, std::uint16_t value,
                         const DebugContext& debugContext = {"<const>"});
  Tensor addConstantHalf(const Type& type, ArrayRef<std::size_t> shape, const std::uint16_t* values,
                         const DebugContext& debugContext = {"<const>"});
  template <typename T>
  void setInitialValue(const Tensor& t, ArrayRef<T> values) {
    setInitialFrom(hostType<T>(), values.data(), values.size(), t);
  }
  template <typename T, class A>
  void setInitialValue(const Tensor& t, const std::vector<T, A>& values) {
    setInitialFrom(hostType<T>(), values.data(), values.size(), t);
  }
  template <typename T, class = std::enable_if_t<std::is_arithmetic_v<T>>>
  void setInitialValue(const Tensor& t, T value) {
    setInitialFrom(hostType<T>(), &value, 1, t);
  }
  template <typename T = void, typename U,
            class = std::enable_if_t<std::is_void_v<T> || std::is_same_v<T, U>>>
  void setInitialValue(const Tensor& t, const U* values) {
    setInitialFrom(hostType<U>(), values, t.numElements(), t);
  }
  void setInitialValueHalf(const Tensor& t, ArrayRef<std::uint16_t> values);
  void setInitialValueHalf(const Tensor& t, std::uint16_t value) {
    setInitialValueHalf(t, ArrayRef<std::uint16_t>(&value, 1));
  }
  /// Sets an INT or UNSIGNED_INT scalar of a replicated graph, by replica. Throws poplar_error if
  /// the values differ: on the model, an initial value is the same in all replicas.
  void setInitialValue(const Tensor& t, const std::map<unsigned, unsigned>& values);
  /// Reads the values of a constant tensor, one per element; false if any element is not constant.
  template <typename T>
  bool getConstantValue(const Tensor& t, T* values) const {
    return readConstant(hostType<T>(), values, t);
  }

  Tensor clone(const Type& type, const Tensor& t, const DebugContext& debugContext = {},
               TensorCloneMethod method = TensorCloneMethod::PRESERVE_ORDER_UNLESS_ALIASES);
  Tensor clone(const Tensor& t, const DebugContext& debugContext = {},
               TensorCloneMethod method = TensorCloneMethod::PRESERVE_ORDER_UNLESS_ALIASES);
  /// Takes metadata as addVariable does; the overloads above give quarters the metadata of `t`.
  Tensor clone(const Type& type, const Tensor& metadata, const Tensor& t,
               const DebugContext& debugContext = {},
               TensorCloneMethod method = TensorCloneMethod::PRESERVE_ORDER_UNLESS_ALIASES);
  Tensor clone(const Tensor& metadata, const Tensor& t, const DebugContext& debugContext = {},
               TensorCloneMethod method = TensorCloneMethod::PRESERVE_ORDER_UNLESS_ALIASES);
  /// [N, ...]: N clones in a new outermost dimension.
  Tensor cloneN(const Type& type, const Tensor& t, std::size_t N,
                const DebugContext& debugContext = {},
                TensorCloneMethod method = TensorCloneMethod::PRESERVE_ORDER_UNLESS_ALIASES,
                TensorCloneDuplicationMethod duplicationMethod =
                    TensorCloneDuplicationMethod::DUPLICATE_BY_OUTER_DIMENSION);
  Tensor cloneN(const Tensor& t, std::size_t N, const DebugContext& debugContext = {},
                TensorCloneMethod method = TensorCloneMethod::PRESERVE_ORDER_UNLESS_ALIASES,
                TensorCloneDuplicationMethod duplicationMethod =
                    TensorCloneDuplicationMethod::DUPLICATE_BY_OUTER_DIMENSION);
  Tensor cloneN(const Type& type, const Tensor& metadata, const Tensor& t, std::size_t N,
                const DebugContext& debugContext = {},
                TensorCloneMethod method = TensorCloneMethod::PRESERVE_ORDER_UNLESS_ALIASES,
                TensorCloneDuplicationMethod duplicationMethod =
                    TensorCloneDuplicationMethod::DUPLICATE_BY_OUTER_DIMENSION);
  Tensor cloneN(const Tensor& metadata, const Tensor& t, std::size_t N,
                const DebugContext& debugContext = {},
                TensorCloneMethod method = TensorCloneMethod::PRESERVE_ORDER_UNLESS_ALIASES,
                TensorCloneDuplicationMethod duplicationMethod =
                    TensorCloneDuplicationMethod::DUPLICATE_BY_OUTER_DIMENSION);

  void setTileMapping(const Tensor& t, unsigned tileNum);
  void setTileMapping(const Tensor& t, const TileToTensorMapping& mapping);
  void setTileMapping(VertexRef v, unsigned tileNum);
  /// Intervals of the flattened tensor on each tile. With `requireComplete`, throws
  /// invalid_tile_mapping if an element is on no tile of this graph.
  TileToTensorMapping getTileMapping(const Tensor& t, bool requireComplete = true,
                                     bool allowExternal = false) const;
  TileToTensorMapping getTileMapping(const Tensor& t, bool* isComplete,
                                     bool allowExternal = false) const;
  TileToTensorMapping getVariableTileMapping(const Tensor& t) const { return getTileMapping(t); }

  /// The contiguous regions of t, sorted by memory address and merged; with
  /// `removeAliasedIntervals`, each memory element occurs once. `aliases` receives, for each
  /// removed element in order, the element of `t` that is kept instead.
  std::vector<std::vector<Interval>> getSortedContiguousRegions(
      const Tensor& t, ArrayRef<Interval> regions, bool removeAliasedIntervals = false,
      std::vector<std::size_t>* aliases = nullptr) const;
  /// Flattens `t` in memory order, and reorders each of `ts` (of t's size) in the same way.
  void reorderToSimplify(Tensor* t, ArrayRef<Tensor*> ts, bool requireSimplestOrder = true) const;
  /// A rearranger that does the same, and the reverse, for any tensor of t's size.
  TensorRearranger getSimplifyingRearranger(const Tensor& t) const;
  /// Takes one element of each broadcast dimension of `t`; other tensors are returned unchanged.
  Tensor findUnbroadcastTensor(const Tensor& t) const;

  DataStream addHostToDeviceFIFO(StringRef handle, const Type& elementType, std::size_t numElements,
                                 ReplicatedStreamMode mode = ReplicatedStreamMode::REPLICATE,
                                 const OptionFlags& options = {});
  DataStream addDeviceToHostFIFO(StringRef handle, const Type& elementType, std::size_t numElements,
                                 const OptionFlags& options = {});
  /// Host memory for `repeats` entries of `numElements` elements, with undefined initial contents.
  /// The two options have no effect on the model.
  RemoteBuffer addRemoteBuffer(StringRef handle, const Type& elementType, std::size_t numElements,
                               std::size_t repeats = 1, bool rearrangeOnHost = false,
                               bool optimiseMemory = false);
  void createHostWrite(StringRef handle, const Tensor& t, bool rearrangeOnHost = false);
  void createHostRead(StringRef handle, const Tensor& t, bool rearrangeOnHost = false);

  Function addFunction(const program::Program& program);
  FunctionBuffer addFunctionBuffer(Function function, FunctionBufferMappingType mappingType);
  /// A host function, implemented by the callback given to Engine::connectHostFunction. Throws
  /// poplar_error without an input or output.
  HostFunction addHostFunction(StringRef handle, ArrayRef<HostFunctionArgument> inputs,
                               ArrayRef<HostFunctionArgument> outputs);

  bool addCodelets(StringRef src, CodeletFileType type = CodeletFileType::Auto,
                   StringRef compileFlags = "", StringRef targetName = "");
  /// The same; writes the compiler's errors to `compileOutput`.
  bool addCodelets(StringRef src, CodeletFileType type, StringRef compileFlags,
                   std::ostream& compileOutput, StringRef targetName = "");
  bool addCodelets(ArrayRef<std::string> sources, StringRef compileFlags = "",
                   StringRef targetName = "");
  bool addCodelets(std::initializer_list<StringRef> sources, StringRef compileFlags = "",
                   StringRef targetName = "");
  void addCodelets(std::istream& stream, StringRef compileFlags = "",
                   CodeletFileType type = CodeletFileType::CppSource, StringRef targetName = "");
  void addCodelets(std::istream& stream, StringRef compileFlags, std::ostream& compileOutput,
                   CodeletFileType type = CodeletFileType::CppSource, StringRef targetName = "");
  /// Declares vertices whose code comes later. Always throws poplar_error: the model reads
  /// declarations from the source, so add that.
  void addCodeletPlaceholder(std::istream& stream, StringRef targetName = "");
  ComputeSet addComputeSet(const DebugContext& debugContext = {});
  VertexRef addVertex(ComputeSet cs, StringRef vertexType);
  VertexRef addVertex(ComputeSet cs, StringRef vertexType, ArrayRef<ConnectionDesc> connections);
  /// A vertex that exchanges data with other IPUs itself. Always throws poplar_error on the model.
  VertexRef addExternalExchangeVertex(ComputeSet cs, StringRef vertexType,
                                      unsigned incomingDownCount, bool usesEastEdge,
                                      bool sendsXReq);
  void connect(FieldRef field, const Tensor& tensor);
  void connect(FieldRef field, ArrayRef<Tensor> tensors);
  /// Connects constants, which are stored on the vertex's tile: one value, or a vector.
  template <typename T, class = std::enable_if_t<std::is_arithmetic_v<T>>>
  void connect(FieldRef field, T value) {
    connectConstants(field, {&value, 1});
  }
  template <typename T, class = std::enable_if_t<std::is_arithmetic_v<T>>>
  void connect(FieldRef field, ArrayRef<T> values) {
    connectConstants(field, {values.data(), values.size()});
  }
  template <typename T, class A, class = std::enable_if_t<std::is_arithmetic_v<T>>>
  void connect(FieldRef field, const std::vector<T, A>& values) {
    connectConstants(field, {values.data(), values.size()});
  }
  template <typename T, class = std::enable_if_t<std::is_arithmetic_v<T> || std::is_enum_v<T>>>
  void setInitialValue(FieldRef field, T value) {
    setFieldValue(field, static_cast<double>(value));
  }
  /// Sets the size and elements of a vector in the vertex's own state.
  template <typename T>
  void setInitialValue(FieldRef field, ArrayRef<T> values) {
    setFieldSize(field, values.size());
    for (std::size_t i = 0; i < values.size(); ++i)
      setFieldValue(field[i], static_cast<double>(values[i]));
  }
  template <typename T, class A>
  void setInitialValue(FieldRef field, const std::vector<T, A>& values) {
    setInitialValue(std::move(field), ArrayRef<T>(values));
  }
  void setInitialValueHalf(FieldRef field, std::uint16_t value);
  void setInitialValueHalf(FieldRef field, ArrayRef<std::uint16_t> values);
  void setFieldSize(FieldRef field, std::size_t size);
  /// Size of a field that is connected or has a size set; throws no_size_specified for others.
  std::size_t getFieldSize(FieldRef field) const;
  void setPerfEstimate(const VertexRef& v, std::uint64_t cycles, std::uint64_t flops = 0);
  void setPerfEstimate(const VertexRef& v, const VertexPerfEstimate& estimate) {
    setPerfEstimate(v, estimate.cycles, estimate.flops);
  }
  void setCycleEstimate(const VertexRef& v, std::uint64_t cycles) { setPerfEstimate(v, cycles); }
  /// The estimate from setPerfEstimate or the type's estimator; else throws missing_perf_estimate.
  VertexPerfEstimate getPerfEstimate(const VertexRef& v) const;
  /// Sets the estimator for vertices of this type without an estimate from setPerfEstimate.
  void registerPerfEstimator(StringRef vertexTypeName, PerfEstimateFunc f);
  void registerCycleEstimator(StringRef vertexTypeName, PerfEstimateFunc f) {
    registerPerfEstimator(vertexTypeName, std::move(f));
  }
  /// Vector fields have 32-bit sizes.
  std::size_t getMaxFieldDim(StringRef /*vertexName*/, StringRef /*fieldName*/,
                             unsigned /*dimIndex*/) const {
    return 0xffffffff;
  }
  /// Largest value of a field of 32 bits or fewer; else poplar_error. Compiles the codelets.
  double getMaxVertexFieldValue(StringRef vertexName, StringRef fieldName) const;
  template <class T>
  T getMaxVertexFieldValueAs(StringRef vertexName, StringRef fieldName) const {
    return static_cast<T>(getMaxVertexFieldValue(vertexName, fieldName));
  }
  /// Whether codelets of this name (for a template, without its arguments) were added.
  bool hasCodelet(StringRef codeletName) const;

  /// A graph on some of this graph's tiles; the two share variables and programs.
  Graph createVirtualGraph(unsigned numTilesPerIPU);
  Graph createVirtualGraph(unsigned lowerTile, unsigned upperTile);
  Graph createVirtualGraph(const std::vector<unsigned>& perIPUTiles);
  /// A graph on one of `replicationFactor` equal parts of this graph's tiles: whatever is added to
  /// it exists once in each part, and its programs run in all parts. Throws graph_replication_error
  /// if the tiles cannot be divided evenly.
  Graph createReplicatedGraph(unsigned replicationFactor);
  Graph getTopLevelGraph() const;
  /// [factor, ...]: a tensor of a graph of createReplicatedGraph, as it exists in all parts.
  Tensor getNonReplicatedTensor(const Tensor& t) const;
  /// Converts a tile of this graph to a tile of the top-level graph, and back. The model numbers
  /// all tiles once, so these equal the conversions to physical tiles below.
  unsigned convertTileToTopLevelGraphTile(unsigned tile) const {
    return convertVirtualTileToPhysicalTile(tile);
  }
  unsigned convertTopLevelGraphTileToTile(unsigned topLevelGraphTile) const {
    return convertPhysicalTileToVirtualTile(topLevelGraphTile);
  }
  unsigned convertVirtualTileToPhysicalTile(unsigned virtualTileId) const;
  unsigned convertPhysicalTileToVirtualTile(unsigned physicalTileId) const;
  unsigned convertPhysicalTileToVirtualTile(unsigned ipuId, unsigned physicalTileId) const;

  /// Writes the vertices and their connections, or the programs, as a Graphviz graph.
  void outputVertexGraph(std::ostream& out, ArrayRef<program::Program> progs = {}) const;
  void outputComputeGraph(std::ostream& out, ArrayRef<program::Program> progs = {}) const;
  /// Writes the graph's variables, compute sets, vertices and program outlines, as JSON or as CBOR
  /// with the same values. Cannot be read back; save an Executable instead.
  void serialize(std::ostream& out, SerializationFormat format) const;
  void serialize(std::ostream& out, ArrayRef<program::Program> progs,
                 SerializationFormat format) const;
  /// Writes where tensors lie in variables, without values and, as Binary, without tile mappings.
  void serializeTensors(std::ostream& out, ArrayRef<Tensor> tensors,
                        SerializationFormat format) const;
  /// Recreates these tensors in new variables, which are not mapped to tiles. Throws poplar_error
  /// unless serializeTensors wrote the stream as Binary.
  std::vector<Tensor> deserializeTensors(std::istream& in, SerializationFormat format);
  unsigned getNumVars() const;
  unsigned getNumComputeSets() const;
  unsigned getNumVertices() const;

  /// For the library.
  ipujax::engine::GraphImpl& impl() const;
  operator ipujax::engine::GraphScope() const&;            // NOLINT: what the engine plans with
  operator ipujax::engine::GraphScope() const&& = delete;  // it refers to the graph
  static Graph of(ipujax::engine::GraphImpl& impl);        ///< the top-level graph
  const std::vector<unsigned>& physicalTiles() const;      ///< of each tile of this (virtual) graph

 private:
  Graph(std::shared_ptr<ipujax::engine::GraphImpl> impl, Target target,
        std::vector<unsigned> tiles);
  Graph virtualGraph(const Target& target, std::vector<unsigned> tiles) const;
  Tensor addQuartersFrom(const Type& type, const Tensor& metadata, ArrayRef<std::size_t> shape,
                         const void* values, const TypeTraits& traits, std::size_t n,
                         const DebugContext& debugContext);
  Tensor addConstantFrom(Type host, const void* values, std::size_t n, Type type,
                         ArrayRef<std::size_t> shape, const DebugContext& debugContext);
  void setInitialFrom(Type host, const void* values, std::size_t n, const Tensor& t);
  bool readConstant(Type host, void* values, const Tensor& t) const;
  void setFieldValue(FieldRef field, double value);
  void connectConstants(FieldRef field, const TypeTraits::Values& values);

  std::shared_ptr<ipujax::engine::GraphImpl> impl_;
  Target target_;
  std::vector<unsigned> tiles_;  ///< empty: all tiles
  unsigned parts_ = 1;           ///< replicas of createReplicatedGraph
  unsigned first_tile_ = 0;      ///< of the first part
  unsigned part_tiles_ = 0;
};

/// Code compiled with class sizes or a std::string other than this library's fails to load: the
/// symbol of its tag is missing.
template <std::size_t...>
struct Layout {
  static void tag();
};
using OwnLayout = Layout<sizeof(Graph), sizeof(Tensor), sizeof(Type), sizeof(DebugContext),
                         sizeof(program::Program), sizeof(OptionFlags), sizeof(std::string)>;
namespace {
[[gnu::used]] void (*const needed_layout)() = &OwnLayout::tag;
}

}  // namespace poplar
