#pragma once
#include <memory>
#include <mutex>
#include <optional>

#include "backends/poplar/Container.hpp"
#include "poplar/Executable.hpp"
#include "runtime/Program.hpp"

namespace ipujax::poplar_backend {

/// A program that Poplar compiled. Its costs, bytes and ops are unknown here; PopVision shows them.
class Program final : public runtime::Program, public std::enable_shared_from_this<Program> {
 public:
  explicit Program(Container container);

  const runtime::Signature& signature() const override { return container_.signature; }
  const std::string& text() const override { return container_.text; }
  const std::string& fingerprint() const override { return fingerprint_; }
  std::string serialise(std::vector<std::int32_t> device_ids, std::string target) const override;
  std::unique_ptr<runtime::Session> open(const runtime::DeviceStates& devices,
                                         std::shared_ptr<runtime::Peers> peers) const override;
  std::uint64_t meaning() const override;
  std::unique_ptr<runtime::Session> openNested() const override;
  bool nests() const override { return false; }

  const Container& container() const { return container_; }
  /// The executable for an engine, which keeps it.
  poplar::Executable takeExecutable() const;

 private:
  const Container container_;
  const std::string fingerprint_;
  mutable std::mutex mutex_;
  mutable std::optional<poplar::Executable> executable_;  // until an engine took it
};

}  // namespace ipujax::poplar_backend
