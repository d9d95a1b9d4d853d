#include "engine/codelets/VertexCount.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <exception>
#include <optional>
#include <stdexcept>

#include "engine/codelets/HollowVertex.hpp"
#include "engine/codelets/WorkerTurns.hpp"

namespace ipujax::engine {
namespace {

constexpr std::uint64_t kMostSlots = std::uint64_t{1} << 26;
constexpr rlim_t kMostSeconds = 20;
constexpr int kMostFailures = 16;

/// Written by the process that counts. For each vertex: 0, 1 if it leaves its memory, or its slots
/// plus two.
class Shared {
 public:
  explicit Shared(std::size_t n) : bytes_((n + 1) * sizeof(std::uint64_t)) {
    void* at = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    words_ = at == MAP_FAILED ? nullptr : static_cast<volatile std::uint64_t*>(at);
  }
  ~Shared() {
    if (words_) munmap(const_cast<std::uint64_t*>(words_), bytes_);
  }
  Shared(const Shared&) = delete;
  Shared& operator=(const Shared&) = delete;

  bool good() const { return words_ != nullptr; }
  volatile std::uint64_t& begun() { return words_[0]; }  ///< number of vertices begun
  volatile std::uint64_t& of(std::size_t i) { return words_[i + 1]; }

 private:
  std::size_t bytes_;
  volatile std::uint64_t* words_ = nullptr;
};

std::uint64_t slotsOf(const CodeletLibrary& library, const VertexRecord& vertex) {
  const IpujaxCodelet& codelet = library.codelet(vertex.type);
  const HollowVertex object(vertex, codelet, true);
  const auto allow = [&] {
    library.counter()->allow(object.ranges().data(), object.ranges().size());
  };
  allow();
  std::uint64_t most = 0;
  const WorkerTurns::Call count = [&](unsigned worker) {
    if (library.enter()) library.enter()(object.place(), vertex.tile.value_or(0), worker, 1);
    library.counter()->begin(0, kMostSlots);
    codelet.compute(object.place(), worker);
    most = std::max(most, library.counter()->slots());
  };
  std::optional<WorkerTurns> turns;
  if (library.takesTurns()) {
    library.giveTurns(WorkerTurns::entries());
    const auto memory = [&] {
      std::vector<IpujaxRange> all = object.ranges();
      all.insert(all.end(), library.variables().begin(), library.variables().end());
      return all;
    };
    const auto registers = [&] { return library.registers(); };
    const auto unseen = [&] { return std::ref(library.unseen()); };
    turns.emplace(WorkerTurns::Vertex{memory, registers, unseen}, allow);
  }
  if (codelet.is_multi && turns) {
    turns->run(count);
  } else {
    for (unsigned worker = codelet.is_multi ? kIpujaxWorkers : 1; worker-- > 0;) count(worker);
  }
  return most;
}

/// In the new process: discards what codelets print, and lets signals end it.
void quiet() {
  for (const int number : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGALRM, SIGXCPU})
    std::signal(number, SIG_DFL);
  const rlimit no_core{0, 0}, time{kMostSeconds, kMostSeconds};
  setrlimit(RLIMIT_CORE, &no_core);
  setrlimit(RLIMIT_CPU, &time);
  alarm(4 * kMostSeconds);  // if it waits for something that never comes
  const int nowhere = open("/dev/null", O_WRONLY);
  for (const int out : {STDOUT_FILENO, STDERR_FILENO}) dup2(nowhere, out);
}

[[noreturn]] void count(const CodeletLibrary& library,
                        const std::vector<const VertexRecord*>& vertices, Shared& shared) {
  quiet();
  for (std::size_t i = shared.begun(); i < vertices.size(); ++i) {
    shared.begun() = i + 1;
    try {
      shared.of(i) = 2 + slotsOf(library, *vertices[i]);
    } catch (const std::out_of_range&) {
      shared.of(i) = 1;
    } catch (const std::exception&) {
      shared.of(i) = 0;
    }
  }
  _exit(0);
}

bool succeeds(pid_t process) {
  int status = 0;
  while (waitpid(process, &status, 0) < 0)
    if (errno != EINTR) return true;  // someone else waited for it: what it wrote is there
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

}  // namespace

std::string signatureOf(const VertexRecord& vertex) {
  std::string text = std::to_string(vertex.file) + " " + vertex.type;
  const auto add = [&](const auto& what) {
    text += ' ';
    text += std::to_string(what);
  };
  for (const auto& [name, edge] : vertex.edges) {
    text += "\n" + name;
    for (const ViewPtr& view : edge.views) {
      add(view ? view->numElements() : 0);
      if (view && !edge.is_list && !view->shape.empty()) add(view->shape[0]);
    }
  }
  for (const auto& [name, size] : vertex.sizes) {
    text += "\n" + name + ":";
    add(size);
  }
  for (const auto& [name, values] : vertex.values) {
    text += "\n" + name + "=";
    for (const auto& [index, value] : values) {
      std::uint64_t bits = 0;
      std::memcpy(&bits, &value, sizeof(bits));
      add(index);
      add(bits);
    }
  }
  return text;
}

std::vector<SlotCount> countSlots(const CodeletLibrary& library,
                                  const std::vector<const VertexRecord*>& vertices) {
  std::vector<SlotCount> counts(vertices.size());
  Shared shared(vertices.size());
  if (!shared.good() || !library.counter()) return counts;
  for (int failures = 0; shared.begun() < vertices.size() && failures < kMostFailures;) {
    const pid_t process = fork();
    if (process < 0) break;
    if (process == 0) count(library, vertices, shared);
    if (succeeds(process)) break;
    ++failures;  // of the vertex that was begun last: those after it come next
  }
  for (std::size_t i = 0; i < counts.size(); ++i) {
    counts[i].leaves_memory = shared.of(i) == 1;
    if (shared.of(i) > 1) counts[i].slots = shared.of(i) - 2;
  }
  return counts;
}

}  // namespace ipujax::engine
