#include "engine/Machine.hpp"

#include <stdexcept>

#include "engine/VertexAbi.hpp"

namespace ipujax::engine {
namespace {

/// Jia et al., "Dissecting the Graphcore IPU Architecture via Microbenchmarking": 1,216 tiles of
/// 256 KiB at 1.6 GHz. All other figures are assumed to be those of Mk2.
Machine gc2(const Machine& mk2) {
  Machine gc2 = mk2;
  gc2.name = "gc2";
  gc2.arch = "ipu1";
  gc2.device_kind = "IPU Mk1 (GC2) Model";
  gc2.tiles_per_ipu = 1216;
  gc2.bytes_per_tile = 256 * 1024;
  gc2.executable_bytes_per_tile = gc2.bytes_per_tile / 2;  // assumed: one of two regions
  gc2.clock_hz = 1.6e9;
  gc2.global_sync_cycles = 500;  // this and the next three: defaults of PopLibs' test programs
  gc2.fp16_in_fp16_out_units = 8;
  gc2.fp16_in_fp32_out_units = 8;
  gc2.fp32_units = 4;
  return gc2;
}

/// To add a machine, add its row to the list that this returns: nothing else names machines.
std::vector<Machine> rows() {
  const Machine gc200{
      .arch = "ipu2",
      .tiles_per_ipu = 1472,              // Bow-2000 datasheet: 5,888 cores per 4 IPUs
      .worker_contexts = kIpujaxWorkers,  // Programmer's Guide; codelets are compiled for these
      .bytes_per_tile = 638976,           // Poplar's own out-of-memory message, 624 KiB
      .executable_bytes_per_tile = 0x80000 - 0x4c000,  // region 0 of ipu-stack's memory.rs
      .memory_element_bytes = 0x4000,                  // same file
      .clock_hz = 1.33e9,                              // MLPerf training v1.1 system files
      .data_path_width = 64,                           // poplibs Net.hpp
      .exchange_bytes_per_cycle = 4,                   // datasheet: 8 TB/s over 1472 tiles
      .memcpy_bytes_per_cycle = 8,                     // one 64-bit load and store a cycle
      .tiles_per_exchange_bus = 2,                     // poplibs ExchangeEstimator
      .sync_cycles = 126,            // poplibs ReductionPlan.cpp: getMaxIPUSyncDelay
      .global_sync_cycles = 600,     // transcription for IPU21
      .fp16_in_fp16_out_units = 16,  // this and the next four: names of poplin's vertices
      .fp16_in_fp32_out_units = 8,
      .fp32_units = 16,
      .weights_per_unit_fp16 = 16,
      .weights_per_unit_fp32 = 8,
      .streaming_gigabytes = 64,  // of an IPU-M2000 by default; up to 450, says Graphcore
      // poplibs_test/Util.cpp: 128 Gbit/s (of 1024^3 bits) per link, 85 % of it data; four
      // links between the IPUs of a pair, two up and two down; 15 ns per hop.
      .link_bytes_per_second = 128.0 * 1024 * 1024 * 1024 / 8 * 0.85,
      .links_across = 4,
      .links_along = 2,
      .link_hop_seconds = 15e-9,
      .ipus_per_machine = 4,                      // IPU-M2000 datasheet
      .ipus_per_rack = 64,                        // Bow Pod64: 16 machines a rack
      .gateway_bytes_per_second = 2 * 100e9 / 8,  // Bow-2000 datasheet: two links of 100 Gbit/s
      // PCIe Gen4 x16 (Bow-2000 datasheet): an upper bound; no figure is published.
      .streaming_bytes_per_second = 32e9,
      // An IPU-M2000 has one 100GbE RoCEv2 NIC for its host: "Build and test guide for IPU-POD
      // direct attach systems", section 1.2.
      .host_bytes_per_second = 100e9 / 8,
      .ipus_per_host_link = 4,
      .host_latency_seconds = 10e-6,  // assumed: one RDMA read and one poll by the host
      .name = "gc200",
      .device_kind = "IPU Mk2 (GC200) Model",
  };
  Machine bow = gc200;
  bow.name = "bow";
  bow.device_kind = "IPU Bow Model";
  bow.clock_hz = 1.85e9;  // MLPerf training v2.0 system files
  Machine c600 = gc200;
  c600.name = "c600";
  c600.arch = "ipu21";
  c600.device_kind = "IPU C600 Model";
  c600.clock_hz = 1.5e9;  // read on the device by ipu-stack; agrees with 280 TFLOP/s in float16
  // ByteMLPerf, README of its IPU backend: four links, 1 Tbit/s both ways together; two links
  // between the cards of a pair. Of the bits 85 % are data, as above.
  c600.link_bytes_per_second = 1e12 / 2 / 4 / 8 * 0.85;
  c600.links_across = 2;
  // PCIe Gen4 x16 (ByteMLPerf, README of its IPU backend): 16 GT/s, 128 of 130 bits, of which 85 %
  // are data, assumed as for IPU-Links. Wide & Deep (V087 in ipu_points.csv) shows 8 GB/s or more.
  c600.host_bytes_per_second = 16 * 16e9 / 8 * 128 / 130 * 0.85;
  c600.ipus_per_host_link = 1;
  c600.host_latency_seconds = 5e-6;  // assumed: two bus crossings and one poll by the host
  return {gc200, bow, c600, gc2(gc200)};
}

}  // namespace

const std::vector<Machine>& machines() {
  static const std::vector<Machine> all = rows();
  return all;
}

const Machine& machineByName(std::string_view name) {
  std::string known;
  for (const Machine& machine : machines()) {
    if (machine.name == name) return machine;
    known += (known.empty() ? "" : ", ") + machine.name;
  }
  for (const Machine& machine : machines())
    if (machine.arch == name) return machine;
  throw std::invalid_argument("[machine] needs one of " + known + "; got '" + std::string(name) +
                              "'. Use one of these names.");
}

}  // namespace ipujax::engine
