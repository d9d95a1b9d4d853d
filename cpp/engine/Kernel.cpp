#include "engine/Kernel.hpp"

#include <map>
#include <stdexcept>

namespace ipujax::engine {

struct KernelRegistry::Impl {
  struct Entry {
    KernelFactory make;
    KernelCheck check;
    KernelRole role;
  };
  const Entry& find(const std::string& kernel) const {
    const auto found = entries.find(kernel);
    if (found != entries.end()) return found->second;
    throw std::runtime_error("[KernelRegistry] needs a kernel '" + kernel +
                             "'; got a build without it. Compile the program again.");
  }
  std::map<std::string, Entry, std::less<>> entries;
};

KernelRegistry::KernelRegistry() : impl_(std::make_shared<Impl>()) {}

KernelRegistry& KernelRegistry::instance() {
  static KernelRegistry registry;
  return registry;
}

void KernelRegistry::add(std::string name, KernelFactory factory, KernelCheck check,
                         KernelRole role) {
  if (!impl_->entries.emplace(name, Impl::Entry{factory, check, role}).second)
    throw std::logic_error("[KernelRegistry] kernel '" + name + "' is registered twice");
}

std::unique_ptr<Kernel> KernelRegistry::make(const StepDesc& step) const {
  return impl_->find(step.kernel).make(step);
}

std::vector<std::string> KernelRegistry::names() const {
  std::vector<std::string> names;
  for (const auto& [name, entry] : impl_->entries) names.push_back(name);
  return names;
}

KernelRole KernelRegistry::roleOf(const std::string& kernel) const {
  const auto found = impl_->entries.find(kernel);
  return found == impl_->entries.end() ? KernelRole::kOther : found->second.role;
}

void KernelRegistry::check(StepCheck& step) const { impl_->find(step.step().kernel).check(step); }

}  // namespace ipujax::engine
