#include "runtime/Faults.hpp"

#include <array>
#include <stdexcept>

namespace ipujax::runtime {
namespace {

struct Kind {
  std::string_view name;
  std::string_view needs;
  std::string_view got;
  Recovery recovery;
};

// In the order of Fault. Recovery follows PopTorch: recoverable errors "may be transient", and a
// reset of the partition restores the IPU-Links (PopTorch user guide, "Error handling").
constexpr std::array kKinds{
    Kind{"link_error", "working IPU-Links", "a link error", Recovery::kPartitionReset},
    Kind{"host_link_timeout", "a host link that answers", "a time-out of the host link",
         Recovery::kFullReset},
    Kind{"ecc", "tile memory without errors", "an uncorrectable memory error", Recovery::kIpuReset},
    Kind{"exchange_parity", "an exchange without errors", "a parity error of the exchange",
         Recovery::kIpuReset},
    Kind{"power", "power", "a failure of the power supply", Recovery::kNone}};

Fault kindByName(std::string_view name) {
  std::string known;
  for (std::size_t i = 0; i < kKinds.size(); ++i) {
    if (kKinds[i].name == name) return static_cast<Fault>(i);
    known += (known.empty() ? "" : ", ") + std::string(kKinds[i].name);
  }
  throw std::invalid_argument("[testing.inject] needs one of " + known + "; got " +
                              std::string(name) + ". Use one of these.");
}

const Kind& kindOf(Fault fault) { return kKinds.at(static_cast<std::size_t>(fault)); }

}  // namespace

Faults& Faults::shared() {
  static Faults faults;
  return faults;
}

void Faults::inject(std::string_view kind, std::uint64_t at_run, std::string_view program) {
  const Fault fault = kindByName(kind);
  if (at_run == 0)
    throw std::invalid_argument(
        "[testing.inject] needs the number of a run from 1; got 0. Pass 1 for the next run.");
  const std::lock_guard lock(mutex_);
  faults_.push_back({fault, kindOf(fault).recovery, at_run, std::string(program), {}});
  are_any_.store(true, std::memory_order_relaxed);
  is_in_use_.store(true, std::memory_order_relaxed);
}

void Faults::clear() {
  const std::lock_guard lock(mutex_);
  faults_.clear();
  are_any_.store(false, std::memory_order_relaxed);
  is_in_use_.store(false, std::memory_order_relaxed);
}

void Faults::reset(Recovery recovery) {
  const std::lock_guard lock(mutex_);
  std::erase_if(faults_, [&](const Injected& fault) {
    return fault.runs_left == 0 && fault.recovery <= recovery && fault.recovery != Recovery::kNone;
  });
  are_any_.store(!faults_.empty(), std::memory_order_relaxed);
}

const Faults::Injected* Faults::check(const std::string& program) {
  for (Injected& fault : faults_) {
    const bool is_meant = fault.program.empty() || fault.program == program;
    if (fault.runs_left > 0 && is_meant && --fault.runs_left == 0) fault.failed_in = program;
    if (fault.runs_left == 0) return &fault;
  }
  return nullptr;
}

void Faults::throwDue(const std::string& program) {
  const std::lock_guard lock(mutex_);
  const Injected* failed = check(program);
  if (!failed) return;
  const Kind& kind = kindOf(failed->kind);
  throw DeviceError(std::string(kind.needs),
                    std::string(kind.got) + " in a run of " + failed->failed_in, kind.recovery);
}

}  // namespace ipujax::runtime
