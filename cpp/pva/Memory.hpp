#pragma once
#include <cstdint>
#include <vector>

#include "pva/Program.hpp"

namespace pva {

/// Bytes of a tile by how elements of memory take them: the model knows no overlap.
class MemoryRegion {
 public:
  explicit MemoryRegion(std::uint64_t bytes = 0) : bytes_(bytes) {}
  std::uint64_t nonOverlapped() const { return bytes_; }
  std::uint64_t overlapped() const { return 0; }

 private:
  std::uint64_t bytes_;
};

/// Bytes of one purpose: the model accounts all as not interleaved.
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

/// What a tile's bytes are for. Purposes that the model does not have are 0.
class MemoryByCategory {
 public:
  MemoryByCategory(DataPtr data, std::size_t tile) : data_(std::move(data)), tile_(tile) {}
  MemoryCategory variable() const;  ///< arguments, results, state, temporaries
  MemoryCategory rearrangement() const;
  MemoryCategory message() const;      ///< received from other tiles
  MemoryCategory hostMessage() const;  ///< brought or taken by streams
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
  std::uint64_t includingGaps() const { return including_; }  ///< alignment and gaps, too

 private:
  std::uint64_t excluding_;
  std::uint64_t including_;
};

class TileMemory {
 public:
  TileMemory(DataPtr data, std::size_t tile) : data_(std::move(data)), tile_(tile) {}
  TotalMemory total() const;
  MemoryByCategory category() const { return {data_, tile_}; }
  std::uint64_t alwaysLiveBytes() const;     ///< all but temporaries and what moves between tiles
  std::uint64_t notAlwaysLiveBytes() const;  ///< the others
  std::vector<VertexInstance> vertices() const;  ///< throws

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

/// No report of the model has one.
class VertexType {
 public:
  std::string name() const { return {}; }
};
class VertexInstance {
 public:
  VertexType type() const { return {}; }
  std::uint64_t count() const { return 0; }
};

}  // namespace pva
