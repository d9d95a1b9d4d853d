#include "bindings/bindings.hpp"
#include "popx/CustomOp.hpp"

namespace {

std::vector<py::buffer_info> requested(const std::vector<py::buffer>& arrays, bool writable) {
  std::vector<py::buffer_info> found;
  for (const auto& array : arrays) found.push_back(array.request(writable));
  return found;
}

}  // namespace

// Libraries of custom ops. Users' functions run without the GIL, as they may build graphs slowly.
void bindCustomOps(py::module_& m) {
  using popx::CustomOpLibrary;
  auto popx = submodule(m, "popx");
  const auto free = py::call_guard<py::gil_scoped_release>();
  py::class_<CustomOpLibrary>(popx, "CustomOpLibrary")
      .def_static("load", &CustomOpLibrary::load, "path"_a, free)
      .def("has", &CustomOpLibrary::has, "function"_a)
      .def("build", &CustomOpLibrary::build, "graph"_a, "name"_a, "inputs"_a, "attributes"_a,
           "prog"_a, debugArg(), free)
      .def("buildGradient", &CustomOpLibrary::buildGradient, "graph"_a, "name"_a, "input"_a,
           "gradients"_a, "fwd_inputs"_a, "fwd_outputs"_a, "attributes"_a, "prog"_a, debugArg(),
           free)
      .def(
          "callOnHost",
          [](const CustomOpLibrary& library, const std::string& name,
             const std::vector<py::buffer>& inputs, const std::vector<py::buffer>& outputs,
             const std::string& attributes) {
            const auto read = requested(inputs, false);
            const auto written = requested(outputs, true);
            std::vector<const void*> from;
            std::vector<std::uint32_t> elements;
            std::vector<void*> to;
            for (const auto& info : read) {
              from.push_back(info.ptr);
              elements.push_back(static_cast<std::uint32_t>(info.size));
            }
            for (const auto& info : written) to.push_back(info.ptr);
            const py::gil_scoped_release release;
            library.callOnHost(name, from, elements, to, attributes);
          },
          "name"_a, "inputs"_a, "outputs"_a, "attributes"_a);
}
