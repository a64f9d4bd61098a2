// Writes inputs to start from, made with the present encodings: fuzz_seeds FOLDER fills
// FOLDER/<target>/.
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <span>
#include <string>
#include <vector>

#include "base/handshake.hpp"
#include "collectives/transport/frame.hpp"
#include "collectives/transport/link_greeting.hpp"
#include "fuzz/data_frame_steps.hpp"
#include "fuzz/fuzz_state.hpp"
#include "rendezvous/protocol/codec.hpp"
#include "rendezvous/protocol/compressed_text.hpp"
#include "rendezvous/protocol/frame.hpp"
#include "rendezvous/server/journal_record.hpp"
#include "training/checkpoint.hpp"
#include "training/state_image.hpp"

namespace elastic {
namespace {

using namespace rendezvous;
namespace fs = std::filesystem;

View view_of(std::uint64_t generation) {
  View view;
  view.generation = generation;
  view.members = {
      {"3f2a", {"host", {"127.0.0.1:4711", "[::1]:4711"}, "elastic-3f2a"}, 90, "0", true},
      {"9c01", {"host", {"10.0.0.2:80"}, ""}, 91, "1", false}};
  view.lanes = {{91, {"3f2a"}, {"9c01"}, false}, {0, {}, {}, true}};
  view.commits = 42;
  view.cause = "worker 3f2a (rank 2) died: \"connection closed\"\n";
  view.joined = {"9c01"};
  view.lost = {"77aa"};
  return view;
}

std::vector<std::string> control_frames() {
  Register registration;
  registration.incarnation = "3f2a";
  registration.endpoints = {"host", {"127.0.0.1:1"}, "local"};
  registration.generation = 2;
  Report report{3, 4, {{91, "3f2a"}, {0, ""}}, 42, true, true};
  StatusReply status;
  status.view = view_of(3);
  status.joiners = {{"77aa", "2", 92, true, "a faster line"}};
  status.heartbeat_age_ms = {0.5, 1e9};
  status.departed = {{"slot-3", "removed", "on request"}};
  status.history = {{{"loss", 1, 0.2, {0, 0, 0, 1}}}, {{1, "recovery", "view 3", 0.2}}, {{1, 2.5}}};
  View before = view_of(2);
  before.members[1].incarnation = "77aa";
  const ViewChange change = change_between(before, view_of(3)).value();
  WorkerFigures figures;
  figures.at_s = 4;
  figures.steps = 40;
  figures.compute_s = 2.5;
  figures.changes = {{3, 0.25}};
  Heartbeat with_figures{3, {91, 0}};
  with_figures.figures = figures;
  const std::vector<Message> messages{registration,
                                      Heartbeat{3, {91, 0}},
                                      with_figures,
                                      Suspect{3, "9c01", "reset"},
                                      Promise{2, true, 41},
                                      Paused{2, 42},
                                      report,
                                      Ready{{{"w", "f32", 650}}, 3},
                                      Bye{true, "no state"},
                                      Check{{"3f2a"}},
                                      Gone{"3f2a", "refused"},
                                      Welcome{true, 50, view_of(3).members.front()},
                                      Wait{"a slow line", std::nullopt},
                                      Refuse{"no"},
                                      Freeze{3, 4, 42, "a join"},
                                      Announce{std::make_shared<const View>(view_of(3)), 400},
                                      ViewRequest{3},
                                      KnownView{std::make_shared<const View>(view_of(3))},
                                      AnnounceChange{change},
                                      Farewell{Farewell::Reason::kEvicted, "silent"},
                                      Fail{"too few", true},
                                      StatusRequest{},
                                      AddRequest{2},
                                      RemoveRequest{1, "slot-1.0"},
                                      StopRequest{},
                                      status,
                                      Done{false, "no"},
                                      Spawn{1},
                                      JobState{"running", "", true, false},
                                      Enlist{"3f2a", "node1", 4, 2, 1, 3},
                                      Enlisted{3, "job"},
                                      LimitRequest{"node1", 0, 30000},
                                      ExpectRequest{3},
                                      Limited{0, 30000},
                                      PardonRequest{"node1"},
                                      DumpRequest{"a stall"},
                                      Quarantined{true},
                                      WorkerEnded{1, "slot-1.0", "exited with code 7", 77},
                                      EndWorker{"slot-1.0", 77, "no heartbeat for 500 ms"}};
  std::vector<std::string> seeds;
  std::string all;
  for (const Message& message : messages) {
    seeds.push_back("0" + framed(encode(message)));
    all += framed(encode(message));
  }
  seeds.push_back("0" + framed(compress(encode(messages.front()))));
  seeds.push_back("0" + all);
  seeds.push_back("1" + all);
  seeds.push_back("1" + encode_greeting({kProtocolVersion, "job", "worker"}));
  return seeds;
}

std::vector<std::string> journals() {
  std::string text = journal_line(JournalStart{"job"}) + journal_line(JournalFloor{4}) +
                     journal_line(view_of(5)) + journal_line(view_of(6));
  const std::string records = "{\"type\":\"floor\",\"generation\":4}\n" +
                              encode(Announce{std::make_shared<const View>(view_of(5))}) + "\n" +
                              encode(Announce{});
  std::vector<std::string> seeds{"1" + records};
  for (const std::size_t cut : {text.size(), text.size() - 9, text.size() / 2}) {
    seeds.push_back("0" + text.substr(0, cut));
    seeds.push_back(seeds.back() + std::string(16, '\0'));
  }
  return seeds;
}

std::vector<std::string> data_frames() {
  using fuzz::Step;
  const auto bytes = [](const std::vector<std::uint8_t>& list) {
    return std::string(list.begin(), list.end());
  };
  // Step, oddities, message, length, offset, content.
  const std::string message_1 = bytes({Step::kData, 0, 1, 1, 0, 'x'});
  const std::string message_2 = bytes({Step::kData, 0, 2, 32, 0, 1, Step::kData, 0, 2, 32, 32, 1});
  const std::string note = bytes({Step::kNote, 0, 0, 100, 0, 'n', Step::kTakeNotes, 1});
  const std::string beyond = bytes({Step::kData, 32, 2, 8, 16, 60, 0});
  const std::string damaged = bytes({Step::kDamaged, 0, 1, 1, 0, 'x', 65, 3});
  const std::string later = bytes({Step::kData, 2, 0, 0, 0, 2, 0, Step::kBegin, 1, 1});
  std::string raw(transport::FrameHeader::kBytes, '\0');
  transport::FrameHeader header;
  header.length = 0;
  transport::encode(header,
                    std::as_writable_bytes(std::span(raw)).first<transport::FrameHeader::kBytes>());
  const std::string verbatim = bytes({Step::kBytes, transport::FrameHeader::kBytes}) + raw;
  return {message_1 + message_2 + note, note + note, message_1 + beyond, damaged, later + message_1,
          verbatim + message_2};
}

std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::vector<std::string> handshakes() {
  transport::LinkGreeting greeting;
  greeting.job = "job";
  greeting.dialer = "3f2a";
  greeting.acceptor = "9c01";
  greeting.transport = "tcp";
  greeting.link_id = "77aa";
  greeting.streams = 2;
  const std::string text = transport::encode(greeting);
  const Secret secret = random_secret();
  const handshake::Dialer dialer(secret, handshake::Purpose::kData, text);
  handshake::Acceptor acceptor(secret, handshake::Purpose::kData);
  const std::string hello = text_of(dialer.hello());
  const std::string challenge = text_of(acceptor.challenge({}).value());
  // Reader, whether the beginning fits, mode.
  const auto seed = [](std::uint8_t reader, const std::string& rest) {
    return std::string{static_cast<char>(reader), '\0', '\0'} + rest;
  };
  return {seed(0, hello + std::string(handshake::kProofBytes, 'p')), seed(1, challenge + "\1"),
          std::string{2, 0} + text};
}

std::vector<std::string> tls_records() {
  const std::string record{23, 3, 3, 0, 4, 'd', 'a', 't', 'a'};
  return {std::string(1, '\0') + record + record + std::string(20, '\3'),
          std::string(1, '\1') + std::string(100, 'd') + std::string(100, '\7')};
}

std::vector<std::string> state_images() {
  fuzz::FuzzState sender;
  const std::string image = text_of(training::serialize(sender.state()));
  return {std::string(1, '\0') + image, std::string(1, '\1') + image};
}

std::vector<std::string> checkpoints(const fs::path& folder) {
  fuzz::FuzzState saver;
  const fs::path file = folder / "checkpoint";
  training::save_checkpoint(saver.state(), file.string());
  std::ifstream in(file, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  fs::remove(file);
  // Whole by its sizes and its checksum, and of another state all the same.
  std::string shorter = text;
  shorter.erase(text.size() / 2, 64);
  return {std::string(1, '\0') + text, std::string(1, '\1') + text, std::string(1, '\1') + shorter};
}

void write(const fs::path& folder, const std::vector<std::string>& seeds) {
  fs::create_directories(folder);
  for (std::size_t i = 0; i < seeds.size(); ++i) {
    std::ofstream(folder / ("seed-" + std::to_string(i)), std::ios::binary) << seeds[i];
  }
}

}  // namespace
}  // namespace elastic

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("usage: fuzz_seeds FOLDER\n", stderr);
    return 2;
  }
  const std::filesystem::path folder = argv[1];
  std::filesystem::create_directories(folder);
  elastic::write(folder / "checkpoint_fuzz", elastic::checkpoints(folder));
  elastic::write(folder / "control_frame_fuzz", elastic::control_frames());
  elastic::write(folder / "data_frame_fuzz", elastic::data_frames());
  elastic::write(folder / "handshake_fuzz", elastic::handshakes());
  elastic::write(folder / "journal_fuzz", elastic::journals());
  elastic::write(folder / "state_image_fuzz", elastic::state_images());
  elastic::write(folder / "tls_record_fuzz", elastic::tls_records());
  return 0;
}
