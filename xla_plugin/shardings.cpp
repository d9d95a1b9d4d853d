#include "shardings.hpp"

#include "executable.hpp"
#include "handle.hpp"

namespace ipujax::plugin {
namespace {

// A program on one device has no sharding: null says so.

void parameterShardings(PJRT_Shardings_PJRT_Executable_ParameterShardings_Args& args) {
  const auto& known = object<Executable>(args.executable).parameterShardings();
  args.num_parameters = object<Executable>(args.executable).program().signature().inputs.size();
  args.shardings = known.texts.empty() ? nullptr : known.texts.data();
  args.sharding_sizes = known.texts.empty() ? nullptr : known.sizes.data();
}

void outputShardings(PJRT_Shardings_PJRT_Executable_OutputShardings_Args& args) {
  const auto& known = object<Executable>(args.executable).outputShardings();
  args.num_outputs = object<Executable>(args.executable).program().outputs().size();
  args.shardings = known.texts.empty() ? nullptr : known.texts.data();
  args.sharding_sizes = known.texts.empty() ? nullptr : known.sizes.data();
}

}  // namespace

PJRT_Extension_Base* shardings::extension() {
  static PJRT_Shardings_Extension instance{.base = {.struct_size = sizeof(PJRT_Shardings_Extension),
                                                    .type = PJRT_Extension_Type_Shardings,
                                                    .next = nullptr},
                                           .parameter_shardings = guarded<parameterShardings>,
                                           .output_shardings = guarded<outputShardings>};
  return &instance.base;
}

}  // namespace ipujax::plugin
