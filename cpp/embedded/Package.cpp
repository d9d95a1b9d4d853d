#include "embedded/Package.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>
#include <string_view>
#include <system_error>
#include <utility>

#include "embedded/Error.hpp"
#include "embedded/NewFile.hpp"
#include "embedded/PackageFormat.hpp"
#include "runtime/Backend.hpp"
#include "support/Serial.hpp"

namespace ipujax::embedded {
namespace {

constexpr const auto& kMagic = kPackageHeader.magic;
constexpr std::string_view kProgram = "program";

[[noreturn]] void failBadFile(const std::string& got) {
  throw Error(Status::kBadFile,
              "[load] needs a file that ipujax.precompile saved; got " + got + ". Save it again.");
}

/// The bytes after the first `size` and the zeros that pad them to a multiple of kAlignment.
std::span<const std::byte> afterPadding(std::span<const std::byte> bytes, std::size_t size) {
  if (roundedUp(size) > bytes.size()) failBadFile("one that is cut short");
  for (const std::byte padding : bytes.subspan(size, roundedUp(size) - size))
    if (padding != std::byte{0}) failBadFile("one that was altered");
  return bytes.subspan(roundedUp(size));
}

/// Whether the file has a section for this leaf.
bool hasElements(const Leaf& leaf) { return leaf.is_stored && leaf.slot >= 0; }

std::string sectionOf(std::size_t argument) { return "argument " + std::to_string(argument); }

AlignedBytes contentOf(const std::filesystem::path& path) {
  std::error_code error;
  const auto size = std::filesystem::file_size(path, error);  // only for regular files
  std::ifstream in(path, std::ios::binary);
  if (error || !in)
    throw Error(Status::kBadFile, "[load] needs a file that can be read; got " +
                                      (error ? error.message() : "an error") + " for " +
                                      path.string() + ". Pass another path.");
  AlignedBytes content(size);
  in.read(reinterpret_cast<char*>(content.data()), static_cast<std::streamsize>(size));
  if (static_cast<std::uintmax_t>(in.gcount()) != size) failBadFile("one that is cut short");
  return content;
}

}  // namespace

template <class A, class Sections>
void Package::header(A& archive, Description& d, Sections& sections) {
  const auto leaf = [&](auto& l) {
    archive(l.name, l.dtype, l.shape, l.slot, l.is_stored, l.sharding.counts, l.sharding.blocks);
  };
  const auto entry = [&](auto& e) { archive(e.key, e.value); };
  archive(d.name, d.structure);
  for (auto* leaves : {&d.arguments, &d.results}) archive.list(*leaves, 45, leaf);
  for (auto* entries : {&d.options, &d.versions, &d.target}) archive.list(*entries, 16, entry);
  archive.list(sections, 24, [&](auto& s) { archive(s.name, s.size, s.digest); });
}

std::shared_ptr<const Package> Package::read(const std::filesystem::path& path) {
  const std::shared_ptr<Package> package(new Package);  // NOLINT: the constructor is private
  package->file_ = contentOf(path);
  const std::span<const std::byte> all(package->file_.data(), package->file_.size());
  std::uint64_t header_size = 0;
  if (all.size() < kPreludeBytes || std::memcmp(all.data(), kMagic, sizeof(kMagic)) != 0)
    failBadFile("other bytes");
  std::memcpy(&header_size, all.data() + sizeof(kMagic), sizeof(header_size));
  if (header_size > all.size() - kPreludeBytes) failBadFile("one that is cut short");
  try {
    runtime::Reader reader(
        runtime::unseal(kPackageHeader, all.subspan(kPreludeBytes, header_size)));
    header(reader, package->description_, package->sections_);
    if (!reader.atEnd()) failBadFile("one with a longer header");
    package->open(afterPadding(all, kPreludeBytes + header_size));
    package->verify();
  } catch (const std::out_of_range& error) {
    failBadFile(std::string("one where ") + error.what());
  } catch (...) {
    throw currentError();
  }
  return package;
}

void Package::open(std::span<const std::byte> sections) {
  stored_.resize(description_.arguments.size());
  std::vector<std::string> expected{std::string(kProgram)};
  std::vector<std::span<const std::byte>*> places{&program_bytes_};
  for (std::size_t i = 0; i < stored_.size(); ++i) {
    if (!hasElements(description_.arguments[i])) continue;
    expected.push_back(sectionOf(i));
    places.push_back(&stored_[i]);
  }
  if (sections_.size() != expected.size()) failBadFile("one with other sections");
  for (std::size_t i = 0; i < sections_.size(); ++i) {
    const auto& [name, size, digest] = sections_[i];
    if (name != expected[i]) failBadFile("one with other sections");
    if (size > sections.size()) failBadFile("one that is cut short");
    *places[i] = sections.first(size);
    if (runtime::checksum(sections.data(), size) != digest)
      failBadFile("one whose section \"" + name + "\" was altered");
    sections = afterPadding(sections, size);
  }
  if (!sections.empty()) failBadFile("one with more bytes at its end");
  program_ = runtime::openProgram(program_bytes_);
}

namespace {

/// Whether blocks of the array, by its sharding, match an input or output of the program.
bool isOfType(const Leaf& leaf, const runtime::TensorSpec& spec, std::size_t num_replicas) {
  if (leaf.dtype != spec.dtype || leaf.shape.size() != spec.shape.size()) return false;
  if (!leaf.sharding.fits(leaf.shape, num_replicas)) return false;
  std::uint64_t elements = 1;
  for (std::size_t d = 0; d < leaf.shape.size(); ++d) {
    const auto count = leaf.sharding.isWhole() ? 1 : leaf.sharding.counts[d];
    if (leaf.shape[d] != spec.shape[d] * count) return false;
    elements *= static_cast<std::uint64_t>(spec.shape[d]);  // verified with the program
  }
  if (leaf.sharding.isWhole()) return true;
  return elements == 0 ? spec.bytes == 0 : spec.bytes % elements == 0;
}

/// Throws unless each slot of the program belongs to one array of its type.
void verifyLeaves(const std::vector<Leaf>& leaves, const runtime::Signature& signature,
                  const std::vector<runtime::TensorSpec>& specs, const std::string& what) {
  std::vector<bool> is_taken(specs.size(), false);
  for (const Leaf& leaf : leaves) {
    if (leaf.slot == -1) continue;
    if (leaf.slot < 0 || static_cast<std::size_t>(leaf.slot) >= specs.size())
      failBadFile("an " + what + " that its program does not have");
    const auto slot = static_cast<std::size_t>(leaf.slot);
    if (is_taken[slot]) failBadFile("two " + what + "s in one place");
    is_taken[slot] = true;
    if (!isOfType(leaf, specs[slot], signature.num_replicas))
      failBadFile("an " + what + " of another type than its program's");
  }
  for (const bool taken : is_taken)
    if (!taken) failBadFile("a program with an " + what + " more");
}

}  // namespace

std::int64_t numberOf(const std::vector<Entry>& entries, std::string_view key,
                      std::int64_t otherwise) {
  for (const Entry& entry : entries) {
    std::int64_t number = 0;
    const char* const end = entry.value.data() + entry.value.size();
    const auto read = std::from_chars(entry.value.data(), end, number);
    if (entry.key == key && read.ec == std::errc() && read.ptr == end && number >= 0) return number;
  }
  return otherwise;
}

std::size_t bytesOf(const Leaf& leaf, const std::vector<runtime::TensorSpec>& specs) {
  if (leaf.slot < 0) return 0;
  return specs[static_cast<std::size_t>(leaf.slot)].bytes * leaf.sharding.numBlocks();
}

void Package::verify() const {
  const auto& signature = program_->signature();
  verifyLeaves(description_.arguments, signature, signature.inputs, "input");
  verifyLeaves(description_.results, signature, signature.outputs, "output");
  for (const Leaf& result : description_.results)
    if (result.slot < 0 || result.is_stored) failBadFile("a result that its program does not make");
  for (std::size_t i = 0; i < stored_.size(); ++i) {
    const Leaf& leaf = description_.arguments[i];
    if (leaf.is_stored && stored_[i].size() != bytesOf(leaf, signature.inputs))
      failBadFile("a stored argument of another size");
  }
}

namespace {

void put(int file, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(file, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) throw std::system_error(errno, std::generic_category());
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
}

/// Writes the header, then each section at a multiple of kAlignment.
void putAll(int file, const std::string& header,
            const std::vector<std::span<const std::byte>>& sections) {
  constexpr std::array<std::byte, kAlignment> kZeros{};
  std::size_t at = 0;
  const auto put_next = [&](const void* data, std::size_t size) {
    put(file, {static_cast<const std::byte*>(data), size});
    at += size;
  };
  const auto pad = [&] { put_next(kZeros.data(), roundedUp(at) - at); };
  const std::uint64_t header_size = header.size();
  put_next(kMagic, sizeof(kMagic));
  put_next(&header_size, sizeof(header_size));
  put_next(header.data(), header.size());
  pad();
  for (const auto& section : sections) {
    put_next(section.data(), section.size());
    pad();
  }
}

}  // namespace

void Package::write(const std::filesystem::path& path, const Description& description,
                    std::span<const std::byte> program,
                    std::span<const std::span<const std::byte>> stored) {
  std::vector<std::span<const std::byte>> bytes{program};
  std::vector<Section> sections;
  const auto add = [&](std::string name, std::span<const std::byte> of) {
    sections.push_back({std::move(name), of.size(), runtime::checksum(of.data(), of.size())});
  };
  add(std::string(kProgram), program);
  for (std::size_t i = 0; i < description.arguments.size(); ++i) {
    if (!hasElements(description.arguments[i])) continue;
    if (bytes.size() > stored.size())
      throw Error(Status::kInvalidArgument,
                  "[save] needs the elements of each stored argument; got too few. Pass them all.");
    bytes.push_back(stored[bytes.size() - 1]);
    add(sectionOf(i), bytes.back());
  }
  runtime::Writer writer;
  Description written = description;
  header(writer, written, sections);
  const std::string sealed = runtime::seal(kPackageHeader, writer.take());
  try {
    NewFile file(path);
    putAll(file.descriptor(), sealed, bytes);
    file.keep();
  } catch (const std::system_error& error) {
    throw Error(Status::kFailed, "[save] needs a file that can be written; got " +
                                     error.code().message() + " for " + path.string() +
                                     ". Pass another path, or free space.");
  }
}

}  // namespace ipujax::embedded
