#include "profiler.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "xspace.hpp"

/// A tracing session; jaxlib owns it from `create` to `destroy`.
struct PLUGIN_Profiler {
  std::vector<ipujax::plugin::RunRecorder::Run> runs;
  std::string collected;
};

struct PLUGIN_Profiler_Error {
  explicit PLUGIN_Profiler_Error(std::string text) : message(std::move(text)) {}
  const std::string message;
};

namespace ipujax::plugin {
namespace {

/// A trace of more ops has all runs of programs, but only the ops of the first runs.
constexpr std::size_t kMostOps = 200'000;
constexpr int kInternal = 13;  // absl::StatusCode

std::vector<xspace::Event> eventsOf(const runtime::Program& program) {
  std::vector<xspace::Event> events;
  for (const auto& op : program.ops())
    events.push_back({op.name, op.offset_picoseconds, op.picoseconds, op.cycles, op.source});
  return events;
}

/// The trace of a device: a step for each run and its ops on the model's clock, and the time that
/// the host took. On the model's clock a run begins when the host's does or the previous run ends.
class DevicePlane {
 public:
  DevicePlane(int id, std::int64_t begin) : begin_(begin) {
    plane_.name = "/device:IPU:" + std::to_string(id);
    for (const char* name : {"Steps", "XLA Ops", "Host"}) plane_.lines.push_back({name, begin, {}});
  }

  void add(const RunRecorder::Run& run, const std::vector<xspace::Event>* ops) {
    const runtime::Program& program = run.program->compiled();
    const std::int64_t host_offset = (run.begin_nanoseconds - begin_) * 1000;
    const std::int64_t offset = std::max(host_offset, free_at_);
    const double cycles = program.cycles();
    const double hertz = program.clockHz();
    const auto took = hertz > 0 ? static_cast<std::int64_t>(cycles / hertz * 1e12) : 0;
    const std::string_view name = program.signature().name;
    plane_.lines[0].events.push_back({name, offset, took, cycles});
    if (ops)
      for (xspace::Event op : *ops) {
        op.offset_picoseconds += offset;
        plane_.lines[1].events.push_back(op);
      }
    plane_.lines[2].events.push_back({name, host_offset, run.nanoseconds * 1000, cycles});
    free_at_ = offset + took;
  }
  xspace::Plane take() { return std::move(plane_); }

 private:
  const std::int64_t begin_;
  std::int64_t free_at_ = 0;
  xspace::Plane plane_;
};

std::string serialised(const std::vector<RunRecorder::Run>& runs) {
  if (runs.empty()) return {};
  std::int64_t begin = runs.front().begin_nanoseconds;
  for (const auto& run : runs) begin = std::min(begin, run.begin_nanoseconds);
  std::map<const Program*, std::vector<xspace::Event>> known;
  std::map<int, DevicePlane> devices;
  std::size_t num_ops = 0;
  for (const auto& run : runs) {
    const auto [found, is_new] = known.try_emplace(run.program.get());
    auto& ops = found->second;
    if (is_new) ops = eventsOf(run.program->compiled());
    num_ops += ops.size() * run.devices.size();
    for (const int id : run.devices)
      devices.try_emplace(id, id, begin)
          .first->second.add(run, num_ops <= kMostOps ? &ops : nullptr);
  }
  std::vector<xspace::Plane> planes;
  for (auto& [id, device] : devices) planes.push_back(device.take());
  std::vector<std::string> warnings;
  if (num_ops > kMostOps)
    warnings.push_back("ipujax: the trace has " + std::to_string(num_ops) +
                       " ops; those of later runs were left out. Trace fewer steps.");
  return xspace::serialise(planes, warnings);
}

/// Runs one entry and turns an exception into an error that jaxlib owns.
template <auto kEntry, class Args>
PLUGIN_Profiler_Error* profilerEntry(Args* args) noexcept {
  try {
    kEntry(*args);
    return nullptr;
  } catch (const std::exception& error) {
    return std::make_unique<PLUGIN_Profiler_Error>(error.what()).release();
  }
}

void create(PLUGIN_Profiler_Create_Args& args) {
  args.profiler = std::make_unique<PLUGIN_Profiler>().release();
}
void destroy(PLUGIN_Profiler_Args& args) {
  const std::unique_ptr<PLUGIN_Profiler> owned(args.profiler);
}
void start(PLUGIN_Profiler_Args&) { RunRecorder::shared().start(); }
void stop(PLUGIN_Profiler_Args& args) { args.profiler->runs = RunRecorder::shared().stop(); }

void collect(PLUGIN_Profiler_CollectData_Args& args) {
  PLUGIN_Profiler& profiler = *args.profiler;
  // jaxlib 0.10 calls once and reads what it finds here; the header describes a second call with a
  // buffer that the caller owns.
  if (!args.buffer) {
    profiler.collected = serialised(profiler.runs);
    args.buffer = reinterpret_cast<std::uint8_t*>(profiler.collected.data());
    args.buffer_size_in_bytes = profiler.collected.size();
  } else if (args.buffer != reinterpret_cast<std::uint8_t*>(profiler.collected.data())) {
    std::memcpy(args.buffer, profiler.collected.data(), profiler.collected.size());
  }
}

void errorDestroy(PLUGIN_Profiler_Error_Destroy_Args* args) {
  const std::unique_ptr<PLUGIN_Profiler_Error> owned(args->error);
}
void errorMessage(PLUGIN_Profiler_Error_Message_Args* args) {
  args->message = args->error->message.data();
  args->message_size = args->error->message.size();
}
PLUGIN_Profiler_Error* errorCode(PLUGIN_Profiler_Error_GetCode_Args* args) {
  args->code = kInternal;
  return nullptr;
}

}  // namespace

RunRecorder& RunRecorder::shared() {
  static RunRecorder recorder;
  return recorder;
}

std::int64_t RunRecorder::now() {
  const auto since = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(since).count();
}

void RunRecorder::start() {
  const std::lock_guard lock(mutex_);
  runs_.clear();
  is_on_ = true;
}

std::vector<RunRecorder::Run> RunRecorder::stop() {
  const std::lock_guard lock(mutex_);
  is_on_ = false;
  return std::exchange(runs_, {});
}

void RunRecorder::add(Run run) {
  const std::lock_guard lock(mutex_);
  if (is_on_) runs_.push_back(std::move(run));
}

PJRT_Extension_Base* profiler::extension(PJRT_Extension_Base* next) {
  static PLUGIN_Profiler_Api api{.struct_size = sizeof(PLUGIN_Profiler_Api),
                                 .priv = nullptr,
                                 .error_destroy = errorDestroy,
                                 .error_message = errorMessage,
                                 .error_get_code = errorCode,
                                 .create = profilerEntry<create>,
                                 .destroy = profilerEntry<destroy>,
                                 .start = profilerEntry<start>,
                                 .stop = profilerEntry<stop>,
                                 .collect_data = profilerEntry<collect>};
  static PJRT_Profiler_Extension instance{.base = {.struct_size = sizeof(PJRT_Profiler_Extension),
                                                   .type = PJRT_Extension_Type_Profiler,
                                                   .next = next},
                                          .profiler_api = &api,
                                          .traceme_context_id = 0};
  return &instance.base;
}

}  // namespace ipujax::plugin
