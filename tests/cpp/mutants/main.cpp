#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <span>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "engine/image/Image.hpp"
#include "engine/kernels/Kernel.hpp"
#include "mutants/Corpus.hpp"
#include "mutants/Mutator.hpp"
#include "mutants/Packages.hpp"
#include "mutants/Runner.hpp"

// Alters sealed executables and runs those that the loader accepts: none may crash or hang the
// process. Each stretch of mutants runs in a process of its own, so that a mutant that does is
// counted and saved while the rest continue.
//
// One in eight is a file of ipujax.precompile, opened as a session of the embedded runtime.
//
//   mutants <folder of *.image> <first> <count> <jobs> <folder for those that failed>
//   mutants <folder of *.image> replay <number>

namespace {

namespace fs = std::filesystem;
using mutants::Outcome;

constexpr auto kRunBound = std::chrono::milliseconds(1000);
/// Steps are not interrupted, and one step may take this long. A sanitizer slows it down.
constexpr int kHangSeconds = 120;
constexpr std::uint64_t kStretch = 500;
constexpr std::uint64_t kPackages = 8;  ///< one in this many mutants is a file

std::vector<std::string> readCorpus(const fs::path& folder) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(folder))
    if (entry.path().extension() == ".image") files.push_back(entry.path());
  std::ranges::sort(files);
  std::vector<std::string> corpus;
  for (const auto& file : files) {
    std::ifstream in(file, std::ios::binary);
    std::ostringstream bytes;
    bytes << in.rdbuf();
    corpus.push_back(bytes.str());
  }
  return corpus;
}

/// Makes a mutant and runs it. `file`: the path for mutants that are files.
Outcome runMutant(mutants::Runner& runner, const std::vector<std::string>& corpus,
                  std::uint64_t number, const fs::path& file, std::string& reason) {
  if (number % kPackages == 0) {
    mutants::writePackage(file, corpus, number);
    return mutants::runPackage(file, kRunBound, reason);
  }
  const Outcome outcome = runner.run(mutants::mutate(corpus, number), number);
  reason = runner.reason();
  return outcome;
}

/// State that the processes share.
struct Shared {
  std::atomic<std::uint64_t> next{0};  ///< mutant not yet taken
  std::atomic<std::uint64_t> count[static_cast<int>(Outcome::kCount)]{};
  struct Worker {
    std::atomic<std::uint64_t> now{0};    ///< current mutant
    std::atomic<std::uint64_t> begun{0};  ///< how many were begun
  } workers[64];
};

/// Runs mutants [begin, end) in a process of its own.
[[noreturn]] void work(Shared& shared, int worker, const std::vector<std::string>& corpus,
                       std::uint64_t begin, std::uint64_t end, const std::string& log) {
  const int out = open(log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  dup2(out, STDOUT_FILENO);
  dup2(out, STDERR_FILENO);
  {
    mutants::Runner runner(kRunBound);
    std::string reason;
    for (std::uint64_t n = begin; n < end; ++n) {
      shared.workers[worker].now = n;
      ++shared.workers[worker].begun;
      const Outcome outcome = runMutant(runner, corpus, n, log + ".package", reason);
      ++shared.count[static_cast<int>(outcome)];
    }
  }
  _exit(0);
}

void say(const std::string& text) {
  std::printf("%s\n", text.c_str());
  std::fflush(stdout);
}

class Campaign {
 public:
  Campaign(std::vector<std::string> corpus, std::uint64_t first, std::uint64_t count, int jobs,
           fs::path failures)
      : corpus_(std::move(corpus)),
        end_(first + count),
        failures_(std::move(failures)),
        jobs_(static_cast<std::size_t>(jobs)) {
    void* memory =
        mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    shared_ = new (memory) Shared();
    shared_->next = first;
    fs::create_directories(failures_);
  }

  /// Returns how many mutants crashed or hung a process.
  std::uint64_t run() {
    for (std::size_t w = 0; w < jobs_.size(); ++w) start(w);
    while (std::ranges::any_of(jobs_, [](const Job& job) { return job.process > 0; })) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      for (std::size_t w = 0; w < jobs_.size(); ++w) look(w);
    }
    std::string text;
    for (int o = 0; o < static_cast<int>(Outcome::kCount); ++o)
      text += std::string(mutants::nameOf(static_cast<Outcome>(o))) + " " +
              std::to_string(shared_->count[o].load()) + ", ";
    say(text + "signals " + std::to_string(signals_) + ", hangs " + std::to_string(hangs_));
    return signals_ + hangs_;
  }

 private:
  using Clock = std::chrono::steady_clock;
  struct Job {
    pid_t process = 0;
    std::uint64_t end = 0;
    std::uint64_t begun = 0;
    Clock::time_point since;
  };

  std::string logOf(std::size_t w) const {
    return (failures_ / ("worker" + std::to_string(w) + ".log")).string();
  }

  /// Starts the next stretch, if there is one.
  void start(std::size_t w) {
    const std::uint64_t begin = shared_->next.fetch_add(kStretch);
    if (begin < end_) fork(w, begin, std::min(begin + kStretch, end_));
  }

  void fork(std::size_t w, std::uint64_t begin, std::uint64_t end) {
    if (begin >= end) return start(w);
    const pid_t process = ::fork();
    if (process < 0) throw std::runtime_error("no process could be started");
    if (process == 0) work(*shared_, static_cast<int>(w), corpus_, begin, end, logOf(w));
    jobs_[w] = {process, end, shared_->workers[w].begun, Clock::now()};
  }

  void look(std::size_t w) {
    Job& job = jobs_[w];
    if (job.process <= 0) return;
    int status = 0;
    const auto& worker = shared_->workers[w];
    if (waitpid(job.process, &status, WNOHANG) == job.process) {
      job.process = 0;
      if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return start(w);
      ++signals_;
      const std::string how = WIFSIGNALED(status) ? "signal " + std::to_string(WTERMSIG(status))
                                                  : "exit " + std::to_string(WEXITSTATUS(status));
      keep(w, worker.now, how);
      return fork(w, worker.now + 1, job.end);
    }
    if (worker.begun != job.begun) {
      job.begun = worker.begun;
      job.since = Clock::now();
    } else if (Clock::now() - job.since > std::chrono::seconds(kHangSeconds)) {
      kill(job.process, SIGKILL);
      waitpid(job.process, &status, 0);
      ++hangs_;
      keep(w, worker.now, "hang");
      fork(w, worker.now + 1, job.end);
    }
  }

  void keep(std::size_t w, std::uint64_t number, const std::string& how) {
    say("mutant " + std::to_string(number) + " of image " +
        std::to_string(mutants::parentOf(corpus_, number)) + ": " + how);
    std::error_code ignored;
    fs::copy_file(logOf(w), failures_ / (std::to_string(number) + ".log"),
                  fs::copy_options::overwrite_existing, ignored);
  }

  std::vector<std::string> corpus_;
  std::uint64_t end_;
  fs::path failures_;
  std::vector<Job> jobs_;
  Shared* shared_ = nullptr;
  std::uint64_t signals_ = 0;
  std::uint64_t hangs_ = 0;
};

/// Checks that every unaltered image runs, and finds the kernels that none of them has.
bool runWhole(const std::vector<std::string>& corpus) {
  mutants::Runner runner(std::chrono::seconds(60));
  const auto names = ipujax::engine::KernelRegistry::instance().names();
  std::set<std::string> missing(names.begin(), names.end());
  bool good = !corpus.empty();
  for (std::size_t i = 0; i < corpus.size(); ++i) {
    const Outcome outcome = runner.run(corpus[i], i);
    if (outcome != Outcome::kRan) {
      say("image " + std::to_string(i) + " " + mutants::nameOf(outcome) + ": " + runner.reason());
      good = false;
      continue;
    }
    const auto image = ipujax::engine::Image::deserialise(std::as_bytes(std::span(corpus[i])));
    for (const auto& step : image->steps) {
      missing.erase(step.kernel);
      for (const auto& inner : step.inner) missing.erase(inner.kernel);
    }
  }
  for (const auto& kernel : missing) say("no image has a step of kernel " + kernel);
  return good && missing.empty();
}

/// Calls f in a process of its own, so that this one starts no threads before it forks.
template <class F>
bool apart(const F& f) {
  const pid_t process = fork();
  if (process == 0) {
    bool good = false;
    try {
      good = f();
    } catch (const std::exception& e) {
      say(e.what());
    }
    _exit(good ? 0 : 1);
  }
  int status = 0;
  return process > 0 && waitpid(process, &status, 0) == process && status == 0;
}

bool writeCorpus(const fs::path& folder) {
  std::size_t i = 0;
  for (const auto& sealed : mutants::poplarCorpus()) {
    std::ofstream out(folder / ("poplar" + std::to_string(i++) + ".image"), std::ios::binary);
    out << sealed;
  }
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  const fs::path folder = argv[1];
  if (argv[2] == std::string("replay")) {
    mutants::Runner runner(kRunBound);
    const auto number = std::strtoull(argv[3], nullptr, 10);
    std::string reason;
    const Outcome outcome =
        runMutant(runner, readCorpus(folder), number, folder / "replayed.package", reason);
    say(std::string(mutants::nameOf(outcome)) + " " + reason);
    return 0;
  }
  if (argc < 6 || !apart([&] { return writeCorpus(folder); })) return 2;
  const auto corpus = readCorpus(folder);
  if (!apart([&] { return runWhole(corpus); })) return 3;
  Campaign campaign(corpus, std::strtoull(argv[2], nullptr, 10),
                    std::strtoull(argv[3], nullptr, 10), std::atoi(argv[4]), argv[5]);
  return campaign.run() == 0 ? 0 : 1;
}
