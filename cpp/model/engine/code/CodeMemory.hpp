#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

/// Memory for machine code, written through one mapping and run through another, so that no page
/// is both writable and executable. Safe under fork: parent and child never write to one page.
namespace ipujax::engine::code {

/// Code that was published; the memory lives as long as any of it.
class Code {
 public:
  Code(std::shared_ptr<const void> memory, std::uintptr_t at)
      : memory_(std::move(memory)), at_(at) {}
  /// Calls it as a function that takes these arguments.
  template <class... Args>
  void run(Args... args) const {
    reinterpret_cast<void (*)(Args...)>(at_)(args...);  // NOLINT: that is what code is
  }

 private:
  std::shared_ptr<const void> memory_;
  std::uintptr_t at_;
};

/// Whether this process may run code that it makes: not under sanitizers, which could not see into
/// it, nor where the system refuses executable memory.
bool isAvailable();
/// Null if it is not available.
std::shared_ptr<const Code> publish(std::span<const std::uint8_t> bytes);

}  // namespace ipujax::engine::code
