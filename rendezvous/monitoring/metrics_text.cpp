#include "rendezvous/monitoring/metrics_text.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "rendezvous/monitoring/states.hpp"

namespace elastic::monitoring {

using rendezvous::JobHistory;
using rendezvous::StatusReply;
using rendezvous::WorkerFigures;

namespace {

using Labels = std::vector<std::pair<const char*, std::string>>;

/// Within quotation marks, as the text format wants it.
std::string escaped(const std::string& value) {
  std::string text;
  for (const char character : value) {
    if (character == '\\' || character == '"') text += '\\';
    if (character == '\n') {
      text += "\\n";
    } else {
      text += character;
    }
  }
  return text;
}

class Writer {
 public:
  /// Begins a metric: the samples that follow are of it.
  void metric(const char* name, const char* type, const char* help) {
    name_ = name;
    text_ += fmt::format("# HELP {0} {2}\n# TYPE {0} {1}\n", name, type, help);
  }
  template <typename Number>
  void sample(const Labels& labels, Number value, const char* suffix = "") {
    text_ += name_ + suffix;
    const char* separator = "{";
    for (const auto& [name, label] : labels) {
      text_ += fmt::format("{}{}=\"{}\"", separator, name, escaped(label));
      separator = ",";
    }
    text_ += fmt::format("{} {}\n", labels.empty() ? "" : "}", value);
  }
  template <typename Number>
  void single(const char* name, const char* type, const char* help, Number value) {
    metric(name, type, help);
    sample({}, value);
  }
  std::string take() { return std::move(text_); }

 private:
  std::string name_;
  std::string text_;
};

void write_job(const StatusReply& status, Writer& out) {
  out.metric("elastic_job_info", "gauge", "The job; always 1.");
  out.sample({{"job", status.job}}, 1);
  out.metric("elastic_job_phase", "gauge", "1 for the phase that the job is in.");
  for (const char* phase : {"forming", "recovering", "running", "changing", "done", "failed"}) {
    out.sample({{"phase", phase}}, status.phase == phase ? 1 : 0);
  }
  out.single("elastic_generation", "gauge", "Generation of the view in force.",
             status.view.generation);
  out.single("elastic_steps_total", "counter", "Steps that the job has committed.", status.commits);
  out.single("elastic_steps_per_second", "gauge", "Step rate of the last ten seconds or so.",
             status.steps_per_second);
}

void write_workers(const StatusReply& status, Writer& out) {
  std::map<std::string, int> workers;
  for (const char* state :
       {"synced", "member", "disconnected", "ended", "preparing", "joining", "waiting"}) {
    workers[state] = 0;
  }
  for (std::size_t rank = 0; rank < status.view.members.size(); ++rank) {
    ++workers[state_of(status, progress_of(status, rank))];
  }
  for (const auto& joiner : status.joiners) ++workers[state_of(joiner)];
  out.metric("elastic_workers", "gauge", "Members and joiners by state.");
  for (const auto& [state, count] : workers) out.sample({{"state", state}}, count);
}

void write_hosts(const StatusReply& status, Writer& out) {
  const auto hosts = status.launchers.value_or(std::vector<StatusReply::Launcher>());
  if (hosts.empty()) return;
  const auto labels = [](const StatusReply::Launcher& host) {
    return Labels{{"host", host.host}, {"number", std::to_string(host.number)}};
  };
  out.metric("elastic_host_connected", "gauge", "1 where the elasticrun of a host is connected.");
  for (const auto& host : hosts) out.sample(labels(host), host.connected ? 1 : 0);
  out.metric("elastic_host_slots", "gauge", "Workers that a host runs at most.");
  for (const auto& host : hosts) out.sample(labels(host), host.slots);
  out.metric("elastic_host_workers", "gauge", "Workers that a host runs.");
  for (const auto& host : hosts) out.sample(labels(host), host.running);
  out.metric("elastic_host_quarantine_seconds", "gauge",
             "For how long a host is in quarantine; 0: it is not.");
  for (const auto& host : hosts) {
    const std::int64_t left = host.quarantine ? host.quarantine->left_ms : 0;
    out.sample(labels(host), static_cast<double>(left) / 1000);
  }
}

void write_history(const JobHistory& history, Writer& out) {
  out.metric("elastic_views_total", "counter", "Views since the server was started, by cause.");
  for (const auto& views : history.views) out.sample({{"cause", views.cause}}, views.count);
  out.metric("elastic_recovery_seconds", "histogram",
             "Time for which a view change stopped the slowest member, by cause.");
  for (const auto& views : history.views) {
    if (views.cause == "start") continue;  // there is nothing to recover from
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < views.recoveries.size(); ++i) {
      sum += views.recoveries[i];
      const bool bounded = i < rendezvous::kRecoveryBounds.size();
      const std::string bound =
          bounded ? fmt::to_string(rendezvous::kRecoveryBounds.at(i)) : "+Inf";
      out.sample({{"cause", views.cause}, {"le", bound}}, sum, "_bucket");
    }
    out.sample({{"cause", views.cause}}, views.recovery_s, "_sum");
    out.sample({{"cause", views.cause}}, sum, "_count");
  }
}

Labels of_rank(std::size_t rank) {
  return {{"rank", std::to_string(rank)}};
}

void write_members(const StatusReply& status, Writer& out) {
  const auto& members = status.view.members;
  out.metric("elastic_worker_info", "gauge", "Host, slot and process of a rank; always 1.");
  for (std::size_t rank = 0; rank < members.size(); ++rank) {
    Labels labels = of_rank(rank);
    labels.emplace_back("host", host_of(status, members[rank]));
    labels.emplace_back("slot", members[rank].label);
    labels.emplace_back("pid", std::to_string(members[rank].pid));
    out.sample(labels, 1);
  }
  out.metric("elastic_worker_heartbeat_age_seconds", "gauge", "Time since a member's heartbeat.");
  for (std::size_t rank = 0; rank < status.heartbeat_age_ms.size(); ++rank) {
    out.sample(of_rank(rank), status.heartbeat_age_ms[rank] / 1000);
  }
  out.metric("elastic_worker_steps_total", "counter", "Steps that a member has committed.");
  for (std::size_t rank = 0; rank < members.size(); ++rank) {
    out.sample(of_rank(rank), progress_of(status, rank).commits);
  }
  out.metric("elastic_worker_operations_total", "counter",
             "Collectives that a member has completed since the job began.");
  for (std::size_t rank = 0; rank < members.size(); ++rank) {
    out.sample(of_rank(rank), progress_of(status, rank).operations);
  }
}

/// One sample for each member that has told its figures, and each of `values`.
template <std::size_t kCount, typename Number>
void write_figures(
    const StatusReply& status, const char* label,
    const std::array<std::pair<const char*, Number WorkerFigures::*>, kCount>& values,
    Writer& out) {
  for (std::size_t rank = 0; rank < status.view.members.size(); ++rank) {
    const auto figures = progress_of(status, rank).figures;
    if (!figures) continue;
    for (const auto& [name, value] : values) {
      Labels labels = of_rank(rank);
      labels.emplace_back(label, name);
      out.sample(labels, (*figures).*value);
    }
  }
}

void write_training(const StatusReply& status, Writer& out) {
  using Seconds = std::pair<const char*, double WorkerFigures::*>;
  using Bytes = std::pair<const char*, std::uint64_t WorkerFigures::*>;
  out.metric("elastic_worker_step_seconds_total", "counter",
             "Time of the steps of a member, by phase; communication includes waiting.");
  write_figures(status, "phase",
                std::array{Seconds{"data", &WorkerFigures::data_s},
                           Seconds{"compute", &WorkerFigures::compute_s},
                           Seconds{"communication", &WorkerFigures::communication_s},
                           Seconds{"view_change", &WorkerFigures::view_change_s}},
                out);
  out.metric("elastic_link_bytes_total", "counter",
             "Bytes that a member has sent to others or read from their memory, by kind of link.");
  write_figures(
      status, "kind",
      std::array{Bytes{"shm", &WorkerFigures::shm_bytes}, Bytes{"tcp", &WorkerFigures::tcp_bytes}},
      out);
  out.metric("elastic_compression_bytes_total", "counter",
             "Gradients that a member has given to compression, before and after.");
  write_figures(status, "form",
                std::array{Bytes{"gradient", &WorkerFigures::gradient_bytes},
                           Bytes{"encoded", &WorkerFigures::encoded_bytes}},
                out);
  out.metric("elastic_ramp_gamma", "gauge",
             "Factor on the learning rate: now, and where the ramp goes; 0 without a ramp.");
  write_figures(status, "point",
                std::array{Seconds{"now", &WorkerFigures::ramp_gamma},
                           Seconds{"target", &WorkerFigures::ramp_target}},
                out);
}

}  // namespace

std::string metrics_text(const StatusReply& status) {
  Writer out;
  write_job(status, out);
  write_workers(status, out);
  write_hosts(status, out);
  write_history(status.history.value_or(JobHistory()), out);
  write_members(status, out);
  write_training(status, out);
  return out.take();
}

}  // namespace elastic::monitoring
