#include "engine/codelets/Process.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <system_error>

extern char** environ;  // NOLINT: POSIX declares it nowhere

namespace ipujax::engine {
namespace {

[[noreturn]] void fail(int error, const std::string& what) {
  throw std::system_error(error, std::generic_category(), what);
}

/// Both ends of a pipe; closed with the object.
struct Pipe {
  Pipe() {
    if (pipe2(ends, O_CLOEXEC) != 0) fail(errno, "pipe");
  }
  ~Pipe() {
    for (int& end : ends) close(end);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  static void close(int& end) {
    if (end >= 0) ::close(end);
    end = -1;
  }
  int ends[2] = {-1, -1};
};

/// Sets up the new process before it becomes the program: no input, its output into a pipe.
class Actions {
 public:
  explicit Actions(int output) {
    posix_spawn_file_actions_init(&actions_);
    posix_spawn_file_actions_addopen(&actions_, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions_, output, STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions_, output, STDERR_FILENO);
    // This thread may have signals blocked that the program waits for.
    sigset_t none;
    sigemptyset(&none);
    posix_spawnattr_init(&attributes_);
    posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETSIGMASK);
    posix_spawnattr_setsigmask(&attributes_, &none);
  }
  ~Actions() {
    posix_spawn_file_actions_destroy(&actions_);
    posix_spawnattr_destroy(&attributes_);
  }
  Actions(const Actions&) = delete;
  Actions& operator=(const Actions&) = delete;

  pid_t spawn(const std::vector<std::string>& arguments) const {
    std::vector<char*> words;
    words.reserve(arguments.size() + 1);
    // posix_spawnp does not write to them.
    for (const auto& word : arguments) words.push_back(const_cast<char*>(word.c_str()));  // NOLINT
    words.push_back(nullptr);
    pid_t child = 0;
    const int error =
        posix_spawnp(&child, words[0], &actions_, &attributes_, words.data(), environ);
    if (error != 0) fail(error, arguments[0]);
    return child;
  }

 private:
  posix_spawn_file_actions_t actions_;
  posix_spawnattr_t attributes_;
};

std::string readAll(int from) {
  std::string text;
  char block[4096];
  for (;;) {
    const ssize_t n = read(from, block, sizeof(block));
    if (n > 0) text.append(block, static_cast<std::size_t>(n));
    if (n == 0 || (n < 0 && errno != EINTR)) return text;
  }
}

int exitCodeOf(pid_t child) {
  int status = 0;
  while (waitpid(child, &status, 0) < 0)
    if (errno != EINTR) fail(errno, "waitpid");
  return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

}  // namespace

Finished runProcess(const std::vector<std::string>& arguments) {
  if (arguments.empty()) fail(EINVAL, "no program");
  Pipe pipe;
  const pid_t child = Actions(pipe.ends[1]).spawn(arguments);
  Pipe::close(pipe.ends[1]);
  Finished finished;
  finished.output = readAll(pipe.ends[0]);
  finished.exit_code = exitCodeOf(child);
  return finished;
}

std::vector<std::string> splitArguments(const std::string& line) {
  std::vector<std::string> words;
  std::string word;
  bool in_word = false;
  char quote = 0;
  for (const char c : line) {
    if (quote != 0 && c == quote) {
      quote = 0;
    } else if (quote == 0 && (c == '\'' || c == '"')) {
      quote = c;
      in_word = true;
    } else if (quote == 0 && (c == ' ' || c == '\t' || c == '\n')) {
      if (in_word) words.push_back(std::move(word));
      word.clear();
      in_word = false;
    } else {
      word += c;
      in_word = true;
    }
  }
  if (in_word) words.push_back(std::move(word));
  return words;
}

}  // namespace ipujax::engine
