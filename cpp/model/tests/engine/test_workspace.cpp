#include <cstdint>
#include <cstring>
#include <exception>
#include <thread>

#include "Check.hpp"
#include "engine/Workspace.hpp"

/// Each test runs on a thread of its own, whose memory nothing has used before.
namespace {
using ipujax::engine::Workspace;

constexpr std::int64_t kMiB = 1 << 20;

template <class F>
void onNewThread(const F& f) {
  std::exception_ptr failure;
  std::thread([&] {
    try {
      f();
    } catch (...) {
      failure = std::current_exception();
    }
  }).join();
  if (failure) std::rethrow_exception(failure);
}
}  // namespace

TEST(scopes_nest_and_give_back_what_they_took) {
  onNewThread([] {
    Workspace outer;
    auto* kept = outer.get<std::uint32_t>(1000);
    for (std::uint32_t i = 0; i < 1000; ++i) kept[i] = i;
    for (int round = 0; round < 3; ++round) {
      Workspace inner;
      std::byte* at = inner.get(round == 1 ? 8 * kMiB : 4096);
      CHECK_EQ(reinterpret_cast<std::uintptr_t>(at) % 64, 0u);
      std::memset(at, 0xff, 4096);
    }
    for (std::uint32_t i = 0; i < 1000; ++i) CHECK_EQ(kept[i], i);
  });
}

#if !defined(__SANITIZE_ADDRESS__)  // which keeps nothing
namespace {
/// Takes and writes bytes in a scope.
void use(std::int64_t bytes) {
  Workspace workspace;
  std::memset(workspace.get(bytes), 1, static_cast<std::size_t>(bytes));
}
}  // namespace

TEST(what_a_thread_needs_again_is_one_block_that_stays) {
  onNewThread([] {
    for (int round = 0; round < 3; ++round) {
      Workspace outer;
      outer.get(300 * 1024);
      use(500 * 1024);
    }
    const std::size_t kept = Workspace::keptBytes();
    CHECK(kept >= 800 * 1024 && kept < 4 * kMiB);
    std::byte* before = nullptr;
    for (int round = 0; round < 3; ++round) {
      Workspace outer;
      std::byte* at = outer.get(300 * 1024);
      if (before) CHECK(at == before);
      before = at;
      use(500 * 1024);
    }
    CHECK_EQ(Workspace::keptBytes(), kept);
  });
}

TEST(what_was_large_is_given_back_once_it_is_not_needed) {
  onNewThread([] {
    use(100 * kMiB);
    use(100 * kMiB);
    CHECK(Workspace::keptBytes() >= 100 * kMiB);
    for (int round = 0; round < 100; ++round) use(kMiB);
    CHECK(Workspace::keptBytes() >= 100 * kMiB);  // a program may want it again
    for (int round = 0; round < 5000; ++round) use(kMiB);
    CHECK(Workspace::keptBytes() <= 2 * kMiB);
  });
}

TEST(release_gives_all_back_unless_a_scope_is_open) {
  onNewThread([] {
    use(kMiB);
    {
      Workspace open;
      open.get(100);
      Workspace::release();
      CHECK(Workspace::keptBytes() > 0);
    }
    Workspace::release();
    CHECK_EQ(Workspace::keptBytes(), 0u);
  });
}
#endif
