#include "embedded/NewFile.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <random>
#include <string_view>
#include <system_error>
#include <utility>

namespace ipujax::embedded {
namespace {

constexpr std::string_view kSuffix = ".ipujax-partial";
constexpr std::size_t kLongestName = 200;  // part of the target's name; file systems allow 255
constexpr mode_t kMode = 0666;             // less the process's umask

[[noreturn]] void fail() { throw std::system_error(errno, std::generic_category()); }

std::string linkOf(int file) { return "/proc/self/fd/" + std::to_string(file); }

bool isNamed(int folder, const std::string& name, int file) {
  struct stat by_name {
  }, by_file{};
  return ::fstatat(folder, name.c_str(), &by_name, AT_SYMLINK_NOFOLLOW) == 0 &&
         ::fstat(file, &by_file) == 0 && by_name.st_ino == by_file.st_ino &&
         by_name.st_dev == by_file.st_dev;
}

void removeIfAbandoned(int folder, const std::string& name) {
  const int file = ::openat(folder, name.c_str(), O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (file < 0) return;
  if (::flock(file, LOCK_EX | LOCK_NB) == 0 && isNamed(folder, name, file))
    ::unlinkat(folder, name.c_str(), 0);
  ::close(file);
}

/// Removes files that killed processes left.
void removeAbandoned(int folder) {
  const int own = ::openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const std::unique_ptr<DIR, int (*)(DIR*)> entries(own < 0 ? nullptr : ::fdopendir(own),
                                                    ::closedir);
  if (!entries) {
    if (own >= 0) ::close(own);
    return;
  }
  while (const dirent* entry = ::readdir(entries.get())) {
    const std::string_view name = entry->d_name;
    if (name.starts_with('.') && name.ends_with(kSuffix))
      removeIfAbandoned(folder, std::string(name));
  }
}

}  // namespace

NewFile::NewFile(const std::filesystem::path& path) : target_(path.filename().string()) {
  const auto parent = path.has_parent_path() ? path.parent_path() : std::filesystem::path(".");
  folder_ = ::open(parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder_ < 0) fail();
  removeAbandoned(folder_);
  try {
    if (!createNameless()) createNamed();
  } catch (...) {
    discard();
    throw;
  }
}

/// Returns whether the file system has files without a name that can be named later.
bool NewFile::createNameless() {
  file_ = ::openat(folder_, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, kMode);
  if (file_ < 0) return false;
  if (::access(linkOf(file_).c_str(), F_OK) == 0 && ::flock(file_, LOCK_EX | LOCK_NB) == 0)
    return true;
  ::close(std::exchange(file_, -1));
  return false;
}

void NewFile::createNamed() {
  while (true) {
    const std::string name = unusedName();
    file_ =
        ::openat(folder_, name.c_str(), O_CREAT | O_EXCL | O_RDWR | O_NOFOLLOW | O_CLOEXEC, kMode);
    if (file_ < 0 && errno == EEXIST) continue;
    if (file_ < 0) fail();
    name_ = name;
    // Another process may have removed it as abandoned before it was locked.
    if (::flock(file_, LOCK_EX | LOCK_NB) != 0 && errno != EWOULDBLOCK) return;  // has no locks
    if (isNamed(folder_, name_, file_)) return;
    ::close(std::exchange(file_, -1));
    name_.clear();
  }
}

std::string NewFile::unusedName() const {
  std::random_device random;
  std::array<char, 17> digits{};
  std::snprintf(digits.data(), digits.size(), "%08x%08x", random(), random());
  return "." + target_.substr(0, kLongestName) + "." + digits.data() + std::string(kSuffix);
}

void NewFile::keep() {
  if (::fsync(file_) != 0) fail();
  while (name_.empty()) {
    std::string name = unusedName();
    if (::linkat(AT_FDCWD, linkOf(file_).c_str(), folder_, name.c_str(), AT_SYMLINK_FOLLOW) == 0)
      name_ = std::move(name);
    else if (errno != EEXIST)
      fail();
  }
  if (::renameat(folder_, name_.c_str(), folder_, target_.c_str()) != 0) fail();
  name_.clear();
  if (::fsync(folder_) != 0 && errno != EINVAL) fail();  // some cannot sync folders
}

void NewFile::discard() noexcept {
  if (!name_.empty()) ::unlinkat(folder_, std::exchange(name_, {}).c_str(), 0);
  if (file_ >= 0) ::close(std::exchange(file_, -1));
  if (folder_ >= 0) ::close(std::exchange(folder_, -1));
}

}  // namespace ipujax::embedded
