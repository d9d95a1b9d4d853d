#include "runtime/Infeed.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "runtime/FeedError.hpp"
#include "runtime/LocalReplicas.hpp"
#include "runtime/Waiting.hpp"
#include "support/Interrupts.hpp"

namespace ipujax::runtime {
namespace {

std::span<const std::byte> partOf(std::span<const std::byte> bytes, std::size_t part,
                                  std::size_t parts) {
  const auto size = bytes.size() / parts;
  return bytes.subspan(part * size, size);
}

class Port final : public HostPort {
 public:
  Port(std::shared_ptr<Infeed> feed, Infeed::Call call, std::size_t readers, std::size_t copies)
      : feed_(std::move(feed)), call_(call), readers_("infeed", readers), copies_(copies) {}

  void call(std::span<const HostArray> arguments, std::span<const HostArray> results) override {
    const std::size_t number = readers_.numberOf(arguments, results);
    if (call_ == Infeed::Call::kBegin) {
      feed_->begin(number, readers_.count());
      return;
    }
    if (call_ == Infeed::Call::kCheck) {
      std::vector<Checksum> sums(feed_->bytes().size());
      if (!sums.empty()) std::memcpy(sums.data(), arguments[1].data, sums.size() * sizeof sums[0]);
      feed_->check(number, readers_.count(), sums);
      return;
    }
    const bool stops = call_ == Infeed::Call::kFetchOrStop;
    std::vector<std::byte*> arrays;
    for (const auto& result : results.subspan(stops ? 2 : 1))
      arrays.push_back(static_cast<std::byte*>(result.data));
    const bool found = feed_->fetch(number, readers_.count(), copies_, arrays, stops);
    if (stops) *static_cast<std::uint8_t*>(results[1].data) = found ? 1 : 0;
  }

 private:
  const std::shared_ptr<Infeed> feed_;
  const Infeed::Call call_;
  LocalReplicas readers_;
  const std::size_t copies_;
};

}  // namespace

Infeed::Infeed(std::vector<std::size_t> bytes, unsigned depth)
    : bytes_(std::move(bytes)), depth_(std::max(depth, 1u)), slots_(depth_), readers_(1) {
  for (auto& slot : slots_)
    for (const auto size : bytes_) slot.arrays.emplace_back(size);
}

bool Infeed::waitForRoom() {
  Lock lock(mutex_);
  freed_.wait(lock, [&] { return state_ != State::kOpen || head_ - tail_ < depth_; });
  return state_ == State::kOpen;
}

void Infeed::push(std::span<const std::byte* const> arrays) {
  auto& slot = slots_[head_ % depth_];  // nobody else has it, and only this thread changes head_
  slot.sums.assign(widths_.size(), {});
  slot.parts = expected_parts_;
  for (std::size_t i = 0; i < bytes_.size(); ++i) {
    for (std::size_t part = 0; part < slot.parts && !widths_.empty(); ++part)
      slot.sums[i].push_back(
          checksumOf(partOf({arrays[i], bytes_[i]}, part, slot.parts), widths_[i]));
    if (bytes_[i] > 0) std::memcpy(slot.arrays[i].data(), arrays[i], bytes_[i]);
  }
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

/// A new run waits until other programs' copies are done, so that it frees no batch too early.
void Infeed::begin(std::size_t reader, std::size_t readers) {
  Lock lock(mutex_);
  freed_.wait(lock, [&] {
    if (num_copying_ == 0) return true;
    const bool joins = readers == readers_.size() && readers_[reader].run != run_;
    return joins && !readers_[reader].is_copying;
  });
  const auto furthest = [&] { return std::ranges::max_element(readers_, {}, &Reader::next)->next; };
  if (readers != readers_.size()) {
    const auto next = furthest();
    readers_.assign(readers, Reader{next, run_, 0});
    pushed_.notify_all();  // programs with another number of readers fail
  }
  auto& own = readers_[reader];
  if (own.run == run_) {  // the first reader of a new run
    ++run_;
    first_of_run_ = furthest();
  }
  own = {first_of_run_, run_, interrupts::number()};
  release();
}

const Infeed::Reader& Infeed::own(std::size_t reader, std::size_t readers) const {
  if (readers == readers_.size()) return readers_[reader];
  throw FeedError("[infeed] needs programs with as many replicas while one reads; got one with " +
                  std::to_string(readers) + " and one with " + std::to_string(readers_.size()) +
                  ". Make an Infeed for each.");
}

/// Frees the batches that all readers have. Batches of a run that ended early may go unread.
void Infeed::release() {
  tail_ = std::max(tail_, std::ranges::min_element(readers_, {}, &Reader::next)->next);
  freed_.notify_all();
}

bool Infeed::fetch(std::size_t reader, std::size_t readers, std::size_t copies,
                   std::span<std::byte* const> arrays, bool stops) {
  Lock lock(mutex_);
  awaitBatch(lock, reader, readers);
  auto& own = readers_[reader];
  const auto parts = readers / copies;
  if (head_ <= own.next) {
    if (state_ != State::kEnded || !stops) failNow(own);
    for (std::size_t i = 0; i < bytes_.size(); ++i)
      if (bytes_[i] > 0) std::memset(arrays[i], 0, bytes_[i] / parts);
    own.sent.assign(widths_.size(), Checksum());
    return false;
  }
  const auto& slot = slots_[own.next % depth_];
  ++num_copying_;
  own.is_copying = true;  // so nobody changes `own` or the readers' number
  lock.unlock();
  for (std::size_t i = 0; i < bytes_.size(); ++i) {
    const auto part = partOf(slot.arrays[i], reader / copies, parts);
    if (!part.empty()) std::memcpy(arrays[i], part.data(), part.size());
  }
  auto sent = sentTo(reader / copies, parts, slot);
  lock.lock();
  --num_copying_;
  own.is_copying = false;
  own.sent = std::move(sent);
  ++own.next;
  release();
  pushed_.notify_all();
  return true;
}

/// Batches pushed before any program was traced only have checksums of the whole arrays.
std::vector<Checksum> Infeed::sentTo(std::size_t part, std::size_t parts, const Slot& slot) const {
  std::vector<Checksum> sent;
  for (std::size_t i = 0; i < widths_.size(); ++i)
    sent.push_back(slot.parts == parts
                       ? slot.sums[i][part]
                       : checksumOf(partOf(slot.arrays[i], part, parts), widths_[i]));
  return sent;
}

void Infeed::check(std::size_t reader, std::size_t readers,
                   std::span<const Checksum> arrived) const {
  const std::lock_guard lock(mutex_);
  const auto& from = own(reader, readers);
  const auto& sent = from.sent;
  if (std::ranges::equal(sent, arrived)) return;
  std::size_t i = 0;
  while (i < sent.size() && i < arrived.size() && sent[i] == arrived[i]) ++i;
  throw FeedError(
      "[infeed] needs batches that arrive as they were sent; got other bytes of array " +
      std::to_string(i) + " of batch " + std::to_string(std::max<std::uint64_t>(from.next, 1) - 1) +
      " on replica " + std::to_string(reader) +
      ". Check the host's memory and its links to the device.");
}

void Infeed::awaitBatch(Lock& lock, std::size_t reader, std::size_t readers) {
  const auto interrupts = own(reader, readers).interrupts;
  const auto ready = [&] {
    if (readers != readers_.size()) return true;
    const auto& from = readers_[reader];
    return !from.is_copying && (head_ > from.next || state_ != State::kOpen);
  };
  const auto wait = awaitOrInterrupt(lock, pushed_, ready, timeout_seconds_, interrupts);
  wait_seconds_ += wait.seconds;
  const auto next = std::to_string(own(reader, readers).next);
  if (wait.was_interrupted)
    throw FeedInterrupted("[infeed] got an interrupt (Ctrl-C) before batch " + next +
                          ". Run the program again.");
  if (!wait.is_ready)
    throw FeedError("[infeed] needs a batch within " + textOf(timeout_seconds_) +
                    " s; got none after batch " + next +
                    ". Make the data faster, or pass a longer timeout.");
}

void Infeed::failNow(const Reader& reader) const {
  if (state_ != State::kEnded) throw FeedError(why_);
  throw FeedError("[infeed] needs a batch for each step; got the end of the data after " +
                  std::to_string(reader.next) +
                  " batches. Run fewer steps, pass stop_at_end=True, or call restart().");
}

std::string Infeed::port(Call call, std::size_t readers, std::size_t copies) {
  if (call == Call::kFetch || call == Call::kFetchOrStop) expected_parts_ = readers / copies;
  return ports::add(std::make_shared<Port>(shared_from_this(), call, readers, copies));
}

}  // namespace ipujax::runtime
