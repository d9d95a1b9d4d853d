#include "backends/model/Faults.hpp"

#include <array>
#include <stdexcept>

namespace ipujax::model {
namespace {

struct Kind {
  std::string_view name;
  std::string_view needs;
  std::string_view got;
  runtime::Recovery recovery;
};

// What each needs is PopTorch's: recoverable errors "may be transient", and the IPU-Links come back
// with the partition (PopTorch user guide, "Error handling").
constexpr std::array kKinds{
    Kind{"link_error", "working IPU-Links", "a link error", runtime::Recovery::kPartitionReset},
    Kind{"host_link_timeout", "a host link that answers", "a time-out of the host link",
         runtime::Recovery::kFullReset},
    Kind{"ecc", "tile memory without errors", "an uncorrectable memory error",
         runtime::Recovery::kIpuReset},
    Kind{"exchange_parity", "an exchange without errors", "a parity error of the exchange",
         runtime::Recovery::kIpuReset},
    Kind{"power", "power", "a failure of the power supply", runtime::Recovery::kNone}};

const Kind& kindByName(std::string_view name) {
  std::string known;
  for (const Kind& kind : kKinds) {
    if (kind.name == name) return kind;
    known += (known.empty() ? "" : ", ") + std::string(kind.name);
  }
  throw std::invalid_argument("[testing.inject] needs one of " + known + "; got " +
                              std::string(name) + ". Use one of these.");
}

}  // namespace

Faults& Faults::shared() {
  static Faults faults;
  return faults;
}

void Faults::inject(std::string_view kind, std::uint64_t at_run, std::string_view program) {
  const Kind& of = kindByName(kind);
  if (at_run == 0)
    throw std::invalid_argument(
        "[testing.inject] needs the number of a run from 1; got 0. Pass 1 for the next run.");
  const std::lock_guard lock(mutex_);
  faults_.push_back({of.needs, of.got, of.recovery, at_run, std::string(program), {}});
  are_any_.store(true, std::memory_order_relaxed);
}

void Faults::clear() {
  const std::lock_guard lock(mutex_);
  faults_.clear();
  are_any_.store(false, std::memory_order_relaxed);
}

void Faults::reset(runtime::Recovery recovery) {
  const std::lock_guard lock(mutex_);
  std::erase_if(faults_, [&](const Fault& fault) {
    return fault.runs_left == 0 && fault.recovery <= recovery &&
           fault.recovery != runtime::Recovery::kNone;
  });
  are_any_.store(!faults_.empty(), std::memory_order_relaxed);
}

void Faults::check(const std::string& program) {
  const std::lock_guard lock(mutex_);
  for (Fault& fault : faults_) {
    const bool is_meant = fault.program.empty() || fault.program == program;
    if (fault.runs_left > 0 && is_meant && --fault.runs_left == 0) fault.failed_in = program;
    if (fault.runs_left > 0) continue;
    throw runtime::DeviceError(std::string(fault.needs),
                               std::string(fault.got) + " in a run of " + fault.failed_in,
                               fault.recovery);
  }
}

}  // namespace ipujax::model
