#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ipujax::engine {

/// Figures of one kind of IPU: everything that devices report and cost estimates use. Only
/// Machine.cpp has the rows and the source of each number.
struct Machine {
  std::string arch;  ///< Graphcore's name of the architecture
  unsigned tiles_per_ipu;
  unsigned worker_contexts;  ///< of one tile
  std::uint64_t bytes_per_tile;
  std::uint64_t executable_bytes_per_tile;  ///< at the start of these; can hold code
  /// A tile accesses each memory element once per cycle. Memory after the executable part is
  /// interleaved: elements in pairs, read and written 16 bytes at a time.
  std::uint64_t memory_element_bytes;
  double clock_hz;                    ///< of the tiles
  unsigned data_path_width;           ///< bits per load
  unsigned exchange_bytes_per_cycle;  ///< received by one tile
  unsigned memcpy_bytes_per_cycle;    ///< of one tile
  unsigned tiles_per_exchange_bus;
  unsigned sync_cycles;             ///< of a sync of all tiles of an IPU
  unsigned global_sync_cycles;      ///< of a sync of all tiles of a system
  unsigned fp16_in_fp16_out_units;  ///< convolution units of a tile
  unsigned fp16_in_fp32_out_units;
  unsigned fp32_units;
  unsigned weights_per_unit_fp16;  ///< input channels per group
  unsigned weights_per_unit_fp32;
  unsigned streaming_gigabytes;  ///< DRAM of one machine, for remote buffers
  double link_bytes_per_second;  ///< of one IPU-Link, each way
  unsigned links_across;         ///< from an IPU to the other of its pair
  unsigned links_along;          ///< from an IPU to the next pair, each way
  double link_hop_seconds;       ///< of a sync, for one hop
  unsigned ipus_per_machine;
  unsigned ipus_per_rack;
  double gateway_bytes_per_second;    ///< from one machine to other racks, each way
  double streaming_bytes_per_second;  ///< between an IPU and streaming memory, each way
  double host_bytes_per_second;       ///< of one link to the host, each way
  unsigned ipus_per_host_link;        ///< IPUs that share this link
  double host_latency_seconds;        ///< from the IPU's request until the host's data arrive
  std::string name;                   ///< as users write it: "gc200"
  std::string device_kind;            ///< as JAX shows it
};

/// All machines that the model knows; the first is the default.
const std::vector<Machine>& machines();

/// By its name or its architecture; throws std::invalid_argument for any other.
const Machine& machineByName(std::string_view name);

enum class TargetType { IPU, IPU_MODEL, CPU };

/// Target of a graph: a number of IPUs of one kind.
struct System {
  Machine machine;
  unsigned num_ipus = 1;
  TargetType type = TargetType::IPU_MODEL;

  unsigned numTiles() const { return num_ipus * machine.tiles_per_ipu; }
};

}  // namespace ipujax::engine
