// Attributes of custom ops as typed values. The oracle is the text itself.
#include <cstdint>
#include <string>
#include <vector>

#include "Check.hpp"
#include "popx/JsonAttributes.hpp"

using popx::JsonAttributes;

TEST(values_have_the_types_that_are_asked_for) {
  const JsonAttributes given(
      R"( {"a": 1.5, "n": -3, "l": [1, 2, 3], "b": true, "e": [], "s": ["x", "y"], "o": null,
           "nested": [[1], [2, 3]], "": 7} )");
  CHECK_EQ(given.get<float>("a"), 1.5f);
  CHECK_EQ(given.get<double>("n"), -3.0);
  CHECK_EQ(given.get<int>("n"), -3);
  CHECK_EQ(given.get<std::vector<unsigned>>("l").at(2), 3u);
  CHECK_EQ(given.get<std::vector<float>>("l").at(1), 2.0f);
  CHECK_EQ(given.get<std::vector<std::vector<int>>>("nested").at(1).at(1), 3);
  CHECK_EQ(given.get<std::vector<std::string>>("s").at(1), "y");
  CHECK(given.get<std::vector<float>>("e").empty());
  CHECK(given.get<bool>("b"));
  CHECK_EQ(given.get<int>(""), 7);
  CHECK_EQ(given.get<int>("absent", 4), 4);
  CHECK(given.has("o") && !given.has("absent"));
  CHECK(!JsonAttributes("").has("a"));
}

TEST(text_has_every_character) {
  const JsonAttributes given(R"({"s": "q\"\\\/\n\u0001\u00e9\u20ac\ud83d\ude00"})");
  CHECK_EQ(given.get<std::string>("s"), "q\"\\/\n\x01\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80");
}

TEST(integers_keep_all_their_bits) {
  const JsonAttributes given(R"({"most": 9223372036854775807, "all": 18446744073709551615,
                                 "more": 18446744073709551616, "least": -9223372036854775808})");
  CHECK_EQ(given.get<std::int64_t>("most"), INT64_MAX);
  CHECK_EQ(given.get<std::int64_t>("least"), INT64_MIN);
  CHECK_EQ(given.get<std::uint64_t>("all"), UINT64_MAX);
  CHECK_THROWS(given.get<std::uint64_t>("more"), "an integer that the type holds for 'more'");
  CHECK_THROWS(given.get<int>("most"), "an integer that the type holds for 'most'");
  CHECK_THROWS(given.get<unsigned>("least"), "an integer that the type holds for 'least'");
}

TEST(other_types_are_refused) {
  const JsonAttributes given(R"({"a": 1.5, "t": "1", "l": [1, "x"], "b": true})");
  CHECK_THROWS(given.get<int>("a"), "needs an integer for 'a'; got 1.5");
  CHECK_THROWS(given.get<float>("t"), "needs a number for 't'; got the text '1'");
  CHECK_THROWS(given.get<std::string>("l"), "needs text for 'l'; got a list");
  CHECK_THROWS(given.get<std::vector<int>>("l"), "needs an integer for 'l'; got the text 'x'");
  CHECK_THROWS(given.get<std::vector<int>>("a"), "needs a list for 'a'; got 1.5");
  CHECK_THROWS(given.get<bool>("a"), "needs true or false for 'a'; got 1.5");
  CHECK_THROWS(given.get<float>("b"), "needs a number for 'b'; got true");
  CHECK_THROWS(given.get<float>("absent"), "needs 'absent'; got none");
}

TEST(what_is_no_json_is_refused) {
  for (const char* text : {"[1]",
                           "{\"a\":}",
                           "{\"a\":1",
                           "{\"a\" 1}",
                           "{a:1}",
                           "{\"a\":nan}",
                           "{\"a\":\"x",
                           "{} 3",
                           "{\"a\":[1}",
                           "{\"a\":[1,]}",
                           "{\"a\":1.2.3}",
                           "{\"a\":\"\\u12g4\"}",
                           "{\"a\":inf}",
                           "{\"a\":\"\\ud83d\"}",
                           "{\"a\":\"\\ud83d\\u0041\"}",
                           "{\"a\":\"\\",
                           "{,}",
                           "x",
                           "{\"a\":1,}",
                           "{\"a\":0x1}"})
    CHECK_THROWS(JsonAttributes(text), "[attributes] needs JSON");
  CHECK_THROWS(JsonAttributes("{\"a\":" + std::string(10000, '[')), "less nested");
}
