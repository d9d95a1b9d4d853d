#include <cstdio>
#include <cstring>
#include <stdexcept>

#include "engine/Half.hpp"
#include "engine/Image.hpp"
#include "engine/Kernel.hpp"

/// Steps that talk to the host: streams that are not bound to memory, and printing.
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

std::string textOf(ElementType type, const std::byte* p) {
  return withElement(type, [&]<class T>(T value) -> std::string {
    std::memcpy(&value, p, sizeof(T));
    if (type == ElementType::kBool) return value ? "1" : "0";
    if (type == ElementType::kHalf)
      return std::to_string(halfToFloat(static_cast<std::uint16_t>(value)));
    return std::to_string(value);
  });
}

/// Poplar prints nested brackets to stderr. Replicas print one after another.
class PrintKernel final : public Kernel {
 public:
  explicit PrintKernel(const StepDesc& step)
      : operand_(step.operands[0]), title_(step.attributes.text("title")) {}
  bool callsHost() const override { return true; }
  void run(RunContext& context, std::span<std::byte* const> pointers) const override {
    const std::string line = title_ + ": " + shown(pointers[0]);
    if (context.streams)
      context.streams->print(line);
    else
      std::fprintf(stderr, "%s\n", line.c_str());
  }

 private:
  std::string shown(const std::byte* data) const {
    std::string text;
    const std::int64_t n = operand_.numElements();
    const auto bytes = static_cast<std::int64_t>(sizeOf(operand_.type));
    for (std::int64_t i = 0; i < n; ++i) {
      text += brackets(i, "[") + textOf(operand_.type, data + i * bytes) + brackets(i + 1, "]");
      if (i + 1 < n) text += ", ";
    }
    return text;
  }
  /// One for each dimension that begins, or ends, before element i.
  std::string brackets(std::int64_t i, const char* bracket) const {
    std::string text;
    std::int64_t block = 1;
    for (std::size_t d = operand_.shape.size(); d-- > 0;) {
      block *= operand_.shape[d];
      if (i % block == 0) text += bracket;
    }
    return text;
  }

  OperandDesc operand_;
  std::string title_;
};

/// A step that only costs: what the tiles do where the host has nothing to do.
std::unique_ptr<Kernel> makeAccount(const StepDesc&) {
  return kernelOf([](RunContext&, std::span<std::byte* const>) {});
}

/// The stream moves what the operand holds, all at once.
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

void checkPrint(StepCheck& check) {
  check.operands(1);
  check.read(0).isContiguous();
  check.text("title");
}

void checkAccount(StepCheck& check) { check.operands(0); }

const RegisterKernel kStreamIn{"engine.stream_in", makeKernel<StreamKernel<true>>, checkStreamIn};
const RegisterKernel kStreamOut{"engine.stream_out", makeKernel<StreamKernel<false>>,
                                checkStreamOut};
const RegisterKernel kPrint{"engine.print", makeKernel<PrintKernel>, checkPrint};
const RegisterKernel kAccount{"engine.account", makeAccount, checkAccount};

}  // namespace

void HostStreams::print(const std::string& line) { std::fprintf(stderr, "%s\n", line.c_str()); }
}  // namespace ipujax::engine
