#include "engine/codelets/CodeletStore.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string_view>

#include "engine/Errors.hpp"

namespace ipujax::engine {
namespace {

namespace fs = std::filesystem;

constexpr const char* kVariable = "IPUJAX_TRUST_NATIVE_CODE";
constexpr const char* kPartial = ".partial-";
constexpr std::chrono::hours kAbandonedAfter(1);  // no file takes that long to write

/// Whether it is the user's own, not a symbolic link, and no one else may write to it.
bool isOwn(const fs::path& path, mode_t kind) {
  struct stat info {};
  return lstat(path.c_str(), &info) == 0 && (info.st_mode & S_IFMT) == kind &&
         info.st_uid == geteuid() && (info.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

/// Whether someone else could replace this file or folder, as sshd checks for keys: a folder above
/// it belongs to another user (except root), or others may write to it and it has no sticky bit.
bool canBeReplaced(const fs::path& path) {
  for (fs::path above = path;;) {
    above = above.parent_path();
    struct stat info {};
    if (lstat(above.c_str(), &info) != 0) return true;
    if (info.st_uid != 0 && info.st_uid != geteuid()) return true;
    const bool is_open = (info.st_mode & (S_IWGRP | S_IWOTH)) != 0 && (info.st_mode & S_ISVTX) == 0;
    if (!S_ISLNK(info.st_mode) && is_open) return true;
    if (above == above.parent_path()) return false;
  }
}

/// Whether no one else can replace it, by this path or by the path with its links resolved.
bool isSafe(const fs::path& path) {
  std::error_code none;
  const fs::path whole = fs::canonical(path, none);
  return !none && !canBeReplaced(path) && !canBeReplaced(whole);
}

/// FNV-1a, in 16 digits: detects accidents.
std::string digestOf(std::string_view bytes) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : bytes) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  char digits[17];
  std::snprintf(digits, sizeof(digits), "%016llx", static_cast<unsigned long long>(hash));
  return digits;
}

/// The text is kept beside the library and compared, so names need not be free of collisions.
std::string nameOf(const std::string& text) { return "codelets-" + digestOf(text); }

constexpr std::string_view kSeal = "\nipujax library ";

/// The library followed by its digest, which the loader does not read.
std::string sealed(const std::string& code) { return code + std::string(kSeal) + digestOf(code); }

/// Whether a library is as it was written: one that was truncated or changed may crash its loader.
bool isWhole(std::string_view file) {
  const std::size_t end = kSeal.size() + 16;
  if (file.size() < end) return false;
  const std::string_view code = file.substr(0, file.size() - end);
  return file.substr(code.size()) == std::string(kSeal) + digestOf(code);
}

/// Writes a file such that other processes see all or nothing of it, even if this one ends early.
template <class F>
void put(const fs::path& path, const F& write) {
  static std::atomic<unsigned> count{0};
  const fs::path partial =
      path.string() + kPartial + std::to_string(getpid()) + "-" + std::to_string(count++);
  try {
    write(partial);
    fs::permissions(partial, fs::perms::owner_all);
    fs::rename(partial, path);
  } catch (...) {
    std::error_code ignored;
    fs::remove(partial, ignored);
    throw;
  }
}

/// Removes the files of processes that were killed while they wrote.
void removeAbandoned(const fs::path& folder) {
  std::error_code ignored;
  const auto now = fs::file_time_type::clock::now();
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    if (entry.path().filename().string().find(kPartial) == std::string::npos) continue;
    const auto written = entry.last_write_time(ignored);
    if (!ignored && now - written > kAbandonedAfter) fs::remove(entry.path(), ignored);
  }
}

}  // namespace

std::string readFile(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::error_code none;
  if (!in || fs::is_directory(path, none)) {
    throw file_load_error("[Graph::addCodelets] needs a file that can be read; got " +
                          path.string() + ". Check the path.");
  }
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

void writeFile(const fs::path& path, const std::string& text) {
  std::ofstream out(path, std::ios::binary);
  out << text;
  out.close();  // the last bytes are written only now
  if (!out) {
    throw file_load_error("[codelets] needs space to write " + path.string() +
                          "; could not. Free some, or set TMPDIR to another folder.");
  }
}

std::optional<CodeletStore> CodeletStore::open() {
  const char* given = std::getenv(kVariable);
  if (!given || !*given) return std::nullopt;
  const fs::path folder = fs::path(given).lexically_normal();
  const fs::path named = folder.has_filename() ? folder : folder.parent_path();
  if (!named.is_absolute() || !isOwn(named, S_IFDIR) || !isSafe(named)) {
    throw file_load_error(
        std::string("[codelets] needs ") + kVariable +
        " to name, from the root, a folder of yours (no symbolic link) that neither its group nor "
        "others may write to, in folders of yours or root's that their group and others may not "
        "write to; got " +
        std::string(given) + ". Make one: mkdir -m 700 <folder>.");
  }
  return CodeletStore(named);
}

std::optional<fs::path> CodeletStore::trusted(const fs::path& file) const {
  std::error_code none;
  const fs::path whole = fs::canonical(file, none);
  const fs::path folder = fs::canonical(folder_, none);
  if (none || !isOwn(whole, S_IFREG)) return std::nullopt;
  for (fs::path above = whole.parent_path(); above != above.root_path();
       above = above.parent_path()) {
    if (!isOwn(above, S_IFDIR)) return std::nullopt;
    if (above == folder) return whole;
  }
  return std::nullopt;
}

std::optional<fs::path> CodeletStore::find(const std::string& text) const {
  const fs::path source = folder_ / (nameOf(text) + ".txt");
  const fs::path library = folder_ / (nameOf(text) + ".so");
  if (!isOwn(source, S_IFREG) || !isOwn(library, S_IFREG)) return std::nullopt;
  std::ifstream in(source, std::ios::binary);
  std::ostringstream held;
  held << in.rdbuf();
  if (!in || held.str() != text || !isWhole(readFile(library))) return std::nullopt;
  return library;
}

void CodeletStore::add(const std::string& text, const fs::path& library) const {
  const fs::path name = folder_ / nameOf(text);
  try {
    removeAbandoned(folder_);
    put(name.string() + ".so",
        [&](const fs::path& to) { writeFile(to, sealed(readFile(library))); });
    put(name.string() + ".txt", [&](const fs::path& to) { writeFile(to, text); });
  } catch (const std::exception& e) {  // the program runs here all the same
    std::fprintf(stderr,
                 "ipujax: [codelets] compiled codelets are not kept for other processes: %s\n",
                 e.what());
  }
}

}  // namespace ipujax::engine
