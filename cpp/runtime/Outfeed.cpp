#include "runtime/Outfeed.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <numeric>
#include <utility>

#include "runtime/FeedError.hpp"
#include "runtime/LocalReplicas.hpp"
#include "runtime/Waiting.hpp"
#include "support/Interrupts.hpp"

namespace ipujax::runtime {
namespace {

class OutfeedPort final : public HostPort {
 public:
  OutfeedPort(std::shared_ptr<Outfeed> feed, Outfeed::Call call, std::size_t writers,
              std::vector<std::size_t> bytes)
      : feed_(std::move(feed)),
        call_(call),
        writers_("outfeed", writers),
        bytes_(std::move(bytes)) {}

  void call(std::span<const HostArray> arguments, std::span<const HostArray> results) override {
    const std::size_t number = writers_.numberOf(arguments, results);
    if (call_ == Outfeed::Call::kBegin) {
      feed_->begin(number, writers_.count());
    } else {
      feed_->push(number, writers_.count(), arguments.subspan(1), bytes_);
    }
  }

 private:
  const std::shared_ptr<Outfeed> feed_;
  const Outfeed::Call call_;
  LocalReplicas writers_;
  const std::vector<std::size_t> bytes_;  // of each array of one writer
};

}  // namespace

void Outfeed::begin(std::size_t writer, std::size_t writers) {
  const std::lock_guard lock(mutex_);
  if (writers != writers_.size()) {
    writers_.assign(writers, Writer{first_ + items_.size(), run_, 0});
    std::erase_if(items_, [](const Item& item) { return item.missing > 0; });
  }
  auto& own = writers_[writer];
  if (own.run == run_) {  // the first writer of a new run
    ++run_;
    std::erase_if(items_, [](const Item& item) { return item.missing > 0; });
    first_of_run_ = first_ + items_.size();
  }
  own = {first_of_run_, run_, interrupts::number()};
  freed_.notify_all();
}

void Outfeed::setBound(std::size_t bytes, double seconds) {
  const std::lock_guard lock(mutex_);
  max_bytes_ = bytes;
  timeout_seconds_ = seconds;
}

/// A writer that is not ahead of the others needs no room. All items of a feed have the same size.
/// If only the newest complete item is kept, it does not count.
bool Outfeed::hasRoom(const Writer& writer, std::size_t item_bytes) const {
  if (writer.next < first_ + items_.size()) return true;
  const auto waiting = items_.size() - (keeps_last_ && hasItem() ? 1 : 0);
  return max_bytes_ == 0 || waiting == 0 || (waiting + 1) * item_bytes <= max_bytes_;
}

const Outfeed::Writer& Outfeed::own(std::size_t writer, std::size_t writers) const {
  if (writers == writers_.size()) return writers_[writer];
  throw FeedError("[outfeed] needs programs with as many replicas while one writes; got one with " +
                  std::to_string(writers) + " and one with " + std::to_string(writers_.size()) +
                  ". Make an Outfeed for each.");
}

void Outfeed::awaitRoom(Lock& lock, std::size_t writer, std::size_t writers,
                        std::size_t item_bytes) {
  const auto interrupts = own(writer, writers).interrupts;
  const auto has_room = [&] {
    return writers != writers_.size() || hasRoom(writers_[writer], item_bytes);
  };
  const auto ready = [&] { return has_room() || is_closed_; };
  const auto wait = awaitOrInterrupt(lock, freed_, ready, timeout_seconds_, interrupts);
  wait_seconds_ += wait.seconds;
  const auto next = std::to_string(own(writer, writers).next);
  if (has_room()) return;
  if (wait.was_interrupted)
    throw FeedInterrupted("[outfeed] got an interrupt (Ctrl-C) where it had no room for result " +
                          next + ". Run the program again.");
  if (!wait.is_ready)
    throw FeedError("[outfeed] needs results to be taken within " + textOf(timeout_seconds_) +
                    " s while " + std::to_string(max_bytes_) + " bytes of them wait; got nobody. " +
                    "Take them by items() while the program runs, or pass a larger max_bytes.");
  throw FeedError(why_);
}

void Outfeed::push(std::size_t writer, std::size_t writers, std::span<const HostArray> arrays,
                   std::span<const std::size_t> bytes) {
  Lock lock(mutex_);
  const auto item_bytes = std::accumulate(bytes.begin(), bytes.end(), std::size_t{0}) * writers;
  awaitRoom(lock, writer, writers, item_bytes);
  const auto number = writers_[writer].next++;
  if (number < first_) return;  // its item was dropped
  while (first_ + items_.size() <= number) {
    auto& item = items_.emplace_back();
    item.missing = writers;
    for (const auto size : bytes) item.arrays.emplace_back(size * writers);
    freed_.notify_all();  // for the other writers
  }
  auto& item = items_[number - first_];
  const auto fits = [writers](const auto& array, auto size) {
    return array.size() == size * writers;
  };
  if (!std::ranges::equal(item.arrays, bytes, fits))
    throw FeedError(
        "[outfeed] needs results of one size at a time; got programs with several. "
        "Make an Outfeed for each.");
  if (item.missing == 0)
    throw FeedError(
        "[outfeed] needs one program at a time that writes from several replicas; got several. "
        "Make an Outfeed for each.");
  for (std::size_t i = 0; i < bytes.size(); ++i)
    if (bytes[i] > 0)
      std::memcpy(item.arrays[i].data() + writer * bytes[i], arrays[i].data, bytes[i]);
  if (--item.missing > 0) return;
  if (keeps_last_ && number > first_) {
    items_.erase(items_.begin(), items_.begin() + static_cast<std::ptrdiff_t>(number - first_));
    first_ = number;
    freed_.notify_all();
  }
  completed_.notify_all();
}

std::vector<Outfeed::Arrays> Outfeed::take() {
  const std::lock_guard lock(mutex_);
  std::vector<Arrays> taken;
  for (; hasItem(); items_.pop_front(), ++first_) taken.push_back(std::move(items_.front().arrays));
  freed_.notify_all();
  return taken;
}

bool Outfeed::waitForItem(double seconds) {
  std::unique_lock lock(mutex_);
  return completed_.wait_for(lock, std::chrono::duration<double>(seconds),
                             [&] { return hasItem(); });
}

void Outfeed::clear() {
  const std::lock_guard lock(mutex_);
  first_ += items_.size();
  items_.clear();
  freed_.notify_all();
}

void Outfeed::close(std::string why) {
  const std::lock_guard lock(mutex_);
  is_closed_ = true;
  why_ = std::move(why);
  freed_.notify_all();
}

double Outfeed::waitSeconds() const {
  const std::lock_guard lock(mutex_);
  return wait_seconds_;
}

std::string Outfeed::port(Call call, std::size_t writers, std::vector<std::size_t> bytes) {
  return ports::add(
      std::make_shared<OutfeedPort>(shared_from_this(), call, writers, std::move(bytes)));
}

}  // namespace ipujax::runtime
