#include "engine/kernels/Kernel.hpp"

#include <stdexcept>

namespace ipujax::engine {

const KernelRegistry::Entry& KernelRegistry::find(const std::string& kernel) const {
  const auto found = entries_.find(kernel);
  if (found != entries_.end()) return found->second;
  throw std::runtime_error("[KernelRegistry] needs a kernel '" + kernel +
                           "'; got a build without it. Compile the program again.");
}

KernelRegistry& KernelRegistry::instance() {
  static KernelRegistry registry;
  return registry;
}

void KernelRegistry::add(std::string name, KernelFactory factory, KernelCheck check,
                         KernelRole role) {
  if (!entries_.emplace(name, Entry{factory, check, role}).second)
    throw std::logic_error("[KernelRegistry] kernel '" + name + "' is registered twice");
}

std::unique_ptr<Kernel> KernelRegistry::make(const StepDesc& step) const {
  return find(step.kernel).make(step);
}

std::vector<std::string> KernelRegistry::names() const {
  std::vector<std::string> names;
  for (const auto& [name, entry] : entries_) names.push_back(name);
  return names;
}

KernelRole KernelRegistry::roleOf(const std::string& kernel) const {
  const auto found = entries_.find(kernel);
  return found == entries_.end() ? KernelRole::kOther : found->second.role;
}

void KernelRegistry::check(StepCheck& step) const { find(step.step().kernel).check(step); }

}  // namespace ipujax::engine
