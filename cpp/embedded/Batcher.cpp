#include "embedded/Batcher.hpp"

#include <algorithm>
#include <cstring>
#include <exception>
#include <utility>

#include "embedded/Error.hpp"

namespace ipujax::embedded {
namespace {

constexpr Timeout kLongestDelay = std::chrono::hours(1);

}  // namespace

struct Batcher::Request {
  const Arrays& arrays;
  std::size_t samples;
  Clock::time_point arrived;
  std::condition_variable done;
  bool is_running = false;
  bool is_done = false;
  std::exception_ptr error;
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
  if (thread_.joinable()) thread_.join();
}

void Batcher::run(const Arrays& arrays, std::size_t samples, Timeout timeout) {
  if (samples == 0 || samples > batch_ || arrays.inputs.size() != inputs_.size() ||
      arrays.outputs.size() != outputs_.size())
    throw Error(Status::kInvalidArgument,
                "[runtime] needs from 1 to " + std::to_string(batch_) + " samples of " +
                    std::to_string(inputs_.size()) + " inputs and " +
                    std::to_string(outputs_.size()) + " outputs; got " + std::to_string(samples) +
                    " of " + std::to_string(arrays.inputs.size()) + " and " +
                    std::to_string(arrays.outputs.size()) + ". Pass parts of a batch.");
  Request request{arrays, samples, Clock::now(), {}, false, false, nullptr};
  std::unique_lock lock(mutex_);
  if (is_closed_)
    throw Error(Status::kClosed,
                "[runtime] needs an open batcher; got one that was closed. Make one.");
  waiting_.push_back(&request);
  waiting_samples_ += samples;
  changed_.notify_one();
  const auto is_done = [&] { return request.is_done; };
  const auto deadline = deadlineAfter(timeout);
  if (deadline == kNoDeadline) {
    request.done.wait(lock, is_done);
  } else if (!request.done.wait_until(lock, deadline, is_done)) {
    if (!request.is_running) {
      std::erase(waiting_, &request);
      waiting_samples_ -= samples;
      throw Error(Status::kTimeout,
                  "[runtime] needs a batch that begins in time; got none. Pass a longer time-out.");
    }
    request.done.wait(lock, is_done);  // its arrays are in use
  }
  if (request.error) std::rethrow_exception(request.error);
}

/// The requests of the next batch, in order, as many as it has room for; none once it is closed.
std::vector<Batcher::Request*> Batcher::take(std::unique_lock<std::mutex>& lock) {
  changed_.wait(lock, [this] { return is_closed_ || !waiting_.empty(); });
  while (!is_closed_ && !waiting_.empty() && waiting_samples_ < batch_) {
    const auto until = waiting_.front()->arrived + delay_;
    if (changed_.wait_until(lock, until) == std::cv_status::timeout) break;
  }
  std::vector<Request*> taken;
  std::size_t samples = 0;
  while (!waiting_.empty() && samples + waiting_.front()->samples <= batch_) {
    taken.push_back(waiting_.front());
    taken.back()->is_running = true;
    samples += taken.back()->samples;
    waiting_.pop_front();
  }
  waiting_samples_ -= samples;
  return taken;
}

void Batcher::runBatch(const std::vector<Request*>& requests) {
  const auto sampleBytes = [this](const AlignedBytes& array) { return array.size() / batch_; };
  Arrays arrays;
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    const std::size_t bytes = sampleBytes(inputs_[i]);
    std::byte* to = inputs_[i].data();
    for (const Request* request : requests) {
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
    for (const Request* request : requests) {
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
      if (!runs)
        throw Error(Status::kClosed,
                    "[runtime] needs an open batcher; got one that was closed. Make one.");
      if (!requests.empty()) runBatch(requests);
    } catch (...) {
      error = std::current_exception();
    }
    lock.lock();
    for (Request* request : requests) {
      request->error = error;
      request->is_done = true;
      request->done.notify_one();
    }
  }
}

}  // namespace ipujax::embedded
