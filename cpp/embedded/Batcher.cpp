#include "embedded/Batcher.hpp"

#include <algorithm>
#include <cstring>
#include <exception>
#include <utility>

#include "embedded/Completion.hpp"
#include "embedded/Error.hpp"

namespace ipujax::embedded {
namespace {

constexpr Timeout kLongestDelay = std::chrono::hours(1);

Error closed() {
  return {Status::kClosed, "[runtime] needs an open batcher; got one that was closed. Make one."};
}

Error late() {
  return {Status::kTimeout,
          "[runtime] needs a batch that begins in time; got none. Pass a longer time-out."};
}

}  // namespace

class Batcher::Request final : public Completion {
 public:
  Request(Arrays the_arrays, std::size_t the_samples, Clock::time_point the_deadline)
      : arrays(std::move(the_arrays)), samples(the_samples), deadline(the_deadline) {}

  const Arrays arrays;
  const std::size_t samples;
  const Clock::time_point arrived = Clock::now();
  const Clock::time_point deadline;
};

Batcher::Batcher(Session& session, Timeout delay)
    : session_(session), delay_(std::clamp(delay, Timeout{0}, kLongestDelay)) {
  for (const auto* tensors : {&session.inputs(), &session.outputs()}) {
    for (const Tensor& tensor : *tensors) {
      const std::size_t size =
          tensor.shape.empty() ? 0 : static_cast<std::size_t>(tensor.shape.front());
      if (batch_ == 0) batch_ = size;
      if (size == batch_ && size > 0) continue;
      throw Error(
          Status::kInvalidArgument,
          "[runtime] needs arrays with one sample for each row of a batch, of one size; got " +
              tensor.name + ", which is not. Store what is no sample when you save.");
    }
  }
  for (const Tensor& tensor : session.inputs()) {
    inputs_.emplace_back(tensor.bytes);
    std::memset(inputs_.back().data(), 0, tensor.bytes);
  }
  for (const Tensor& tensor : session.outputs()) outputs_.emplace_back(tensor.bytes);
  thread_ = std::thread([this] { work(); });
}

Batcher::~Batcher() { close(); }

void Batcher::close() {
  {
    const std::lock_guard lock(mutex_);
    is_closed_ = true;
  }
  changed_.notify_all();
  places_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void Batcher::run(Arrays arrays, std::size_t samples, Timeout timeout) {
  const auto request = push(std::move(arrays), samples, deadlineAfter(timeout));
  if (!request->waitUntil(request->deadline) && withdraw(request)) throw late();
  request->wait(Timeout{0});  // while it runs, its arrays are in use
}

std::shared_ptr<Run> Batcher::submit(Arrays arrays, std::size_t samples, Timeout timeout) {
  return push(std::move(arrays), samples, deadlineAfter(timeout));
}

std::shared_ptr<Batcher::Request> Batcher::push(Arrays arrays, std::size_t samples,
                                                Clock::time_point deadline) {
  if (samples == 0 || samples > batch_ || arrays.inputs.size() != inputs_.size() ||
      arrays.outputs.size() != outputs_.size())
    throw Error(Status::kInvalidArgument,
                "[runtime] needs from 1 to " + std::to_string(batch_) + " samples of " +
                    std::to_string(inputs_.size()) + " inputs and " +
                    std::to_string(outputs_.size()) + " outputs; got " + std::to_string(samples) +
                    " of " + std::to_string(arrays.inputs.size()) + " and " +
                    std::to_string(arrays.outputs.size()) + ". Pass parts of a batch.");
  auto request = std::make_shared<Request>(std::move(arrays), samples, deadline);
  std::unique_lock lock(mutex_);
  const auto has_place = [this] {
    return is_closed_ || waiting_samples_ / batch_ < session_.queueDepth();
  };
  if (deadline == kNoDeadline) {
    places_.wait(lock, has_place);
  } else if (!places_.wait_until(lock, deadline, has_place)) {
    throw late();
  }
  if (is_closed_) throw closed();
  const bool was_full = waiting_samples_ >= batch_;
  waiting_.push_back(request);
  waiting_samples_ += samples;
  const bool changes = waiting_.size() == 1 || (!was_full && waiting_samples_ >= batch_);
  lock.unlock();
  if (changes) changed_.notify_one();  // else the thread knows when the batch begins
  return request;
}

/// Returns whether the request was still waiting.
bool Batcher::withdraw(const std::shared_ptr<Request>& request) {
  const std::lock_guard lock(mutex_);
  if (std::erase(waiting_, request) == 0) return false;
  waiting_samples_ -= request->samples;
  places_.notify_all();
  return true;
}

/// Takes as many requests as fit in the next batch, in order.
Batcher::Requests Batcher::take(std::unique_lock<std::mutex>& lock) {
  changed_.wait(lock, [this] { return is_closed_ || !waiting_.empty(); });
  while (!is_closed_ && !waiting_.empty() && waiting_samples_ < batch_) {
    const auto until = waiting_.front()->arrived + delay_;
    if (changed_.wait_until(lock, until) == std::cv_status::timeout) break;
  }
  Requests taken;
  std::size_t samples = 0;
  while (!waiting_.empty() && samples + waiting_.front()->samples <= batch_) {
    auto request = std::move(waiting_.front());
    waiting_.pop_front();
    waiting_samples_ -= request->samples;
    if (request->deadline < Clock::now()) {
      request->finish(std::make_exception_ptr(late()));
      continue;
    }
    samples += request->samples;
    taken.push_back(std::move(request));
  }
  places_.notify_all();
  return taken;
}

void Batcher::runBatch(const Requests& requests) {
  const auto sampleBytes = [this](const AlignedBytes& array) { return array.size() / batch_; };
  Arrays arrays;
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    const std::size_t bytes = sampleBytes(inputs_[i]);
    std::byte* to = inputs_[i].data();
    for (const auto& request : requests) {
      if (bytes > 0) std::memcpy(to, request->arrays.inputs[i], request->samples * bytes);
      to += request->samples * bytes;
    }
    std::memset(to, 0, static_cast<std::size_t>(inputs_[i].data() + inputs_[i].size() - to));
    arrays.inputs.push_back(inputs_[i].data());
  }
  for (const AlignedBytes& output : outputs_) arrays.outputs.push_back(output.data());
  session_.run(arrays);
  for (std::size_t i = 0; i < outputs_.size(); ++i) {
    const std::size_t bytes = sampleBytes(outputs_[i]);
    const std::byte* from = outputs_[i].data();
    for (const auto& request : requests) {
      void* to = request->arrays.outputs[i];
      if (to) std::memcpy(to, from, request->samples * bytes);
      from += request->samples * bytes;
    }
  }
}

void Batcher::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    const auto requests = take(lock);
    if (requests.empty() && is_closed_) return;
    const bool runs = !is_closed_;
    std::exception_ptr error;
    lock.unlock();
    try {
      if (!runs) throw closed();
      if (!requests.empty()) runBatch(requests);
    } catch (...) {
      error = std::current_exception();
    }
    for (const auto& request : requests) request->finish(error);
    lock.lock();
  }
}

}  // namespace ipujax::embedded
