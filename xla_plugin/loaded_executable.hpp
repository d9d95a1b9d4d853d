#pragma once
#include <atomic>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "client.hpp"
#include "compile_options.hpp"
#include "launch.hpp"

namespace ipujax::plugin {

/// A program on its devices. Owned by jaxlib; launches in flight may outlive it.
class LoadedExecutable final : public PJRT_LoadedExecutable {
 public:
  /// `made_for` is the target of the devices that the program was compiled for; empty if unknown.
  LoadedExecutable(Client& client, std::shared_ptr<const Program> program,
                   DeviceAssignment assignment, const std::string& made_for);
  static std::unique_ptr<LoadedExecutable> load(Client& client, std::string_view sealed,
                                                std::string_view compile_options);

  const std::shared_ptr<const Program>& program() const { return program_; }
  const DeviceAssignment& assignment() const { return assignment_; }
  const std::string& target() const { return target_; }
  const std::vector<PJRT_Device*>& devices() const { return devices_; }
  std::vector<PJRT_LogicalDeviceIds>& logicalIds() { return logical_ids_; }
  bool isDeleted() const { return deleted_.load(std::memory_order_acquire); }
  void markDeleted() { deleted_.store(true, std::memory_order_release); }

  void execute(PJRT_LoadedExecutable_Execute_Args& args);

 private:
  std::shared_ptr<hosts::ProgramPeers> peersOf(const std::vector<std::uint32_t>& hosts) const;
  void executeInline(Launch& launch, PJRT_LoadedExecutable_Execute_Args& args, bool nested);
  void giveResults(const Launch& launch, const Ref<Event>& done,
                   PJRT_LoadedExecutable_Execute_Args& args) const;
  void takeResultsBack(PJRT_LoadedExecutable_Execute_Args& args) const;

  Client& client_;
  const std::shared_ptr<const Program> program_;
  const DeviceAssignment assignment_;
  const std::string target_;
  std::shared_ptr<Placement> placement_;
  std::vector<PJRT_Device*> devices_;  // of the replicas in this process
  std::vector<PJRT_LogicalDeviceIds> logical_ids_;
  std::atomic<bool> deleted_{false};
};

namespace loaded_executable {
void bind(PJRT_Api& api);
}

}  // namespace ipujax::plugin
