#include "base/text.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>

namespace rh {
namespace {

std::string text_of(const Text& text) { return {text.data(), text.length()}; }

void append(const char* part, size_t length, void* to) { static_cast<std::string*>(to)->append(part, length); }

TEST(Text, AppendsCharactersAndStrings) {
  Text text;
  text << 'a' << "" << "bc" << 'd';
  EXPECT_EQ(text_of(text), "abcd");
}

TEST(Text, WritesDecimalNumbers) {
  Text text;
  text.decimal(0) << ' ';
  text.decimal(9) << ' ';
  text.decimal(10) << ' ';
  text.decimal(UINT64_MAX);
  EXPECT_EQ(text_of(text), "0 9 10 18446744073709551615");
}

TEST(Text, WritesHexNumbersWithoutLeadingZeros) {
  Text text;
  text.hex(0) << ' ';
  text.hex(0xf) << ' ';
  text.hex(0x10) << ' ';
  text.hex(0x00a0b0) << ' ';
  text.hex(UINT64_MAX);
  EXPECT_EQ(text_of(text), "0x0 0xf 0x10 0xa0b0 0xffffffffffffffff");
}

TEST(Text, QuotesAsJson) {
  Text text;
  text.quoted("plain \"q\" back\\slash \n\t\x01\x1f \xc3\xa9");
  EXPECT_EQ(text_of(text), "\"plain \\\"q\\\" back\\\\slash \\u000a\\u0009\\u0001\\u001f \xc3\xa9\"");
}

TEST(Text, WithoutASinkCutsOffWhatDoesNotFit) {
  Text text;
  std::string expected;
  for (int i = 0; i < 2000; ++i) {
    char character = static_cast<char>('a' + i % 26);
    text << character;
    if (expected.size() < 512) expected += character;
  }
  EXPECT_EQ(text_of(text), expected);
}

TEST(Text, WithASinkPassesEverythingOnInOrder) {
  std::string seen, expected;
  {
    Text text(append, &seen);
    for (unsigned i = 0; i < 3000; ++i) {
      text.decimal(i) << ',';
      expected += std::to_string(i) + ',';
    }
    EXPECT_LT(seen.size(), expected.size());  // the rest is still in the buffer
  }
  EXPECT_EQ(seen, expected);
}

TEST(Text, FlushPassesOnOnce) {
  std::string seen;
  Text text(append, &seen);
  text << "once";
  text.flush();
  text.flush();
  EXPECT_EQ(seen, "once");
  EXPECT_EQ(text.length(), 0u);
}

TEST(Text, QuotesWhatIsNoUtf8AsReplaced) {
  const std::pair<const char*, const char*> cases[] = {
      {"gr\xc3\xbcn \xe2\x82\xac \xf0\x9f\x90\x9f", "gr\xc3\xbcn \xe2\x82\xac \xf0\x9f\x90\x9f"},
      {"/tmp/\xfc/x", R"(/tmp/\ufffd/x)"},
      {"\x80", R"(\ufffd)"},                                // a lone continuation byte
      {"\xc3", R"(\ufffd)"},                                // truncated
      {"\xe2\x82", R"(\ufffd\ufffd)"},                      // truncated later
      {"\xe2(x", R"(\ufffd(x)"},                            // interrupted
      {"\xc0\xaf", R"(\ufffd\ufffd)"},                      // overlong
      {"\xe0\x80\xaf", R"(\ufffd\ufffd\ufffd)"},            // the same
      {"\xed\xa0\x80", R"(\ufffd\ufffd\ufffd)"},            // half of a surrogate pair
      {"\xf4\x90\x80\x80", R"(\ufffd\ufffd\ufffd\ufffd)"},  // beyond the last character
      {"\xff", R"(\ufffd)"},
  };
  for (const auto& [given, expected] : cases) {
    Text text;
    text.quoted(given);
    EXPECT_EQ(text_of(text), '"' + std::string(expected) + '"');
  }
}

TEST(Json, PlacesCommas) {
  Text text;
  Json json(text);
  json.open(nullptr, '{');
  json.number("a", 1);
  json.string("b\"", "x\\");
  json.open("list", '[');
  json.open(nullptr, '{').close('}');
  json.open(nullptr, '{');
  json.boolean("yes", true);
  json.boolean("no", false);
  json.close('}').close(']');
  json.open("empty", '[').close(']');
  json.address("at", 0x1000);
  json.close('}');
  EXPECT_EQ(text_of(text), R"({"a":1,"b\"":"x\\","list":[{},{"yes":true,"no":false}],"empty":[],"at":"0x1000"})");
}

struct Parsed {
  bool good;
  uint64_t value;
  std::string rest;
};

Parsed parse(const char* text) {
  Parsed parsed = {false, 77, ""};
  const char* end = nullptr;
  parsed.good = parse_number(text, &parsed.value, &end);
  if (parsed.good) parsed.rest = end;
  return parsed;
}

TEST(ParseNumber, ReadsDecimalAndHex) {
  EXPECT_EQ(parse("0").value, 0u);
  EXPECT_EQ(parse("00012").value, 12u);
  EXPECT_EQ(parse("18446744073709551615").value, UINT64_MAX);
  EXPECT_EQ(parse("0xffffFFFFffffFFFF").value, UINT64_MAX);
  EXPECT_EQ(parse("0X1aB").value, 0x1abu);
}

TEST(ParseNumber, GivesWhatFollows) {
  EXPECT_EQ(parse("12M").rest, "M");
  EXPECT_EQ(parse("12abc").rest, "abc");
  EXPECT_EQ(parse("0x12g").rest, "g");
  EXPECT_EQ(parse("7 ").rest, " ");
  EXPECT_EQ(parse("7").rest, "");
}

TEST(ParseNumber, RefusesWhatIsNoNumberOrDoesNotFit) {
  for (const char* text : {"", " 1", "-1", "+1", "x1", "M", "0x", "0xg", "18446744073709551616",
                           "99999999999999999999999", "0x10000000000000000"}) {
    Parsed parsed = parse(text);
    EXPECT_FALSE(parsed.good) << text;
    EXPECT_EQ(parsed.value, 77u) << text;  // untouched
  }
}

TEST(SameText, ComparesWhole) {
  EXPECT_TRUE(same_text("", ""));
  EXPECT_TRUE(same_text("low", "low"));
  EXPECT_FALSE(same_text("low", "lo"));
  EXPECT_FALSE(same_text("lo", "low"));
  EXPECT_FALSE(same_text("low", "lox"));
}

}  // namespace
}  // namespace rh
