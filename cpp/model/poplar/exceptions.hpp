#pragma once
#include <ostream>
#include <string>

#include "engine/Errors.hpp"

namespace poplar {

// Other errors of the SDK. Few are thrown here; programs that catch the others compile.
struct parse_error : poplar_error {
  using poplar_error::poplar_error;
};
struct graph_object_load_error : poplar_error {
  using poplar_error::poplar_error;
  graph_object_load_error(const std::string& path, const std::string& error)
      : poplar_error(path + ": " + error) {}
};
struct graph_object_creation_error : poplar_error {
  using poplar_error::poplar_error;
};
struct graph_cycle_error : poplar_error {
  using poplar_error::poplar_error;
};
struct control_program_error : poplar_error {
  using poplar_error::poplar_error;
};
struct stream_memory_allocation_error : poplar_error {
  using poplar_error::poplar_error;
};
struct memory_elem_constraints_error : poplar_error {
  using poplar_error::poplar_error;
};
struct invalid_machine_model : poplar_error {
  using poplar_error::poplar_error;
};
struct profiling_disabled : poplar_error {
  using poplar_error::poplar_error;
};
struct missing_profile_data : poplar_error {
  using poplar_error::poplar_error;
};
struct missing_graph_profile : poplar_error {
  using poplar_error::poplar_error;
};
struct tensor_metadata_error : poplar_error {
  using poplar_error::poplar_error;
};
struct missing_cycle_estimate : poplar_error {
  using poplar_error::poplar_error;
};
struct missing_perf_estimate : poplar_error {
  using poplar_error::poplar_error;
};
struct no_size_specified : poplar_error {
  using poplar_error::poplar_error;
  no_size_specified(const std::string& vertex, const std::string& field)
      : poplar_error(vertex + "." + field) {}
};
struct overflow_error : poplar_error {
  using poplar_error::poplar_error;
};
struct symbol_error : poplar_error {
  using poplar_error::poplar_error;
  symbol_error(const std::string& name, unsigned tile)
      : poplar_error(name + " on tile " + std::to_string(tile)) {}
};
struct unknown_field : poplar_error {
  using poplar_error::poplar_error;
  unknown_field(const std::string& vertex, const std::string& field)
      : poplar_error(vertex + "." + field) {}
};
struct system_runtime_error : runtime_error {
  using runtime_error::runtime_error;
};
/// The action that recovers a device after an error.
enum class RecoveryAction { IPU_RESET, LINK_RESET, PARTITION_RESET, FULL_RESET };
inline std::string toString(RecoveryAction action) {
  switch (action) {
    case RecoveryAction::IPU_RESET:
      return "IPU_RESET";
    case RecoveryAction::LINK_RESET:
      return "LINK_RESET";
    case RecoveryAction::PARTITION_RESET:
      return "PARTITION_RESET";
    case RecoveryAction::FULL_RESET:
      return "FULL_RESET";
  }
  return "unknown";
}
inline std::ostream& operator<<(std::ostream& os, RecoveryAction action) {
  return os << toString(action);
}
struct recoverable_runtime_error : system_runtime_error {
  explicit recoverable_runtime_error(const std::string& message,
                                     RecoveryAction action = RecoveryAction::IPU_RESET)
      : system_runtime_error(message), action_(action) {}
  recoverable_runtime_error(RecoveryAction action, const std::string& message)
      : recoverable_runtime_error(message, action) {}
  RecoveryAction getRecoveryAction() const { return action_; }

 private:
  RecoveryAction action_;
};
struct unrecoverable_runtime_error : system_runtime_error {
  using system_runtime_error::system_runtime_error;
};
struct unknown_runtime_error : system_runtime_error {
  using system_runtime_error::system_runtime_error;
};

}  // namespace poplar
