#include "bindings/ProgramArrays.hpp"

#include "embedded/AlignedBytes.hpp"

namespace py = pybind11;
using ipujax::embedded::AlignedBytes;

namespace {

/// Results of at least this size are allocated so that the device can write them directly.
constexpr py::ssize_t kLargeBytes = 1 << 14;

struct Owned {
  py::capsule owner;
  std::uint8_t* data;
};

Owned allocate(std::size_t size) {
  auto bytes = std::make_unique<AlignedBytes>(size);
  auto* const data = reinterpret_cast<std::uint8_t*>(bytes->data());
  return {py::capsule(bytes.release(),
                      [](void* p) {
                        const std::unique_ptr<AlignedBytes> owned(static_cast<AlignedBytes*>(p));
                      }),
          data};
}

bool isOf(const py::object& value, const ProgramArrays::Type& type, py::ssize_t samples) {
  if (!py::isinstance<py::array>(value)) return false;
  const auto array = py::reinterpret_borrow<py::array>(value);
  const auto& [dtype, shape] = type;
  if ((array.flags() & py::array::c_style) == 0 ||
      array.ndim() != static_cast<py::ssize_t>(shape.size()))
    return false;
  for (std::size_t d = 0; d < shape.size(); ++d)
    if (array.shape()[d] != (d == 0 && samples >= 0 ? samples : shape[d])) return false;
  return array.dtype().is(dtype) || array.dtype().equal(dtype);
}

py::array make(const ProgramArrays::Type& type, py::ssize_t samples) {
  auto [dtype, shape] = type;
  if (samples >= 0) shape.at(0) = samples;
  py::ssize_t bytes = dtype.itemsize();
  for (const py::ssize_t size : shape) bytes *= size;
  if (bytes < kLargeBytes) return py::array(dtype, shape);
  const Owned memory = allocate(static_cast<std::size_t>(bytes));
  return py::array(dtype, shape, memory.data, memory.owner);
}

}  // namespace

ProgramArrays::ProgramArrays(std::vector<Type> inputs, std::vector<Type> outputs,
                             py::object convert)
    : inputs_(std::move(inputs)), outputs_(std::move(outputs)), convert_(std::move(convert)) {}

std::size_t ProgramArrays::samplesOf(const Values& values) {
  if (values.empty()) return 0;
  if (!py::isinstance<py::array>(values[0])) {
    const auto shape = py::module_::import("numpy").attr("shape")(values[0]).cast<py::tuple>();
    return shape.empty() ? 0 : shape[0].cast<std::size_t>();
  }
  const auto array = py::reinterpret_borrow<py::array>(values[0]);
  return array.ndim() == 0 ? 0 : static_cast<std::size_t>(array.shape()[0]);
}

ProgramArrays::Arrays ProgramArrays::inputs(const Values& values, py::ssize_t samples) const {
  const py::object rows = samples < 0 ? py::object(py::none()) : py::int_(samples);
  Arrays arrays;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (i < inputs_.size() && isOf(values[i], inputs_[i], samples))
      arrays.push_back(py::reinterpret_borrow<py::array>(values[i]));
    else
      arrays.push_back(convert_(i, values[i], rows).cast<py::array>());
  }
  return arrays;
}

ProgramArrays::Arrays ProgramArrays::outputs(py::ssize_t samples) const {
  Arrays arrays;
  for (const Type& type : outputs_) arrays.push_back(make(type, samples));
  return arrays;
}

ipujax::embedded::Arrays ProgramArrays::pointersTo(const Arrays& inputs, Arrays& outputs) {
  ipujax::embedded::Arrays arrays;
  for (const auto& input : inputs) arrays.inputs.push_back(input.data());
  for (auto& output : outputs) arrays.outputs.push_back(output.mutable_data());
  return arrays;
}

void ArraysInUse::keep(Run run, ProgramArrays::Arrays inputs, ProgramArrays::Arrays outputs) {
  entries_.push_back({std::move(run), std::move(inputs), std::move(outputs)});
}

void ArraysInUse::release() {
  while (!entries_.empty() && entries_.front().run->isDone()) {
    // Freeing arrays may run Python code that calls this again.
    const Entry entry = std::move(entries_.front());
    entries_.pop_front();
  }
}
