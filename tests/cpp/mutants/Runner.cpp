#include "mutants/Runner.hpp"

#include <sys/mman.h>

#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <span>
#include <vector>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#endif

#include "engine/HostCallbacks.hpp"
#include "engine/image/Image.hpp"
#include "engine/kernels/Kernel.hpp"
#include "mutants/Random.hpp"

namespace mutants {
namespace {

namespace engine = ipujax::engine;

constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 29;
constexpr std::uint32_t kMostReplicas = 16;

/// A caller's array, 64-byte aligned, in pages of its own between two inaccessible ones. It begins
/// where the first one ends, or its last line ends where the last one begins.
class Array {
 public:
  Array(std::uint64_t bytes, bool at_end) : bytes_(bytes) {
    const std::uint64_t aligned = (bytes + 63) / 64 * 64;
    const std::uint64_t room = (aligned + kPage - 1) / kPage * kPage;
    const std::uint64_t all = room + 2 * kPage;
    void* memory = mmap(nullptr, all, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    pages_ = {static_cast<std::byte*>(memory), Unmap{all}};
    std::byte* begin = pages_.get() + kPage;
    if (room > 0 && mprotect(begin, room, PROT_READ | PROT_WRITE) != 0) throw std::bad_alloc();
    data_ = at_end ? begin + room - aligned : begin;
    behind_ = aligned - bytes;
    std::memset(data_ + bytes_, kMark, behind_);
    poison(data_ + bytes_, behind_);
  }
  ~Array() {
    if (!pages_) return;
    unpoison(data_ + bytes_, behind_);
    for (std::uint64_t i = 0; i < behind_; ++i)
      if (data_[bytes_ + i] != std::byte{kMark}) std::abort();  // written after the end
  }
  Array(Array&&) = default;
  Array& operator=(Array&&) = delete;

  /// Zeros, small integers, small floats, or any bytes; of bool 0 and 1.
  void fill(Random& random, bool is_bool) {
    const auto kind = random.below(4);
    for (std::uint64_t i = 0; i + 4 <= bytes_; i += 4) {
      auto bits = static_cast<std::uint32_t>(random.next());
      const float small = static_cast<float>(static_cast<int>(random.below(17)) - 8) / 4;
      if (kind == 0) bits = 0;
      if (kind == 1) bits %= 8;
      if (kind == 2) std::memcpy(&bits, &small, 4);
      if (is_bool) bits &= 0x01010101u;
      std::memcpy(data_ + i, &bits, 4);
    }
  }
  std::byte* data() { return data_; }

 private:
  static constexpr std::uint64_t kPage = 4096;
  static constexpr unsigned char kMark = 0xa5;
  struct Unmap {
    std::uint64_t bytes = 0;
    void operator()(std::byte* p) const { munmap(p, bytes); }
  };
#ifdef __SANITIZE_ADDRESS__
  static void poison(std::byte* p, std::uint64_t n) { ASAN_POISON_MEMORY_REGION(p, n); }
  static void unpoison(std::byte* p, std::uint64_t n) { ASAN_UNPOISON_MEMORY_REGION(p, n); }
#else
  static void poison(std::byte*, std::uint64_t) {}
  static void unpoison(std::byte*, std::uint64_t) {}
#endif

  std::uint64_t bytes_;
  std::uint64_t behind_ = 0;  ///< bytes between the array's end and the next line
  std::byte* data_ = nullptr;
  std::unique_ptr<std::byte, Unmap> pages_{nullptr, Unmap{}};
};

/// A host that reads every byte it is given and writes every byte it is asked for.
class Host final : public engine::HostCallbacks, public engine::HostStreams {
 public:
  void call(const std::string&, std::span<const engine::HostArray> arguments,
            std::span<const engine::HostArray> results) override {
    for (const auto& array : arguments) look(array.data, bytesOf(array));
    for (const auto& array : results) std::memset(array.data, 0, bytesOf(array));
  }
  void read(std::uint32_t, std::uint32_t, void* device, std::uint64_t bytes) override {
    std::memset(device, 0, bytes);
  }
  void write(std::uint32_t, std::uint32_t, const void* device, std::uint64_t bytes) override {
    look(device, bytes);
  }

 private:
  static std::uint64_t bytesOf(const engine::HostArray& array) {
    static const std::map<std::string, std::uint64_t> kBytes = {
        {"bool", 1},    {"int8", 1},     {"uint8", 1},  {"int16", 2},  {"uint16", 2},
        {"float16", 2}, {"bfloat16", 2}, {"int32", 4},  {"uint32", 4}, {"float32", 4},
        {"int64", 8},   {"uint64", 8},   {"float64", 8}};
    std::uint64_t bytes = kBytes.at(array.dtype);
    for (const auto d : array.shape) bytes *= static_cast<std::uint64_t>(d);
    return bytes;
  }
  void look(const void* data, std::uint64_t bytes) {
    const auto* p = static_cast<const unsigned char*>(data);
    for (std::uint64_t i = 0; i < bytes; ++i) sum_ = sum_ + p[i];
  }
  unsigned sum_ = 0;
};

std::uint64_t totalBytes(const engine::Image& image) {
  std::uint64_t bytes = image.arena_bytes;
  for (const auto& spec : image.signature.inputs) bytes += spec.bytes;
  for (const auto& spec : image.signature.outputs) bytes += spec.bytes;
  return bytes * image.signature.num_replicas;
}

/// One replica's arguments and results; half of the time results take over their arguments.
struct Arguments {
  Arguments(const engine::Signature& signature, Random& random) {
    const bool at_end = random.oneIn(2);
    for (const auto& spec : signature.inputs) {
      inputs.emplace_back(spec.bytes, at_end).fill(random, spec.dtype == "bool");
      input_pointers.push_back(inputs.back().data());
    }
    for (std::size_t o = 0; o < signature.outputs.size(); ++o) {
      const std::int32_t alias = signature.output_alias[o];
      if (alias >= 0 && random.oneIn(2)) {
        output_pointers.push_back(inputs[static_cast<std::size_t>(alias)].data());
        continue;
      }
      outputs.emplace_back(signature.outputs[o].bytes, at_end);
      output_pointers.push_back(outputs.back().data());
    }
  }
  std::vector<Array> inputs, outputs;
  std::vector<const void*> input_pointers;
  std::vector<void*> output_pointers;
};

}  // namespace

const char* nameOf(Outcome outcome) {
  static const char* const kNames[] = {"refused", "ran", "failed", "cancelled", "too large"};
  return kNames[static_cast<int>(outcome)];
}

Runner::Runner(std::chrono::milliseconds bound) : bound_(bound), watchdog_([this] { watch(); }) {}

Runner::~Runner() {
  {
    const std::lock_guard lock(mutex_);
    over_ = true;
  }
  changed_.notify_all();
  watchdog_.join();
}

void Runner::watch() {
  std::unique_lock lock(mutex_);
  while (!over_) {
    if (!running_ || cancelled_) {
      changed_.wait(lock);
    } else if (changed_.wait_until(lock, deadline_) == std::cv_status::timeout && running_ &&
               std::chrono::steady_clock::now() >= deadline_) {
      cancelled_ = true;
      running_->cancel();
    }
  }
}

Outcome Runner::run(const std::string& sealed, std::uint64_t seed) {
  reason_.clear();
  std::shared_ptr<const engine::Image> image;
  try {
    image = engine::Image::deserialise(std::as_bytes(std::span(sealed)));
  } catch (const std::exception& e) {
    reason_ = e.what();
    return Outcome::kRefused;
  }
  static_cast<void>(image->cost());
  if (image->signature.num_replicas > kMostReplicas || totalBytes(*image) > kMostBytes)
    return Outcome::kTooLarge;
  return runLoaded(image, seed);
}

Outcome Runner::runLoaded(const std::shared_ptr<const engine::Image>& image, std::uint64_t seed) {
  Random random(seed);
  std::unique_ptr<engine::Session> session;
  try {
    std::vector<std::shared_ptr<engine::DeviceMemory>> memories;
    for (std::uint32_t r = 0; r < image->signature.num_replicas; ++r)
      memories.push_back(std::make_shared<engine::DeviceMemory>());
    session = std::make_unique<engine::Session>(image, std::move(memories));
  } catch (const std::exception& e) {
    reason_ = e.what();
    return Outcome::kRefused;
  }
  std::vector<Arguments> replicas;
  for (std::uint32_t r = 0; r < image->signature.num_replicas; ++r)
    replicas.emplace_back(image->signature, random);
  std::vector<engine::Arrays> arrays;
  for (auto& replica : replicas)
    arrays.push_back({replica.input_pointers, replica.output_pointers});
  const auto setRunning = [&](engine::Session* now) {
    {
      const std::lock_guard lock(mutex_);
      running_ = now;
      if (now) cancelled_ = false;
      deadline_ = std::chrono::steady_clock::now() + bound_;
    }
    changed_.notify_all();
  };
  Host host;
  Outcome outcome = Outcome::kRan;
  setRunning(session.get());
  try {
    session->run(arrays, &host, &host);
  } catch (const std::exception& e) {
    reason_ = e.what();
    outcome = Outcome::kFailed;
  }
  setRunning(nullptr);
  return cancelled_ ? Outcome::kCancelled : outcome;
}

}  // namespace mutants
