#include "engine/Kernel.hpp"

#include <map>
#include <stdexcept>

namespace ipujax::engine {

struct KernelRegistry::Impl {
  std::map<std::string, KernelFactory, std::less<>> factories;
};

KernelRegistry::KernelRegistry() : impl_(std::make_shared<Impl>()) {}

KernelRegistry& KernelRegistry::instance() {
  static KernelRegistry registry;
  return registry;
}

void KernelRegistry::add(std::string name, KernelFactory factory) {
  if (!impl_->factories.emplace(name, factory).second)
    throw std::logic_error("[KernelRegistry] kernel '" + name + "' is registered twice");
}

std::unique_ptr<Kernel> KernelRegistry::make(const StepDesc& step) const {
  const auto found = impl_->factories.find(step.kernel);
  if (found == impl_->factories.end()) {
    throw std::runtime_error("[KernelRegistry] needs a kernel '" + step.kernel +
                             "'; this build has none. The executable is from another version.");
  }
  return found->second(step);
}

}  // namespace ipujax::engine
