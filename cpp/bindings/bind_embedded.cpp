#include <pybind11/numpy.h>

#include "bindings/bindings.hpp"
#include "bindings/embedded.hpp"
#include "embedded/Error.hpp"
#include "embedded/NewFile.hpp"
#include "embedded/Package.hpp"
#include "runtime/Backend.hpp"

namespace embedded = ipujax::embedded;
namespace runtime = ipujax::runtime;

using Description = py::typing::Dict<py::str, Any>;

namespace {

using Arrays = std::vector<py::array>;
using Shardings = py::typing::Tuple<py::typing::List<py::bytes>, py::typing::List<py::bytes>>;
using Read = py::typing::Tuple<Description, py::bytes, py::typing::List<py::array>>;
using Entries = std::vector<std::pair<std::string, std::string>>;
/// Name, dtype, shape, slot, whether it is stored; the number of its blocks along each dimension,
/// and the block that each replica has.
using Leaf = std::tuple<std::string, std::string, std::vector<std::int64_t>, std::int32_t, bool,
                        std::vector<std::int64_t>, std::vector<std::int32_t>>;

std::vector<embedded::Leaf> leavesFrom(const std::vector<Leaf>& leaves) {
  std::vector<embedded::Leaf> made;
  for (const auto& [name, dtype, shape, slot, is_stored, counts, blocks] : leaves)
    made.push_back({name, dtype, shape, slot, is_stored, {counts, blocks}});
  return made;
}

py::list leavesOf(const std::vector<embedded::Leaf>& leaves) {
  py::list list;
  for (const auto& l : leaves)
    list.append(py::make_tuple(l.name, l.dtype, l.shape, l.slot, l.is_stored, l.sharding.counts,
                               l.sharding.blocks));
  return list;
}

std::vector<embedded::Entry> entriesFrom(const Entries& entries) {
  std::vector<embedded::Entry> made;
  for (const auto& [key, value] : entries) made.push_back({key, value});
  return made;
}

py::dict entriesOf(const std::vector<embedded::Entry>& entries) {
  py::dict dict;
  for (const auto& entry : entries) dict[py::str(entry.key)] = entry.value;
  return dict;
}

py::list memoriesOf(const std::vector<runtime::TensorSpec>& specs) {
  py::list list;
  for (const auto& spec : specs) list.append(runtime::nameOf(spec.memory));
  return list;
}

py::list shardingsOf(const std::vector<runtime::TensorSpec>& specs) {
  py::list list;
  for (const auto& spec : specs) list.append(py::bytes(spec.sharding));
  return list;
}

}  // namespace

Description describe(const embedded::Package& package) {
  const auto& d = package.description();
  const auto& signature = package.program().signature();
  return py::dict("name"_a = d.name, "structure"_a = d.structure,
                  "arguments"_a = leavesOf(d.arguments), "results"_a = leavesOf(d.results),
                  "options"_a = entriesOf(d.options), "versions"_a = entriesOf(d.versions),
                  "target"_a = entriesOf(d.target), "output_alias"_a = signature.output_alias,
                  "num_devices"_a = signature.num_replicas,
                  "input_memories"_a = memoriesOf(signature.inputs),
                  "output_memories"_a = memoriesOf(signature.outputs));
}

namespace {

std::span<const std::byte> bytesOf(const py::array& array) {
  return {static_cast<const std::byte*>(array.data()), static_cast<std::size_t>(array.nbytes())};
}

/// Raises OSError.
template <class F>
auto withErrno(const std::string& path, const F& call) {
  try {
    return call();
  } catch (const std::system_error& error) {
    errno = error.code().value();
    PyErr_SetFromErrnoWithFilename(PyExc_OSError, path.c_str());
    throw py::error_already_set();
  }
}

void bindNewFile(py::module_& m) {
  using embedded::NewFile;
  py::class_<NewFile>(m, "NewFile")
      .def(py::init([](const std::string& path) {
             return withErrno(path, [&] { return std::make_unique<NewFile>(path); });
           }),
           "path"_a)
      .def("fileno", &NewFile::descriptor)
      .def(
          "keep",
          [](NewFile& file, const std::string& path) {
            withErrno(path, [&] {
              const py::gil_scoped_release release;
              file.keep();
            });
          },
          "path"_a)
      .def("discard", &NewFile::discard);
}

void bindFiles(py::module_& m) {
  m.def(
      "write_package",
      [](const std::string& path, std::string name, std::string structure,
         const std::vector<Leaf>& arguments, const std::vector<Leaf>& results,
         const Entries& options, const Entries& versions, const Entries& target,
         const py::bytes& program, const Arrays& stored) {
        const embedded::Description description{
            std::move(name),      std::move(structure),  leavesFrom(arguments), leavesFrom(results),
            entriesFrom(options), entriesFrom(versions), entriesFrom(target)};
        std::vector<std::span<const std::byte>> elements;
        for (const auto& array : stored) elements.push_back(bytesOf(array));
        const std::string_view view(program);
        const py::gil_scoped_release release;
        embedded::Package::write(path, description, std::as_bytes(std::span(view)), elements);
      },
      "path"_a, "name"_a, "structure"_a, "arguments"_a, "results"_a, "options"_a, "versions"_a,
      "target"_a, "program"_a, "stored"_a);
  // The description, the sealed program, and the stored arguments as read-only views of bytes.
  m.def(
      "read_package",
      [](const std::string& path) -> Read {
        std::shared_ptr<const embedded::Package> package;
        {
          const py::gil_scoped_release release;
          package = embedded::Package::read(path);
        }
        using Owner = std::shared_ptr<const embedded::Package>;
        const py::capsule owner(std::make_unique<Owner>(package).release(), [](void* p) {
          const std::unique_ptr<Owner> owned(static_cast<Owner*>(p));
        });
        py::list stored;
        for (std::size_t i = 0; i < package->description().arguments.size(); ++i) {
          const auto& leaf = package->description().arguments[i];
          if (!leaf.is_stored || leaf.slot < 0) continue;
          const auto bytes = package->stored(i);
          py::array_t<std::uint8_t> view(static_cast<py::ssize_t>(bytes.size()),
                                         reinterpret_cast<const std::uint8_t*>(bytes.data()),
                                         owner);
          view.attr("setflags")("write"_a = false);
          stored.append(view);
        }
        const auto program = package->programBytes();
        return py::make_tuple(
            describe(*package),
            py::bytes(reinterpret_cast<const char*>(program.data()), program.size()), stored);
      },
      "path"_a);
  // Serialised xla.OpShardings of a sealed program's inputs and outputs.
  m.def(
      "program_shardings",
      [](const py::bytes& sealed) -> Shardings {
        const std::string_view view(sealed);
        const auto program = runtime::openProgram(std::as_bytes(std::span(view)));
        const auto& signature = program->signature();
        return py::make_tuple(shardingsOf(signature.inputs), shardingsOf(signature.outputs));
      },
      "sealed"_a);
}

}  // namespace

void bindEmbedded(py::module_& module) {
  auto m = submodule(module, "embedded");
  // Its arguments: message, status, recovery action.
  static const py::handle error = py::exception<embedded::Error>(m, "Error").release();
  py::register_exception_translator([](std::exception_ptr raised) {
    try {
      if (raised) std::rethrow_exception(raised);
    } catch (const embedded::Error& e) {
      const auto arguments = py::make_tuple(e.what(), static_cast<int>(e.status()),
                                            std::string(runtime::nameOf(e.recovery())));
      PyErr_SetObject(error.ptr(), arguments.ptr());
    }
  });
  bindSessions(m);
  bindNewFile(m);
  bindFiles(m);
  m.def("inject_fault", &runtime::injectFault, "kind"_a, "at_run"_a, "program"_a);
  m.def("clear_faults", &runtime::clearFaults);
  m.def(
      "reset_devices",
      [](const std::string& action) { runtime::resetDevices(runtime::recoveryByName(action)); },
      "action"_a);
}
