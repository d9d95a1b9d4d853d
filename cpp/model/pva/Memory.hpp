#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "pva/Program.hpp"

namespace pva {

/// Bytes of a tile by overlap in memory elements: the model has no overlaps.
class MemoryRegion {
 public:
  explicit MemoryRegion(std::uint64_t bytes = 0) : bytes_(bytes) {}
  std::uint64_t nonOverlapped() const { return bytes_; }
  std::uint64_t overlapped() const { return 0; }

 private:
  std::uint64_t bytes_;
};

/// Bytes of one category: the model counts all as not interleaved.
class MemoryCategory {
 public:
  explicit MemoryCategory(std::uint64_t bytes = 0) : bytes_(bytes) {}
  std::uint64_t total() const { return bytes_; }
  MemoryRegion nonInterleaved() const { return MemoryRegion(bytes_); }
  MemoryRegion interleaved() const { return MemoryRegion(); }
  MemoryRegion overflowed() const { return MemoryRegion(); }

 private:
  std::uint64_t bytes_;
};

/// A tile's bytes by category. Categories that the model does not have are 0.
class MemoryByCategory {
 public:
  MemoryByCategory(DataPtr data, std::size_t tile) : data_(std::move(data)), tile_(tile) {}
  MemoryCategory variable() const;  ///< arguments, results, state, temporaries
  MemoryCategory rearrangement() const;
  MemoryCategory message() const;      ///< received from other tiles
  MemoryCategory hostMessage() const;  ///< moved by streams
  MemoryCategory vertexInstanceState() const;
  MemoryCategory vertexCode() const;
  MemoryCategory controlCode() const;
  MemoryCategory internalExchangeCode() const;
  MemoryCategory stack() const;
  MemoryCategory constant() const { return MemoryCategory(); }
  MemoryCategory controlId() const { return MemoryCategory(); }
  MemoryCategory controlTable() const { return MemoryCategory(); }
  MemoryCategory copyDescriptor() const { return MemoryCategory(); }
  MemoryCategory globalExchangeCode() const { return MemoryCategory(); }
  MemoryCategory globalExchangePacketHeader() const { return MemoryCategory(); }
  MemoryCategory globalMessage() const { return MemoryCategory(); }
  MemoryCategory hostExchangeCode() const { return MemoryCategory(); }
  MemoryCategory hostExchangePacketHeader() const { return MemoryCategory(); }
  MemoryCategory instrumentationResults() const { return MemoryCategory(); }
  MemoryCategory outputEdge() const { return MemoryCategory(); }
  MemoryCategory sharedCodeStorage() const { return MemoryCategory(); }
  MemoryCategory sharedDataStorage() const { return MemoryCategory(); }
  MemoryCategory vectorListDescriptor() const { return MemoryCategory(); }
  MemoryCategory vertexFieldData() const { return MemoryCategory(); }

 private:
  DataPtr data_;
  std::size_t tile_;
};

class TotalMemory {
 public:
  TotalMemory(std::uint64_t excluding, std::uint64_t including)
      : excluding_(excluding), including_(including) {}
  std::uint64_t excludingGaps() const { return excluding_; }
  std::uint64_t includingGaps() const { return including_; }  ///< with alignment and gaps

 private:
  std::uint64_t excluding_;
  std::uint64_t including_;
};

class TileMemory {
 public:
  TileMemory(DataPtr data, std::size_t tile) : data_(std::move(data)), tile_(tile) {}
  TotalMemory total() const;
  MemoryByCategory category() const { return {data_, tile_}; }
  std::uint64_t alwaysLiveBytes() const;     ///< all but temporaries and messages between tiles
  std::uint64_t notAlwaysLiveBytes() const;  ///< the others
  /// By type, sorted by name.
  std::vector<VertexInstance> vertices() const;

 private:
  DataPtr data_;
  std::size_t tile_;
};

class Tile {
 public:
  Tile(DataPtr data, std::size_t tile) : data_(std::move(data)), tile_(tile) {}
  std::size_t id() const { return tile_; }
  TileMemory memory() const { return {data_, tile_}; }

 private:
  DataPtr data_;
  std::size_t tile_;
};

class VertexType {
 public:
  explicit VertexType(std::string name = {}) : name_(std::move(name)) {}
  const std::string& name() const { return name_; }

 private:
  std::string name_;
};

/// Vertices of one type, of a tile or a compute set.
class VertexInstance {
 public:
  VertexInstance(std::string type, std::uint64_t count) : type_(std::move(type)), count_(count) {}
  VertexType type() const { return type_; }
  std::uint64_t count() const { return count_; }

 private:
  VertexType type_;
  std::uint64_t count_;
};

}  // namespace pva
