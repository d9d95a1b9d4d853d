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
std::unique_ptr<Kernel> makeStream(const StepDesc& step) {
  const auto stream = static_cast<std::uint32_t>(step.attributes.integer("stream"));
  return kernelOf([stream, bytes = bytesOf(step.operands[0])](
                      RunContext& context, std::span<std::byte* const> pointers) {
    HostStreams& streams = streamsOf(context);
    kToDevice ? streams.read(stream, pointers[0], bytes)
              : streams.write(stream, pointers[0], bytes);
  });
}

std::string textOf(ElementType type, const std::byte* p) {
  return withElement(type, [&]<class T>(T value) -> std::string {
    std::memcpy(&value, p, sizeof(T));
    if (type == ElementType::kBool) return value ? "1" : "0";
    if (type == ElementType::kHalf)
      return std::to_string(halfToFloat(static_cast<std::uint16_t>(value)));
    return std::to_string(value);
  });
}

/// Poplar prints nested brackets to stderr.
std::unique_ptr<Kernel> makePrint(const StepDesc& step) {
  return kernelOf([o = step.operands[0], title = step.attributes.text("title")](
                      RunContext& context, std::span<std::byte* const> pointers) {
    std::string text = title + ": ";
    const std::int64_t n = o.numElements();
    for (std::int64_t i = 0; i < n; ++i) {
      std::int64_t block = 1;
      std::string opening;
      for (std::size_t d = o.shape.size(); d-- > 0;) {
        block *= o.shape[d];
        if (i % block == 0) opening += "[";
      }
      text += opening + textOf(o.type, pointers[0] + i * static_cast<std::int64_t>(sizeOf(o.type)));
      block = 1;
      std::string closing;
      for (std::size_t d = o.shape.size(); d-- > 0;) {
        block *= o.shape[d];
        if ((i + 1) % block == 0) closing += "]";
      }
      text += closing + (i + 1 < n ? ", " : "");
    }
    if (context.streams)
      context.streams->print(text);
    else
      std::fprintf(stderr, "%s\n", text.c_str());
  });
}

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

const RegisterKernel kStreamIn{"engine.stream_in", makeStream<true>, checkStreamIn};
const RegisterKernel kStreamOut{"engine.stream_out", makeStream<false>, checkStreamOut};
const RegisterKernel kPrint{"engine.print", makePrint, checkPrint};
const RegisterKernel kAccount{"engine.account", makeAccount, checkAccount};

}  // namespace

void HostStreams::print(const std::string& line) { std::fprintf(stderr, "%s\n", line.c_str()); }
}  // namespace ipujax::engine
