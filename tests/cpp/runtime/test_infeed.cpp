#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <numeric>
#include <thread>
#include <vector>

#include "Check.hpp"
#include "runtime/FeedError.hpp"
#include "runtime/Infeed.hpp"

using namespace ipujax::runtime;

namespace {

/// A batch of two arrays: `rows` numbers from 10 x number, and one byte.
struct Batch {
  std::vector<std::uint32_t> rows;
  std::byte byte{};

  Batch(std::uint32_t number, std::size_t num_rows) : rows(num_rows), byte(std::byte(number)) {
    std::iota(rows.begin(), rows.end(), 10 * number);
  }
  std::array<std::byte*, 2> data() { return {reinterpret_cast<std::byte*>(rows.data()), &byte}; }
};

std::shared_ptr<Infeed> feedOf(std::size_t rows, unsigned depth) {
  return std::make_shared<Infeed>(std::vector<std::size_t>{4 * rows, 1}, depth);
}

void push(Infeed& feed, std::uint32_t number, std::size_t rows) {
  Batch batch(number, rows);
  const auto data = batch.data();
  const std::array<const std::byte*, 2> pointers{data[0], data[1]};
  feed.push(pointers);
}

/// The rows of the part that a reader gets; empty at the end.
std::vector<std::uint32_t> fetch(Infeed& feed, std::size_t reader, std::size_t readers,
                                 std::size_t part_rows, std::size_t copies = 1,
                                 bool stops = false) {
  Batch batch(99, part_rows);
  const auto data = batch.data();
  return feed.fetch(reader, readers, copies, data, stops) ? batch.rows
                                                          : std::vector<std::uint32_t>{};
}

/// The definition, a plain loop over elements.
Checksum sumsOf(const std::vector<std::uint32_t>& words) {
  Checksum sums{};
  for (std::size_t i = 0; i < words.size(); ++i) {
    sums[0] += words[i];
    sums[1] += static_cast<std::uint32_t>(i + 1) * words[i];
  }
  return sums;
}

using Rows = std::vector<std::uint32_t>;

}  // namespace

TEST(batches_come_in_order_and_no_more_than_fit_wait) {
  for (const unsigned depth : {1u, 2u, 3u}) {
    const auto feed = feedOf(3, depth);
    std::atomic<std::uint64_t> most{0};
    std::thread producer([&] {
      for (std::uint32_t i = 0; i < 50 && feed->waitForRoom(); ++i) {
        push(*feed, i, 3);
        const auto stats = feed->stats();
        most = std::max(most.load(), stats.pushed - stats.fetched);
      }
      feed->end();
    });
    feed->begin(0, 1);
    for (std::uint32_t i = 0; i < 50; ++i)
      CHECK(fetch(*feed, 0, 1, 3) == (Rows{10 * i, 10 * i + 1, 10 * i + 2}));
    CHECK(fetch(*feed, 0, 1, 3, 1, true).empty());
    producer.join();
    CHECK(most <= depth);
    CHECK_EQ(feed->stats().fetched, 50u);
  }
}

TEST(readers_on_threads_get_their_parts_and_copies) {
  const auto feed = feedOf(4, 2);
  std::thread producer([&] {
    for (std::uint32_t i = 0; i < 30 && feed->waitForRoom(); ++i) push(*feed, i, 4);
    feed->end();
  });
  std::array<std::vector<Rows>, 4> got;
  std::vector<std::thread> readers;
  for (std::size_t r = 0; r < 4; ++r) feed->begin(r, 4);
  for (std::size_t r = 0; r < 4; ++r)
    readers.emplace_back([&, r] {
      for (int i = 0; i < 30; ++i) got[r].push_back(fetch(*feed, r, 4, 2, 2));
    });
  for (auto& reader : readers) reader.join();
  producer.join();
  for (std::uint32_t i = 0; i < 30; ++i)
    for (std::size_t r = 0; r < 4; ++r) {
      const std::uint32_t first = 10 * i + (r < 2 ? 0 : 2);
      CHECK(got[r][i] == (Rows{first, first + 1}));
    }
}

TEST(a_run_begins_where_the_furthest_reader_was) {
  const auto feed = feedOf(2, 4);
  for (std::uint32_t i = 0; i < 4; ++i) push(*feed, i, 2);
  for (std::size_t r = 0; r < 2; ++r) feed->begin(r, 2);
  CHECK(fetch(*feed, 0, 2, 1) == Rows{0});
  CHECK(fetch(*feed, 0, 2, 1) == Rows{10});
  CHECK(fetch(*feed, 1, 2, 1) == Rows{1});  // this run ended early for reader 1
  for (std::size_t r = 0; r < 2; ++r) feed->begin(r, 2);
  CHECK(fetch(*feed, 1, 2, 1) == Rows{21});
  CHECK(fetch(*feed, 0, 2, 1) == Rows{20});
}

TEST(ends_errors_and_closing_wake_who_waits) {
  const auto waits = [](auto finish, bool stops, const char* message) {
    const auto feed = feedOf(1, 1);
    feed->begin(0, 1);
    std::thread other([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(30));
      finish(*feed);
    });
    if (*message)
      CHECK_THROWS(fetch(*feed, 0, 1, 1, 1, stops), message);
    else
      CHECK(fetch(*feed, 0, 1, 1, 1, stops).empty());
    other.join();
    CHECK(feed->stats().wait_seconds > 0.01);
    CHECK(!feed->waitForRoom());
  };
  waits([](Infeed& feed) { feed.end(); }, false, "the end of the data after 0 batches");
  waits([](Infeed& feed) { feed.end(); }, true, "");
  waits([](Infeed& feed) { feed.fail("the iterator raised"); }, true, "the iterator raised");
  waits([](Infeed& feed) { feed.close("it was closed"); }, true, "it was closed");
}

TEST(a_producer_that_is_late_is_an_error_in_time) {
  const auto feed = feedOf(1, 1);
  feed->setTimeout(0.05);
  feed->begin(0, 1);
  CHECK_THROWS(fetch(*feed, 0, 1, 1), "needs a batch within 0.05 s; got none after batch 0");
  push(*feed, 7, 1);
  CHECK(fetch(*feed, 0, 1, 1) == Rows{70});
}

TEST(closing_wakes_the_producer_and_reset_begins_again) {
  const auto feed = feedOf(1, 1);
  push(*feed, 1, 1);
  std::thread producer([&] { CHECK(!feed->waitForRoom()); });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  feed->close("closed");
  producer.join();
  feed->reset();
  CHECK_EQ(feed->stats().pushed, 0u);
  push(*feed, 2, 1);
  feed->begin(0, 1);
  CHECK(fetch(*feed, 0, 1, 1) == Rows{20});
}

TEST(what_arrives_is_compared_with_what_was_sent) {
  const auto feed = feedOf(4, 2);
  feed->verify({4, 1});
  push(*feed, 3, 4);  // before any program is traced: checksums of the whole
  CHECK(ports::names(feed->port(Infeed::Call::kFetch, 2, 1)));
  push(*feed, 4, 4);  // checksums of the parts
  for (std::size_t r = 0; r < 2; ++r) feed->begin(r, 2);
  for (const std::uint32_t number : {3u, 4u})
    for (std::size_t r = 0; r < 2; ++r) {
      // The one byte cannot be split: its parts are empty.
      const auto got = fetch(*feed, r, 2, 2);
      CHECK(got ==
            (Rows{10 * number + 2 * std::uint32_t(r), 10 * number + 2 * std::uint32_t(r) + 1}));
      const std::array<Checksum, 2> right{sumsOf(got), Checksum{}};
      feed->check(r, 2, right);
      auto altered = got;
      altered[1] ^= 1u << 20;
      CHECK_THROWS(feed->check(r, 2, std::array<Checksum, 2>{sumsOf(altered), Checksum{}}),
                   "other bytes of array 0 of batch " + std::to_string(number - 3) +
                       " on replica " + std::to_string(r));
      altered = got;
      std::swap(altered[0], altered[1]);
      CHECK_THROWS(feed->check(r, 2, std::array<Checksum, 2>{sumsOf(altered), Checksum{}}),
                   "needs batches that arrive as they were sent");
    }
}

TEST(checksums_are_those_of_a_plain_loop) {
  const std::array<std::uint8_t, 8> bytes{255, 0, 3, 4, 250, 6, 7, 129};
  const auto all = std::as_bytes(std::span(bytes));
  Checksum wanted{};
  for (std::uint32_t i = 0; i < 8; ++i) {
    wanted[0] += bytes[i];
    wanted[1] += (i + 1) * bytes[i];
  }
  CHECK(checksumOf(all, 1) == wanted);
  std::vector<std::uint32_t> words(2), halves;
  std::memcpy(words.data(), bytes.data(), 8);
  CHECK(checksumOf(all, 4) == sumsOf(words));
  CHECK(checksumOf(all, 8) == sumsOf(words));
  for (std::size_t i = 0; i < 8; i += 2) halves.push_back(bytes[i] + 256u * bytes[i + 1]);
  CHECK(checksumOf(all, 2) == sumsOf(halves));
}

TEST(two_programs_share_batches_and_tear_none) {
  constexpr std::uint32_t kBatches = 2000, kRows = 512;
  const auto feed = feedOf(kRows, 2);
  std::thread producer([&] {
    for (std::uint32_t i = 0; i < kBatches && feed->waitForRoom(); ++i) push(*feed, i, kRows);
    feed->end();
  });
  std::array<std::vector<std::uint32_t>, 2> seen;
  std::vector<std::thread> programs;
  for (auto& firsts : seen)
    programs.emplace_back([&] {
      for (bool more = true; more;) {  // runs of up to three steps
        feed->begin(0, 1);
        for (int step = 0; step < 3 && more; ++step) {
          const auto rows = fetch(*feed, 0, 1, kRows, 1, true);
          more = !rows.empty();
          if (more) firsts.push_back(rows.front() / 10);
          for (std::size_t i = 1; i < rows.size(); ++i) CHECK_EQ(rows[i], rows[0] + i);
        }
      }
    });
  for (auto& program : programs) program.join();
  producer.join();
  auto all = seen[0];
  all.insert(all.end(), seen[1].begin(), seen[1].end());
  std::ranges::sort(all);
  CHECK_EQ(all.size(), kBatches);
  for (std::uint32_t i = 0; i < all.size(); ++i) CHECK_EQ(all[i], i);
}

TEST(a_program_with_other_replicas_takes_the_feed_over) {
  const auto feed = feedOf(4, 4);
  for (std::uint32_t i = 0; i < 2; ++i) push(*feed, i, 4);
  for (std::size_t r = 0; r < 4; ++r) feed->begin(r, 4);
  CHECK(fetch(*feed, 3, 4, 1) == Rows{3});
  feed->begin(0, 1);
  CHECK_THROWS(fetch(*feed, 3, 4, 1), "got one with 4 and one with 1. Make an Infeed for each");
  CHECK(fetch(*feed, 0, 1, 4) == (Rows{10, 11, 12, 13}));
  std::thread waits([&] { CHECK_THROWS(fetch(*feed, 0, 1, 4), "got one with 1 and one with 2"); });
  std::this_thread::sleep_for(std::chrono::milliseconds(30));
  for (std::size_t r = 0; r < 2; ++r) feed->begin(r, 2);
  waits.join();
}
