#include "rendezvous/protocol/connection_file.hpp"

#include <unistd.h>

#include <nlohmann/json.hpp>

#include "base/interface_addresses.hpp"
#include "rendezvous/protocol/secret_json.hpp"

namespace elastic::rendezvous {

Status write_connection_file(const std::string& path, const JobContact& contact) {
  const nlohmann::json fields = {
      {"job", contact.job}, {"address", contact.address}, {"encrypt", contact.encrypt}};
  return write_secret_json(path, {fields, contact.secret});
}

Result<JobContact> read_connection_file(const std::string& path) {
  const auto read = read_secret_json(path);
  if (!read.ok()) return read.status();
  const nlohmann::json& fields = read.value().fields;
  try {
    return JobContact{fields.at("job").get<std::string>(), fields.at("address").get<std::string>(),
                      read.value().secret, fields.at("encrypt").get<bool>()};
  } catch (const nlohmann::json::exception& error) {
    return Status(Code::kInvalidArgument,
                  path + " is no connection file of a job: " + error.what());
  }
}

Result<ConnectionFile> ConnectionFile::create(const std::string& path, const JobContact& contact) {
  if (Status status = write_connection_file(path, contact); !status.ok()) return status;
  return ConnectionFile(path);
}

ConnectionFile::~ConnectionFile() {
  if (!path_.empty()) ::unlink(path_.c_str());
}

std::string address_for_others(const std::string& listening, std::string host) {
  const bool v4 = listening.starts_with("0.0.0.0:");
  const bool v6 = listening.starts_with("[::]:");
  if (!v4 && !v6) return listening;
  if (host.empty()) {
    const auto first = interface_addresses(v6).front().address;
    host = first.is_v6() ? "[" + first.to_string() + "]" : first.to_string();
  }
  return host + listening.substr(listening.rfind(':'));
}

}  // namespace elastic::rendezvous
