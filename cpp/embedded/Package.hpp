#pragma once
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "embedded/AlignedBytes.hpp"
#include "embedded/Sharding.hpp"
#include "runtime/Program.hpp"

namespace ipujax::embedded {

/// One array that a function takes or returns.
struct Leaf {
  std::string name;   ///< "params['w']"
  std::string dtype;  ///< JAX's name
  std::vector<std::int64_t> shape;
  std::int32_t slot = -1;  ///< in the program's inputs or outputs; -1: the program does not use it
  bool is_stored = false;  ///< the file has its elements, and callers do not pass it
  Sharding sharding{};     ///< over the program's replicas
};

/// The size of all its elements; 0 for an argument that the program does not use.
std::size_t bytesOf(const Leaf& leaf, const std::vector<runtime::TensorSpec>& specs);

struct Entry {
  std::string key;
  std::string value;
};

/// The entry's value if it is a non-negative number, else `otherwise`.
std::int64_t numberOf(const std::vector<Entry>& entries, std::string_view key,
                      std::int64_t otherwise);

/// A file's description of its program.
struct Description {
  std::string name;
  std::string structure;  ///< the pytrees of arguments and results as JSON, for Python
  std::vector<Leaf> arguments;
  std::vector<Leaf> results;
  std::vector<Entry> options;   ///< that it was compiled with
  std::vector<Entry> versions;  ///< of the software that compiled it
  std::vector<Entry> target;    ///< the machine and device it was compiled for
};

/// A file that `ipujax.precompile` saved: a description, a sealed program, and stored arguments.
/// Reading verifies the whole file: whatever its bytes, everything returned is consistent.
///
///   magic, size of the header, header (sealed: description; name, size, digest of each section),
///   sections in order, each at a multiple of 64 bytes
class Package {
 public:
  /// Throws Error if the file cannot be read, is not a package, is damaged or of another version.
  static std::shared_ptr<const Package> read(const std::filesystem::path& path);
  /// `stored`: the elements of stored arguments that the program uses, in order. The file appears
  /// complete or not at all.
  static void write(const std::filesystem::path& path, const Description& description,
                    std::span<const std::byte> program,
                    std::span<const std::span<const std::byte>> stored);

  const Description& description() const { return description_; }
  const runtime::Program& program() const { return *program_; }
  /// The sealed bytes of the program.
  std::span<const std::byte> programBytes() const { return program_bytes_; }
  /// The elements of a stored argument, aligned; empty for other arguments.
  std::span<const std::byte> stored(std::size_t argument) const { return stored_[argument]; }

 private:
  Package() = default;
  void open(std::span<const std::byte> sections);
  void verify() const;

  struct Section {
    std::string name;
    std::uint64_t size = 0;
    std::uint64_t digest = 0;
  };
  template <class A, class Sections>
  static void header(A& archive, Description& description, Sections& sections);

  AlignedBytes file_;  // the spans point into this
  Description description_;
  std::vector<Section> sections_;
  std::span<const std::byte> program_bytes_;
  std::vector<std::span<const std::byte>> stored_;  // by argument
  std::shared_ptr<const runtime::Program> program_;
};

}  // namespace ipujax::embedded
