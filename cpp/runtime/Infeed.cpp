#include "runtime/Infeed.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <sstream>
#include <utility>

#include "runtime/FeedError.hpp"
#include "runtime/Interrupts.hpp"

namespace ipujax::runtime {
namespace {

using Clock = std::chrono::steady_clock;

/// How often a program that waits looks for Ctrl-C.
constexpr auto kGlance = std::chrono::milliseconds(20);

double secondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

std::string textOf(double number) {
  std::ostringstream text;
  text << number;
  return text.str();
}

class Port final : public HostPort {
 public:
  Port(std::shared_ptr<Infeed> feed, Infeed::Call call, std::size_t readers, std::size_t copies)
      : feed_(std::move(feed)), call_(call), readers_(readers), copies_(copies) {}

  void call(std::span<const HostArray> arguments, std::span<const HostArray> results) override {
    std::int32_t reader = 0;
    std::memcpy(&reader, arguments[0].data, sizeof reader);
    std::memcpy(results[0].data, &reader, sizeof reader);
    if (reader < 0 || static_cast<std::size_t>(reader) >= readers_)
      throw FeedError("[infeed] needs a replica below " + std::to_string(readers_) + "; got " +
                      std::to_string(reader) + ". Trace the program again.");
    const auto number = static_cast<std::size_t>(reader);
    if (call_ == Infeed::Call::kBegin) {
      feed_->begin(number, readers_);
      return;
    }
    const bool stops = call_ == Infeed::Call::kFetchOrStop;
    std::vector<std::byte*> arrays;
    for (const auto& result : results.subspan(stops ? 2 : 1))
      arrays.push_back(static_cast<std::byte*>(result.data));
    const bool found = feed_->fetch(number, copies_, arrays, stops);
    if (stops) *static_cast<std::uint8_t*>(results[1].data) = found ? 1 : 0;
  }

 private:
  const std::shared_ptr<Infeed> feed_;
  const Infeed::Call call_;
  const std::size_t readers_, copies_;
};

}  // namespace

Infeed::Infeed(std::vector<std::size_t> bytes, unsigned depth)
    : bytes_(std::move(bytes)), depth_(std::max(depth, 1u)), slots_(depth_), readers_(1) {
  for (auto& slot : slots_)
    for (const auto size : bytes_) slot.emplace_back(size);
}

bool Infeed::waitForRoom() {
  Lock lock(mutex_);
  freed_.wait(lock, [&] { return state_ != State::kOpen || head_ - tail_ < depth_; });
  return state_ == State::kOpen;
}

void Infeed::push(std::span<const std::byte* const> arrays) {
  auto& slot = slots_[head_ % depth_];  // nobody else has it, and only this thread changes head_
  for (std::size_t i = 0; i < bytes_.size(); ++i)
    if (bytes_[i] > 0) std::memcpy(slot[i].data(), arrays[i], bytes_[i]);
  const std::lock_guard lock(mutex_);
  ++head_;
  pushed_.notify_all();
}

void Infeed::stop(State state, std::string why) {
  const std::lock_guard lock(mutex_);
  if (state_ != State::kOpen && state != State::kClosed) return;
  state_ = state;
  why_ = std::move(why);
  pushed_.notify_all();
  freed_.notify_all();
}

void Infeed::end() { stop(State::kEnded, ""); }
void Infeed::fail(std::string why) { stop(State::kFailed, std::move(why)); }
void Infeed::close(std::string why) { stop(State::kClosed, std::move(why)); }

void Infeed::reset() {
  Lock lock(mutex_);
  freed_.wait(lock, [&] { return num_copying_ == 0; });
  const auto readers = readers_.size();
  readers_.assign(readers, Reader());
  head_ = tail_ = run_ = first_of_run_ = 0;
  state_ = State::kOpen;
  why_.clear();
}

void Infeed::setTimeout(double seconds) {
  const std::lock_guard lock(mutex_);
  timeout_seconds_ = seconds;
}

Infeed::Stats Infeed::stats() const {
  const std::lock_guard lock(mutex_);
  return {head_, tail_, wait_seconds_};
}

void Infeed::begin(std::size_t reader, std::size_t readers) {
  const std::lock_guard lock(mutex_);
  const auto furthest = [&] { return std::ranges::max_element(readers_, {}, &Reader::next)->next; };
  if (readers != readers_.size()) {
    const auto next = furthest();
    readers_.assign(readers, Reader{next, run_, 0});
  }
  auto& own = readers_[reader];
  if (own.run == run_) {  // the first of a new run
    ++run_;
    first_of_run_ = furthest();
  }
  own = {first_of_run_, run_, interrupts::count()};
  release();
}

/// What all readers have is free. Batches of a run that ended early may go unread.
void Infeed::release() {
  tail_ = std::max(tail_, std::ranges::min_element(readers_, {}, &Reader::next)->next);
  freed_.notify_all();
}

bool Infeed::fetch(std::size_t reader, std::size_t copies, std::span<std::byte* const> arrays,
                   bool stops) {
  Lock lock(mutex_);
  awaitBatch(lock, readers_[reader]);
  const auto parts = readers_.size() / copies;
  if (head_ <= readers_[reader].next) {
    if (state_ != State::kEnded || !stops) failNow(readers_[reader]);
    for (std::size_t i = 0; i < bytes_.size(); ++i)
      if (bytes_[i] > 0) std::memset(arrays[i], 0, bytes_[i] / parts);
    return false;
  }
  const auto& slot = slots_[readers_[reader].next % depth_];
  ++num_copying_;
  lock.unlock();
  for (std::size_t i = 0; i < bytes_.size(); ++i) {
    const auto part = bytes_[i] / parts;
    if (part > 0) std::memcpy(arrays[i], slot[i].data() + reader / copies * part, part);
  }
  lock.lock();
  --num_copying_;
  ++readers_[reader].next;
  release();
  return true;
}

void Infeed::awaitBatch(Lock& lock, const Reader& reader) {
  const auto interrupted = [&] { return interrupts::count() != reader.interrupts; };
  const auto ready = [&] { return head_ > reader.next || state_ != State::kOpen; };
  const auto start = Clock::now();
  bool late = false;
  while (!late && !ready() && !interrupted()) {
    pushed_.wait_for(lock, kGlance, ready);
    late = timeout_seconds_ > 0 && !ready() && secondsSince(start) > timeout_seconds_;
  }
  wait_seconds_ += secondsSince(start);
  if (interrupted())
    throw FeedError("[infeed] got an interrupt (Ctrl-C) before batch " +
                    std::to_string(reader.next) + ". Run the program again.");
  if (late)
    throw FeedError("[infeed] needs a batch within " + textOf(timeout_seconds_) +
                    " s; got none after batch " + std::to_string(reader.next) +
                    ". Make the data faster, or pass a longer timeout.");
}

void Infeed::failNow(const Reader& reader) const {
  if (state_ != State::kEnded) throw FeedError(why_);
  throw FeedError("[infeed] needs a batch for each step; got the end of the data after " +
                  std::to_string(reader.next) +
                  " batches. Run fewer steps, pass stop_at_end=True, or call restart().");
}

std::string Infeed::port(Call call, std::size_t readers, std::size_t copies) {
  return ports::add(std::make_shared<Port>(shared_from_this(), call, readers, copies));
}

}  // namespace ipujax::runtime
