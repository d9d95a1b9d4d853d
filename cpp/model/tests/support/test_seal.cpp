#include <string>
#include <string_view>

#include "Check.hpp"
#include "support/Seal.hpp"
#include "support/Serial.hpp"
#include "support/SignatureBytes.hpp"

using namespace ipujax::runtime;

namespace {

constexpr SealKind kKind{{'A', 'B', 'C', 'D', 'E', 'F', 'G', 'H'}, 3, "a letter"};

std::span<const std::byte> bytesOf(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

std::string open(const SealKind& kind, const std::string& sealed) {
  const auto contents = unseal(kind, bytesOf(sealed));
  return {reinterpret_cast<const char*>(contents.data()), contents.size()};
}

Signature plain() {
  Signature s;
  s.name = "f";
  s.inputs.resize(1);
  s.inputs[0].dtype = "float32";
  s.inputs[0].shape = {2, 3};
  s.inputs[0].bytes = 24;
  s.outputs = s.inputs;
  s.output_alias = {0};
  return s;
}

}  // namespace

TEST(what_was_sealed_comes_back) {
  for (const std::string contents : {"", "x", "a longer text that has more than thirty-two bytes"})
    CHECK_EQ(open(kKind, seal(kKind, contents)), contents);
}

TEST(other_kinds_formats_and_altered_bytes_are_refused) {
  const std::string sealed = seal(kKind, "contents");
  SealKind other = kKind;
  other.magic[7] = 'X';
  CHECK_THROWS(open(other, sealed), "needs a letter");
  other = kKind;
  other.format = 4;
  CHECK_THROWS(open(other, sealed), "Compile it again");
  for (std::size_t i = 0; i < sealed.size(); ++i) {
    std::string altered = sealed;
    altered[i] = static_cast<char>(altered[i] ^ 1);
    CHECK_THROWS(open(kKind, altered), "");
    CHECK_THROWS(open(kKind, sealed.substr(0, i)), "");
  }
}

TEST(a_signature_is_read_back_and_checked) {
  Writer writer;
  const Signature written = plain();
  members(writer, written);
  const std::string bytes = writer.take();
  Reader reader(bytesOf(bytes));
  Signature read;
  members(reader, read);
  CHECK(reader.atEnd());
  verify(read);
  CHECK_EQ(read.name, "f");
  CHECK(read.inputs.at(0).shape == written.inputs[0].shape);
  CHECK(read.output_alias == written.output_alias);

  Signature wrong = plain();
  wrong.output_alias = {1};
  CHECK_THROWS(verify(wrong), "takes over no input");
  wrong = plain();
  wrong.outputs[0].bytes = 25;
  CHECK_THROWS(verify(wrong), "another size");
  wrong = plain();
  wrong.num_replicas = 2;
  wrong.device_ids = {0, 0};
  CHECK_THROWS(verify(wrong), "named twice");
}
