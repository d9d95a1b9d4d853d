#pragma once
#include <atomic>
#include <exception>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "backends/poplar/Devices.hpp"
#include "backends/poplar/KeptArguments.hpp"
#include "backends/poplar/Program.hpp"
#include "poplar/Engine.hpp"
#include "support/HostCallbacks.hpp"

namespace ipujax::poplar_backend {

/// One poplar::Engine: the program of a placement. Its streams and host functions are connected
/// once, to callbacks that look up the arrays of the run in progress.
class Session final : public runtime::Session {
 public:
  Session(std::shared_ptr<const Program> program, const runtime::DeviceStates& devices);

  void run(std::span<const runtime::Arrays> replicas, runtime::HostCallbacks* callbacks,
           const runtime::RunSeed& seed) override;
  bool tellsContents() const override { return true; }
  /// Ends the program as soon as Poplar can, at the latest when it next calls the host.
  void cancel() override {
    cancelled_.store(true);
    engine_.stop();
  }
  void forgetCancel() override { cancelled_.store(false); }

 private:
  void connectStreams();
  void fillRemoteBuffers();
  void readRemoteBuffers();
  void connectHostCalls();
  void call(const HostCall& call, poplar::ArrayRef<const void*> inputs,
            poplar::ArrayRef<void*> outputs) noexcept;
  void callHost(const HostCall& call, poplar::ArrayRef<const void*> inputs,
                poplar::ArrayRef<void*> outputs);
  void fail(const std::exception_ptr& error) noexcept;

  const std::shared_ptr<const Program> program_;
  const IpuRange range_;
  const std::uint64_t id_;  // of this session among all
  poplar::Engine engine_;
  KeptArguments kept_;
  // For the run in progress; several replicas may call host functions on several threads.
  std::span<const runtime::Arrays> replicas_;
  runtime::HostCallbacks* callbacks_ = nullptr;
  runtime::RunSeed seed_;
  std::mutex error_mutex_;
  std::exception_ptr error_;  // the first that a host function threw
  std::atomic<bool> cancelled_{false};
};

}  // namespace ipujax::poplar_backend
