#pragma once
#include <chrono>
#include <string>

namespace ipujax::hosts {

/// Texts that the processes of a job leave for each other. A key is written once.
class KeyValueStore {
 public:
  virtual ~KeyValueStore() = default;
  virtual void put(const std::string& key, const std::string& value) = 0;
  /// Waits until the key is there; throws after `patience`.
  virtual std::string get(const std::string& key, std::chrono::milliseconds patience) = 0;
};

}  // namespace ipujax::hosts
