#include "rendezvous/monitoring/status_json.hpp"

#include <nlohmann/json.hpp>

#include "rendezvous/monitoring/states.hpp"

namespace elastic::monitoring {

using rendezvous::JobHistory;
using rendezvous::Member;
using rendezvous::StatusReply;
using rendezvous::WorkerFigures;

namespace {

using Json = nlohmann::json;

Json json_of(const WorkerFigures& its) {
  return {{"at_seconds", its.at_s},
          {"steps", its.steps},
          {"data_seconds", its.data_s},
          {"compute_seconds", its.compute_s},
          {"communication_seconds", its.communication_s},
          {"view_change_seconds", its.view_change_s},
          {"shm_bytes", its.shm_bytes},
          {"tcp_bytes", its.tcp_bytes},
          {"gradient_bytes", its.gradient_bytes},
          {"encoded_bytes", its.encoded_bytes},
          {"ramp_gamma", its.ramp_gamma},
          {"ramp_target", its.ramp_target}};
}

Json json_of(const StatusReply& status, std::size_t rank) {
  const Member& member = status.view.members[rank];
  const StatusReply::Progress progress = progress_of(status, rank);
  Json row = {{"rank", rank},
              {"pid", member.pid},
              {"host", member.endpoints.host},
              {"slot", member.label},
              {"state", state_of(status, progress)},
              {"incarnation", member.incarnation},
              {"commits", progress.commits},
              {"operations", progress.operations},
              {"figures", nullptr}};
  if (rank < status.heartbeat_age_ms.size())
    row["heartbeat_age_ms"] = status.heartbeat_age_ms[rank];
  if (progress.figures) row["figures"] = json_of(*progress.figures);
  return row;
}

Json json_of(const StatusReply::Waiting& joiner) {
  return {{"pid", joiner.pid},
          {"slot", joiner.label},
          {"state", state_of(joiner)},
          {"waits_for", joiner.waits_for},
          {"incarnation", joiner.incarnation}};
}

Json json_of(const StatusReply::Launcher& its) {
  Json json = {{"number", its.number},   {"host", its.host},           {"slots", its.slots},
               {"running", its.running}, {"connected", its.connected}, {"quarantine", nullptr}};
  if (its.quarantine) {
    json["quarantine"] = {{"why", its.quarantine->why},
                          {"left_seconds", static_cast<double>(its.quarantine->left_ms) / 1000}};
  }
  return json;
}

Json json_of(const JobHistory::Views& views) {
  return {{"cause", views.cause},
          {"count", views.count},
          {"recovery_seconds", views.recovery_s},
          {"recoveries", views.recoveries}};
}

Json json_of(const JobHistory::Event& event) {
  Json json = {{"at_ms", event.at_ms}, {"event", event.event}, {"text", event.text}};
  if (event.seconds) json["seconds"] = *event.seconds;
  return json;
}

Json json_of(const JobHistory::Rate& rate) {
  return {{"at_ms", rate.at_ms}, {"steps_per_second", rate.steps_per_second}};
}

template <typename T>
Json list_of(const std::vector<T>& values) {
  Json list = Json::array();
  for (const T& value : values) list.push_back(json_of(value));
  return list;
}

}  // namespace

std::string status_json(const StatusReply& status) {
  const JobHistory history = status.history.value_or(JobHistory());
  Json json = {
      {"job", status.job},
      {"phase", status.phase},
      {"generation", status.view.generation},
      {"world_size", status.view.members.size()},
      {"min_np", status.min_np},
      {"max_np", status.max_np},
      {"initial_np", nullptr},
      {"view_changes", status.view_changes},
      {"commits", status.commits},
      {"steps_per_second", status.steps_per_second},
      {"slowest_rank", nullptr},
      {"last_change", status.view.cause},
      {"members", Json::array()},
      {"joiners", list_of(status.joiners)},
      {"launchers", list_of(status.launchers.value_or(std::vector<StatusReply::Launcher>()))},
      {"views", list_of(history.views)},
      {"recovery_bounds", rendezvous::kRecoveryBounds},
      {"events", list_of(history.events)},
      {"rates", list_of(history.rates)}};
  if (status.initial_np) json["initial_np"] = *status.initial_np;
  if (status.slowest >= 0) json["slowest_rank"] = status.slowest;
  for (std::size_t rank = 0; rank < status.view.members.size(); ++rank) {
    json["members"].push_back(json_of(status, rank));
  }
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace elastic::monitoring
