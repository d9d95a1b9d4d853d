#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "poplar/Graph.hpp"
#include "poplar/Program.hpp"

namespace popx {

/// What a custom op declares in its function <name>_metadata.
struct CustomOpMetadata {
  std::vector<std::int64_t> allocating_inputs;  ///< inputs whose tensors its allocator makes
  std::map<std::int64_t, std::int64_t>
      aliases;  ///< inputs that are overwritten, and by which output
  bool is_elementwise = false;
  bool is_stateless = false;
};

/// A shared library of custom ops with the C++ interface of Graphcore's TensorFlow: functions that
/// add to a graph, by name. It stays loaded until the process ends.
class CustomOpLibrary {
 public:
  /// Loads a library. Throws link_error.
  static CustomOpLibrary load(const std::string& path);

  bool has(const std::string& function) const;
  CustomOpMetadata metadata(const std::string& name, unsigned num_inputs) const;

  /// Adds the program of function <name> and returns its outputs, which share no elements. Throws
  /// poplar_error if the function throws, if its outputs are not tensors of the graph on its tiles,
  /// or (with the IPU Model) if it changes inputs that its metadata does not name.
  std::vector<poplar::Tensor> build(poplar::Graph& graph, const std::string& name,
                                    const std::vector<poplar::Tensor>& inputs,
                                    const std::string& attributes, poplar::program::Sequence& prog,
                                    const poplar::DebugContext& debugContext) const;
  /// The same for function <name>_grad, which also takes the forward inputs and outputs. Its
  /// metadata and its allocator count all of these as inputs: gradients, forward inputs, forward
  /// outputs. `input`: whose gradient it computes; 0 if it computes those of all. It may leave the
  /// tensor of an input without a gradient empty, which becomes zeros.
  std::vector<poplar::Tensor> buildGradient(poplar::Graph& graph, const std::string& name,
                                            int input, const std::vector<poplar::Tensor>& gradients,
                                            const std::vector<poplar::Tensor>& fwd_inputs,
                                            const std::vector<poplar::Tensor>& fwd_outputs,
                                            const std::string& attributes,
                                            poplar::program::Sequence& prog,
                                            const poplar::DebugContext& debugContext) const;

  /// Calls function <name>, which computes on the host (`cpu_user_operation` of Graphcore's
  /// TensorFlow), with arrays that it reads, their numbers of elements, and arrays that it writes.
  void callOnHost(const std::string& name, const std::vector<const void*>& inputs,
                  const std::vector<std::uint32_t>& elements, const std::vector<void*>& outputs,
                  const std::string& attributes) const;

 private:
  struct Call;  ///< of one function
  explicit CustomOpLibrary(const std::string& file);
  poplar::Tensor allocate(const Call& call, unsigned input, const poplar::Tensor& like) const;
  std::vector<poplar::Tensor> prepare(const Call& call, const CustomOpMetadata& known,
                                      const std::vector<poplar::Tensor>& inputs) const;
  void* find(const std::string& function) const;
  void* required(const std::string& function) const;  ///< throws link_error if it is missing

  void* handle_ = nullptr;
  int level_ = 0;  ///< of the interface, see CustomOp.cpp
};

}  // namespace popx
