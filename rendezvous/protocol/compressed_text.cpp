#include "rendezvous/protocol/compressed_text.hpp"

#include <algorithm>

#include <boost/beast/zlib/deflate_stream.hpp>
#include <boost/beast/zlib/inflate_stream.hpp>

namespace elastic::rendezvous {

namespace zlib = boost::beast::zlib;

namespace {

constexpr char kMark = '\0';
/// Fast: what repeats in views is found at any level.
constexpr int kLevel = 1;
constexpr int kWindowBits = 15;
constexpr int kMemoryLevel = 8;
constexpr std::size_t kFirstGuess = 256 * 1024;
/// Beast's inflate_stream looks at some bytes behind the end, without which it misses some ends.
constexpr std::size_t kBehindTheEnd = 8;

Status damaged() {
  return Status(Code::kProtocol, "malformed message: its compressed text cannot be read");
}

}  // namespace

std::string compress(std::string_view text) {
  zlib::deflate_stream stream;
  stream.reset(kLevel, kWindowBits, kMemoryLevel, zlib::Strategy::normal);
  std::string bytes(1 + stream.upper_bound(text.size()), kMark);
  zlib::z_params step;
  step.next_in = text.data();
  step.avail_in = text.size();
  step.next_out = bytes.data() + 1;
  step.avail_out = bytes.size() - 1;
  boost::system::error_code error;
  stream.write(step, zlib::Flush::finish, error);
  bytes.resize(1 + step.total_out);
  return bytes;
}

bool is_compressed(std::string_view bytes) {
  return bytes.starts_with(kMark);
}

Result<std::string> decompress(std::string_view bytes, std::size_t most) {
  std::string input(bytes.substr(1));
  input.append(kBehindTheEnd, '\0');
  zlib::inflate_stream stream;
  std::string text(std::min(most, kFirstGuess), '\0');
  zlib::z_params step;
  step.next_in = input.data();
  step.avail_in = input.size();
  while (true) {
    step.next_out = text.data() + step.total_out;
    step.avail_out = text.size() - step.total_out;
    boost::system::error_code error;
    stream.write(step, zlib::Flush::sync, error);
    if (error == zlib::error::end_of_stream) {
      text.resize(step.total_out);
      return text;
    }
    if ((error && error != zlib::error::need_buffers) || step.avail_out != 0) return damaged();
    if (text.size() == most) {
      return Status(Code::kProtocol,
                    "malformed message: it has more than " + std::to_string(most) + " bytes");
    }
    text.resize(std::min(most, 2 * text.size()));
  }
}

}  // namespace elastic::rendezvous
