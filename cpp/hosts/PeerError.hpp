#pragma once
#include <cstdint>
#include <stdexcept>
#include <string>

namespace ipujax::hosts {

/// Processes of a job cannot go on together.
class PeerError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A process does not answer.
class PeerLost : public std::runtime_error {
 public:
  PeerLost(std::uint32_t process, const std::string& how)
      : std::runtime_error(how), process_(process) {}
  std::uint32_t process() const { return process_; }

 private:
  std::uint32_t process_;
};

/// Ctrl-C or the end of the process ended an exchange.
class ExchangeCancelled : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace ipujax::hosts
