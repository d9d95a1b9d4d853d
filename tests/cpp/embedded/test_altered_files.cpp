#include <numeric>
#include <random>

#include "Check.hpp"
#include "PackageFile.hpp"
#include "SavedProgram.hpp"
#include "embedded/Error.hpp"
#include "embedded/Session.hpp"
#include "poplar/IPUModel.hpp"

// Files whose header was altered and sealed again: each is refused as a bad file, or runs.
// (test_package covers what the digests find, and tests/mutants covers altered programs.)

using namespace check;
using embedded::Package;
using embedded::Session;

namespace {

/// y = w + x on two replicas, split by rows; w is stored state.
Saved sharded() {
  const std::vector<std::size_t> block{2, 3};
  FloatProgram p;
  p.graph = poplar::Graph(poplar::Target::createIPUTarget(2, 1472, "gc200"),
                          poplar::replication_factor(2));
  p.options.signature.num_replicas = 2;
  const auto w = p.input(block);
  const auto x = p.input(block);
  p.output(popops::add(p.graph, w, x, p.prog, "sum"));
  p.options.signature.name = "sum";
  p.options.signature.output_alias = {0};
  const auto array = [](const std::string& name, int slot, bool stored) {
    return embedded::Leaf{name, "float32", {4, 3}, slot, stored, {{2, 1}, {1, 0}}};
  };
  Saved saved;
  saved.description = {"sum",
                       "{}",
                       {array("w", 0, true), array("x", 1, false)},
                       {array("y", 0, false)},
                       {{"timeout_us", "1000000"}},
                       {},
                       {{"ipus_per_device", "1"}}};
  saved.program = p.build()->serialise();
  saved.stored = {numbers(12, 1)};
  return saved;
}

/// Alters a byte or a number of 4 or 8 bytes, or moves, cuts or doubles a stretch of bytes.
void alter(std::string& bytes, std::mt19937_64& random) {
  constexpr std::uint64_t kNumbers[] = {
      0, 1, 2, 3, 5, 64, 255, 1u << 31, ~std::uint64_t{0}, std::uint64_t{1} << 62};
  const std::size_t at = random() % bytes.size();
  const std::size_t size = std::min<std::size_t>(1 + random() % 16, bytes.size() - at);
  switch (random() % 5) {
    case 0:
      bytes[at] = static_cast<char>(bytes[at] ^ (1 << random() % 8));
      break;
    case 1:
    case 2: {
      const std::uint64_t number = kNumbers[random() % std::size(kNumbers)];
      std::memcpy(bytes.data() + at, &number,
                  std::min<std::size_t>(random() % 2 ? 4 : 8, bytes.size() - at));
      break;
    }
    case 3:
      bytes.erase(at, size);
      break;
    default:
      bytes.insert(random() % bytes.size(), bytes.substr(at, size));
  }
}

/// Runs a program with any arrays, each in memory of exactly its size.
void runOnce(const std::filesystem::path& path) {
  const auto session = Session::open(path, {});
  std::vector<std::vector<std::byte>> memory;
  embedded::Arrays arrays;
  for (const auto& tensor : session->inputs())
    arrays.inputs.push_back(memory.emplace_back(tensor.bytes).data());
  for (const auto& tensor : session->outputs())
    arrays.outputs.push_back(memory.emplace_back(tensor.bytes).data());
  session->run(arrays);
  for (const auto& tensor : session->stored()) {
    std::vector<std::byte> elements(tensor.bytes);
    if (tensor.bytes == 0) continue;
    session->readStored(tensor.name, elements);
    const Session::NewValue value{tensor.name, elements};
    session->setStored({&value, 1});
  }
  session->run(arrays);
}

}  // namespace

TEST(a_sharded_program_runs_with_state_and_whole_arrays) {
  const Folder folder;
  const Saved saved = sharded();
  saved.write(folder / "a");
  const auto session = Session::open(folder / "a", {});
  const auto x = numbers(12, 5);
  std::vector<float> y(12), w(12);
  for (int n = 1; n <= 3; ++n) {
    session->run({{x.data()}, {y.data()}});
    for (std::size_t i = 0; i < y.size(); ++i)
      CHECK_NEAR(y[i], saved.stored[0][i] + static_cast<float>(n) * x[i], 1e-5);
  }
  session->readStored("w", std::as_writable_bytes(std::span(w)));
  CHECK(w == y);
}

TEST(files_of_other_formats_are_refused_with_both) {
  const Folder folder;
  sumProgram(3, false).write(folder / "a");
  auto older = embedded::kPackageHeader;
  older.format = 1;
  put(folder / "b", PackageFile(contentOf(folder / "a")).bytes(older));
  CHECK_THROWS(Package::read(folder / "b"), "(format 2); got one of " IPUJAX_VERSION " (format 1)");
}

TEST(altered_headers_with_seals_that_fit_are_refused_or_run) {
  const Folder folder;
  std::mt19937_64 random(11);
  std::size_t refused = 0, ran = 0, failed = 0;
  for (const Saved& saved : {sharded(), sumProgram(7, true)}) {
    saved.write(folder / "a");
    const PackageFile good(contentOf(folder / "a"));
    put(folder / "b", good.bytes());
    runOnce(folder / "b");
    for (int i = 0; i < 1500; ++i) {
      PackageFile altered = good;
      for (std::uint64_t n = 1 + random() % 3; n > 0; --n) alter(altered.header, random);
      put(folder / "b", altered.bytes());
      try {
        runOnce(folder / "b");
        ++ran;
      } catch (const embedded::Error& error) {
        ++(error.status() == embedded::Status::kBadFile ? refused : failed);
        CHECK(std::string(error.what()).size() > 20);
      }
    }
  }
  std::printf("%zu refused, %zu ran, %zu failed\n", refused, ran, failed);
  CHECK(refused > 1000 && ran > 30);
}
