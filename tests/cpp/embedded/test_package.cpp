#include <iterator>
#include <random>

#include "Check.hpp"
#include "PackageFile.hpp"
#include "SavedProgram.hpp"
#include "embedded/Error.hpp"

using namespace check;
using embedded::Package;

namespace {

/// Whether the file is refused as damaged.
bool isRefused(const std::filesystem::path& path) {
  try {
    Package::read(path);
    return false;
  } catch (const embedded::Error& error) {
    return error.status() == embedded::Status::kBadFile;
  }
}

}  // namespace

TEST(what_was_written_comes_back) {
  const Folder folder;
  const Saved saved = sumProgram(33, false);
  saved.write(folder / "a");
  const auto package = Package::read(folder / "a");
  const auto& d = package->description();
  CHECK_EQ(d.name, "sum");
  CHECK_EQ(d.arguments.size(), 3u);
  CHECK_EQ(d.arguments[1].name, "unused");
  CHECK_EQ(d.arguments[1].slot, -1);
  CHECK_EQ(d.options[0].value, "auto");
  CHECK_EQ(package->stored(0).size(), 33 * sizeof(float));
  CHECK_EQ(std::memcmp(package->stored(0).data(), saved.stored[0].data(), 33 * sizeof(float)), 0);
  CHECK_EQ(reinterpret_cast<std::uintptr_t>(package->stored(0).data()) % 64, 0u);
  CHECK_EQ(package->stored(1).size(), 0u);
}

TEST(a_file_replaces_an_older_one_and_leaves_nothing_beside_it) {
  const Folder folder;
  put(folder / "a", "older");
  sumProgram(5, false).write(folder / "a");
  CHECK_EQ(Package::read(folder / "a")->description().name, "sum");
  const auto entries = std::filesystem::directory_iterator((folder / "a").parent_path());
  CHECK_EQ(std::distance(begin(entries), end(entries)), 1);
  CHECK_THROWS(sumProgram(5, false).write(folder / "missing/a"), "[save] needs a file");
}

TEST(every_altered_byte_is_refused) {
  const Folder folder;
  sumProgram(3, false).write(folder / "a");
  const std::string content = contentOf(folder / "a");
  std::mt19937 random(7);
  for (std::size_t i = 0; i < content.size(); i += 1 + random() % 23) {
    std::string altered = content;
    altered[i] = static_cast<char>(altered[i] ^ (1 << random() % 8));
    put(folder / "b", altered);
    if (!isRefused(folder / "b"))
      check::fail(__FILE__, __LINE__, "byte ", i, " was altered and nobody saw it");
  }
}

TEST(every_shortened_file_is_refused_and_a_longer_one) {
  const Folder folder;
  sumProgram(3, false).write(folder / "a");
  const std::string content = contentOf(folder / "a");
  for (std::size_t size = 0; size < content.size(); size += size < 300 ? 1 : 61) {
    put(folder / "b", content.substr(0, size));
    CHECK_EQ(isRefused(folder / "b"), true);
  }
  put(folder / "b", content + std::string(64, '\0'));
  CHECK_EQ(isRefused(folder / "b"), true);
  CHECK_EQ(isRefused(folder / "none"), true);
  CHECK_EQ(isRefused((folder / "a").parent_path()), true);
}

TEST(descriptions_that_do_not_fit_their_program_are_refused) {
  const Folder folder;
  const Saved saved = sumProgram(3, false);
  const auto refuses = [&](const std::function<void(Saved&)>& change) {
    Saved changed = saved;
    change(changed);
    changed.write(folder / "b");
    return isRefused(folder / "b");
  };
  CHECK_EQ(refuses([](Saved&) {}), false);
  CHECK_EQ(refuses([](Saved& s) { s.description.arguments[2].slot = 2; }), true);
  CHECK_EQ(refuses([](Saved& s) { s.description.arguments[2].slot = -2; }), true);
  CHECK_EQ(refuses([](Saved& s) { s.description.arguments[2].slot = 0; }), true);
  CHECK_EQ(refuses([](Saved& s) { s.description.arguments[2].slot = -1; }), true);
  CHECK_EQ(refuses([](Saved& s) { s.description.arguments[2].shape = {4}; }), true);
  CHECK_EQ(refuses([](Saved& s) { s.description.arguments[2].dtype = "int32"; }), true);
  CHECK_EQ(refuses([](Saved& s) { s.description.results.clear(); }), true);
  CHECK_EQ(refuses([](Saved& s) { s.description.results[0].is_stored = true; }), true);
  CHECK_EQ(refuses([](Saved& s) { s.stored[0].push_back(1); }), true);
  CHECK_EQ(refuses([](Saved& s) { s.description.arguments[1].is_stored = true; }), false);
  CHECK_EQ(refuses([](Saved& s) { s.description.arguments[2].sharding = {{1}, {0}}; }), false);
  CHECK_EQ(refuses([](Saved& s) { s.description.arguments[2].sharding = {{3}, {0, 1, 2}}; }), true);
  CHECK_EQ(refuses([](Saved& s) { s.description.results[0].sharding = {{1}, {1}}; }), true);
  CHECK_EQ(refuses([](Saved& s) { s.program[s.program.size() / 2] ^= 1; }), true);
}
