#pragma once
#include <memory>
#include <span>
#include <vector>

#include "engine/account/TripCounts.hpp"
#include "engine/image/Image.hpp"
#include "engine/memory/DeviceMemory.hpp"
#include "engine/memory/ReplicaBindings.hpp"
#include "support/Peers.hpp"
#include "support/RunSeeds.hpp"

namespace ipujax::engine {

class HostCallbacks;
class HostStreams;

/// An image ready to run on its devices: kernels built, pointers resolved. Holding it takes no
/// lock; the caller guarantees that sessions sharing a DeviceMemory do not run at the same time.
class Session {
 public:
  Session(std::shared_ptr<const Image> image, std::shared_ptr<DeviceMemory> memory);
  /// One memory for each replica that runs in this process, in the order of their numbers; `peers`
  /// is null where that is all of them.
  Session(std::shared_ptr<const Image> image, std::vector<std::shared_ptr<DeviceMemory>> memories,
          std::shared_ptr<runtime::Peers> peers = nullptr);
  ~Session();

  const Image& image() const;
  /// inputs[i] and outputs[j] are row-major host arrays, 64-byte aligned, that outlive the call.
  /// An aliased output may be the same pointer as its input (updated in place) or a different one
  /// (the input is then copied first and left untouched). Throws what a step throws.
  void run(std::span<const void* const> inputs, std::span<void* const> outputs,
           HostCallbacks* callbacks = nullptr, HostStreams* streams = nullptr);
  /// The same for a program of several replicas.
  void run(std::span<const Arrays> replicas, HostCallbacks* callbacks = nullptr,
           HostStreams* streams = nullptr, const runtime::RunSeed& seed = {});
  /// Runs one replica of a program in which replicas do not meet; the others keep their state.
  void runOne(std::uint32_t replica, const Arrays& arrays, HostStreams* streams);
  TripMeans tripMeans() const;  ///< what the last run counted
  /// From any thread: the run in progress stops at the next loop iteration and throws.
  void cancel();
  void forgetCancel();  ///< one that came after the run ended; call it between runs

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace ipujax::engine
