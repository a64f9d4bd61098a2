#pragma once

#include <optional>
#include <string>

#include "base/clock.hpp"
#include "rendezvous/etcd/etcd_options.hpp"
#include "rendezvous/server/server.hpp"

namespace elastic::rendezvous {

/// The options of `elastic-rendezvous`.
struct ProgramOptions {
  ServerOptions server;         ///< but for the secret, which is in `secret_file`
  std::string secret_file;      ///< empty: make one
  std::string port_file;        ///< empty: none
  std::string connection_file;  ///< with the secret in it; empty: none
  std::string job_record;       ///< that the starter writes, removed at the end; empty: none
  etcd::EtcdOptions store;      ///< where the journal is and leaders are chosen; no members: none
  std::string password_file;    ///< of `store`; empty: none
  Milliseconds lease{5000};     ///< of the server that leads
  std::string log_level = "info";
  int quarantine_seconds = 60;  ///< the first pause of a host; 0: none
  bool exit_when_done = false;
  int starter_fd = -1;  ///< its end is the end of the process that started the server; -1: none
};

struct ParsedProgram {
  ProgramOptions options;
  std::optional<int> exit_code;  ///< set: print `text` and exit
  std::string text;
};

ParsedProgram parse_program(int argc, const char* const* argv);

}  // namespace elastic::rendezvous
