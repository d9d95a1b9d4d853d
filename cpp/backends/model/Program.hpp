#pragma once
#include <memory>
#include <mutex>

#include "engine/run/Session.hpp"
#include "runtime/Program.hpp"

namespace ipujax::model {

/// One arena for all programs of a device.
struct Scratch final : runtime::DeviceState {
  std::shared_ptr<engine::DeviceMemory> memory = std::make_shared<engine::DeviceMemory>();
};

/// The counts of the run that ended last. Shared by a program and its sessions.
class LastRun {
 public:
  engine::TripMeans tripMeans() const;
  void note(engine::TripMeans means);

 private:
  mutable std::mutex mutex_;
  engine::TripMeans trip_means_;
};

/// An image of the engine, as the plugin sees it.
class Program final : public runtime::Program {
 public:
  explicit Program(std::shared_ptr<const engine::Image> image);

  const runtime::Signature& signature() const override { return image_->signature; }
  const std::string& text() const override { return image_->stablehlo; }
  const std::string& fingerprint() const override { return image_->fingerprint; }
  std::uint64_t meaning() const override;
  std::string serialise(std::vector<std::int32_t> device_ids, std::string target) const override;
  std::map<std::string, float> costs() const override;
  runtime::ProgramBytes bytes() const override;
  bool looksShort() const override { return looks_short_; }
  std::vector<runtime::OpTime> ops() const override;
  double cycles() const override { return image_->elapsedCycles(); }
  double clockHz() const override { return image_->clock_hz; }
  std::unique_ptr<runtime::Session> open(const runtime::DeviceStates& devices,
                                         std::shared_ptr<runtime::Peers> peers) const override;
  std::unique_ptr<runtime::Session> openNested() const override;

 private:
  const std::shared_ptr<const engine::Image> image_;
  const bool looks_short_;
  const std::shared_ptr<LastRun> last_run_ = std::make_shared<LastRun>();
};

/// The result of `Program::costs` for an image. The first names are those of XLA's own backends.
std::map<std::string, float> costsOf(const engine::Image& image, const engine::TripMeans& counted);
/// The result of `Program::ops` for an image.
std::vector<runtime::OpTime> opsOf(const engine::Image& image);

}  // namespace ipujax::model
