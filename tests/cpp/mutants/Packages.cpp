#include "mutants/Packages.hpp"

#include <algorithm>
#include <span>

#include "PackageFile.hpp"
#include "embedded/Error.hpp"
#include "embedded/Session.hpp"
#include "engine/image/Image.hpp"
#include "mutants/Mutator.hpp"
#include "mutants/Random.hpp"

namespace mutants {
namespace {

namespace embedded = ipujax::embedded;
namespace engine = ipujax::engine;
namespace fs = std::filesystem;
using Elements = std::vector<std::vector<std::byte>>;

std::vector<embedded::Leaf> leavesOf(const std::vector<engine::TensorSpec>& specs,
                                     const char* name) {
  std::vector<embedded::Leaf> leaves;
  for (const auto& spec : specs) {
    const auto slot = static_cast<std::int32_t>(leaves.size());
    leaves.push_back({name + std::to_string(slot), spec.dtype, spec.shape, slot, false});
  }
  return leaves;
}

void alterLeaf(Random& random, std::vector<embedded::Leaf>& leaves) {
  if (leaves.empty()) return;
  auto& leaf = random.of(leaves);
  switch (random.below(7)) {
    case 0:
      leaf.slot = static_cast<std::int32_t>(random.below(5)) - 2;
      return;
    case 1:
      leaf.shape.push_back(static_cast<std::int64_t>(random.below(4)) - 1);
      return;
    case 2:
      leaf.dtype = random.of(leaves).dtype;
      return;
    case 3:
      leaf.is_stored = !leaf.is_stored;
      return;
    case 4:
      leaf.name = random.of(leaves).name;
      return;
    case 5:
      leaves.pop_back();
      return;
    default:
      leaves.push_back(random.of(leaves));
  }
}

/// The header with some of its bytes altered, sealed again.
std::string withHeaderAltered(Random& random, const std::string& bytes) {
  PackageFile file(bytes);
  for (auto changes = 1 + random.below(3); changes > 0 && file.header.size() > 16; --changes)
    alterBytes(random, file.header);
  return file.bytes();
}

/// The session's arguments and results, each array in memory of exactly its size.
struct Passed {
  Passed(const embedded::Session& session, std::byte value) {
    for (const auto& tensor : session.inputs()) {
      elements.emplace_back(tensor.bytes, value);
      arrays.inputs.push_back(elements.back().data());
    }
    for (const auto& tensor : session.outputs()) {
      elements.emplace_back(tensor.bytes);
      arrays.outputs.push_back(elements.back().data());
    }
  }
  Elements elements;
  embedded::Arrays arrays;
};

bool isTooLarge(const embedded::Package& package) {
  constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 29;
  const auto image = engine::Image::deserialise(package.programBytes());
  std::uint64_t bytes = image->arena_bytes;
  for (const auto* specs : {&image->signature.inputs, &image->signature.outputs})
    for (const auto& spec : *specs) bytes += spec.bytes;
  return bytes > kMostBytes || image->signature.num_replicas > 16;
}

}  // namespace

void writePackage(const fs::path& path, const std::vector<std::string>& corpus,
                  std::uint64_t number) {
  Random random(number * 0x9e3779b97f4a7c15u + 54321);
  std::string program = corpus[parentOf(corpus, number)];
  const auto signature = engine::Image::deserialise(std::as_bytes(std::span(program)))->signature;
  if (random.oneIn(2)) program = mutate(corpus, number);
  embedded::Description description;
  description.name = signature.name;
  description.structure = "{}";
  description.arguments = leavesOf(signature.inputs, "argument");
  description.results = leavesOf(signature.outputs, "result");
  description.options = {{"option", "value"}};
  for (auto& leaf : description.arguments) leaf.is_stored = random.oneIn(2);
  if (random.oneIn(3)) alterLeaf(random, description.arguments);
  if (random.oneIn(6)) alterLeaf(random, description.results);
  Elements stored;
  for (const auto& leaf : description.arguments) {
    if (!leaf.is_stored || leaf.slot < 0) continue;
    const auto slot = static_cast<std::size_t>(leaf.slot);
    const std::uint64_t bytes = slot < signature.inputs.size() ? signature.inputs[slot].bytes : 8;
    stored.emplace_back(random.oneIn(12) ? bytes / 2 : bytes);
  }
  const std::vector<std::span<const std::byte>> spans(stored.begin(), stored.end());
  embedded::Package::write(path, description, std::as_bytes(std::span(program)), spans);
  if (random.oneIn(2)) return;
  std::string file = contentOf(path);
  if (random.oneIn(4))
    alterBytes(random, file);
  else
    file = withHeaderAltered(random, file);
  put(path, file);
}

Outcome runPackage(const fs::path& path, std::chrono::milliseconds bound, std::string& reason) {
  std::unique_ptr<embedded::Session> session;
  try {
    const auto package = embedded::Package::read(path);
    if (isTooLarge(*package)) return Outcome::kTooLarge;
    session = std::make_unique<embedded::Session>(package, embedded::Session::Options{bound});
  } catch (const embedded::Error& error) {
    reason = error.what();
    return Outcome::kRefused;
  }
  try {
    for (const auto value : {std::byte{0}, std::byte{1}}) {
      Passed passed(*session, value);
      session->run(passed.arrays);
      for (const auto& tensor : session->stored()) {
        std::vector<std::byte> elements(tensor.bytes);
        session->readStored(tensor.name, elements);
        const embedded::Session::NewValue again{tensor.name, elements};
        session->setStored({&again, 1});
      }
    }
  } catch (const embedded::Error& error) {
    reason = error.what();
    return error.status() == embedded::Status::kTimeout ? Outcome::kCancelled : Outcome::kFailed;
  }
  return Outcome::kRan;
}

}  // namespace mutants
