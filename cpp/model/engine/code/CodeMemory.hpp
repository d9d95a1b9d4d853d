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
  using Function = void (*)(std::byte* const* memory, std::int64_t n);
  Code(std::shared_ptr<const void> memory, Function function)
      : memory_(std::move(memory)), function_(function) {}
  void run(std::byte* const* memory, std::int64_t n) const { function_(memory, n); }

 private:
  std::shared_ptr<const void> memory_;
  Function function_;
};

/// Whether this process may run code that it makes: not under sanitizers, which could not see into
/// it, nor where the system refuses executable memory.
bool isAvailable();
/// Null if it is not available.
std::shared_ptr<const Code> publish(std::span<const std::uint8_t> bytes);

}  // namespace ipujax::engine::code
