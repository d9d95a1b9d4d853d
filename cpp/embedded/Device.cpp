#include "embedded/Device.hpp"

#include <cstring>
#include <string>
#include <utility>

#include "embedded/Error.hpp"
#include "runtime/Backend.hpp"

namespace ipujax::embedded {
namespace {

/// Differs from all numbers of a plugin, which count from 1.
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
  return program;
}

std::unique_ptr<runtime::Session> openOnDevice(const Package& package) {
  const Description& description = package.description();
  runtime::DevicePlace place{.first_ipu = 0,
                             .num_ipus = numberOf(description.target, "ipus_per_device", 1),
                             .tiles_per_ipu = numberOf(description.target, "num_tiles", 0)};
  const runtime::Program& program = runnable(package.program());
  runtime::DeviceStates devices;
  for (std::uint32_t r = 0; r < program.signature().num_replicas; ++r) {
    devices.push_back(runtime::makeDeviceState(place));
    place.first_ipu += place.num_ipus;
  }
  return program.open(devices, nullptr);
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
  bound_.resize(signature.num_replicas);
  arrays_.resize(signature.num_replicas);
  std::size_t passed = 0;
  for (std::size_t i = 0; i < description.arguments.size(); ++i) {
    const Leaf& leaf = description.arguments[i];
    const std::size_t position = leaf.is_stored ? 0 : passed++;
    if (leaf.slot >= 0) describeInput(leaf, i, position);
  }
  for (std::size_t i = 0; i < description.results.size(); ++i)
    describeOutput(description.results[i], i);
}

void Device::describeInput(const Leaf& leaf, std::size_t argument, std::size_t position) {
  const auto slot = static_cast<std::size_t>(leaf.slot);
  const auto bytes = package_->program().signature().inputs[slot].bytes;
  Input& input = inputs_[slot];
  input.name = leaf.name;
  input.argument = position;
  input.is_stored = leaf.is_stored;
  input.copies = ShardCopies(leaf.sharding, leaf.shape, bytes);
  input.shards = std::vector<InputShard>(bound_.size());
  for (std::size_t r = 0; r < bound_.size(); ++r) {
    InputShard& shard = input.shards[r];
    shard.piece = input.copies.pieceOf(r);
    if (!leaf.is_stored) continue;
    const std::byte* const whole = package_->stored(argument).data();
    shard.contents = newContents();
    if (shard.piece && isAligned(whole + *shard.piece)) {
      shard.data = whole + *shard.piece;
      continue;
    }
    shard.elements = std::make_shared<AlignedBytes>(bytes);
    input.copies.take(whole, r, shard.elements->data());
    shard.data = shard.elements->data();
  }
}

void Device::describeOutput(const Leaf& leaf, std::size_t result) {
  const auto slot = static_cast<std::size_t>(leaf.slot);
  const auto& signature = package_->program().signature();
  Output& output = outputs_[slot];
  output.result = result;
  output.copies = ShardCopies(leaf.sharding, leaf.shape, signature.outputs[slot].bytes);
  output.shards = std::vector<OutputShard>(bound_.size());
  for (std::size_t r = 0; r < bound_.size(); ++r) {
    output.shards[r].piece = output.copies.pieceOf(r);
    output.shards[r].is_given = output.copies.isFirst(r);
  }
  const int alias = slot < signature.output_alias.size() ? signature.output_alias[slot] : -1;
  // Blocks of the same shape may belong to arrays of different shapes.
  for (const Leaf& argument : package_->description().arguments)
    if (alias >= 0 && argument.slot == alias && argument.is_stored && argument.shape == leaf.shape)
      output.state = alias;
}

void Device::cancel() { session_->cancel(); }

/// The replica's part of an input: in place if the backend can use it there, else a copy.
const void* Device::bound(Input& input, std::size_t replica, const Arrays& arrays) {
  InputShard& shard = input.shards[replica];
  if (input.is_stored) return shard.data;
  const auto* const whole = static_cast<const std::byte*>(arrays.inputs[input.argument]);
  if (shard.piece && isAligned(whole + *shard.piece)) return whole + *shard.piece;
  if (input.copies.sharding().isWhole() && replica > 0) return bound_[0].inputs.back();
  if (!shard.aligned) shard.aligned = AlignedBytes(input.copies.blockBytes());
  input.copies.take(whole, replica, shard.aligned.data());
  return shard.aligned.data();
}

/// The memory for the replica's part of an output: the caller's, if the backend can use it.
void* Device::bound(Output& output, std::size_t replica, const Arrays& arrays) {
  OutputShard& shard = output.shards[replica];
  const std::size_t bytes = output.copies.blockBytes();
  if (output.state >= 0) {
    // Not in place: a run that fails must leave the state as it was.
    if (!shard.next || shard.next.use_count() > 1)
      shard.next = std::make_shared<AlignedBytes>(bytes);
    return shard.next->data();
  }
  auto* const whole = static_cast<std::byte*>(arrays.outputs[output.result]);
  if (whole && shard.is_given && shard.piece && isAligned(whole + *shard.piece))
    return whole + *shard.piece;
  if (!shard.aligned) shard.aligned = AlignedBytes(bytes);
  return shard.aligned.data();
}

void Device::bind(const Arrays& arrays) {
  for (Bound& bound : bound_) {
    bound.inputs.clear();
    bound.outputs.clear();
  }
  for (Input& input : inputs_)
    for (std::size_t r = 0; r < bound_.size(); ++r)
      bound_[r].inputs.push_back(bound(input, r, arrays));
  for (Output& output : outputs_)
    for (std::size_t r = 0; r < bound_.size(); ++r)
      bound_[r].outputs.push_back(bound(output, r, arrays));
  for (std::size_t r = 0; r < bound_.size(); ++r)
    arrays_[r] = {.inputs = bound_[r].inputs, .outputs = bound_[r].outputs};
}

/// Numbers the arrays' contents, for sessions that need these numbers.
void Device::numberContents() {
  for (std::size_t r = 0; r < bound_.size(); ++r) {
    Bound& bound = bound_[r];
    bound.input_contents.clear();
    bound.output_contents.clear();
    for (const Input& input : inputs_)
      bound.input_contents.push_back(input.is_stored ? input.shards[r].contents : newContents());
    for (std::size_t i = 0; i < outputs_.size(); ++i)
      bound.output_contents.push_back(newContents());
    arrays_[r].input_contents = bound.input_contents;
    arrays_[r].output_contents = bound.output_contents;
  }
}

void Device::runOnce(Clock::time_point deadline, const std::atomic<bool>& is_closed,
                     const runtime::RunSeed& seed) {
  if (session_->tellsContents()) numberContents();
  watchdog_.begin(deadline);
  try {
    session_->run(arrays_, nullptr, seed);
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
    runOnce(deadline, is_closed, seed);
  }
}

/// Copies results to the callers' arrays and replaces state by its new value.
void Device::give(const Arrays& arrays) {
  for (std::size_t i = 0; i < outputs_.size(); ++i) {
    Output& output = outputs_[i];
    if (auto* const whole = static_cast<std::byte*>(arrays.outputs[output.result])) {
      for (std::size_t r = 0; r < bound_.size(); ++r) {
        const OutputShard& shard = output.shards[r];
        const auto* const block = static_cast<const std::byte*>(bound_[r].outputs[i]);
        if (shard.is_given && !(shard.piece && block == whole + *shard.piece))
          output.copies.put(block, r, whole);
      }
    }
    if (output.state >= 0) keepState(inputs_[static_cast<std::size_t>(output.state)], output, i);
  }
}

void Device::keepState(Input& input, Output& output, std::size_t slot) {
  if (!(input.copies.sharding() == output.copies.sharding())) {
    const AlignedBytes whole(output.copies.wholeBytes());
    for (std::size_t r = 0; r < bound_.size(); ++r)
      if (output.shards[r].is_given)
        output.copies.put(output.shards[r].next->data(), r, whole.data());
    keep(input, divided(input, whole.data()));
    return;
  }
  for (std::size_t r = 0; r < bound_.size(); ++r) {
    InputShard& shard = input.shards[r];
    std::swap(shard.elements, output.shards[r].next);
    shard.data = shard.elements->data();
    shard.contents = session_->tellsContents() ? bound_[r].output_contents[slot] : 0;
  }
}

/// Splits an array into blocks, one for each replica; replicas that have all of it share one.
Device::Elements Device::divided(const Input& input, const std::byte* whole) {
  Elements elements;
  for (std::size_t r = 0; r < input.shards.size(); ++r) {
    if (r > 0 && input.copies.sharding().isWhole()) {
      elements.push_back(elements.front());
      continue;
    }
    elements.push_back(std::make_shared<AlignedBytes>(input.copies.blockBytes()));
    input.copies.take(whole, r, elements.back()->data());
  }
  return elements;
}

void Device::keep(Input& input, Elements elements) {
  for (std::size_t r = 0; r < elements.size(); ++r) {
    InputShard& shard = input.shards[r];
    shard.elements = std::move(elements[r]);
    shard.data = shard.elements->data();
    shard.contents = newContents();
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
  runOnce(deadline, is_closed, seeds_.next());
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
  std::vector<std::pair<Input*, Elements>> changes;
  for (const auto& [name, elements] : values) {
    Input& input = storedByName(name);  // names do not change: no lock yet
    if (elements.size() != input.copies.wholeBytes())
      throw Error(Status::kInvalidArgument,
                  "[runtime] needs " + std::to_string(input.copies.wholeBytes()) + " bytes for " +
                      name + "; got " + std::to_string(elements.size()) +
                      ". Pass an array of its type.");
    changes.emplace_back(&input, divided(input, elements.data()));
  }
  const std::lock_guard lock(mutex_);
  for (auto& [input, elements] : changes) keep(*input, std::move(elements));
}

void Device::readStored(const std::string& name, std::span<std::byte> elements) {
  const Input& input = storedByName(name);
  if (elements.size() != input.copies.wholeBytes())
    throw Error(Status::kInvalidArgument,
                "[runtime] needs room for " + std::to_string(input.copies.wholeBytes()) +
                    " bytes of " + name + "; got " + std::to_string(elements.size()) +
                    ". Pass an array of its type.");
  const std::lock_guard lock(mutex_);
  for (std::size_t r = 0; r < input.shards.size(); ++r)
    if (input.copies.isFirst(r)) input.copies.put(input.shards[r].data, r, elements.data());
}

}  // namespace ipujax::embedded
