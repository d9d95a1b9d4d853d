#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ipujax::engine {

/// The figures of one kind of IPU: everything that devices report and that costs are counted from.
/// The rows, and the source of each number, are in Machine.cpp alone.
struct Machine {
  std::string arch;  ///< Graphcore's name of the architecture
  unsigned tiles_per_ipu;
  unsigned worker_contexts;  ///< of one tile
  std::uint64_t bytes_per_tile;
  std::uint64_t executable_bytes_per_tile;  ///< the first of these, where code can be
  /// A tile reaches each memory element once a cycle. Memory after the executable part is
  /// interleaved: elements in pairs, read and written 16 bytes at a time.
  std::uint64_t memory_element_bytes;
  double clock_hz;                    ///< of the tiles
  unsigned data_path_width;           ///< bits per load
  unsigned exchange_bytes_per_cycle;  ///< that one tile receives
  unsigned memcpy_bytes_per_cycle;    ///< of one tile
  unsigned tiles_per_exchange_bus;
  unsigned sync_cycles;             ///< until all tiles of an IPU have met
  unsigned global_sync_cycles;      ///< until all tiles of a system have met
  unsigned fp16_in_fp16_out_units;  ///< convolution units of a tile
  unsigned fp16_in_fp32_out_units;
  unsigned fp32_units;
  unsigned weights_per_unit_fp16;  ///< input channels per group
  unsigned weights_per_unit_fp32;
  unsigned streaming_gigabytes;  ///< DRAM of one machine, for remote buffers
  double link_bytes_per_second;  ///< of one IPU-Link, each way
  unsigned links_across;         ///< from an IPU to the other of its pair
  unsigned links_along;          ///< from an IPU to the next pair, each way
  double link_hop_seconds;       ///< that a sync takes for one hop
  unsigned ipus_per_machine;
  unsigned ipus_per_rack;
  double gateway_bytes_per_second;    ///< from one machine to other racks, each way
  double streaming_bytes_per_second;  ///< between an IPU and streaming memory, each way
  double host_bytes_per_second;       ///< of one link to the host, each way
  unsigned ipus_per_host_link;        ///< that share it
  double host_latency_seconds;        ///< from the IPU's request until the host's data arrive
  std::string name;                   ///< what users write: "gc200"
  std::string device_kind;            ///< what JAX shows of a device
};

/// All machines that the model knows; the first is the default.
const std::vector<Machine>& machines();

/// By its name or its architecture; throws std::invalid_argument for any other.
const Machine& machineByName(std::string_view name);

enum class TargetType { IPU, IPU_MODEL, CPU };

/// What a graph is compiled for: so many IPUs of one machine.
struct System {
  Machine machine;
  unsigned num_ipus = 1;
  TargetType type = TargetType::IPU_MODEL;

  unsigned numTiles() const { return num_ipus * machine.tiles_per_ipu; }
};

}  // namespace ipujax::engine
