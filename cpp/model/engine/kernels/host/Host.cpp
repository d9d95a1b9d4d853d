#include <cstdio>
#include <stdexcept>

#include "engine/image/Image.hpp"
#include "engine/kernels/Kernel.hpp"

/// Steps that talk to the host: streams that are not bound to memory.
namespace ipujax::engine {
namespace {

std::uint64_t bytesOf(const OperandDesc& o) {
  return static_cast<std::uint64_t>(o.numElements()) * sizeOf(o.type);
}

HostStreams& streamsOf(RunContext& context) {
  if (!context.streams)
    throw std::runtime_error(
        "[stream] needs a host that serves streams; got none. Run the program with an Engine.");
  return *context.streams;
}

template <bool kToDevice>
class StreamKernel final : public Kernel {
 public:
  explicit StreamKernel(const StepDesc& step)
      : stream_(static_cast<std::uint32_t>(step.attributes.integer("stream"))),
        bytes_(bytesOf(step.operands[0])) {}
  bool usesStreams() const override { return true; }
  void run(RunContext& context, std::span<std::byte* const> pointers) const override {
    HostStreams& streams = streamsOf(context);
    kToDevice ? streams.read(stream_, context.replica, pointers[0], bytes_)
              : streams.write(stream_, context.replica, pointers[0], bytes_);
  }

 private:
  std::uint32_t stream_;
  std::uint64_t bytes_;
};

/// A step that only has a cost: tiles do work that the host need not do.
std::unique_ptr<Kernel> makeAccount(const StepDesc&) {
  return kernelOf([](RunContext&, std::span<std::byte* const>) {});
}

/// Checks that the stream moves the whole operand at once.
void checkStream(const StepCheck& check, const OperandCheck& operand, bool to_device) {
  const auto& streams = check.image().streams;
  const auto last = static_cast<std::int64_t>(streams.size()) - 1;
  const auto& stream = streams[static_cast<std::size_t>(check.integer("stream", 0, last))];
  operand.isContiguous();
  check.operands(1);
  check.need(stream.to_device == to_device && stream.bytes == bytesOf(operand.desc()),
             "a stream of its operand's bytes and direction");
}
void checkStreamIn(StepCheck& check) { checkStream(check, check.written(0), true); }
void checkStreamOut(StepCheck& check) { checkStream(check, check.read(0), false); }

void checkAccount(StepCheck& check) { check.operands(0); }

const RegisterKernel kStreamIn{"engine.stream_in", makeKernel<StreamKernel<true>>, checkStreamIn};
const RegisterKernel kStreamOut{"engine.stream_out", makeKernel<StreamKernel<false>>,
                                checkStreamOut};
const RegisterKernel kAccount{"engine.account", makeAccount, checkAccount};

}  // namespace

void HostStreams::print(const std::string& line) { std::fprintf(stderr, "%s\n", line.c_str()); }
}  // namespace ipujax::engine
