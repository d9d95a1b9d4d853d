#pragma once
#include <stdlib.h>

#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "FloatProgram.hpp"
#include "embedded/Package.hpp"
#include "popops/ElementWise.hpp"

/// Files of small programs, in a folder that is deleted after the test.
namespace check {

namespace embedded = ipujax::embedded;

class Folder {
 public:
  Folder() {
    std::string name = (std::filesystem::temp_directory_path() / "ipujax.XXXXXX").string();
    if (!mkdtemp(name.data())) throw std::runtime_error("no temporary folder");
    path_ = name;
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

inline std::span<const std::byte> bytesOf(const std::string& text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}
template <class T>
std::span<const std::byte> bytesOf(const std::vector<T>& values) {
  return std::as_bytes(std::span(values.data(), values.size()));
}

struct Saved {
  embedded::Description description;
  std::string program;
  std::vector<std::vector<float>> stored;
  void write(const std::filesystem::path& path) const {
    std::vector<std::span<const std::byte>> elements;
    for (const auto& values : stored) elements.push_back(bytesOf(values));
    embedded::Package::write(path, description, bytesOf(program), elements);
  }
};

inline embedded::Leaf leaf(const std::string& name, std::int64_t size, int slot, bool stored) {
  return {name, "float32", {size}, slot, stored};
}

/// y = w + x for arrays of n floats, where `w` is stored: a weight, or state that y takes over.
/// An argument between them is unused.
inline Saved sumProgram(std::size_t n, bool is_state) {
  FloatProgram p;
  const auto w = p.input({n});
  const auto x = p.input({n});
  p.output(popops::add(p.graph, w, x, p.prog, "sum"));
  p.options.signature.name = "sum";
  p.options.signature.output_alias = {is_state ? 0 : -1};
  const auto size = static_cast<std::int64_t>(n);
  Saved saved;
  saved.description = {
      "sum",
      "{}",
      {leaf("w", size, 0, true), leaf("unused", size, -1, false), leaf("x", size, 1, false)},
      {leaf("result", size, 0, false)},
      {{"ipu_outline", "auto"}},
      {{"ipujax", IPUJAX_VERSION}},
      {{"machine", "gc200"}}};
  saved.program = p.build()->serialise();
  saved.stored = {numbers(n, 1)};
  return saved;
}

}  // namespace check
