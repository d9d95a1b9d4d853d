#include <memory>

#include "bindings/bindings.hpp"
#include "runtime/Infeed.hpp"
#include "runtime/MappedMemory.hpp"
#include "runtime/Outfeed.hpp"
#include "support/Interrupts.hpp"

namespace {

namespace ports = ipujax::runtime::ports;
using ipujax::runtime::HostArray;
using ipujax::runtime::Infeed;
using ipujax::runtime::Outfeed;
using Sizes = std::vector<std::size_t>;
using Batch = std::vector<py::buffer>;

/// Python keeps the buffers; they are copied while the GIL is released.
void push(Infeed& feed, const Batch& arrays) {
  const auto& bytes = feed.bytes();
  std::vector<py::buffer_info> read;
  std::vector<const std::byte*> pointers;
  for (const auto& array : arrays) {
    const auto& info = read.emplace_back(array.request());
    pointers.push_back(static_cast<const std::byte*>(info.ptr));
    const auto got = static_cast<std::size_t>(info.size * info.itemsize);
    if (read.size() > bytes.size() || got != bytes[read.size() - 1])
      throw py::value_error("[infeed] needs arrays of the sizes it was made for.");
  }
  if (read.size() != bytes.size())
    throw py::value_error("[infeed] needs as many arrays as it was made for.");
  const py::gil_scoped_release release;
  feed.push(pointers);
}

/// Calls a port as a program does; for other platforms, measurements and tests.
py::typing::List<py::bytearray> callPort(const std::string& id, const Batch& arguments,
                                         const Sizes& result_bytes) {
  std::vector<py::buffer_info> read;
  std::vector<HostArray> taken, given;
  std::vector<std::vector<std::byte>> held;
  for (const auto& argument : arguments)
    taken.push_back({"", {}, read.emplace_back(argument.request()).ptr});
  for (const auto size : result_bytes) given.push_back({"", {}, held.emplace_back(size).data()});
  {
    const py::gil_scoped_release release;
    ports::find(id)->call(taken, given);
  }
  py::list made;
  for (const auto& array : held)
    made.append(py::bytearray(reinterpret_cast<const char*>(array.data()), array.size()));
  return made;
}

py::typing::List<py::typing::List<py::bytearray>> take(Outfeed& feed) {
  py::list items;
  for (const auto& arrays : feed.take()) {
    py::list item;
    for (const auto& array : arrays)
      item.append(py::bytearray(reinterpret_cast<const char*>(array.data()), array.size()));
    items.append(item);
  }
  return items;
}

void bindMappedMemory(py::module_& m) {
  using ipujax::runtime::MappedMemory;
  py::class_<MappedMemory>(m, "MappedMemory")  // lives no longer than the buffer's memory
      .def(py::init([](const py::buffer& memory) {
             const auto info = memory.request();
             return std::make_unique<MappedMemory>(
                 info.ptr, static_cast<std::size_t>(info.size * info.itemsize));
           }),
           "memory"_a)
      .def_property_readonly("is_torn", &MappedMemory::isTorn);
}

}  // namespace

// Feeds: programs fetch data from the host and hand out results while they run, without the GIL.
void bindFeeds(py::module_& m) {
  auto feeds = m.def_submodule("feeds");
  const auto free = py::call_guard<py::gil_scoped_release>();
  feeds.def("watch_interrupts", &ipujax::runtime::interrupts::watch);
  bindMappedMemory(feeds);
  feeds.def("remove_port", &ports::remove, "id"_a);
  feeds.def("call_port", &callPort, "id"_a, "arguments"_a, "result_bytes"_a);
  using Call = Infeed::Call;
  py::class_<Infeed, std::shared_ptr<Infeed>>(feeds, "Infeed")
      .def(py::init<Sizes, unsigned>(), "bytes"_a, "depth"_a)
      .def("verify", &Infeed::verify, "widths"_a)
      .def("wait_for_room", &Infeed::waitForRoom, free)
      .def("push", &push, "arrays"_a)
      .def("end", &Infeed::end, free)
      .def("fail", &Infeed::fail, "why"_a, free)
      .def("close", &Infeed::close, "why"_a, free)
      .def("reset", &Infeed::reset, free)
      .def("set_timeout", &Infeed::setTimeout, "seconds"_a, free)
      .def(
          "begin_port",
          [](Infeed& self, std::size_t readers) { return self.port(Call::kBegin, readers, 1); },
          "readers"_a)
      .def(
          "fetch_port",
          [](Infeed& self, std::size_t readers, std::size_t copies, bool stops) {
            return self.port(stops ? Call::kFetchOrStop : Call::kFetch, readers, copies);
          },
          "readers"_a, "copies"_a, "stops"_a)
      .def(
          "check_port",
          [](Infeed& self, std::size_t readers) { return self.port(Call::kCheck, readers, 1); },
          "readers"_a)
      .def_property_readonly("pushed", [](Infeed& self) { return self.stats().pushed; })
      .def_property_readonly("fetched", [](Infeed& self) { return self.stats().fetched; })
      .def_property_readonly("wait_seconds",
                             [](Infeed& self) { return self.stats().wait_seconds; });
  py::class_<Outfeed, std::shared_ptr<Outfeed>>(feeds, "Outfeed")
      .def(py::init<bool>(), "keeps_last"_a)
      .def("take", &take)
      .def("wait_for_item", &Outfeed::waitForItem, "seconds"_a, free)
      .def("clear", &Outfeed::clear)
      .def("set_bound", &Outfeed::setBound, "bytes"_a, "seconds"_a)
      .def("close", &Outfeed::close, "why"_a, free)
      .def_property_readonly("wait_seconds", &Outfeed::waitSeconds)
      .def(
          "begin_port",
          [](Outfeed& self, std::size_t writers) {
            return self.port(Outfeed::Call::kBegin, writers, {});
          },
          "writers"_a)
      .def(
          "push_port",
          [](Outfeed& self, std::size_t writers, Sizes bytes) {
            return self.port(Outfeed::Call::kPush, writers, std::move(bytes));
          },
          "writers"_a, "bytes"_a);
}
