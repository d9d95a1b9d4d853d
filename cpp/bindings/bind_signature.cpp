#include "bindings/bindings.hpp"
#include "support/Signature.hpp"

namespace runtime = ipujax::runtime;
using runtime::Signature;
using runtime::TensorSpec;

void bindSignature(py::module_& module) {
  auto m = submodule(module, "engine");
  using Shape = std::vector<std::int64_t>;
  using Specs = std::vector<TensorSpec>;
  using Alias = std::vector<std::int32_t>;
  py::class_<TensorSpec>(m, "TensorSpec")
      .def(py::init([](std::string dtype, Shape shape, std::uint64_t bytes, const py::bytes& s) {
             return TensorSpec{std::move(dtype), std::move(shape), bytes, s};
           }),
           "dtype"_a, "shape"_a, "bytes"_a, "sharding"_a = py::bytes())
      .def_readonly("dtype", &TensorSpec::dtype)
      .def_readonly("shape", &TensorSpec::shape)
      .def_property(
          "memory_kind", [](const TensorSpec& spec) { return runtime::nameOf(spec.memory); },
          [](TensorSpec& spec, const std::string& kind) {
            spec.memory = runtime::memoryKindByName(kind);
          })
      .def_readwrite("is_streamed", &TensorSpec::is_streamed)
      .def_readwrite("minor_to_major", &TensorSpec::minor_to_major);
  py::class_<Signature>(m, "Signature")
      .def(py::init([](std::string name, Specs inputs, Specs outputs, Alias output_alias,
                       bool has_host_callbacks, std::uint32_t num_replicas, std::string interface,
                       bool takes_seed, bool prints) {
             return Signature{std::move(name),
                              std::move(inputs),
                              std::move(outputs),
                              std::move(output_alias),
                              has_host_callbacks,
                              num_replicas,
                              {},
                              std::move(interface),
                              takes_seed,
                              prints};
           }),
           "name"_a, "inputs"_a = Specs(), "outputs"_a = Specs(), "output_alias"_a = Alias(),
           "has_host_callbacks"_a = false, "num_replicas"_a = 1, "interface"_a = "",
           "takes_seed"_a = false, "prints"_a = false)
      .def_readonly("name", &Signature::name)
      .def_readonly("inputs", &Signature::inputs)
      .def_readonly("outputs", &Signature::outputs)
      .def_readonly("output_alias", &Signature::output_alias);
}
