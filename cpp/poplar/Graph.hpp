#pragma once
#include <cstdint>
#include <functional>
#include <iosfwd>
#include <memory>
#include <string>
#include <vector>

#include "poplar/ArrayRef.hpp"
#include "poplar/DataStream.hpp"
#include "poplar/DebugContext.hpp"
#include "poplar/Device.hpp"
#include "poplar/GraphElements.hpp"
#include "poplar/Interval.hpp"
#include "poplar/OptionFlags.hpp"
#include "poplar/Program.hpp"
#include "poplar/Target.hpp"
#include "poplar/Tensor.hpp"
#include "poplar/VariableMappingMethod.hpp"
#include "poplar/exceptions.hpp"

namespace ipujax::engine {
struct GraphScope;
}

namespace poplar {

enum class CodeletFileType { Auto, Object, Assembly, CSource, CppSource, IrSource };
enum class TensorCloneMethod {
  PRESERVE_ORDER_AND_ALIASES,
  CREATE_NEW_ORDER,
  PRESERVE_ORDER_UNLESS_ALIASES,
  GATHER_AND_PRESERVE_TILE_ORDER_AND_ALIASES,
};

/// How many copies of a program run at once: `Graph(target, replication_factor(4))`.
class replication_factor {
 public:
  constexpr explicit replication_factor(unsigned value) : value_(value) {}
  constexpr operator unsigned() const { return value_; }  // NOLINT: a number, as in the SDK

 private:
  unsigned value_;
};

/// A program under construction: variables with their tile mapping, vertices, streams, functions.
class Graph {
 public:
  using TileToTensorMapping = std::vector<std::vector<Interval>>;
  struct ConnectionDesc {
    std::string field;
    std::vector<Tensor> tensors;
    bool is_list = false;
    ConnectionDesc(StringRef field, Tensor t) : field(field), tensors{std::move(t)} {}
    ConnectionDesc(StringRef field, std::vector<Tensor> ts)
        : field(field), tensors(std::move(ts)), is_list(true) {}
  };

  Graph();
  explicit Graph(const Target& target);
  explicit Graph(const Device& device);
  /// One program for `r` replicas, each on its share of the target's IPUs: getTarget() is that of
  /// one replica. Throws poplar_error where the IPUs cannot be shared out evenly.
  Graph(const Target& target, replication_factor r);
  Graph(const Device& device, replication_factor r);
  Graph(Graph&&) noexcept;
  Graph& operator=(Graph&&) noexcept;
  ~Graph();

  const Target& getTarget() const;
  unsigned getReplicationFactor() const;
  /// UNSIGNED_INT, one element: the number of the replica that reads it; on tile 0 until mapped.
  Tensor addReplicationIndexConstant(const DebugContext& debugContext = {});

  Tensor addVariable(const Type& type, ArrayRef<std::size_t> shape,
                     const DebugContext& debugContext = {});
  Tensor addVariable(const Type& type, ArrayRef<std::size_t> shape, VariableMappingMethod mapping,
                     const DebugContext& debugContext = {});
  /// One value for all elements, or one per element (row-major).
  template <typename T>
  Tensor addConstant(const Type& type, ArrayRef<std::size_t> shape, ArrayRef<T> values,
                     const DebugContext& debugContext = {}) {
    return addConstantFrom(equivalent_device_type<T>::value, values.data(), values.size(), type,
                           shape, debugContext);
  }
  template <typename T>
  Tensor addConstant(const Type& type, ArrayRef<std::size_t> shape, T value,
                     const DebugContext& debugContext = {}) {
    return addConstant<T>(type, shape, ArrayRef<T>(&value, 1), debugContext);
  }
  template <typename T>
  Tensor addConstant(const Type& type, ArrayRef<std::size_t> shape, const T* values,
                     const DebugContext& debugContext = {}) {
    std::size_t n = 1;
    for (auto d : shape) n *= d;
    return addConstant<T>(type, shape, ArrayRef<T>(values, n), debugContext);
  }
  /// Values given as IEEE half bits.
  Tensor addConstantHalf(const Type& type, ArrayRef<std::size_t> shape, const std::uint16_t* values,
                         const DebugContext& debugContext = {});
  template <typename T>
  void setInitialValue(const Tensor& t, ArrayRef<T> values) {
    setInitialFrom(equivalent_device_type<T>::value, values.data(), values.size(), t);
  }
  template <typename T>
  void setInitialValue(const Tensor& t, T value) {
    setInitialFrom(equivalent_device_type<T>::value, &value, 1, t);
  }

  Tensor clone(const Type& type, const Tensor& t, const DebugContext& debugContext = {},
               TensorCloneMethod method = TensorCloneMethod::PRESERVE_ORDER_UNLESS_ALIASES);
  Tensor clone(const Tensor& t, const DebugContext& debugContext = {},
               TensorCloneMethod method = TensorCloneMethod::PRESERVE_ORDER_UNLESS_ALIASES);

  void setTileMapping(const Tensor& t, unsigned tileNum);
  void setTileMapping(const Tensor& t, const TileToTensorMapping& mapping);
  void setTileMapping(VertexRef v, unsigned tileNum);
  /// Intervals of the flattened tensor on each tile; throws invalid_tile_mapping where incomplete
  /// and `requireComplete`.
  TileToTensorMapping getTileMapping(const Tensor& t, bool requireComplete = true) const;
  TileToTensorMapping getTileMapping(const Tensor& t, bool* isComplete) const;

  /// The contiguous regions of t, sorted by where they lie in memory, merged.
  std::vector<std::vector<Interval>> getSortedContiguousRegions(const Tensor& t,
                                                                ArrayRef<Interval> regions) const;

  DataStream addHostToDeviceFIFO(StringRef handle, const Type& elementType, std::size_t numElements,
                                 ReplicatedStreamMode mode = ReplicatedStreamMode::REPLICATE,
                                 const OptionFlags& options = {});
  DataStream addDeviceToHostFIFO(StringRef handle, const Type& elementType, std::size_t numElements,
                                 const OptionFlags& options = {});
  /// Memory of the host for `repeats` entries of `numElements`; what it holds at first is not
  /// defined. Neither option changes what the model does.
  RemoteBuffer addRemoteBuffer(StringRef handle, const Type& elementType, std::size_t numElements,
                               std::size_t repeats = 1, bool rearrangeOnHost = false,
                               bool optimiseMemory = false);
  void createHostWrite(StringRef handle, const Tensor& t, bool rearrangeOnHost = false);
  void createHostRead(StringRef handle, const Tensor& t, bool rearrangeOnHost = false);

  Function addFunction(const program::Program& program);

  bool addCodelets(StringRef src, CodeletFileType type = CodeletFileType::Auto,
                   StringRef compileFlags = "", StringRef targetName = "");
  void addCodelets(std::istream& stream, StringRef compileFlags = "",
                   CodeletFileType type = CodeletFileType::CppSource, StringRef targetName = "");
  ComputeSet addComputeSet(const DebugContext& debugContext = {});
  VertexRef addVertex(ComputeSet cs, StringRef vertexType);
  VertexRef addVertex(ComputeSet cs, StringRef vertexType, ArrayRef<ConnectionDesc> connections);
  void connect(FieldRef field, const Tensor& tensor);
  void connect(FieldRef field, ArrayRef<Tensor> tensors);
  template <typename T>
  void setInitialValue(FieldRef field, T value) {
    setFieldValue(field, static_cast<double>(value));
  }
  void setFieldSize(FieldRef field, std::size_t size);
  void setPerfEstimate(const VertexRef& v, std::uint64_t cycles, std::uint64_t flops = 0);

  /// A graph whose tiles are a part of this one's; variables and programs are shared.
  Graph createVirtualGraph(unsigned numTilesPerIPU);
  Graph createVirtualGraph(unsigned lowerTile, unsigned upperTile);
  Graph createVirtualGraph(const std::vector<unsigned>& perIPUTiles);
  Graph getTopLevelGraph();

  /// For the library.
  ipujax::engine::GraphImpl& impl() const { return *impl_; }
  operator ipujax::engine::GraphScope() const&;            // NOLINT: what the engine plans with
  operator ipujax::engine::GraphScope() const&& = delete;  // it refers to the graph
  static Graph of(ipujax::engine::GraphImpl& impl);        ///< the top-level graph again
  const std::vector<unsigned>& physicalTiles() const;      ///< of this (virtual) graph, by its tile

 private:
  Graph(std::shared_ptr<ipujax::engine::GraphImpl> impl, Target target,
        std::vector<unsigned> tiles);
  Tensor addConstantFrom(Type host, const void* values, std::size_t n, Type type,
                         ArrayRef<std::size_t> shape, const DebugContext& debugContext);
  void setInitialFrom(Type host, const void* values, std::size_t n, const Tensor& t);
  void setFieldValue(FieldRef field, double value);

  std::shared_ptr<ipujax::engine::GraphImpl> impl_;
  Target target_;
  std::vector<unsigned> tiles_;  ///< empty: all tiles
};

}  // namespace poplar
