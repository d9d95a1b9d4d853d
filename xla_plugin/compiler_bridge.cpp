#include "compiler_bridge.hpp"

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <pybind11/typing.h>

#include <atomic>
#include <condition_variable>
#include <cstring>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#include "device_set.hpp"
#include "failure.hpp"
#include "hosts/Transport.hpp"
#include "processes.hpp"
#include "runtime/HostPorts.hpp"
#include "shape.hpp"
#include "support/Interrupts.hpp"
#include "transfer_checks.hpp"
#include "transfer_guard.hpp"
#include "work_queue.hpp"

namespace py = pybind11;

namespace ipujax::plugin {
namespace {

using namespace pybind11::literals;

// The types that Python passes, as they appear in the stubs.
using PlatformOption = py::typing::Union<py::str, py::int_, py::float_, py::bool_>;
using Platform = py::typing::Dict<py::str, PlatformOption>;
using CompileFunction = py::typing::Callable<py::bytes(py::bytes, py::bytes, Platform)>;
using HostFunction = py::typing::Callable<py::typing::List<py::bytes>(py::ellipsis)>;
using Stats = py::typing::Dict<py::str, py::int_>;
using MemoryStats = py::typing::Dict<py::str, Stats>;

/// A reference to a JAX client that keeps it alive while it is needed.
struct KeptClient {
  std::shared_ptr<ClientViews> views;
  py::weakref client;
  py::object alive;  ///< the client while it is needed, or null
};

/// Python objects that live as long as the process: they are never released, because jaxlib may
/// call in after the interpreter is gone. The functions and clients are guarded by the GIL.
struct PythonState {
  py::object compile;
  py::object host_callback;
  std::vector<KeptClient> clients;
  std::mutex mutex;  // guards the members below, which are read without the GIL
  std::vector<std::int64_t> stablehlo_version;
  int compiles_in_flight = 0;
  std::condition_variable compile_ended;
  std::atomic<int> program_text_requests{1};
  /// Once the interpreter is ending, only the thread that ends it may still call Python: any other
  /// thread would be stopped in the middle of our frames.
  std::atomic<bool> ending{false};
  std::thread::id main_thread;  // set before `ending`
};

PythonState& state() {
  static auto* const instance = std::make_unique<PythonState>().release();
  return *instance;
}

/// Counts a compile from before it takes the GIL until after it has released it.
class CompileInFlight {
 public:
  CompileInFlight() {
    const std::lock_guard lock(state().mutex);
    ++state().compiles_in_flight;
  }
  ~CompileInFlight() {
    const std::lock_guard lock(state().mutex);
    --state().compiles_in_flight;
    state().compile_ended.notify_all();
  }
  CompileInFlight(const CompileInFlight&) = delete;
  CompileInFlight& operator=(const CompileInFlight&) = delete;
};

void requireInterpreter() {
  if (!Py_IsInitialized()) {
    throw PluginError(PJRT_Error_Code_CANCELLED,
                      "[ipu plugin] needs Python to compile or call back; got an interpreter that "
                      "has ended. Finish all programs before you end it.");
  }
}

std::string textOf(py::handle value) { return py::cast<std::string>(py::str(value)); }

PJRT_Error_Code codeOf(const py::error_already_set& error) {
  if (error.matches(PyExc_KeyboardInterrupt)) return PJRT_Error_Code_CANCELLED;
  if (error.matches(PyExc_MemoryError)) return PJRT_Error_Code_RESOURCE_EXHAUSTED;
  if (error.matches(PyExc_NotImplementedError)) return PJRT_Error_Code_UNIMPLEMENTED;
  if (error.matches(PyExc_ValueError) || error.matches(PyExc_TypeError)) {
    return PJRT_Error_Code_INVALID_ARGUMENT;
  }
  return PJRT_Error_Code_INTERNAL;
}

/// Called with the GIL held. The message begins with the exception's type, unless the exception has
/// a `pjrt_code`.
FailurePtr failureOf(const py::error_already_set& error) noexcept {
  try {
    const auto message = textOf(error.value());
    if (py::hasattr(error.value(), "pjrt_code")) {
      const auto code = py::cast<int>(error.value().attr("pjrt_code"));
      return makeFailure(static_cast<PJRT_Error_Code>(code), message);
    }
    auto text = textOf(error.type().attr("__name__")) + ": " + message;
    return makeFailure(codeOf(error), std::move(text));
  } catch (...) {
    return makeFailure(PJRT_Error_Code_INTERNAL,
                       "[ipu plugin] got a Python exception that cannot be shown.");
  }
}

/// Runs `function` under the GIL and turns Python's exceptions into the plugin's. The exception
/// object is destroyed while the GIL is still held.
template <typename Function>
auto withPython(Function function) {
  requireInterpreter();
  const py::gil_scoped_acquire gil;
  FailurePtr failure;
  try {
    return function();
  } catch (const py::error_already_set& error) {
    failure = failureOf(error);
  }
  throw PluginError(failure);
}

py::dict toDict(const Options& options) {
  py::dict dict;
  for (const auto& [name, option] : options) {
    dict[py::str(name)] = std::visit([](const auto& value) { return py::cast(value); }, option);
  }
  return dict;
}

py::tuple shapeOf(const runtime::HostArray& array) {
  py::tuple shape(array.shape.size());
  for (std::size_t i = 0; i < array.shape.size(); ++i) shape[i] = py::int_(array.shape[i]);
  return shape;
}

std::size_t bytesOf(const runtime::HostArray& array) {
  return Shape(elementInfo(array.dtype).type, {array.shape.begin(), array.shape.end()}).bytes;
}

/// Writes what Python returned, one bytes-like object per result.
void storeResults(const std::string& id, const py::sequence& values,
                  std::span<const runtime::HostArray> results) {
  if (values.size() != results.size()) {
    failInvalidArgument("[ipu host callback] " + id + " needs to return " +
                        std::to_string(results.size()) + " arrays; got " +
                        std::to_string(values.size()) + ".");
  }
  for (std::size_t i = 0; i < results.size(); ++i) {
    const auto view = py::cast<py::buffer>(values[i]).request();
    const auto bytes = bytesOf(results[i]);
    const auto got = static_cast<std::size_t>(view.size * view.itemsize);
    if (got != bytes) {
      failInvalidArgument("[ipu host callback] result " + std::to_string(i) + " of " + id +
                          " needs " + std::to_string(bytes) + " bytes; got " + std::to_string(got) +
                          ". Return the shape and dtype you declared.");
    }
    if (bytes > 0) std::memcpy(results[i].data, view.ptr, bytes);
  }
}

class PythonHostCallbacks final : public runtime::HostCallbacks {
 public:
  void call(const std::string& id, std::span<const runtime::HostArray> arguments,
            std::span<const runtime::HostArray> results) override {
    if (runtime::ports::names(id)) {
      runtime::ports::find(id)->call(arguments, results);
      return;
    }
    if (state().ending.load() && std::this_thread::get_id() != state().main_thread) {
      throw PluginError(PJRT_Error_Code_CANCELLED,
                        "[ipu host callback] needs Python; got an interpreter that is ending. Wait "
                        "for all programs before you exit.");
    }
    const WorkQueue::HostCall scope;  // JAX called from there must not wait for this program
    withPython([&] {
      if (!state().host_callback) {
        failInvalidArgument("[ipu host callback] needs a handler; none was set. Import ipujax.");
      }
      py::list inputs;
      for (const auto& array : arguments) {
        inputs.append(
            py::make_tuple(array.dtype, shapeOf(array),
                           py::bytes(static_cast<const char*>(array.data), bytesOf(array))));
      }
      py::list outputs;
      for (const auto& array : results) {
        outputs.append(py::make_tuple(array.dtype, shapeOf(array)));
      }
      storeResults(id, state().host_callback(id, inputs, outputs), results);
    });
  }

  bool takesManyThreads() const override { return !state().ending.load(); }
};

/// Called before the interpreter ends: waits for compiles and for programs that call into Python or
/// print, then ends all others. Programs launched later run in the caller's thread.
void shutDown() {
  const py::gil_scoped_release no_gil;
  for (const auto& devices : DeviceSet::ofAllClients()) devices->drainEffects();
  state().main_thread = std::this_thread::get_id();
  state().ending.store(true);
  {
    // A compile goes on after Ctrl-C made its caller leave.
    std::unique_lock lock(state().mutex);
    state().compile_ended.wait(lock, [] { return state().compiles_in_flight == 0; });
  }
  for (const auto& devices : DeviceSet::ofAllClients()) devices->close();
}

bool endInterrupted() {
  bool is_left = false;
  for (const auto& devices : DeviceSet::ofAllClients()) is_left |= devices->endInterrupted();
  return is_left;
}

/// Called with the GIL held, never from a view's destructor. A client is destroyed once nothing
/// else refers to it.
void dropUnneededClients() {
  auto& clients = state().clients;
  std::vector<py::object> dropped;  // released last: a client's destructor may call this
  for (auto& kept : clients) {
    if (!kept.views->isNeeded()) dropped.push_back(std::exchange(kept.alive, py::object()));
  }
  std::erase_if(clients, [](const KeptClient& kept) { return kept.client().is_none(); });
}

/// Keeps the client with these views alive again, as `keepNewClient` did at first.
void keepClient(const ClientViews& views) {
  if (!Py_IsInitialized()) return;
  const py::gil_scoped_acquire gil;
  for (auto& kept : state().clients) {
    if (kept.views.get() == &views && !kept.client().is_none()) kept.alive = kept.client();
  }
}

/// Schedules the drop on the main thread. Once the interpreter is ending, clients stay: nothing
/// tells when the last view is gone.
void dropUnneededClientsLater() {
  if (!Py_IsInitialized() || state().ending.load()) return;
  const auto drop = [](void*) {
    dropUnneededClients();
    return 0;
  };
  Py_AddPendingCall(drop, nullptr);
}

/// Keeps the newest client alive.
void keepNewClient(py::object client) {
  const auto sets = DeviceSet::ofAllClients();
  if (sets.empty()) return;
  state().clients.push_back({sets.back()->views, py::weakref(client), std::move(client)});
}

/// JAX releases all clients; those whose arrays are viewed stay.
void retireClients() {
  for (const auto& kept : state().clients) kept.views->retire();
  dropUnneededClients();
}

Stats statsOf(Device& device) {
  const auto& counters = device.runtime()->counters;
  Stats stats;
  stats["id"] = device.id();
  stats["inline_runs"] = counters.inline_runs.load();
  stats["queued_runs"] = counters.queued_runs.load();
  stats["nested_runs"] = counters.nested_runs.load();
  stats["donated_in_place"] = counters.donated_in_place.load();
  stats["donated_copied"] = counters.donated_copied.load();
  stats["bytes_in_use"] = device.defaultMemory().use()->bytes.load();
  return stats;
}

/// By memory kind, under the names of JAX's Device.memory_stats().
MemoryStats memoryStatsOf(Device& device) {
  MemoryStats kinds;
  for (auto* handle : device.memories()) {
    const auto& memory = *static_cast<Memory*>(handle);
    Stats stats;
    stats["bytes_in_use"] = memory.use()->bytes.load();
    stats["peak_bytes_in_use"] = memory.use()->peak_bytes.load();
    stats["num_allocs"] = memory.use()->allocations.load();
    stats["largest_alloc_size"] = memory.use()->largest_bytes.load();
    stats["bytes_limit"] = memory.bytesLimit();
    kinds[py::str(memory.kindName())] = stats;
  }
  return kinds;
}

/// Whether no program waits or runs in a queue of any client's devices.
bool isIdle() {
  for (const auto& devices : DeviceSet::ofAllClients()) {
    for (auto* device : devices->local) {
      if (!device->queue().idle()) return false;
    }
  }
  return true;
}

/// Describes each addressable device of the newest client.
template <typename Item>
py::typing::List<Item> ofEachDevice(Item (*describe)(Device&)) {
  py::typing::List<Item> all;
  const auto sets = DeviceSet::ofAllClients();
  if (sets.empty()) return all;
  for (auto* device : sets.back()->local) all.append(describe(*device));
  return all;
}

}  // namespace

std::string bridge::compile(std::string_view code, std::string_view options,
                            const Options& platform) {
  const CompileInFlight in_flight;
  if (state().ending.load()) {
    throw PluginError(PJRT_Error_Code_CANCELLED,
                      "[ipu compile] needs Python; got an interpreter that is ending. Wait for all "
                      "compilations before you exit.");
  }
  return withPython([&] {
    if (!state().compile) {
      throw PluginError(PJRT_Error_Code_FAILED_PRECONDITION,
                        "[ipu compile] needs the compiler; got none. Let JAX find the plugin "
                        "by its entry point.");
    }
    const py::bytes image =
        state().compile(py::bytes(code.data(), code.size()),
                        py::bytes(options.data(), options.size()), toDict(platform));
    return static_cast<std::string>(image);
  });
}

runtime::HostCallbacks& bridge::hostCallbacks() {
  static PythonHostCallbacks instance;
  return instance;
}

void bridge::withoutGil(const std::function<void()>& function) {
  if (Py_IsInitialized() && PyGILState_Check()) {
    const py::gil_scoped_release no_gil;
    function();
  } else {
    function();
  }
}

bool bridge::showsProgramText() { return state().program_text_requests.load() > 0; }

std::vector<std::int64_t> bridge::stablehloVersion() {
  const std::lock_guard lock(state().mutex);
  return state().stablehlo_version;
}

void bindPlugin(py::module_& module) {
  module.def(
      "set_compile_callback",
      [](CompileFunction function) { state().compile = std::move(function); }, "function"_a);
  module.def(
      "set_host_callback",
      [](HostFunction function) { state().host_callback = std::move(function); }, "function"_a);
  module.def(
      "set_stablehlo_version",
      [](std::vector<std::int64_t> version) {
        const std::lock_guard lock(state().mutex);
        state().stablehlo_version = std::move(version);
      },
      "version"_a);
  // Calls are counted: each False takes back one True, and the count begins at one True.
  module.def(
      "show_program_text",
      [](bool show) { state().program_text_requests.fetch_add(show ? 1 : -1); }, "show"_a);
  // Whether JAX guards transfers to the host, in this thread (None: as in the process) and overall.
  module.def(
      "guard_transfers",
      [](std::optional<bool> thread, bool process) {
        transfer_guard::setForThread(thread);
        transfer_guard::setForProcess(process);
      },
      "thread"_a, "process"_a);
  // Called for each client that JAX makes, and when JAX releases all of them.
  module.def("keep_client", keepNewClient, "client"_a);
  module.def("retire_clients", retireClients);
  module.def("say_goodbye", processes::sayGoodbye,
             pybind11::call_guard<pybind11::gil_scoped_release>());
  module.def("can_connect_processes", hosts::canConnect);
  module.def(
      "reset_seed",
      [](std::uint64_t seed, bool identical_replicas) {
        runtime::RunSeeds::shared().reset(seed, identical_replicas);
      },
      "seed"_a, "identical_replicas"_a);
  module.def("check_transfers", &transfer_checks::set, "on"_a);
  module.def("is_idle", isIdle);
  module.def("device_stats", [] { return ofEachDevice(statsOf); });
  module.def("memory_stats", [] { return ofEachDevice(memoryStatsOf); });
  ClientViews::react(keepClient, dropUnneededClientsLater);
  runtime::interrupts::react(endInterrupted);
  py::module_::import("atexit").attr("register")(py::cpp_function(shutDown));
}

}  // namespace ipujax::plugin
