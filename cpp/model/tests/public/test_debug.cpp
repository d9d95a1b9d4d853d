#include <cstdio>
#include <fstream>
#include <iterator>
#include <poplar/DebugContext.hpp>
#include <poplar/ProfileValue.hpp>
#include <poplar/exceptions.hpp>
#include <poputil/DebugInfo.hpp>
#include <sstream>

#include "Check.hpp"

using namespace poplar;

namespace {

SourceLocation locationOf(const DebugContext& debugContext = {}) {
  return debugContext.getLocation();
}

std::string nameIn(const DebugContext& debugContext) { return debugContext.getPathName(); }

std::string json(const ProfileValue& value, bool pretty = false) {
  std::ostringstream out;
  serializeToJSON(out, value, pretty);
  return out.str();
}

std::string cbor(const ProfileValue& value) {
  std::ostringstream out;
  serializeToCBOR(out, value);
  return out.str();
}

/// A library's function: records its call, and names what it makes below the caller's name.
std::string library(unsigned size, const DebugContext& debugContext = {}) {
  poputil::PoplibsOpDebugInfo di(debugContext, DI_ARGS(size));
  return nameIn({di, "inner"});
}

}  // namespace

TEST(a_context_knows_its_name_and_where_it_was_made) {
  CHECK_EQ(nameIn("plain"), "plain");
  const DebugInfo info("outer", "test");
  CHECK_EQ(nameIn(info), "outer");
  CHECK_EQ(nameIn({info, "a"}), "outer/a");
  const DebugNameAndId id(info, "b");
  CHECK_EQ(id.getPathName(), "outer/b");
  CHECK_EQ(nameIn({id, "c"}), "outer/b/c");
  CHECK_EQ(nameIn({DebugNameAndId("free"), "d"}), "free/d");
  const SourceLocation here = locationOf();
  CHECK_EQ(here.getLineNumber(), unsigned(__LINE__ - 1));
  CHECK(std::string(here.getFileName()).find("test_debug.cpp") != std::string::npos);
  CHECK(!SourceLocation().isValid());
}

TEST(errors_say_where_the_context_was_made) {
  poplar_error error("needs more");
  error.attachSourceLocation(DebugContext(SourceLocation()));
  CHECK_EQ(std::string(error.what()), "needs more");
  error.attachSourceLocation({"name", SourceLocation("build", "model.cpp", 31)});
  CHECK_EQ(std::string(error.what()), "needs more (at model.cpp:31 in build)");
  error.attachSourceLocation({"outer", SourceLocation("main", "main.cpp", 7)});
  CHECK_EQ(std::string(error.what()), "needs more (at model.cpp:31 in build)");
  try {
    throw error;
  } catch (const std::runtime_error& copy) {
    CHECK_EQ(std::string(copy.what()), error.what());
  }
  type_error other("another");
  other.attachSourceLocation(DebugContext("x").withSource("train.py:5"));
  CHECK_EQ(std::string(other.what()), "another (at train.py:5)");
  CHECK_EQ(link_error("no symbol", "ld: undefined").output, "ld: undefined");
  CHECK(link_error("no symbol").output.empty());
}

TEST(records_of_calls_are_written_to_the_open_file) {
  const std::string path = "test_debug_records.json";
  DebugInfo::initializeStreamer(path, DebugSerializationFormat::JSON);
  CHECK_EQ(library(7, "layer"), "layer/inner");
  DebugInfo::closeStreamer();
  library(8, "later");  // after the file was closed
  std::ifstream file(path);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  std::remove(path.c_str());
  CHECK(text.find(R"("api":"library")") != std::string::npos);
  CHECK(text.find(R"("args":{"size":7})") != std::string::npos);
  CHECK(text.find(R"("name":"layer")") != std::string::npos);
  CHECK(text.find("later") == std::string::npos);
  CHECK_THROWS(DebugInfo::initializeStreamer("/nowhere/records"), "can be written");
}

TEST(profile_values_are_written_as_json_and_cbor) {
  const ProfileValue value = ProfileValue::Map{
      {"list", ProfileValue::Vector{1, -2.5, true, "a\"b\n", ProfileValue()}}, {"n", 1u << 20}};
  CHECK_EQ(json(value), R"({"list":[1,-2.5,true,"a\"b\n",null],"n":1048576})");
  CHECK_EQ(json(ProfileValue::Map{{"k", 1}}, true), "{\n  \"k\": 1\n}");
  // RFC 8949, appendix A.
  CHECK_EQ(cbor(1000), std::string("\x19\x03\xe8"));
  CHECK_EQ(cbor(-1), std::string("\x20"));
  CHECK_EQ(cbor(1.1), std::string("\xfb\x3f\xf1\x99\x99\x99\x99\x99\x9a"));
  CHECK_EQ(cbor("IETF"), std::string("\x64\x49\x45\x54\x46"));
  CHECK_EQ(cbor(ProfileValue::Vector{1, 2, 3}), std::string("\x83\x01\x02\x03"));
  CHECK_EQ(cbor(ProfileValue::Map{{"a", 1}}), std::string("\xa1\x61\x61\x01"));
  CHECK_EQ(value["list"][1].asDouble(), -2.5);
  CHECK(value.getOrNull("missing").isNull());
  CHECK_THROWS(value["missing"], "list, n");
  CHECK_THROWS(value["n"].asString(), "text");
  CHECK_THROWS(value["list"][5], "below 5");
}
