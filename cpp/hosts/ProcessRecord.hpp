#pragma once
#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "hosts/KeyValueStore.hpp"

namespace ipujax::hosts {

/// A value that all processes of a job must have.
struct Common {
  std::string name;
  std::string value;
};

/// What a process tells the others when its client is made.
struct ProcessRecord {
  std::vector<Common> common;
  std::string host;                ///< name of its machine
  std::vector<std::int64_t> ipus;  ///< of each of its devices

  std::string write() const;
  /// Throws PeerError for bytes that are no record of this version.
  static ProcessRecord read(const std::string& bytes, std::uint32_t process);
};

/// Tells the others this process's record and returns those of all, by process. Throws PeerError,
/// on every process, if their common values differ.
std::vector<ProcessRecord> agree(KeyValueStore& store, std::uint32_t self, std::uint32_t count,
                                 const ProcessRecord& own, std::chrono::milliseconds patience);

}  // namespace ipujax::hosts
