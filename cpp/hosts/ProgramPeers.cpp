#include "hosts/ProgramPeers.hpp"

#include <algorithm>
#include <utility>

#include "hosts/PeerError.hpp"
#include "support/Seal.hpp"

namespace ipujax::hosts {
namespace {

std::vector<std::uint32_t> membersOf(std::vector<std::uint32_t> hosts) {
  std::ranges::sort(hosts);
  const auto repeated = std::ranges::unique(hosts);
  hosts.erase(repeated.begin(), repeated.end());
  return hosts;
}

std::uint32_t indexOf(const std::vector<std::uint32_t>& members, std::uint32_t host) {
  return static_cast<std::uint32_t>(std::ranges::find(members, host) - members.begin());
}

std::vector<std::uint32_t> indicesOf(const std::vector<std::uint32_t>& hosts) {
  const auto members = membersOf(hosts);
  std::vector<std::uint32_t> indices;
  for (const auto host : hosts) indices.push_back(indexOf(members, host));
  return indices;
}

/// Of the program and of which process runs which replica.
std::uint64_t mixed(std::uint64_t fingerprint, const std::vector<std::uint32_t>& hosts) {
  return fingerprint ^ runtime::checksum(hosts.data(), hosts.size() * sizeof hosts[0]);
}

}  // namespace

ProgramPeers::ProgramPeers(std::shared_ptr<Channel> channel,
                           const std::vector<std::uint32_t>& hosts, std::string program,
                           std::uint64_t fingerprint)
    : Peers(indicesOf(hosts), indexOf(membersOf(hosts), channel->self())),
      channel_(std::move(channel)),
      members_(membersOf(hosts)),
      program_(std::move(program)),
      fingerprint_(mixed(fingerprint, hosts)) {}

void ProgramPeers::begin() {
  channel_->requireOpen();
  place_ = "the begin of " + program_;
}

void ProgramPeers::exchange(const runtime::MeetingPlace& place,
                            std::span<const runtime::Outgoing> sends,
                            std::span<const runtime::Incoming> receives) {
  place_ = std::string(place.what) + " of " + program_;
  std::vector<runtime::Outgoing> outgoing(sends.begin(), sends.end());
  std::vector<runtime::Incoming> incoming(receives.begin(), receives.end());
  for (auto& send : outgoing) send.process = members_[send.process];
  for (auto& receive : incoming) receive.process = members_[receive.process];
  channel_->exchange({fingerprint_, place.number, place_}, outgoing, incoming);
}

void ProgramPeers::fail(const std::string& reason) noexcept {
  channel_->fail("[hosts] needs all processes to run to their end; got a failure of process " +
                 std::to_string(channel_->self()) + " at " + place_ + ": " + reason);
}

}  // namespace ipujax::hosts
