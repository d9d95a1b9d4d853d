#include "embedded/Device.hpp"

#include <charconv>
#include <cstring>
#include <string>
#include <utility>

#include "embedded/Error.hpp"
#include "runtime/Backend.hpp"

namespace ipujax::embedded {
namespace {

/// No plugin's: those count from 1.
std::uint64_t newContents() {
  static std::atomic<std::uint64_t> last{std::uint64_t{1} << 63};
  return ++last;
}

const runtime::Program& runnable(const runtime::Program& program) {
  const auto& signature = program.signature();
  const auto refuse = [&](const std::string& got, const std::string& advice) {
    throw Error(Status::kNotSupported, "[runtime] needs a program that runs by itself; got " +
                                           signature.name + ", which " + got + ". " + advice);
  };
  if (signature.has_host_callbacks)
    refuse("calls functions of the Python process that compiled it",
           "Remove its callbacks, such as jax.debug.print and jax.pure_callback.");
  if (signature.num_replicas != 1)
    refuse("is for " + std::to_string(signature.num_replicas) + " devices",
           "Compile it for one device.");
  return program;
}

std::int64_t targetNumber(const Description& description, std::string_view key,
                          std::int64_t otherwise) {
  for (const Entry& entry : description.target) {
    std::int64_t number = 0;
    const char* const end = entry.value.data() + entry.value.size();
    if (entry.key == key && std::from_chars(entry.value.data(), end, number).ptr == end)
      return number;
  }
  return otherwise;
}

std::unique_ptr<runtime::Session> openOnDevice(const Package& package) {
  const Description& description = package.description();
  const runtime::DevicePlace place{.first_ipu = 0,
                                   .num_ipus = targetNumber(description, "ipus_per_device", 1),
                                   .tiles_per_ipu = targetNumber(description, "tiles_per_ipu", 0)};
  return runnable(package.program()).open({runtime::makeDeviceState(place)});
}

}  // namespace

Device::Device(std::shared_ptr<const Package> package)
    : package_(std::move(package)),
      session_(openOnDevice(*package_)),
      watchdog_([this] { session_->cancel(); }) {
  const auto& signature = package_->program().signature();
  const auto& description = package_->description();
  inputs_.resize(signature.inputs.size());
  outputs_.resize(signature.outputs.size());
  std::size_t passed = 0;
  for (std::size_t i = 0; i < description.arguments.size(); ++i) {
    const Leaf& leaf = description.arguments[i];
    const std::size_t position = leaf.is_stored ? 0 : passed++;
    if (leaf.slot < 0) continue;
    Input& input = inputs_[static_cast<std::size_t>(leaf.slot)];
    input.name = leaf.name;
    input.argument = position;
    input.is_stored = leaf.is_stored;
    input.bytes = signature.inputs[static_cast<std::size_t>(leaf.slot)].bytes;
    if (!leaf.is_stored) continue;
    input.data = package_->stored(i).data();
    input.contents = newContents();
  }
  for (std::size_t i = 0; i < description.results.size(); ++i) {
    const auto slot = static_cast<std::size_t>(description.results[i].slot);
    outputs_[slot].result = i;
    outputs_[slot].bytes = signature.outputs[slot].bytes;
    const int alias = slot < signature.output_alias.size() ? signature.output_alias[slot] : -1;
    if (alias >= 0 && inputs_[static_cast<std::size_t>(alias)].is_stored)
      outputs_[slot].state = alias;
  }
}

void Device::cancel() { session_->cancel(); }

/// Points at callers' arrays where backends can use them, else at copies.
void Device::bind(const Arrays& arrays) {
  input_pointers_.clear();
  output_pointers_.clear();
  for (Input& input : inputs_) {
    const void* data = input.is_stored ? input.data : arrays.inputs[input.argument];
    if (!isAligned(data)) {
      if (!input.aligned) input.aligned = AlignedBytes(input.bytes);
      std::memcpy(input.aligned.data(), data, input.bytes);
      data = input.aligned.data();
    }
    input_pointers_.push_back(data);
  }
  for (Output& output : outputs_) {
    void* data = arrays.outputs[output.result];
    if (output.state >= 0) {
      // Not in place: a run that fails must leave the state as it was.
      if (!output.next || output.next.use_count() > 1)
        output.next = std::make_shared<AlignedBytes>(output.bytes);
      data = output.next->data();
    } else if (!data || !isAligned(data)) {
      if (!output.aligned) output.aligned = AlignedBytes(output.bytes);
      data = output.aligned.data();
    }
    output_pointers_.push_back(data);
  }
}

void Device::runOnce(Clock::time_point deadline, const std::atomic<bool>& is_closed) {
  runtime::Arrays arrays{input_pointers_, output_pointers_};
  if (session_->tellsContents()) {
    input_contents_.clear();
    output_contents_.clear();
    for (const Input& input : inputs_)
      input_contents_.push_back(input.is_stored ? input.contents : newContents());
    for (std::size_t i = 0; i < outputs_.size(); ++i) output_contents_.push_back(newContents());
    arrays.input_contents = input_contents_;
    arrays.output_contents = output_contents_;
  }
  watchdog_.begin(deadline);
  try {
    session_->run({&arrays, 1}, nullptr);
    may_have_late_cancel_ |= watchdog_.end();
  } catch (...) {
    if (watchdog_.end())
      throw Error(Status::kTimeout,
                  "[runtime] needs a run that ends in time; got one that took longer and was "
                  "cancelled. Pass a longer time-out.");
    if (is_closed.load())
      throw Error(Status::kClosed,
                  "[runtime] needs an open session; got one that was closed. Open "
                  "the file again.");
    if (!std::exchange(may_have_late_cancel_, false)) throw;
    runOnce(deadline, is_closed);
  }
}

/// Copies results to where callers want them; state takes the place of its last value.
void Device::give(const Arrays& arrays) {
  for (std::size_t i = 0; i < outputs_.size(); ++i) {
    Output& output = outputs_[i];
    void* wanted = arrays.outputs[output.result];
    if (wanted && wanted != output_pointers_[i])
      std::memcpy(wanted, output_pointers_[i], output.bytes);
    if (output.state < 0) continue;
    Input& input = inputs_[static_cast<std::size_t>(output.state)];
    std::swap(input.elements, output.next);
    input.data = input.elements->data();
    input.contents = session_->tellsContents() ? output_contents_[i] : 0;
  }
}

void Device::run(const Arrays& arrays, Clock::time_point deadline,
                 const std::atomic<bool>& is_closed) {
  std::unique_lock lock(mutex_, std::defer_lock);
  if (deadline == kNoDeadline) {
    lock.lock();
  } else if (!lock.try_lock_until(deadline)) {
    throw Error(Status::kTimeout,
                "[runtime] needs a device that is free in time; got one that runs other programs. "
                "Pass a longer time-out, or open the file again for another device.");
  }
  if (is_closed.load())
    throw Error(Status::kClosed,
                "[runtime] needs an open session; got one that was closed. Open the file again.");
  bind(arrays);
  runOnce(deadline, is_closed);
  give(arrays);
}

Device::Input& Device::storedByName(const std::string& name) {
  std::string known;
  for (Input& input : inputs_) {
    if (!input.is_stored) continue;
    if (input.name == name) return input;
    known += (known.empty() ? "" : ", ") + input.name;
  }
  throw Error(Status::kInvalidArgument, "[runtime] needs the name of a stored argument (" +
                                            (known.empty() ? "there is none" : known) + "); got " +
                                            name + ". Use one of these.");
}

void Device::setStored(std::span<const Session::NewValue> values) {
  std::vector<std::pair<Input*, std::shared_ptr<AlignedBytes>>> changes;
  for (const auto& [name, elements] : values) {
    Input& input = storedByName(name);  // names do not change: no lock yet
    if (elements.size() != input.bytes)
      throw Error(Status::kInvalidArgument,
                  "[runtime] needs " + std::to_string(input.bytes) + " bytes for " + name +
                      "; got " + std::to_string(elements.size()) + ". Pass an array of its type.");
    auto copy = std::make_shared<AlignedBytes>(elements.size());
    std::memcpy(copy->data(), elements.data(), elements.size());
    changes.emplace_back(&input, std::move(copy));
  }
  const std::lock_guard lock(mutex_);
  for (auto& [input, elements] : changes) {
    input->elements = std::move(elements);
    input->data = input->elements->data();
    input->contents = newContents();
  }
}

void Device::readStored(const std::string& name, std::span<std::byte> elements) {
  const Input& input = storedByName(name);
  if (elements.size() != input.bytes)
    throw Error(Status::kInvalidArgument,
                "[runtime] needs room for " + std::to_string(input.bytes) + " bytes of " + name +
                    "; got " + std::to_string(elements.size()) + ". Pass an array of its type.");
  const std::lock_guard lock(mutex_);
  std::memcpy(elements.data(), input.data, elements.size());
}

}  // namespace ipujax::embedded
