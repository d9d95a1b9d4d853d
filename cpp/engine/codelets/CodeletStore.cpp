#include "engine/codelets/CodeletStore.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "engine/Errors.hpp"

namespace ipujax::engine {
namespace {

namespace fs = std::filesystem;

constexpr const char* kVariable = "IPUJAX_TRUST_NATIVE_CODE";

/// The user's, and no one else may write to it.
bool isOwn(const fs::path& path, mode_t kind) {
  struct stat info {};
  return stat(path.c_str(), &info) == 0 && (info.st_mode & S_IFMT) == kind &&
         info.st_uid == geteuid() && (info.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

/// The text lies beside the library and is compared: a name need not be safe against collisions.
std::string nameOf(const std::string& text) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  char name[32];
  std::snprintf(name, sizeof(name), "codelets-%016llx", static_cast<unsigned long long>(hash));
  return name;
}

/// Another process sees the whole file or none.
template <class F>
void put(const fs::path& path, const F& write) {
  const fs::path partial = path.string() + "." + std::to_string(getpid());
  write(partial);
  fs::permissions(partial, fs::perms::owner_all);
  fs::rename(partial, path);
}

}  // namespace

std::string readFile(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) {
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
  if (!out) throw file_load_error("[codelets] could not write " + path.string() + ".");
}

std::optional<CodeletStore> CodeletStore::open() {
  const char* given = std::getenv(kVariable);
  if (!given || !*given) return std::nullopt;
  const fs::path folder(given);
  if (!folder.is_absolute() || !isOwn(folder, S_IFDIR)) {
    throw file_load_error(std::string("[codelets] needs ") + kVariable +
                          " to name, from the root, a folder of yours that neither its group nor "
                          "others may write to; got " +
                          folder.string() + ". Make one: mkdir -m 700 <folder>.");
  }
  return CodeletStore(folder);
}

bool CodeletStore::trusts(const fs::path& file) const {
  std::error_code none;
  const fs::path whole = fs::canonical(file, none);
  const fs::path folder = fs::canonical(folder_, none);
  if (none || !isOwn(whole, S_IFREG)) return false;
  for (fs::path above = whole.parent_path(); above != above.root_path();
       above = above.parent_path()) {
    if (!isOwn(above, S_IFDIR)) return false;
    if (above == folder) return true;
  }
  return false;
}

std::optional<fs::path> CodeletStore::find(const std::string& text) const {
  const fs::path source = folder_ / (nameOf(text) + ".txt");
  const fs::path library = folder_ / (nameOf(text) + ".so");
  if (!isOwn(source, S_IFREG) || !isOwn(library, S_IFREG)) return std::nullopt;
  std::ifstream in(source, std::ios::binary);
  std::ostringstream held;
  held << in.rdbuf();
  if (!in || held.str() != text) return std::nullopt;
  return library;
}

void CodeletStore::add(const std::string& text, const fs::path& library) const {
  const fs::path name = folder_ / nameOf(text);
  put(name.string() + ".so", [&](const fs::path& to) {
    fs::copy_file(library, to, fs::copy_options::overwrite_existing);
  });
  put(name.string() + ".txt", [&](const fs::path& to) { writeFile(to, text); });
}

}  // namespace ipujax::engine
