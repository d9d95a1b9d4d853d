#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <thread>
#include <vector>

#include "Check.hpp"
#include "runtime/FeedError.hpp"
#include "runtime/Outfeed.hpp"

using namespace ipujax::runtime;

namespace {

constexpr std::size_t kBytes = sizeof(std::uint32_t);

void push(Outfeed& feed, std::size_t writer, std::size_t writers, std::uint32_t number) {
  const std::array<HostArray, 1> arrays{HostArray{"uint32", {}, &number}};
  const std::array<std::size_t, 1> bytes{kBytes};
  feed.push(writer, writers, arrays, bytes);
}

/// The numbers of all complete items, one after another.
std::vector<std::uint32_t> taken(Outfeed& feed) {
  std::vector<std::uint32_t> numbers;
  for (const auto& item : feed.take()) {
    std::vector<std::uint32_t> part(item[0].size() / kBytes);
    std::memcpy(part.data(), item[0].data(), item[0].size());
    numbers.insert(numbers.end(), part.begin(), part.end());
  }
  return numbers;
}

using Numbers = std::vector<std::uint32_t>;

/// Two writers on threads of their own hand out `count` items; a reader takes them as they come.
Numbers through(Outfeed& feed, std::uint32_t count, std::size_t* most) {
  std::vector<std::thread> writers;
  for (std::size_t w = 0; w < 2; ++w) feed.begin(w, 2);
  for (std::size_t w = 0; w < 2; ++w)
    writers.emplace_back([&feed, w, count] {
      for (std::uint32_t i = 0; i < count; ++i)
        push(feed, w, 2, 2 * i + static_cast<std::uint32_t>(w));
    });
  Numbers all;
  while (all.size() < 2 * count) {
    feed.waitForItem(1);
    const auto found = taken(feed);
    *most = std::max(*most, found.size() * kBytes);
    all.insert(all.end(), found.begin(), found.end());
  }
  for (auto& writer : writers) writer.join();
  return all;
}

}  // namespace

TEST(items_are_complete_once_all_writers_gave_their_part) {
  Outfeed feed(false);
  for (std::size_t w = 0; w < 2; ++w) feed.begin(w, 2);
  push(feed, 1, 2, 11);
  push(feed, 1, 2, 21);
  CHECK(taken(feed).empty());
  push(feed, 0, 2, 10);
  CHECK(taken(feed) == (Numbers{10, 11}));
  push(feed, 0, 2, 20);
  CHECK(taken(feed) == (Numbers{20, 21}));
}

TEST(a_slow_reader_gets_everything_and_the_bound_holds) {
  for (const std::size_t bound : {std::size_t{0}, 2 * kBytes, 6 * kBytes}) {
    Outfeed feed(false);
    feed.setBound(bound, 30);
    std::size_t most = 0;
    const auto all = through(feed, 200, &most);
    for (std::uint32_t i = 0; i < all.size(); ++i) CHECK_EQ(all[i], i);
    if (bound > 0) CHECK(most <= bound);
  }
}

TEST(a_program_that_nobody_reads_fails_in_time_and_keeps_what_is_there) {
  Outfeed feed(false);
  feed.setBound(3 * kBytes, 0.05);
  feed.begin(0, 1);
  for (const std::uint32_t i : {0u, 1u, 2u}) push(feed, 0, 1, i);
  CHECK_THROWS(push(feed, 0, 1, 3), "within 0.05 s while 12 bytes of them wait");
  CHECK(feed.waitSeconds() > 0.04);
  CHECK(taken(feed) == (Numbers{0, 1, 2}));
  feed.begin(0, 1);
  push(feed, 0, 1, 7);
  CHECK(taken(feed) == Numbers{7});
}

TEST(one_item_always_fits) {
  Outfeed feed(false);
  feed.setBound(1, 0.05);
  feed.begin(0, 1);
  push(feed, 0, 1, 5);
  CHECK_THROWS(push(feed, 0, 1, 6), "needs results to be taken");
  CHECK(taken(feed) == Numbers{5});
}

TEST(taking_and_clearing_make_room_for_who_waits) {
  for (const bool clears : {false, true}) {
    Outfeed feed(false);
    feed.setBound(kBytes, 30);
    feed.begin(0, 1);
    push(feed, 0, 1, 1);
    std::thread writer([&] { push(feed, 0, 1, 2); });
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    if (clears)
      feed.clear();
    else
      CHECK(taken(feed) == Numbers{1});
    writer.join();
    CHECK(taken(feed) == Numbers{2});
  }
}

TEST(closing_wakes_who_waits) {
  Outfeed feed(false);
  feed.setBound(kBytes, 0);  // it would wait for ever
  feed.begin(0, 1);
  push(feed, 0, 1, 1);
  std::thread other([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    feed.close("Python ends");
  });
  CHECK_THROWS(push(feed, 0, 1, 2), "Python ends");
  other.join();
}

TEST(the_newest_is_kept_and_waits_for_nobody) {
  Outfeed feed(true);
  feed.setBound(2 * kBytes, 0.05);
  feed.begin(0, 1);
  for (std::uint32_t i = 0; i < 10; ++i) push(feed, 0, 1, i);
  CHECK(taken(feed) == Numbers{9});
  // One writer that is far ahead of the other waits for it: each item has two parts.
  for (std::size_t w = 0; w < 2; ++w) feed.begin(w, 2);
  push(feed, 0, 2, 0);
  CHECK_THROWS(push(feed, 0, 2, 1), "needs results to be taken");
  push(feed, 1, 2, 0);
  CHECK(taken(feed) == (Numbers{0, 0}));
}

TEST(a_run_drops_what_an_earlier_one_left_incomplete) {
  Outfeed feed(false);
  for (std::size_t w = 0; w < 2; ++w) feed.begin(w, 2);
  push(feed, 0, 2, 1);
  for (std::size_t w = 0; w < 2; ++w) feed.begin(w, 2);
  push(feed, 0, 2, 2);
  push(feed, 1, 2, 3);
  CHECK(taken(feed) == (Numbers{2, 3}));
}

TEST(a_program_with_other_replicas_takes_the_feed_over) {
  Outfeed feed(false);
  for (std::size_t w = 0; w < 4; ++w) feed.begin(w, 4);
  push(feed, 3, 4, 1);  // incomplete
  feed.begin(0, 1);
  CHECK_THROWS(push(feed, 3, 4, 2), "got one with 4 and one with 1. Make an Outfeed for each");
  push(feed, 0, 1, 7);
  CHECK(taken(feed) == Numbers{7});
}

TEST(results_of_another_size_are_refused) {
  Outfeed feed(false);
  for (std::size_t w = 0; w < 2; ++w) feed.begin(w, 2);
  push(feed, 0, 2, 1);
  std::array<std::uint32_t, 2> wide{1, 2};
  const std::array<HostArray, 1> arrays{HostArray{"uint32", {}, wide.data()}};
  const std::array<std::size_t, 1> bytes{sizeof wide};
  CHECK_THROWS(feed.push(1, 2, arrays, bytes), "needs results of one size at a time");
}

TEST(two_programs_of_as_many_replicas_are_told_apart) {
  Outfeed feed(false);
  for (std::size_t w = 0; w < 2; ++w) feed.begin(w, 2);
  feed.begin(0, 2);      // another program, while the first still writes
  push(feed, 1, 2, 11);  // from the first program
  feed.begin(1, 2);
  push(feed, 0, 2, 20);
  CHECK_THROWS(push(feed, 1, 2, 21), "[outfeed] needs one program");
  CHECK(feed.waitForItem(0));
  CHECK_EQ(taken(feed).size(), 2u);
}
