#include "engine/run/Session.hpp"

#include <algorithm>
#include <atomic>
#include <new>
#include <stdexcept>

#include "engine/run/ReplicatedWalker.hpp"
#include "engine/run/Walker.hpp"
#include "support/FloatEnvironment.hpp"

namespace ipujax::engine {

struct Session::Impl {
  Impl(std::shared_ptr<const Image> i, const std::vector<std::shared_ptr<DeviceMemory>>& memories,
       std::shared_ptr<runtime::Peers> the_peers)
      : image(std::move(i)),
        trip_counts(*image),
        table(*image),
        walker(*image, cancelled, trip_counts),
        peers(std::move(the_peers)) {
    const std::size_t here = replicasHere();
    if (memories.size() != here) {
      throw std::invalid_argument("[Session] needs memory for " + std::to_string(here) +
                                  " replicas; got it for " + std::to_string(memories.size()) +
                                  ". Pass one for each replica.");
    }
    for (const auto& memory : memories) bindings.emplace_back(*image, table, memory);
    if (image->signature.num_replicas > 1)
      replicated = std::make_unique<ReplicatedWalker>(walker, peers);
  }

  std::size_t replicasHere() const {
    if (!peers) return image->signature.num_replicas;
    if (peers->processes().size() != image->signature.num_replicas) {
      throw std::invalid_argument(
          "[Session] needs the processes of " + std::to_string(image->signature.num_replicas) +
          " replicas; got those of " + std::to_string(peers->processes().size()) +
          ". Pass one for each replica.");
    }
    return static_cast<std::size_t>(std::ranges::count(peers->processes(), peers->self()));
  }

  void bind(std::span<const Arrays> replicas) {
    if (replicas.size() != bindings.size()) {
      throw std::invalid_argument("[Session::run] needs arrays for " +
                                  std::to_string(bindings.size()) + " replicas; got them for " +
                                  std::to_string(replicas.size()) +
                                  ". Pass the arrays of each replica.");
    }
    for (std::size_t r = 0; r < bindings.size(); ++r) bind(r, replicas[r]);
  }

  void bind(std::size_t replica, const Arrays& arrays) {
    const Signature& signature = image->signature;
    const auto& [inputs, outputs] = arrays;
    if (inputs.size() != signature.inputs.size() || outputs.size() != signature.outputs.size()) {
      throw std::invalid_argument("[Session::run] needs " +
                                  std::to_string(signature.inputs.size()) + " inputs and " +
                                  std::to_string(signature.outputs.size()) + " outputs; got " +
                                  std::to_string(inputs.size()) + " and " +
                                  std::to_string(outputs.size()) + ". Pass one array for each.");
    }
    bindings.at(replica).bind(arrays);
  }

  std::shared_ptr<const Image> image;
  TripCounts trip_counts;
  std::atomic<bool> cancelled{false};
  PointerTable table;
  Walker walker;
  const std::shared_ptr<runtime::Peers> peers;
  std::vector<ReplicaBindings> bindings;
  std::unique_ptr<ReplicatedWalker> replicated;  // where there is more than one replica
};

Session::Session(std::shared_ptr<const Image> image, std::shared_ptr<DeviceMemory> memory)
    : Session(std::move(image), std::vector{std::move(memory)}) {}
Session::Session(std::shared_ptr<const Image> image,
                 std::vector<std::shared_ptr<DeviceMemory>> memories,
                 std::shared_ptr<runtime::Peers> peers) {
  const runtime::FloatEnvironment environment;
  impl_ = std::make_unique<Impl>(std::move(image), memories, std::move(peers));
}
Session::~Session() = default;

const Image& Session::image() const { return *impl_->image; }
TripMeans Session::tripMeans() const { return impl_->trip_counts.means(); }
void Session::cancel() {
  impl_->cancelled.store(true, std::memory_order_relaxed);
  if (impl_->peers) impl_->peers->cancel();
}
void Session::forgetCancel() {
  impl_->cancelled.store(false, std::memory_order_relaxed);
  if (impl_->peers) impl_->peers->forgetCancel();
}

void Session::run(std::span<const void* const> inputs, std::span<void* const> outputs,
                  HostCallbacks* callbacks, HostStreams* streams) {
  const Arrays arrays{inputs, outputs};
  run({&arrays, 1}, callbacks, streams);
}

namespace {

struct ForgetCancel {
  std::atomic<bool>& flag;
  ~ForgetCancel() { flag.store(false, std::memory_order_relaxed); }
};

}  // namespace

void Session::runOne(std::uint32_t replica, const Arrays& arrays, HostStreams* streams) {
  const runtime::FloatEnvironment environment;
  const ForgetCancel forget{impl_->cancelled};
  impl_->bind(replica, arrays);
  impl_->trip_counts.clear();
  RunContext context{ThreadPool::shared(), nullptr, streams, replica};
  impl_->walker.walk(context, impl_->bindings[replica], 0);
}

void Session::run(std::span<const Arrays> replicas, HostCallbacks* callbacks, HostStreams* streams,
                  const runtime::RunSeed& seed) {
  const runtime::FloatEnvironment environment;
  const ForgetCancel forget{impl_->cancelled};
  impl_->bind(replicas);
  impl_->trip_counts.clear();
  RunContext context{ThreadPool::shared(), callbacks, streams};
  context.seed = seed;
  if (impl_->replicated) {
    impl_->replicated->run(context, impl_->bindings);
  } else {
    impl_->walker.walk(context, impl_->bindings[0], 0);
  }
}

}  // namespace ipujax::engine
