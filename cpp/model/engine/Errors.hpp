#pragma once
#include <memory>
#include <stdexcept>
#include <string>

namespace poplar {

class DebugContext;

/// Base of every error that the libraries throw.
struct poplar_error : std::runtime_error {
  using std::runtime_error::runtime_error;
  /// Appends the source location of the context to what(). The first one attached stays: it is the
  /// innermost.
  void attachSourceLocation(const DebugContext& debugContext);
  const char* what() const noexcept override {
    return located_ ? located_->c_str() : std::runtime_error::what();
  }

 private:
  std::shared_ptr<const std::string> located_;  ///< shared: copies of exceptions do not throw
};

struct link_error : poplar_error {
  explicit link_error(const std::string& message, const std::string& out = {})
      : poplar_error(message), output(out) {}
  std::string output;  ///< of the linker; empty if none was run
};
struct graph_memory_allocation_error : poplar_error {
  using poplar_error::poplar_error;
  /// Profile of the program that does not fit; always empty, as the model writes none.
  std::string profilePath;
  std::string getProfilePath() const { return profilePath; }
};
struct graph_program_compilation_error : poplar_error {
  using poplar_error::poplar_error;
};
struct graph_connection_error : poplar_error {
  using poplar_error::poplar_error;
};
struct graph_recursion_error : poplar_error {
  using poplar_error::poplar_error;
};
struct invalid_tile_mapping : poplar_error {
  using poplar_error::poplar_error;
};
struct invalid_option : poplar_error {
  using poplar_error::poplar_error;
};
struct tensor_creation_error : poplar_error {
  using poplar_error::poplar_error;
};
struct type_error : poplar_error {
  using poplar_error::poplar_error;
};
struct index_error : poplar_error {
  using poplar_error::poplar_error;
  index_error(const std::string& what, std::size_t index)
      : poplar_error(what + ": " + std::to_string(index)) {}
};
struct tensor_io_state_error : poplar_error {
  using poplar_error::poplar_error;
};
struct stream_connection_error : poplar_error {
  using poplar_error::poplar_error;
};
struct runtime_error : poplar_error {
  using poplar_error::poplar_error;
};
struct application_runtime_error : runtime_error {
  using runtime_error::runtime_error;
};
struct graph_replication_error : poplar_error {
  using poplar_error::poplar_error;
};
struct no_environment : poplar_error {
  using poplar_error::poplar_error;
};
struct unknown_vertex_type : poplar_error {
  using poplar_error::poplar_error;
};
struct file_load_error : poplar_error {
  using poplar_error::poplar_error;
};

}  // namespace poplar

namespace ipujax::engine {

using poplar::application_runtime_error;
using poplar::file_load_error;
using poplar::graph_connection_error;
using poplar::graph_memory_allocation_error;
using poplar::graph_program_compilation_error;
using poplar::graph_recursion_error;
using poplar::graph_replication_error;
using poplar::index_error;
using poplar::invalid_option;
using poplar::invalid_tile_mapping;
using poplar::link_error;
using poplar::no_environment;
using poplar::poplar_error;
using poplar::runtime_error;
using poplar::stream_connection_error;
using poplar::tensor_creation_error;
using poplar::tensor_io_state_error;
using poplar::type_error;
using poplar::unknown_vertex_type;

}  // namespace ipujax::engine
