#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "engine/codelets/Codelets.hpp"
#include "engine/graph/DebugContext.hpp"
#include "engine/graph/View.hpp"

namespace ipujax::engine {

/// The result of running a vertex on zeros.
struct SlotCount {
  std::optional<std::uint64_t> slots;
  bool leaves_memory = false;  ///< an intrinsic went beyond the vertex's tensors
};

/// The tensors connected to one field of a vertex.
struct Connection {
  std::vector<ViewPtr> views;
  std::vector<ViewPtr> metadata;  ///< of each; null where its tensor has none
  bool is_list = false;

  void add(ViewPtr view, ViewPtr metadata_of_it) {
    views.push_back(std::move(view));
    metadata.push_back(std::move(metadata_of_it));
  }
  void set(std::size_t index, ViewPtr view, ViewPtr metadata_of_it) {
    if (views.size() <= index) {
      views.resize(index + 1);
      metadata.resize(index + 1);
    }
    views[index] = std::move(view);
    metadata[index] = std::move(metadata_of_it);
  }
};

/// Where a vertex's fields are kept from run to run: bytes of a variable, from `begin` on.
struct KeptFields {
  std::uint32_t variable = 0;
  std::uint64_t begin = 0;
};

struct VertexRecord {
  std::size_t file = 0;  ///< of codelets
  std::string type;
  std::optional<unsigned> tile;
  unsigned half_mode = 0;  ///< how its halves round: bits of poplar/codelets/rounded_half.h
  std::map<std::string, Connection> edges;
  std::map<std::string, std::map<std::size_t, double>> values;  ///< by field and element
  std::map<std::string, std::size_t> sizes;
  std::optional<KeptFields> kept;  ///< none if the codelet writes to none of its fields
  std::vector<ViewPtr> constants;  ///< connected ones, which lie on the vertex's tile
  std::optional<std::uint64_t> cycles;
  std::uint64_t flops = 0;
};

struct ComputeSetRecord {
  DebugContext debug;
  std::vector<unsigned> vertices;
};

/// A graph's codelets, compute sets and vertices.
struct VertexStore {
  std::vector<CodeletFile> files;
  std::vector<std::vector<std::string>> types;  ///< of each file: those to compile
  std::vector<ComputeSetRecord> compute_sets;
  std::vector<VertexRecord> vertices;
  /// Cycles and arithmetic operations of a type's vertices that have no estimate of their own.
  using Estimator = std::function<std::pair<std::uint64_t, std::uint64_t>(const VertexRecord&)>;
  std::map<std::string, Estimator> estimators;
  /// By signature (VertexCount.hpp); no slots where they could not be counted.
  std::map<std::string, SlotCount> counts;
  std::int64_t num_steps = 0;  ///< made of compute sets

  /// Adds a file, and compiles the types it instantiates to show errors.
  void add(CodeletFile file);
  /// Adds a source once more, as for an IPU, if it has the type only then (#ifdef __IPU__). Returns
  /// whether there is one.
  bool addForIpu(const std::string& type);
  /// The class of a vertex type ("Foo<float>"), or null; sets the file it is in.
  const CodeletClass* findClass(const std::string& type, std::size_t& file) const;
  /// The types of vertices, for messages: templates that no source instantiates as "Name<...>".
  std::vector<std::string> typeNames() const;
  /// Compiles the types of one file, with the other files if it calls their functions.
  std::shared_ptr<const CodeletLibrary> library(std::size_t file);
  /// A field of a vertex's type. Null where the type is not compiled yet and `compile` is false, or
  /// where it compiles only with files that come later.
  const IpujaxField* findField(const VertexRecord& vertex, const std::string& name, bool compile);
  /// The same for halves that round in another mode than to nearest.
  std::shared_ptr<const CodeletLibrary> rounding(std::size_t file, unsigned mode);
  /// Shows errors of the compiler. Functions may be defined in files that are added later.
  void check(std::size_t file);
  /// The text that `library` compiled.
  std::string unit(std::size_t file) const;
  /// The text that `rounding` compiled.
  std::string unit(std::size_t file, unsigned mode) const;

 private:
  std::string unitOf(std::size_t file, const std::vector<std::string>& of_types) const;
  std::shared_ptr<const CodeletLibrary> compiled(std::size_t file,
                                                 const std::vector<std::string>& of_types);
  /// Links a file with others that contain names that the linker misses, or else with all. False if
  /// it was already linked with all of these.
  bool linkMore(std::size_t file, const std::string& linker_output);

  /// Kept while the graph is, so that an engine made from it finds them compiled.
  std::map<std::size_t, std::shared_ptr<const CodeletLibrary>> libraries_;
  std::map<std::size_t, std::string> units_;
  /// For files that call functions of other files: the files that they are linked with.
  std::map<std::size_t, std::set<std::size_t>> linked_;
};

}  // namespace ipujax::engine
