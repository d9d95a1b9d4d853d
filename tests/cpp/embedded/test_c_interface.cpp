#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "Check.hpp"
#include "SavedProgram.hpp"
#include "embedded/ipujax_runtime.h"
#include "runtime/Backend.hpp"

using namespace check;

namespace {

constexpr std::size_t kSize = 100;

struct Opened {
  explicit Opened(const Saved& saved) {
    saved.write(folder / "a");
    CHECK_EQ(ipujax_open((folder / "a").c_str(), nullptr, &session), IPUJAX_OK);
  }
  ~Opened() { ipujax_close(session); }
  Folder folder;
  ipujax_session* session = nullptr;
};

std::string lastMessage() { return ipujax_last_message(); }

/// The resident memory of the process, in pages.
long residentPages() {
  long all = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> all >> resident;
  return resident;
}

}  // namespace

TEST(a_file_is_opened_described_run_and_closed) {
  const Saved saved = sumProgram(kSize, false);
  const Opened opened(saved);
  CHECK_EQ(std::string(ipujax_name(opened.session)), "sum");
  CHECK_EQ(ipujax_num_inputs(opened.session), 2u);
  CHECK_EQ(ipujax_num_outputs(opened.session), 1u);
  CHECK_EQ(ipujax_num_stored(opened.session), 1u);
  const ipujax_tensor x = ipujax_input(opened.session, 1);
  CHECK_EQ(std::string(x.name) + " " + x.dtype, "x float32");
  CHECK_EQ(x.rank, 1u);
  CHECK_EQ(x.shape[0], static_cast<std::int64_t>(kSize));
  CHECK_EQ(ipujax_input(opened.session, 2).name == nullptr, true);

  const auto values = numbers(kSize, 5);
  std::vector<float> first(kSize), second(kSize), third(kSize), w(kSize);
  const void* in[] = {nullptr, values.data()};
  void* out[] = {first.data()};
  CHECK_EQ(ipujax_run_now(opened.session, in, 2, out, 1, 0), IPUJAX_OK);
  out[0] = second.data();
  ipujax_run* run = nullptr;
  CHECK_EQ(ipujax_submit(opened.session, in, 2, out, 1, 1000000, &run), IPUJAX_OK);
  CHECK_EQ(ipujax_wait(run, ~std::uint64_t{0}), IPUJAX_OK);
  CHECK_EQ(ipujax_is_done(run), 1);
  ipujax_free_run(run);
  ipujax_batcher* batcher = nullptr;
  CHECK_EQ(ipujax_make_batcher(opened.session, 0, &batcher), IPUJAX_OK);
  CHECK_EQ(ipujax_batch_size(batcher), kSize);
  out[0] = third.data();
  CHECK_EQ(ipujax_run_samples(batcher, in, 2, out, 1, kSize, 0), IPUJAX_OK);
  std::vector<float> fourth(kSize);
  out[0] = fourth.data();
  CHECK_EQ(ipujax_submit_samples(batcher, in, 2, out, 1, kSize, 0, &run), IPUJAX_OK);
  CHECK_EQ(ipujax_wait(run, 0), IPUJAX_OK);
  ipujax_free_run(run);
  CHECK(fourth == third);
  CHECK_EQ(ipujax_submit_samples(batcher, in, 2, out, 1, kSize + 1, 0, &run),
           IPUJAX_INVALID_ARGUMENT);
  ipujax_free_batcher(batcher);
  CHECK_EQ(ipujax_read_stored(opened.session, "w", w.data(), kSize * sizeof(float)), IPUJAX_OK);
  for (std::size_t i = 0; i < kSize; ++i) {
    CHECK_EQ(w[i], saved.stored[0][i]);
    CHECK_NEAR(first[i], w[i] + values[i], 1e-6);
    CHECK_EQ(second[i], first[i]);
  }
  CHECK_EQ(third[0], first[0]);  // samples are numbered as the batch is
}

TEST(a_thousand_runs_of_eight_threads_take_no_more_memory) {
  const Saved saved = sumProgram(kSize, true);
  const Opened opened(saved);
  const auto runs = [&](int times) {
    std::vector<std::thread> threads;
    for (int t = 0; t < 8; ++t) {
      threads.emplace_back([&] {
        const std::vector<float> x(kSize, 1);
        std::vector<float> y(kSize);
        const void* in[] = {nullptr, x.data()};
        void* out[] = {y.data()};
        for (int i = 0; i < times; ++i) {
          CHECK_EQ(ipujax_run_now(opened.session, in, 2, out, 1, 1000000), IPUJAX_OK);
          ipujax_run* run = nullptr;
          CHECK_EQ(ipujax_submit(opened.session, in, 2, out, 1, 0, &run), IPUJAX_OK);
          CHECK_EQ(ipujax_wait(run, 0), IPUJAX_OK);
          ipujax_free_run(run);
        }
      });
    }
    for (auto& thread : threads) thread.join();
  };
  runs(50);
  [[maybe_unused]] const long before = residentPages();
  runs(130);
#if !defined(__SANITIZE_ADDRESS__)        // which keeps freed memory for a while
  CHECK(residentPages() - before < 128);  // half a MiB
#endif
  std::vector<float> w(kSize);
  CHECK_EQ(ipujax_read_stored(opened.session, "w", w.data(), kSize * sizeof(float)), IPUJAX_OK);
  CHECK_NEAR(w[7], saved.stored[0][7] + 8 * 2 * 180, 0.1);  // no run was lost
}

TEST(stored_arrays_are_swapped) {
  const Opened opened(sumProgram(kSize, false));
  const std::vector<float> ones(kSize, 1), x(kSize, 2);
  std::vector<float> y(kSize);
  const char* names[] = {"w"};
  const void* elements[] = {ones.data()};
  const std::size_t bytes[] = {kSize * sizeof(float)};
  CHECK_EQ(ipujax_set_stored(opened.session, names, elements, bytes, 1), IPUJAX_OK);
  const void* in[] = {nullptr, x.data()};
  void* out[] = {y.data()};
  CHECK_EQ(ipujax_run_now(opened.session, in, 2, out, 1, 0), IPUJAX_OK);
  CHECK_EQ(y[kSize - 1], 3.0f);
  names[0] = "x";
  CHECK_EQ(ipujax_set_stored(opened.session, names, elements, bytes, 1), IPUJAX_INVALID_ARGUMENT);
}

TEST(what_is_wrong_is_said_to_the_thread_that_asked) {
  const Opened opened(sumProgram(kSize, false));
  ipujax_session* none = nullptr;
  CHECK_EQ(ipujax_open("/no/such/file", nullptr, &none), IPUJAX_BAD_FILE);
  CHECK_EQ(none == nullptr, true);
  const std::string message = lastMessage();
  CHECK_EQ(message.find("[load] needs a file that can be read") != std::string::npos, true);
  std::thread([&] {
    CHECK_EQ(lastMessage(), "");
    CHECK_EQ(ipujax_run_now(opened.session, nullptr, 0, nullptr, 0, 0), IPUJAX_INVALID_ARGUMENT);
    CHECK_EQ(lastMessage().find("needs 2 inputs; got 0") != std::string::npos, true);
  }).join();
  CHECK_EQ(lastMessage(), message);
  CHECK_EQ(ipujax_open(nullptr, nullptr, &none), IPUJAX_INVALID_ARGUMENT);
  CHECK_EQ(ipujax_run_now(nullptr, nullptr, 0, nullptr, 0, 0), IPUJAX_INVALID_ARGUMENT);
  CHECK_EQ(ipujax_submit(opened.session, nullptr, 2, nullptr, 1, 0, nullptr),
           IPUJAX_INVALID_ARGUMENT);
  CHECK_EQ(ipujax_wait(nullptr, 0), IPUJAX_INVALID_ARGUMENT);
  ipujax_close(nullptr);
  ipujax_free_run(nullptr);
  ipujax_free_batcher(nullptr);
}

TEST(failures_of_devices_name_what_repairs_them) {
  const Opened opened(sumProgram(kSize, false));
  const std::vector<float> x(kSize, 2);
  std::vector<float> y(kSize);
  const void* in[] = {nullptr, x.data()};
  void* out[] = {y.data()};
  ipujax::runtime::injectFault("host_link_timeout", 2, "sum");
  CHECK_EQ(ipujax_run_now(opened.session, in, 2, out, 1, 0), IPUJAX_OK);
  CHECK_EQ(ipujax_run_now(opened.session, in, 2, out, 1, 0), IPUJAX_RECOVERABLE);
  CHECK_EQ(ipujax_last_recovery(), IPUJAX_FULL_RESET);
  ipujax::runtime::resetDevices(ipujax::runtime::Recovery::kFullReset);
  CHECK_EQ(ipujax_run_now(opened.session, in, 2, out, 1, 0), IPUJAX_OK);
  ipujax::runtime::injectFault("power", 1, "");
  CHECK_EQ(ipujax_run_now(opened.session, in, 2, out, 1, 0), IPUJAX_UNRECOVERABLE);
  CHECK_EQ(ipujax_last_recovery(), IPUJAX_NO_RECOVERY);
  ipujax::runtime::clearFaults();
}
