#include "backends/model/Program.hpp"

#include <algorithm>
#include <utility>

#include "engine/HostCallbacks.hpp"
#include "engine/kernels/host/HostCallback.hpp"
#include "runtime/Faults.hpp"
#include "support/HostCallbacks.hpp"
#include "support/Seal.hpp"

namespace ipujax::model {
namespace {

// Limits for programs not yet timed: few steps on little data without a loop take microseconds.
constexpr std::size_t kShortSteps = 32;
constexpr std::uint64_t kShortBytes = std::uint64_t{1} << 18;

bool seemsShort(const engine::Image& image) {
  const bool loops = std::ranges::any_of(image.nodes, [](const engine::Node& node) {
    return node.kind == engine::NodeKind::kRepeat || node.kind == engine::NodeKind::kRepeatWhile;
  });
  std::uint64_t bytes = image.arena_bytes;
  for (const auto* tensors : {&image.signature.inputs, &image.signature.outputs})
    for (const auto& tensor : *tensors) bytes += tensor.bytes;
  return !loops && image.steps.size() <= kShortSteps && bytes <= kShortBytes;
}

/// The caller's callbacks, as the type that the engine uses.
class Callbacks final : public engine::HostCallbacks {
 public:
  explicit Callbacks(runtime::HostCallbacks& host) : host_(host) {}
  void call(const std::string& id, std::span<const engine::HostArray> arguments,
            std::span<const engine::HostArray> results) override {
    host_.call(id, arguments, results);
  }
  bool takesManyThreads() const override { return host_.takesManyThreads(); }
  void failed(const std::exception_ptr& error) noexcept override { host_.failed(error); }

 private:
  runtime::HostCallbacks& host_;
};

class Session final : public runtime::Session {
 public:
  Session(std::shared_ptr<const engine::Image> image,
          std::vector<std::shared_ptr<engine::DeviceMemory>> memories,
          std::shared_ptr<runtime::Peers> peers, std::shared_ptr<LastRun> last_run)
      : session_(std::move(image), std::move(memories), std::move(peers)),
        last_run_(std::move(last_run)) {}

  void run(std::span<const runtime::Arrays> replicas, runtime::HostCallbacks* callbacks,
           const runtime::RunSeed& seed) override {
    runtime::Faults::shared().failRun(session_.image().signature.name);
    arrays_.clear();
    for (const auto& replica : replicas) arrays_.push_back({replica.inputs, replica.outputs});
    if (callbacks) {
      Callbacks host(*callbacks);
      session_.run(arrays_, &host, nullptr, seed);
    } else {
      session_.run(arrays_, nullptr, nullptr, seed);
    }
    last_run_->note(session_.tripMeans());
  }
  void cancel() override { session_.cancel(); }
  void forgetCancel() override { session_.forgetCancel(); }

 private:
  engine::Session session_;
  std::vector<engine::Arrays> arrays_;  // of the run in progress
  const std::shared_ptr<LastRun> last_run_;
};

}  // namespace

engine::TripMeans LastRun::tripMeans() const {
  const std::scoped_lock lock(mutex_);
  return trip_means_;
}

void LastRun::note(engine::TripMeans means) {
  if (means.empty()) return;
  const std::scoped_lock lock(mutex_);
  trip_means_ = std::move(means);
}

Program::Program(std::shared_ptr<const engine::Image> image)
    : image_(std::move(image)), looks_short_(seemsShort(*image_)) {}

std::string Program::serialise(std::vector<std::int32_t> device_ids, std::string target) const {
  engine::Image saved = *image_;
  saved.signature.device_ids = std::move(device_ids);
  saved.signature.target = std::move(target);
  return saved.serialise();
}

/// Ids of callbacks, and the text that holds them, are the process's own.
std::uint64_t Program::meaning() const {
  engine::Image common = *image_;
  common.stablehlo.clear();
  common.fingerprint.clear();
  common.debug.assign(common.debug.size(), {});
  std::ranges::for_each(common.steps, engine::forgetCallback);
  const std::string bytes = common.serialise();
  return runtime::checksum(bytes.data(), bytes.size());
}

std::map<std::string, float> Program::costs() const {
  return costsOf(*image_, last_run_->tripMeans());
}

std::vector<runtime::OpTime> Program::ops() const { return opsOf(*image_); }

runtime::ProgramBytes Program::bytes() const {
  return {image_->memory.code_bytes, image_->memory.always_live_bytes,
          image_->memory.peak_live_bytes, image_->streaming.temporary_bytes};
}

std::unique_ptr<runtime::Session> Program::open(const runtime::DeviceStates& devices,
                                                std::shared_ptr<runtime::Peers> peers) const {
  std::vector<std::shared_ptr<engine::DeviceMemory>> memories;
  for (const auto& device : devices)
    memories.push_back(static_cast<const Scratch&>(*device).memory);
  return std::make_unique<Session>(image_, std::move(memories), std::move(peers), last_run_);
}

std::unique_ptr<runtime::Session> Program::openNested() const {
  std::vector<std::shared_ptr<engine::DeviceMemory>> memories;
  for (std::uint32_t r = 0; r < image_->signature.num_replicas; ++r)
    memories.push_back(std::make_shared<engine::DeviceMemory>());
  return std::make_unique<Session>(image_, std::move(memories), nullptr, last_run_);
}

}  // namespace ipujax::model
