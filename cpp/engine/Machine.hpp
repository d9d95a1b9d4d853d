#pragma once
#include <cstdint>
#include <string>

namespace ipujax::engine {

enum class TargetType { IPU, IPU_MODEL, CPU };

/// The numbers of one machine. Those with no published source are named as such.
struct Machine {
  std::string name = "ipu2";  ///< Graphcore's architecture name
  TargetType target = TargetType::IPU_MODEL;
  unsigned num_ipus = 1;
  unsigned tiles_per_ipu = 1472;          ///< Bow-2000 datasheet: 5,888 cores per 4 IPUs
  unsigned worker_contexts = 6;           ///< Programmer's Guide
  std::uint64_t bytes_per_tile = 638976;  ///< Poplar's own out-of-memory message, 624 KiB
  double clock_hz = 1.33e9;               ///< MLPerf training v1.1 system files (GC200)
  unsigned data_path_width = 64;          ///< bits per load; poplibs Net.hpp
  unsigned exchange_bytes_per_cycle = 4;  ///< datasheet: 8 TB/s over 1472 tiles
  unsigned memcpy_bytes_per_cycle = 8;    ///< one 64-bit load and store a cycle
  unsigned tiles_per_exchange_bus = 2;    ///< poplibs ExchangeEstimator
  unsigned sync_cycles = 126;             ///< poplibs ReductionPlan.cpp: getMaxIPUSyncDelay
  unsigned global_sync_cycles = 600;      ///< transcription for IPU21
  unsigned fp16_in_fp16_out_units = 16;   ///< names of poplin's vertices
  unsigned fp16_in_fp32_out_units = 8;
  unsigned fp32_units = 16;
  unsigned weights_per_unit_fp16 = 16;  ///< input channels per group
  unsigned weights_per_unit_fp32 = 8;

  unsigned numTiles() const { return num_ipus * tiles_per_ipu; }
};

}  // namespace ipujax::engine
