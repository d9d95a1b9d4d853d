#pragma once
#include <memory>
#include <string>
#include <vector>

#include "hosts/Channel.hpp"
#include "support/Peers.hpp"

namespace ipujax::hosts {

/// The processes of one program, on the job's channel.
class ProgramPeers final : public runtime::Peers {
 public:
  /// `hosts`: the process of the job that runs each replica; the channel's own is among them.
  /// `fingerprint`: the same in all of them.
  ProgramPeers(std::shared_ptr<Channel> channel, const std::vector<std::uint32_t>& hosts,
               std::string program, std::uint64_t fingerprint);

  Channel& channel() const { return *channel_; }

  void begin() override;
  void exchange(const runtime::MeetingPlace& place, std::span<const runtime::Outgoing> sends,
                std::span<const runtime::Incoming> receives) override;
  void fail(const std::string& reason) noexcept override;
  void cancel() noexcept override { channel_->cancel(); }
  void forgetCancel() noexcept override { channel_->forgetCancel(); }

 private:
  const std::shared_ptr<Channel> channel_;
  const std::vector<std::uint32_t> members_;  // processes of the job, by process of the program
  const std::string program_;
  const std::uint64_t fingerprint_;
  std::string place_;  // the last one
};

}  // namespace ipujax::hosts
