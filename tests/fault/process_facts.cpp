#include "fault/process_facts.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string>

#include <arpa/inet.h>

namespace elastic::testing {

namespace {

namespace fs = std::filesystem;

fs::path of(pid_t pid, const char* what) {
  return fs::path("/proc") / std::to_string(pid) / what;
}

std::size_t entries(const fs::path& folder) {
  std::error_code error;
  std::size_t result = 0;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    ++result;
  }
  return result;
}

/// The inode numbers of a process's sockets, from links such as "socket:[4711]".
std::set<std::string> socket_inodes(pid_t pid) {
  std::set<std::string> result;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(of(pid, "fd"), error)) {
    const std::string target = fs::read_symlink(entry.path(), error).string();
    if (target.starts_with("socket:[")) result.insert(target.substr(8, target.size() - 9));
  }
  return result;
}

/// One line of /proc/PID/net/tcp. Addresses and state are hexadecimal, as the kernel writes them.
struct TcpSocket {
  std::string local;
  std::string remote;
  std::string state;
};

/// The TCP sockets of a process.
std::vector<TcpSocket> tcp_sockets(pid_t pid) {
  const std::set<std::string> own = socket_inodes(pid);
  std::vector<TcpSocket> result;
  std::ifstream table(of(pid, "net/tcp"));
  std::string line;
  std::getline(table, line);  // headings
  while (std::getline(table, line)) {
    // sl, local address, remote address, state, queues, timer, retransmits, uid, timeout, inode
    std::istringstream words(line);
    std::vector<std::string> fields;
    for (std::string word; words >> word;) fields.push_back(word);
    if (fields.size() < 10 || !own.contains(fields[9])) continue;
    result.push_back({fields[1], fields[2], fields[3]});
  }
  return result;
}

}  // namespace

Footprint footprint(pid_t pid) {
  Footprint result;
  result.descriptors = entries(of(pid, "fd"));
  std::error_code error;
  for (fs::directory_iterator thread(of(pid, "task"), error), end; !error && thread != end;
       thread.increment(error)) {
    std::ifstream comm(thread->path() / "comm");
    std::string name;
    std::getline(comm, name);
    ++(name == "elastic-repair" ? result.repairing : result.threads);
  }
  return result;
}

std::vector<pid_t> children_of(pid_t pid, const std::string& program) {
  const std::string number = std::to_string(pid);
  std::ifstream children("/proc/" + number + "/task/" + number + "/children");
  std::vector<pid_t> found;
  for (pid_t child = 0; children >> child;) {
    std::ifstream name("/proc/" + std::to_string(child) + "/comm");
    std::string comm;
    if (std::getline(name, comm) && comm == program) found.push_back(child);
  }
  return found;
}

std::size_t resident_kib(pid_t pid) {
  std::ifstream status(of(pid, "status"));
  for (std::string word; status >> word;) {
    std::size_t kib = 0;
    if (word == "VmRSS:" && status >> kib) return kib;
  }
  return 0;
}

std::vector<std::uint16_t> listening_ports(pid_t pid) {
  std::vector<std::uint16_t> result;
  for (const TcpSocket& socket : tcp_sockets(pid)) {
    if (socket.state != "0A") continue;
    const std::string port = socket.local.substr(socket.local.find(':') + 1);
    result.push_back(static_cast<std::uint16_t>(std::stoul(port, nullptr, 16)));
  }
  return result;
}

std::vector<std::string> listening_names(pid_t pid) {
  const std::set<std::string> own = socket_inodes(pid);
  std::vector<std::string> result;
  std::ifstream table(of(pid, "net/unix"));
  std::string line;
  std::getline(table, line);  // headings
  while (std::getline(table, line)) {
    // number, references, protocol, flags, type, state, inode, name
    std::istringstream words(line);
    std::array<std::string, 8> fields;
    for (std::string& field : fields) words >> field;
    const bool listens = fields[3] == "00010000";
    if (listens && own.contains(fields[6]) && fields[7].starts_with('@')) {
      result.push_back(fields[7].substr(1));
    }
  }
  return result;
}

std::size_t connections_to(pid_t pid, const std::string& address) {
  in_addr binary{};
  ::inet_pton(AF_INET, address.c_str(), &binary);
  std::array<char, 10> as_in_table{};
  std::snprintf(as_in_table.data(), as_in_table.size(), "%08X:", binary.s_addr);
  const std::vector<TcpSocket> all = tcp_sockets(pid);
  return static_cast<std::size_t>(std::count_if(all.begin(), all.end(), [&](const auto& socket) {
    return socket.state == "01" && socket.remote.starts_with(as_in_table.data());
  }));
}

}  // namespace elastic::testing
