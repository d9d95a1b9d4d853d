#include "embedded/Session.hpp"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <shared_mutex>
#include <utility>

#include "embedded/Device.hpp"
#include "embedded/Error.hpp"
#include "embedded/Queue.hpp"

namespace ipujax::embedded {
namespace {

Tensor tensorOf(const Leaf& leaf, const std::vector<runtime::TensorSpec>& specs) {
  return {leaf.name, leaf.dtype, leaf.shape, bytesOf(leaf, specs)};
}

std::vector<Tensor> arguments(const Package& package, bool stored) {
  std::vector<Tensor> tensors;
  for (const Leaf& leaf : package.description().arguments)
    if (leaf.is_stored == stored)
      tensors.push_back(tensorOf(leaf, package.program().signature().inputs));
  return tensors;
}

std::vector<Tensor> results(const Package& package) {
  std::vector<Tensor> tensors;
  for (const Leaf& leaf : package.description().results)
    tensors.push_back(tensorOf(leaf, package.program().signature().outputs));
  return tensors;
}

/// Uses the file's time-out if the caller has none.
Session::Options withDefaults(const Package& package, Session::Options options) {
  if (options.timeout.count() == 0)
    options.timeout = Timeout(numberOf(package.description().options, "timeout_us", 0));
  return options;
}

[[noreturn]] void failClosed() {
  throw Error(Status::kClosed,
              "[runtime] needs an open session; got one that was closed. Open the file again.");
}

[[noreturn]] void failCount(const char* what, std::size_t needs, std::size_t got) {
  throw Error(Status::kInvalidArgument, "[runtime] needs " + std::to_string(needs) + " " + what +
                                            "; got " + std::to_string(got) +
                                            ". Pass those that the session describes.");
}

}  // namespace

struct Session::Impl {
  Impl(std::shared_ptr<const Package> the_package, const Options& the_options)
      : options(withDefaults(*the_package, the_options)),
        package(std::move(the_package)),
        inputs(arguments(*package, false)),
        outputs(results(*package)),
        stored(arguments(*package, true)),
        device(package),
        queue(options.queue_depth) {}

  Clock::time_point deadlineOf(Timeout timeout) const {
    if (timeout.count() == 0) timeout = options.timeout;
    if (timeout.count() < 0)
      throw Error(Status::kInvalidArgument, "[runtime] needs a time-out above 0; got " +
                                                std::to_string(timeout.count()) +
                                                " us. Pass 0 for none.");
    return deadlineAfter(timeout);
  }

  void check(const Arrays& arrays) const {
    if (arrays.inputs.size() != inputs.size())
      failCount("inputs", inputs.size(), arrays.inputs.size());
    if (arrays.outputs.size() != outputs.size())
      failCount("outputs", outputs.size(), arrays.outputs.size());
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (arrays.inputs[i] || inputs[i].bytes == 0) continue;
      throw Error(Status::kInvalidArgument, "[runtime] needs an array for " + inputs[i].name +
                                                "; got a null pointer. Pass its elements.");
    }
  }

  void run(const Arrays& arrays, Clock::time_point deadline) {
    const std::shared_lock use(in_use);
    if (is_closed.load()) failClosed();
    device.run(arrays, deadline, is_closed);
  }

  const Options options;
  const std::shared_ptr<const Package> package;
  const std::vector<Tensor> inputs;
  const std::vector<Tensor> outputs;
  const std::vector<Tensor> stored;
  std::atomic<bool> is_closed{false};
  std::shared_mutex in_use;  // by calls, so that closing can wait for them
  Device device;
  Queue queue;
};

std::unique_ptr<Session> Session::open(const std::filesystem::path& path, const Options& options) {
  return std::make_unique<Session>(Package::read(path), options);
}

Session::Session(std::shared_ptr<const Package> package, const Options& options) try
    : impl_(std::make_unique<Impl>(std::move(package), options)) {
} catch (...) {  // such as codelets that are not trusted here
  throw currentError();
}

Session::~Session() { close(); }

const Package& Session::package() const { return *impl_->package; }
const std::vector<Tensor>& Session::inputs() const { return impl_->inputs; }
const std::vector<Tensor>& Session::outputs() const { return impl_->outputs; }
const std::vector<Tensor>& Session::stored() const { return impl_->stored; }
std::size_t Session::queueDepth() const { return impl_->options.queue_depth; }

void Session::run(const Arrays& arrays, Timeout timeout) {
  try {
    impl_->check(arrays);
    impl_->run(arrays, impl_->deadlineOf(timeout));
  } catch (...) {
    throw currentError();
  }
}

std::shared_ptr<Run> Session::submit(Arrays arrays, Timeout timeout) {
  impl_->check(arrays);
  const auto deadline = impl_->deadlineOf(timeout);
  if (impl_->is_closed.load()) failClosed();
  auto run = impl_->queue.push(
      [this, arrays = std::move(arrays), deadline] { impl_->run(arrays, deadline); }, deadline);
  if (!run) failClosed();
  return run;
}

void Session::resetSeed(std::uint64_t seed, bool identical_replicas) {
  const std::shared_lock use(impl_->in_use);
  if (impl_->is_closed.load()) failClosed();
  impl_->device.resetSeed(seed, identical_replicas);
}

void Session::setStored(std::span<const NewValue> values) {
  const std::shared_lock use(impl_->in_use);
  if (impl_->is_closed.load()) failClosed();
  impl_->device.setStored(values);
}

void Session::readStored(const std::string& name, std::span<std::byte> elements) const {
  const std::shared_lock use(impl_->in_use);
  if (impl_->is_closed.load()) failClosed();
  impl_->device.readStored(name, elements);
}

void Session::close() {
  if (!impl_->is_closed.exchange(true)) impl_->device.cancel();
  impl_->queue.close();
  const std::unique_lock wait(impl_->in_use);
}

}  // namespace ipujax::embedded
