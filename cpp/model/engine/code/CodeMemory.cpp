#include "engine/code/CodeMemory.hpp"

#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <mutex>

namespace ipujax::engine::code {
namespace {

constexpr std::size_t kBlockBytes = 64 * 1024;
constexpr std::size_t kLine = 64;

/// Some pages, mapped twice.
class Block {
 public:
  explicit Block(std::size_t size) : size_(size) {
    const int file = ::memfd_create("ipujax code", MFD_CLOEXEC);
    if (file < 0) return;
    if (::ftruncate(file, static_cast<off_t>(size)) == 0) {
      writable_ = map(file, PROT_READ | PROT_WRITE);
      executable_ = map(file, PROT_READ | PROT_EXEC);
    }
    ::close(file);
  }
  ~Block() {
    for (std::byte* view : {writable_, executable_})
      if (view) ::munmap(view, size_);
  }
  Block(const Block&) = delete;

  bool isMapped() const { return writable_ && executable_; }
  bool fits(std::size_t bytes) const { return size_ - used_ >= bytes; }
  const std::byte* add(std::span<const std::uint8_t> bytes) {
    std::memcpy(writable_ + used_, bytes.data(), bytes.size());
    const std::byte* const at = executable_ + used_;
    used_ = std::min(size_, used_ + (bytes.size() + kLine - 1) / kLine * kLine);
    return at;
  }

 private:
  std::byte* map(int file, int protection) const {
    void* const view = ::mmap(nullptr, size_, protection, MAP_SHARED, file, 0);
    return view == MAP_FAILED ? nullptr : static_cast<std::byte*>(view);
  }

  std::size_t size_;
  std::size_t used_ = 0;
  std::byte* writable_ = nullptr;
  std::byte* executable_ = nullptr;
};

/// The block that gets the next code. A child of a fork begins its own, since the pages are shared.
struct Blocks {
  std::mutex mutex;
  std::shared_ptr<Block> current;

  static Blocks& shared() {
    static Blocks& blocks = *new Blocks;  // never destroyed: threads may run at exit
    return blocks;
  }

 private:
  Blocks() {
    ::pthread_atfork([] { shared().mutex.lock(); }, [] { shared().mutex.unlock(); },
                     [] {
                       shared().current.reset();
                       shared().mutex.unlock();
                     });
  }
};

std::shared_ptr<const Code> added(std::span<const std::uint8_t> bytes) {
  Blocks& blocks = Blocks::shared();
  const std::scoped_lock lock(blocks.mutex);
  if (!blocks.current || !blocks.current->fits(bytes.size())) {
    const std::size_t whole = (bytes.size() + kBlockBytes - 1) / kBlockBytes * kBlockBytes;
    auto block = std::make_shared<Block>(whole);
    if (!block->isMapped()) return nullptr;
    blocks.current = std::move(block);
  }
  const std::byte* const at = blocks.current->add(bytes);
  return std::make_shared<const Code>(blocks.current, reinterpret_cast<std::uintptr_t>(at));
}

bool isAllowed() {
#if defined(IPUJAX_SANITIZED) || !defined(__x86_64__)
  return false;
#else
  constexpr std::array<std::uint8_t, 1> kReturn{0xc3};
  return added(kReturn) != nullptr;
#endif
}

/// Known when the library is loaded: no fork can come in between.
const bool kIsAvailable = isAllowed();

}  // namespace

bool isAvailable() { return kIsAvailable; }

std::shared_ptr<const Code> publish(std::span<const std::uint8_t> bytes) {
  return isAvailable() ? added(bytes) : nullptr;
}

}  // namespace ipujax::engine::code
