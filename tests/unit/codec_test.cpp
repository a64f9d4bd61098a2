#include "rendezvous/protocol/codec.hpp"

#include <limits>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "rendezvous/protocol/compressed_text.hpp"
#include "rendezvous/protocol/fields.hpp"

namespace elastic::rendezvous {
namespace {

using ::testing::HasSubstr;

/// An archive that fills every field with something random.
class Randomizer {
 public:
  explicit Randomizer(std::mt19937_64& random) : random_(random) {}

  template <typename T>
  void operator()(const char* /*name*/, T& value) {
    fill(value);
  }

 private:
  void fill(bool& value) { value = random_() % 2 == 0; }
  void fill(double& value) { value = std::uniform_real_distribution<double>(-1e9, 1e9)(random_); }
  void fill(Farewell::Reason& value) { value = static_cast<Farewell::Reason>(random_() % 4); }
  void fill(std::string& value) {
    static const std::vector<std::string> pieces{"a", "\"", "\\", "\n", "{", "[", "\u00e4", "\x01"};
    value.clear();
    for (auto n = random_() % 9; n > 0; --n) value += pieces[random_() % pieces.size()];
  }
  template <std::integral T>
  void fill(T& value) {
    switch (random_() % 4) {
      case 0:
        value = std::numeric_limits<T>::min();
        break;
      case 1:
        value = std::numeric_limits<T>::max();
        break;
      default:
        value = static_cast<T>(random_());
    }
  }
  template <typename T>
  void fill(std::optional<T>& value) {
    value.reset();
    if (random_() % 2 == 0) fill(value.emplace());
  }
  template <typename T>
  void fill(std::shared_ptr<const T>& value) {
    T filled;
    fill(filled);
    value = std::make_shared<const T>(std::move(filled));
  }
  template <typename T>
  void fill(std::vector<T>& values) {
    values.resize(random_() % 4);
    for (T& value : values) fill(value);
  }
  template <typename T>
  requires std::is_class_v<T>
  void fill(T& value) { fields(*this, value); }

  std::mt19937_64& random_;
};

template <std::size_t I = 0>
void each_type(std::mt19937_64& random, const auto& visit) {
  if constexpr (I < std::variant_size_v<Message>) {
    std::variant_alternative_t<I, Message> message;
    Randomizer randomizer(random);
    fields(randomizer, message);
    visit(Message(std::move(message)));
    each_type<I + 1>(random, visit);
  }
}

std::string complaint(const std::string& text) {
  const Result<Message> decoded = decode(text);
  EXPECT_FALSE(decoded.ok()) << text.substr(0, 100);
  if (decoded.ok()) return {};
  EXPECT_EQ(decoded.status().code(), Code::kProtocol);
  return decoded.status().message();
}

TEST(Codec, EveryMessageComesBackAsItWas) {
  constexpr std::uint64_t kSeed = 20240817;
  SCOPED_TRACE("seed " + std::to_string(kSeed));
  std::mt19937_64 random(kSeed);
  for (int round = 0; round < 200; ++round) {
    each_type(random, [](const Message& message) {
      const std::string text = encode(message);
      const Result<Message> decoded = decode(text);
      ASSERT_TRUE(decoded.ok()) << text << "\n" << decoded.status().message();
      EXPECT_EQ(decoded.value().index(), message.index());
      EXPECT_EQ(encode(decoded.value()), text);
    });
  }
}

TEST(Codec, PacksLongMessagesInFewerBytes) {
  View view;
  for (int i = 0; i < 1000; ++i) {
    view.members.push_back(
        {"worker-" + std::to_string(i), {"host", {"10.0.0.1:4711"}, ""}, i, "slot", false});
  }
  const Message message = Announce{std::make_shared<const View>(view)};
  const std::string bytes = pack(message);
  EXPECT_LT(bytes.size(), encode(message).size() / 10);
  const Result<Message> unpacked = unpack(bytes);
  ASSERT_TRUE(unpacked.ok()) << unpacked.status().message();
  EXPECT_EQ(*std::get<Announce>(unpacked.value()).view, view);
  EXPECT_EQ(pack(StopRequest{}), encode(StopRequest{}));
  EXPECT_FALSE(unpack(bytes.substr(0, bytes.size() / 2)).ok());
  EXPECT_FALSE(unpack(std::string(100, '\0')).ok());
}

TEST(Codec, ReadsEveryCompressedTextToItsEnd) {
  for (unsigned seed = 0; seed < 2000; ++seed) {
    std::mt19937_64 random(seed);
    std::string text;
    for (const std::size_t bytes = random() % 2000; text.size() < bytes;) {
      text += std::to_string(random() % 100000) + ",";
    }
    const Result<std::string> read = decompress(compress(text), kMaxMessageBytes);
    ASSERT_TRUE(read.ok()) << "seed " << seed << ": " << read.status().message();
    ASSERT_EQ(read.value(), text) << "seed " << seed;
  }
}

TEST(Codec, UnpacksNoMoreThanAMessageMayHave) {
  const std::string text(kMaxMessageBytes + 1, ' ');
  const std::string bytes = compress(text);
  EXPECT_LT(bytes.size(), text.size() / 100);
  EXPECT_THAT(unpack(bytes).status().message(), HasSubstr("more than"));
  EXPECT_EQ(decompress(compress("short"), 5).value(), "short");
  EXPECT_FALSE(decompress(compress("longer"), 5).ok());
}

TEST(Codec, KeepsFields) {
  const Suspect suspect{7, "3f2a", "connection reset"};
  const Result<Message> decoded = decode(encode(suspect));
  ASSERT_TRUE(decoded.ok());
  const auto& back = std::get<Suspect>(decoded.value());
  EXPECT_EQ(back.generation, 7U);
  EXPECT_EQ(back.incarnation, "3f2a");
  EXPECT_EQ(back.reason, "connection reset");
  EXPECT_FALSE(back.never_linked);
}

TEST(Codec, IgnoresUnknownFields) {
  EXPECT_TRUE(
      decode(R"({"type":"bye","done":true,"failure":"","unable":false,"mood":"good"})").ok());
}

TEST(Codec, NamesWhatIsWrong) {
  EXPECT_THAT(complaint(R"({"type":"bye"})"), HasSubstr("bye.done is missing"));
  EXPECT_THAT(complaint(R"({"type":"bye","done":1})"), HasSubstr("bye.done is not a truth value"));
  EXPECT_THAT(complaint(R"({"type":"refuse","reason":[]})"), HasSubstr("not a string"));
  EXPECT_THAT(complaint(R"({"type":"ready","layout":{}})"), HasSubstr("not an array"));
  EXPECT_THAT(complaint(R"({"type":"ready","layout":[{"name":"a"}]})"),
              HasSubstr("ready.layout[0].type is missing"));
  EXPECT_THAT(complaint(R"({"type":"add","count":2147483648})"), HasSubstr("add.count is out of"));
  EXPECT_THAT(complaint(R"({"type":"add","count":1.5})"), HasSubstr("not an integer"));
  EXPECT_THAT(complaint(R"({"type":"add","count":1e99})"), HasSubstr("not an integer"));
  EXPECT_THAT(complaint(R"({"type":"suspect","generation":-1,"incarnation":"","reason":""})"),
              HasSubstr("suspect.generation is out of range"));
  EXPECT_THAT(complaint(R"({"type":"farewell","reason":"x","text":""})"), HasSubstr("reason"));
  EXPECT_THAT(complaint(R"({"type":"dance"})"), HasSubstr("unknown type 'dance'"));
  EXPECT_THAT(complaint(R"({"done":true})"), HasSubstr("no type"));
  EXPECT_THAT(complaint("[]"), HasSubstr("not an object"));
  EXPECT_THAT(complaint("GET / HTTP/1.1"), HasSubstr("not JSON"));
  EXPECT_THAT(complaint(""), HasSubstr("not JSON"));
}

TEST(Codec, BoundsDepthAndSize) {
  EXPECT_THAT(complaint(std::string(100000, '[')), HasSubstr("nested deeper"));
  std::string objects;
  for (int i = 0; i < 100000; ++i) objects += "{\"a\":";
  EXPECT_THAT(complaint(objects), HasSubstr("nested deeper"));
  EXPECT_THAT(complaint(std::string(kMaxMessageBytes + 1, ' ')), HasSubstr("bytes, more than"));
  // Brackets in strings nest nothing.
  EXPECT_TRUE(decode(encode(Refuse{std::string(1000, '[') + "\"" + std::string(99, '{')})).ok());
}

TEST(Codec, SurvivesDamage) {
  std::mt19937_64 random(4711);
  each_type(random, [&](const Message& message) {
    const std::string text = encode(message);
    for (int round = 0; round < 100; ++round) {
      std::string damaged = text;
      damaged[random() % damaged.size()] = static_cast<char>(random());
      if (round % 3 == 0) damaged.resize(random() % damaged.size());
      const Result<Message> decoded = decode(damaged);
      if (!decoded.ok()) {
        EXPECT_EQ(decoded.status().code(), Code::kProtocol);
      }
    }
  });
}

TEST(Codec, EncodesTextThatIsNotUtf8) {
  const Result<Message> decoded = decode(encode(Refuse{"\xff\xfe"}));
  EXPECT_TRUE(decoded.ok());
}

TEST(Codec, Greetings) {
  const auto greeting = decode_greeting(encode_greeting({3, "digits", "worker"}));
  ASSERT_TRUE(greeting.ok());
  EXPECT_EQ(greeting.value().protocol, 3);
  EXPECT_EQ(greeting.value().job, "digits");
  EXPECT_EQ(greeting.value().role, "worker");
  EXPECT_FALSE(decode_greeting("{}").ok());
}

}  // namespace
}  // namespace elastic::rendezvous
