#include "mutants/Runner.hpp"

#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "engine/HostCallbacks.hpp"
#include "engine/Image.hpp"
#include "engine/Kernel.hpp"
#include "mutants/Random.hpp"

namespace mutants {
namespace {

namespace engine = ipujax::engine;

constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 29;
constexpr std::uint32_t kMostReplicas = 16;

/// An array of a caller's: 64-byte aligned, nothing behind its end.
class Array {
 public:
  explicit Array(std::uint64_t bytes) : bytes_(bytes) {
    void* data = nullptr;
    if (posix_memalign(&data, 64, std::max<std::uint64_t>(bytes, 1)) != 0) throw std::bad_alloc();
    data_.reset(static_cast<std::byte*>(data));
    std::memset(data, 0, bytes);
  }
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
      std::memcpy(data_.get() + i, &bits, 4);
    }
  }
  std::byte* data() { return data_.get(); }

 private:
  struct Free {
    void operator()(std::byte* p) const { std::free(p); }
  };
  std::uint64_t bytes_;
  std::unique_ptr<std::byte, Free> data_;
};

/// A host that looks at every byte it is handed and writes every byte it is asked for.
class Host final : public engine::HostCallbacks, public engine::HostStreams {
 public:
  void call(const std::string&, std::span<const engine::HostArray> arguments,
            std::span<const engine::HostArray> results) override {
    for (const auto& array : arguments) look(array.data, bytesOf(array));
    for (const auto& array : results) std::memset(array.data, 0, bytesOf(array));
  }
  void read(std::uint32_t, void* device, std::uint64_t bytes) override {
    std::memset(device, 0, bytes);
  }
  void write(std::uint32_t, const void* device, std::uint64_t bytes) override {
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
    for (const auto& spec : signature.inputs) {
      inputs.emplace_back(spec.bytes).fill(random, spec.dtype == "bool");
      input_pointers.push_back(inputs.back().data());
    }
    for (std::size_t o = 0; o < signature.outputs.size(); ++o) {
      const std::int32_t alias = signature.output_alias[o];
      if (alias >= 0 && random.oneIn(2)) {
        output_pointers.push_back(inputs[static_cast<std::size_t>(alias)].data());
        continue;
      }
      outputs.emplace_back(signature.outputs[o].bytes);
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
