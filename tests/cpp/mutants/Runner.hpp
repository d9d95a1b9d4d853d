#pragma once
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

#include "engine/run/Session.hpp"

namespace mutants {

enum class Outcome {
  kRefused,    ///< at load
  kRan,        ///< to its end
  kFailed,     ///< loaded, and ended with an error
  kCancelled,  ///< at the time bound
  kTooLarge,   ///< loaded, but running it would need a machine of its size
  kCount
};
const char* nameOf(Outcome outcome);

/// Loads images and runs them on made-up arguments, each in a block of memory of exactly its size.
/// Programs that take longer than the time bound are cancelled.
class Runner {
 public:
  explicit Runner(std::chrono::milliseconds bound);
  ~Runner();
  Outcome run(const std::string& sealed, std::uint64_t seed);
  const std::string& reason() const { return reason_; }  ///< of a refusal or failure

 private:
  void watch();
  Outcome runLoaded(const std::shared_ptr<const ipujax::engine::Image>& image, std::uint64_t seed);

  std::chrono::milliseconds bound_;
  std::string reason_;
  std::mutex mutex_;
  std::condition_variable changed_;
  ipujax::engine::Session* running_ = nullptr;
  std::chrono::steady_clock::time_point deadline_;
  bool cancelled_ = false;
  bool over_ = false;
  std::thread watchdog_;
};

}  // namespace mutants
